#!/bin/sh
# On the primary, once: the role a standby copies and follows with. Run by the PostgreSQL image for a new database.
set -eu

secrets=${SECRETS:-/run/secrets}
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --set=password="$(cat "$secrets/replication_password")" \
    --username="${POSTGRES_USER:-postgres}" --dbname=postgres <<'END'
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'password';
END
echo "host replication replicator samenet scram-sha-256" >>"$PGDATA/pg_hba.conf"
