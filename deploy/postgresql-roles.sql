-- The two roles of a Gatehouse database (defaults S-29): gatehouse_owner owns the schema and migrates it,
-- gatehouse serves. What the second may do with the tables is in postgresql-grants.sql.
--
-- Once, as a superuser, in the new and empty database `gatehouse`; the passwords are read from two files:
--   psql --dbname=gatehouse --set=secrets=/etc/gatehouse/secrets --file=deploy/postgresql-roles.sql

\set ON_ERROR_STOP on
\if :{?secrets}
\else
  \set secrets /run/secrets
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
