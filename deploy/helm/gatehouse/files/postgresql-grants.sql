-- What the serving role may do (defaults S-29). By gatehouse_owner, after every `gatehouse migrate`:
--   psql --dbname=postgresql://gatehouse_owner@db/gatehouse --file=deploy/postgresql-grants.sql

BEGIN;

GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO gatehouse;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO gatehouse;

-- The schema's revision is the migrating role's to write.
REVOKE INSERT, UPDATE, DELETE ON alembic_version FROM gatehouse;

-- The audit log can be added to. The sealer gives a record its place, and an erasure empties its personal part;
-- the chain covers a commitment to that part, so that a changed one shows (`gatehouse audit verify`).
REVOKE UPDATE, DELETE ON audit_events FROM gatehouse;
GRANT UPDATE (place, personal, salt) ON audit_events TO gatehouse;
REVOKE UPDATE, DELETE ON audit_seals FROM gatehouse;

-- Refusals are capped, so the oldest are deleted; none is changed.
REVOKE UPDATE ON audit_refusals FROM gatehouse;

COMMIT;
