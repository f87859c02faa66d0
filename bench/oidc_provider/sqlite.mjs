// Node's own SQLite with durable writes: WAL with synchronous=FULL, as in Gatehouse, and statements prepared once.
import { DatabaseSync } from "node:sqlite";

export function sqlite(path) {
  const database = new DatabaseSync(path);
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
  database.exec(`CREATE TABLE records (
    id TEXT PRIMARY KEY, payload TEXT NOT NULL, grant_id TEXT, uid TEXT, consumed INTEGER, expires INTEGER
  ) WITHOUT ROWID`);
  database.exec("CREATE INDEX records_by_grant ON records (grant_id) WHERE grant_id IS NOT NULL");
  database.exec("CREATE INDEX records_by_uid ON records (uid) WHERE uid IS NOT NULL");
  const upsert = database.prepare(`INSERT INTO records (id, payload, grant_id, uid, expires) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET payload = excluded.payload, expires = excluded.expires`);
  const find = database.prepare("SELECT payload, consumed FROM records WHERE id = ?");
  const findByUid = database.prepare("SELECT payload, consumed FROM records WHERE uid = ?");
  const consume = database.prepare("UPDATE records SET consumed = ? WHERE id = ?");
  const destroy = database.prepare("DELETE FROM records WHERE id = ?");
  const revoke = database.prepare("DELETE FROM records WHERE grant_id = ?");
  const now = () => Math.floor(Date.now() / 1000);
  const read = (row) => row && { ...JSON.parse(row.payload), ...(row.consumed && { consumed: row.consumed }) };

  return class SQLite {
    constructor(model) {
      this.model = model;
    }
    key(id) {
      return `${this.model}:${id}`;
    }
    async upsert(id, payload, expiresIn) {
      const expires = expiresIn ? now() + expiresIn : null;
      upsert.run(this.key(id), JSON.stringify(payload), payload.grantId ?? null, payload.uid ?? null, expires);
    }
    async find(id) {
      return read(find.get(this.key(id)));
    }
    async findByUid(uid) {
      return read(findByUid.get(uid));
    }
    async consume(id) {
      consume.run(now(), this.key(id));
    }
    async destroy(id) {
      destroy.run(this.key(id));
    }
    async revokeByGrantId(grantId) {
      revoke.run(grantId);
    }
  };
}
