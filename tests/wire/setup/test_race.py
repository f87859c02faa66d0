"""One setup link, several client and server processes: one administrator, one record (S-28, R-12)."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.database_contents import administrator_logins, open_services_on, verified_audit_log
from tests.support.processes import Node, run_command, two_nodes
from tests.support.service import FAST_SETTINGS
from tests.support.setup_link import setup_request, setup_token

CLIENTS: Final = 3  # processes
EACH: Final = 3  # requests per process, in total fewer than the guesses that block an address


@contextmanager
def serving_nodes(url: str, data: Path) -> Iterator[Sequence[Node]]:
    """The serving nodes: one process on SQLite, two on PostgreSQL."""
    if url.startswith("sqlite:"):
        with Node(data=data, database_url=url, environment=FAST_SETTINGS) as node:
            yield [node]
    else:
        with two_nodes(data=data, database_url=url, environment=FAST_SETTINGS) as nodes:
            yield nodes


def race(requests: Sequence[Sequence[tuple[int, str]]]) -> list[int]:
    """Send all requests at once, each inner list from its own process; return the sorted statuses."""
    command = [sys.executable, "-I", str(Path(__file__).parent / "racing_client.py")]
    clients = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        for _ in requests
    ]
    for client, mine in zip(clients, requests, strict=True):
        print(json.dumps(mine), file=client.stdin, flush=True)
    assert [client.stdout.readline() for client in clients if client.stdout] == ["ready\n"] * len(clients)
    for client in clients:
        print(file=client.stdin, flush=True)
    return [status for client in clients for status in json.loads(client.communicate(timeout=60)[0])]


async def test_exactly_one_of_many_clients_with_one_link_becomes_administrator(
    migrated_url: str, tmp_path: Path
) -> None:
    logins = [[f"racer{client}{n}@studio.example" for n in range(EACH)] for client in range(CLIENTS)]
    with serving_nodes(migrated_url, tmp_path) as nodes:
        token = setup_token(nodes[-1])  # only the link of the node that started last is valid
        ports = [nodes[n % len(nodes)].port for n in range(EACH)]
        statuses = race(
            [
                [(port, setup_request(token, login=login).decode()) for port, login in zip(ports, mine, strict=True)]
                for mine in logins
            ]
        )
    assert Counter(statuses) == {200: 1, 403: CLIENTS * EACH - 1}
    winner = [login for mine in logins for login in mine][statuses.index(200)]
    async with open_services_on(migrated_url, tmp_path) as services:
        assert await administrator_logins(services) == [winner]
        assert [user.login for user in await services.storage.accounts.all_users()] == [winner]
        events = Counter(record.event for record in await verified_audit_log(services))
        assert (events["setup.closed"], events["user.created"]) == (1, 1)
    result = run_command(
        *("audit", "verify", "--json", "--dev", "--data", tmp_path),
        environment={"GATEHOUSE__DATABASE__URL": migrated_url},
    )
    assert json.loads(result)["problems"] == []
