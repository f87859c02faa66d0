#!/bin/sh
# Makes the secret files of deploy/compose.yaml and deploy/nodes/compose.yaml in the directory named. A file that
# exists keeps its content: run again it only adds what is missing, and never replaces a master key.
#   sudo deploy/make-secrets.sh /etc/gatehouse/secrets
# For a database server of your own name its host. Then only its two roles get passwords and addresses, root's alone:
#   sudo deploy/make-secrets.sh /etc/gatehouse/secrets db1.example.org
set -eu
umask 077

directory=${1:?name the directory for the secrets}
host=${2:-db}
gatehouse=10001 # the user of deploy/Dockerfile
postgres=999    # the user of the PostgreSQL image

put() { # FILE VALUE
    if [ ! -s "$1" ]; then
        printf '%s\n' "$2" >"$1"
    fi
}

put_random() { # FILE...
    for name in "$@"; do
        value=$(openssl rand -hex 32)
        put "$name" "$value"
    done
}

mkdir -p "$directory"
cd "$directory"
put_random owner_password runtime_password
put owner_url "postgresql://gatehouse_owner:$(cat owner_password)@$host/gatehouse"
put runtime_url "postgresql://gatehouse:$(cat runtime_password)@$host/gatehouse"
if [ $# -gt 1 ]; then
    chmod 400 ./*_password ./*_url
    exit # no container reads these
fi

put_random master_key postgres_password replication_password
put nodes_url "postgresql://gatehouse:$(cat runtime_password)@db,standby/gatehouse?target_session_attrs=read-write"
chmod 400 master_key ./*_password ./*_url

if [ "$(id -u)" -eq 0 ]; then
    chown "$gatehouse" master_key ./*_url
    chown "$postgres" ./*_password
else
    echo "not root: chown master_key and *_url to $gatehouse, *_password to $postgres" >&2
fi
