#!/bin/sh
# Makes the secret files of deploy/compose.yaml and deploy/nodes/compose.yaml in the directory named. A file that
# exists keeps its content: run again it only adds what is missing, and never replaces a master key.
#   sudo deploy/make-secrets.sh /etc/gatehouse/secrets
set -eu
umask 077

directory=${1:?name the directory for the secrets}
gatehouse=10001 # the user of deploy/Dockerfile
postgres=999    # the user of the PostgreSQL image

put() { # FILE VALUE
    if [ ! -s "$1" ]; then
        printf '%s\n' "$2" >"$1"
    fi
}

mkdir -p "$directory"
cd "$directory"
for name in master_key postgres_password owner_password runtime_password replication_password; do
    value=$(openssl rand -hex 32)
    put "$name" "$value"
done
put owner_url "postgresql://gatehouse_owner:$(cat owner_password)@db/gatehouse"
put runtime_url "postgresql://gatehouse:$(cat runtime_password)@db/gatehouse"
put nodes_url "postgresql://gatehouse:$(cat runtime_password)@db,standby/gatehouse?target_session_attrs=read-write"
chmod 400 master_key ./*_password ./*_url

if [ "$(id -u)" -eq 0 ]; then
    chown "$gatehouse" master_key ./*_url
    chown "$postgres" ./*_password
else
    echo "not root: chown master_key and *_url to $gatehouse, *_password to $postgres" >&2
fi
