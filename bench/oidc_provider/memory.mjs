// Everything in a Map without a limit. The memory adapter of the package stores a thousand records, too few for a load.
export function memory() {
  const records = new Map(); // payloads by model and id
  const byUid = new Map();
  const byGrant = new Map(); // sets of keys

  return class Memory {
    constructor(model) {
      this.model = model;
    }
    key(id) {
      return `${this.model}:${id}`;
    }
    async upsert(id, payload) {
      const key = this.key(id);
      records.set(key, payload);
      if (payload.uid) byUid.set(payload.uid, id);
      if (payload.grantId) {
        if (!byGrant.has(payload.grantId)) byGrant.set(payload.grantId, new Set());
        byGrant.get(payload.grantId).add(key);
      }
    }
    async find(id) {
      return records.get(this.key(id));
    }
    async findByUid(uid) {
      return this.find(byUid.get(uid));
    }
    async consume(id) {
      records.get(this.key(id)).consumed = Math.floor(Date.now() / 1000);
    }
    async destroy(id) {
      records.delete(this.key(id));
    }
    async revokeByGrantId(grantId) {
      for (const key of byGrant.get(grantId) ?? []) records.delete(key);
      byGrant.delete(grantId);
    }
  };
}
