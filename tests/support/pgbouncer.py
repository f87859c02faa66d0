"""A real PgBouncer in transaction mode in front of a real PostgreSQL."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.capabilities import PGBOUNCER, require_program
from tests.support.postgres import ADMINISTRATOR, PostgresCluster, make_server_directory, server_user
from tests.support.processes import LOOPBACK, WatchedProcess, free_port

SETTINGS: Final = """\
[databases]
* = host={host} port={server_port}
[pgbouncer]
listen_addr = {host}
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = transaction
default_pool_size = 4
"""


@contextmanager
def pgbouncer_before(cluster: PostgresCluster) -> Iterator[int]:
    """Yield the port it listens on; the databases behind it have the same names."""
    program = require_program(PGBOUNCER)
    directory = make_server_directory()
    try:
        port = free_port()
        settings = write_settings(directory, port, cluster)
        with WatchedProcess([str(program), str(settings)], cwd=directory, user=server_user()) as pooler:
            pooler.wait_until_started("process up", pooler.stderr)
            yield port
    finally:
        shutil.rmtree(directory)


def write_settings(directory: Path, port: int, cluster: PostgresCluster) -> Path:
    users, settings = directory / "users.txt", directory / "pgbouncer.ini"
    users.write_text(f'"{ADMINISTRATOR}" ""\n')
    settings.write_text(SETTINGS.format(host=LOOPBACK, port=port, server_port=cluster.port, users=users))
    return settings
