-- The two roles of a Gatehouse database (defaults S-29): gatehouse_owner owns the schema and migrates it,
-- gatehouse serves. What the second may do with the tables is in postgresql-grants.sql.
--
-- Once, as a superuser, in the new and empty database `gatehouse`; the passwords are read from two files, by the
-- user who runs psql (docs/operations/postgresql.md):
--   psql --dbname=gatehouse --set=secrets=/etc/gatehouse/secrets --file=deploy/postgresql-roles.sql

\set ON_ERROR_STOP on
\if :{?secrets}
\else
  \set secrets /run/secrets
\endif

-- A role without a password would be made, with no more than a notice, when a file is empty or not ours to read.
\set readable `grep -q . :'secrets'/owner_password && grep -q . :'secrets'/runtime_password && echo on || echo off`
\if :readable
\else
  DO $$ BEGIN RAISE 'no roles were made: owner_password and runtime_password must be readable, and not empty'; END $$;
\endif
\set owner_password `cat :'secrets'/owner_password`
\set runtime_password `cat :'secrets'/runtime_password`

CREATE ROLE gatehouse_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE gatehouse LOGIN PASSWORD :'runtime_password';

REVOKE ALL ON DATABASE gatehouse FROM PUBLIC;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
ALTER DATABASE gatehouse OWNER TO gatehouse_owner;
ALTER SCHEMA public OWNER TO gatehouse_owner;
GRANT CONNECT ON DATABASE gatehouse TO gatehouse;
GRANT USAGE ON SCHEMA public TO gatehouse;
