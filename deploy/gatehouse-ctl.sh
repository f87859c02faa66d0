#!/bin/sh
# gatehouse with the user, settings and master key of the systemd service; run it as root:
#   sudo gatehouse-ctl doctor
# The key is read here, since only root can, and handed over in the environment of that one command.
set -eu

GATEHOUSE__SECURITY__MASTER_KEY=$(cat /etc/gatehouse/master.key)
export GATEHOUSE__SECURITY__MASTER_KEY
cd /var/lib/gatehouse
exec setpriv --reuid=gatehouse --regid=gatehouse --init-groups --no-new-privs \
    /opt/gatehouse/bin/gatehouse "$@" --data /var/lib/gatehouse --config /etc/gatehouse/gatehouse.toml
