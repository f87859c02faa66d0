"""A node stops inside a transaction: the others continue, and its save is refused (checklist OP-85, OP-86)."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from tests.faults.fault_setup import DEV, Person, create_project_application, fault_setup, nodes_of
from tests.faults.run_record import sample
from tests.faults.workloads.workload import API
from tests.support.pgbouncer import pgbouncer_before
from tests.support.postgres import PostgresCluster, database_name
from tests.support.postgres_session import LOCK_TIMEOUT, postgres_session, wait_for_lock_waiters
from tests.support.processes import LOOPBACK, Node
from tests.support.tls import NO_TRUST_STORE

GOES_ON_WITHIN: Final = 5.0  # seconds, for the other nodes
LETS_GO_SOON: Final = {"GATEHOUSE__DATABASE__IDLE_TRANSACTION_SECONDS": "3"}  # as in a release
LONG: Final = 60.0  # seconds; the nodes respond earlier
ROLES: Final = "SELECT count(*) FROM roles WHERE application_id = $1"
IDLE: Final = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND state = 'idle in transaction' AND pid <> pg_backend_pid()
"""


def saving_role(node: Node, number: int, who: Person) -> "asyncio.Task[httpx2.Response]":
    body = {"action": "save", "application_id": number, "data": {"name": "Fresh"}}

    async def save() -> httpx2.Response:
        async with httpx2.AsyncClient(timeout=LONG, verify=NO_TRUST_STORE, trust_env=False) as http:
            return await http.post(f"{node.address}{API}roles", json=body, headers=who.headers)

    return asyncio.create_task(save())


@contextmanager
def urls_of(kind: str, cluster: PostgresCluster, url: str) -> Iterator[dict[str, str]]:
    """The database URLs of a node, direct or through PgBouncer in transaction mode."""
    if kind == "direct":
        yield {"GATEHOUSE__DATABASE__URL": url}
        return
    with pgbouncer_before(cluster) as port:
        yield {
            "GATEHOUSE__DATABASE__URL": f"postgresql://postgres@{LOOPBACK}:{port}/{database_name(url)}",
            "GATEHOUSE__DATABASE__LISTEN_URL": url,
            "GATEHOUSE__DATABASE__STATEMENT_CACHE": "false",
        }


@asynccontextmanager
async def stopped_inside_a_save(node: Node, number: int, who: Person, url: str) -> AsyncIterator[Any]:
    """Stop a node during a save of a role when it has all locks but one, then release that lock.

    Yields the pending save and a separate session.
    """
    async with postgres_session(url) as watcher:
        async with watcher.transaction():
            await watcher.execute("SELECT 1 FROM application_schemas WHERE application_id = $1 FOR UPDATE", number)
            save = saving_role(node, number, who)
            async with postgres_session(url) as other:
                await wait_for_lock_waiters(other)
            node.process.send(signal.SIGSTOP)
        async with asyncio.timeout(LOCK_TIMEOUT):
            while not await watcher.fetchval(IDLE):
                pass
        try:
            yield save, watcher
        finally:
            node.process.send(signal.SIGCONT)


@pytest.mark.parametrize("kind", sample(["direct", "pgbouncer"], "direct"))
async def test_op_85_a_node_stopped_inside_a_save_blocks_the_others_for_seconds_and_its_save_never_happens(
    kind: str, postgres_cluster: PostgresCluster, installed_postgres_url: str, tmp_path: Path
) -> None:
    url = installed_postgres_url
    with urls_of(kind, postgres_cluster, url) as environment:
        first, second = nodes_of(url, tmp_path, flags=[DEV] * 2, **environment, **LETS_GO_SOON)
        async with fault_setup(url, tmp_path, first.base_url) as setup:
            started, other = [await create_project_application(setup.services, name) for name in ("Begun", "Other")]
        with first, second:
            async with stopped_inside_a_save(first, started, setup.owner, url) as (save, watcher):
                async with asyncio.timeout(GOES_ON_WITHIN):
                    response = await saving_role(second, other, setup.owner)
                    while await watcher.fetchval(IDLE):  # until PostgreSQL ends the transaction of the node
                        pass
                assert response.status_code == 200, response.text
            refusal = await save
            assert (refusal.status_code, refusal.json()["status"]) == (503, "ERROR"), refusal.text
            async with postgres_session(url) as watcher:
                before = await watcher.fetchval(ROLES, started)
                again = await saving_role(first, started, setup.owner)
                assert again.status_code == 200, again.text
                assert await watcher.fetchval(ROLES, started) == before + 1


async def test_op_86_a_save_that_waits_too_long_for_a_lock_is_told_to_come_again(
    installed_postgres_url: str, tmp_path: Path
) -> None:
    url = installed_postgres_url
    quick = {"GATEHOUSE__DATABASE__LOCK_SECONDS": "1"}
    [node] = nodes_of(url, tmp_path, flags=[DEV], **quick)
    async with fault_setup(url, tmp_path, node.base_url) as setup:
        number = await create_project_application(setup.services, "Locked")
    with node:
        async with postgres_session(url) as watcher, watcher.transaction():
            await watcher.execute("SELECT 1 FROM application_schemas WHERE application_id = $1 FOR UPDATE", number)
            async with asyncio.timeout(GOES_ON_WITHIN):
                refusal = await saving_role(node, number, setup.owner)
            assert refusal.status_code == 503
            assert refusal.headers["retry-after"]
        assert (await saving_role(node, number, setup.owner)).status_code == 200
