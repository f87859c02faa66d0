#!/bin/sh
# A standby: copies the primary when its own directory is empty, then follows it. What is given is handed to postgres.
# To make it the primary: docs/operations/many-nodes.md.
set -eu

secrets=${SECRETS:-/run/secrets}
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    PGPASSWORD=$(cat "$secrets/replication_password") pg_basebackup \
        --host="${PRIMARY_HOST:-db}" --port="${PRIMARY_PORT:-5432}" --username=replicator \
        --pgdata="$PGDATA" --write-recovery-conf --wal-method=stream --checkpoint=fast
    chmod 0700 "$PGDATA"
fi
exec postgres "$@"
