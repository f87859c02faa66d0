// PostgreSQL with its default settings and fsync: a pool of connections, with statements prepared once on each.
import pg from "pg";

export async function postgres(url) {
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  await pool.query(`CREATE TABLE records (
    id text PRIMARY KEY, payload jsonb NOT NULL, grant_id text, uid text, consumed bigint, expires bigint
  )`);
  await pool.query("CREATE INDEX records_by_grant ON records (grant_id) WHERE grant_id IS NOT NULL");
  await pool.query("CREATE INDEX records_by_uid ON records (uid) WHERE uid IS NOT NULL");
  const run = (name, text, ...values) => pool.query({ name, text, values });
  const now = () => Math.floor(Date.now() / 1000);
  const read = ({ rows: [row] }) => row && { ...row.payload, ...(row.consumed && { consumed: Number(row.consumed) }) };

  return class Postgres {
    constructor(model) {
      this.model = model;
    }
    key(id) {
      return `${this.model}:${id}`;
    }
    async upsert(id, payload, expiresIn) {
      const statement = `INSERT INTO records (id, payload, grant_id, uid, expires) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (id) DO UPDATE SET payload = excluded.payload, expires = excluded.expires`;
      const expires = expiresIn ? now() + expiresIn : null;
      await run("upsert", statement, this.key(id), payload, payload.grantId ?? null, payload.uid ?? null, expires);
    }
    async find(id) {
      return read(await run("find", "SELECT payload, consumed FROM records WHERE id = $1", this.key(id)));
    }
    async findByUid(uid) {
      return read(await run("findByUid", "SELECT payload, consumed FROM records WHERE uid = $1", uid));
    }
    async consume(id) {
      await run("consume", "UPDATE records SET consumed = $1 WHERE id = $2", now(), this.key(id));
    }
    async destroy(id) {
      await run("destroy", "DELETE FROM records WHERE id = $1", this.key(id));
    }
    async revokeByGrantId(grantId) {
      await run("revoke", "DELETE FROM records WHERE grant_id = $1", grantId);
    }
  };
}
