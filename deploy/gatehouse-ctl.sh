#!/bin/sh
# gatehouse with the user, settings and master key of the systemd service; run it as root:
#   sudo gatehouse-ctl doctor
# The key is read here, since only root can, and handed over in the environment of that one command. That command runs
# as the service's user and reads the files that this user can read; for others `sudo gatehouse-ctl apply - < studio.yaml`.
set -eu

GATEHOUSE__SECURITY__MASTER_KEY=$(cat /etc/gatehouse/master.key)
export GATEHOUSE__SECURITY__MASTER_KEY
export HOME=/var/lib/gatehouse # the service's: with TLS, files of the database client are looked for there
case " $* " in
"  " | " -"* | " version "* | *" --help "* | *" -h "*) ;; # about the program, not about an installation
*) set -- "$@" --data /var/lib/gatehouse --config /etc/gatehouse/gatehouse.toml ;;
esac
exec setpriv --reuid=gatehouse --regid=gatehouse --init-groups --no-new-privs /opt/gatehouse/bin/gatehouse "$@"
