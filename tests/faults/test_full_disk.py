"""A full disk: writes get 503, reads are served, and it recovers once there is space (faults R-09)."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import httpx2
import pytest

from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import SystemClock
from gatehouse.keys.nodes import REPORT_EVERY
from tests.faults.disk import FaultyDisk
from tests.support.clock import MovableClock
from tests.support.database_contents import (
    administrator_logins,
    execute_statement,
    open_services_on,
    verified_audit_log,
)
from tests.support.processes import Node
from tests.support.service import FAST_SETTINGS, running_service
from tests.support.setup_link import FORM, setup_token
from tests.support.tls import NO_TRUST_STORE

JWKS = "/proxy/oauth/keys"
FAIL_COMMITS = (
    """CREATE FUNCTION fail_commit() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END$$""",
    """CREATE CONSTRAINT TRIGGER full_disk AFTER INSERT OR UPDATE ON nodes
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail_commit()""",
)


@contextmanager
def stop_file_growth(pid: int, log: Path) -> Iterator[None]:
    """Limit the process to the current size of its files.

    The kernel reports EFBIG where a full disk reports ENOSPC; it needs no root, and the rest is the same.
    """
    free = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (log.stat().st_size, free[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, free)


async def only_reading_works(client: httpx2.AsyncClient, token: str) -> None:
    for response in (
        await client.post("/setup", data={**FORM, "token": token}),
        await client.get("/setup", params={"token": "guess"}),  # a guess that cannot be counted is refused
    ):
        assert response.status_code == 503
        assert int(response.headers["retry-after"]) > 0
    for path in (JWKS, "/healthz", f"/setup?token={token}"):
        assert (await client.get(path)).status_code == 200


async def test_r_09_a_full_disk_is_survived_without_a_restart(migrated_sqlite_url: str, tmp_path: Path) -> None:
    log = tmp_path / "gatehouse.db-wal"
    with Node(data=tmp_path, database_url=migrated_sqlite_url, environment=FAST_SETTINGS) as node:
        token = setup_token(node)
        async with httpx2.AsyncClient(base_url=node.address, timeout=10, verify=NO_TRUST_STORE) as client:
            with stop_file_growth(node.process.pid, log):
                await only_reading_works(client, token)
            assert (await client.post("/setup", data={**FORM, "token": token})).status_code == 200
        node.kill()
    async with open_services_on(migrated_sqlite_url, tmp_path) as services:
        assert await administrator_logins(services) == [FORM["login"]]
        assert [record.event for record in await verified_audit_log(services)].count("setup.closed") == 1


async def test_op_89_a_node_that_cannot_commit_is_not_ready(
    disk: FaultyDisk, migrated_sqlite_url: str, tmp_path: Path
) -> None:
    async with running_service(migrated_sqlite_url, tmp_path) as service:
        assert (await service.client.get("/readyz")).status_code == 200
        await execute_statement(migrated_sqlite_url, "UPDATE nodes SET seen_at = seen_at - 10")  # as ten seconds do
        disk.write_failure = apsw.FullError
        await service.clock.advance(REPORT_EVERY)
        assert (await service.client.get("/readyz")).status_code == 503
        assert (await service.client.get("/healthz")).status_code == 200
        disk.write_failure = None
        await service.clock.advance(2)  # the answer is cached for a second
        assert (await service.client.get("/readyz")).status_code == 200


async def test_op_89_a_node_whose_commits_postgres_refuses_is_not_ready(
    migrated_postgres_url: str, tmp_path: Path
) -> None:
    """A deferred trigger fails the commit, as a full disk of the server does."""
    clock = MovableClock(SystemClock().now())  # readiness compares it with the database
    async with running_service(migrated_postgres_url, tmp_path, clock=clock) as service:
        assert (await service.client.get("/readyz")).status_code == 200
        for statement in FAIL_COMMITS:
            await execute_statement(migrated_postgres_url, statement)
        await clock.advance(REPORT_EVERY)
        assert (await service.client.get("/readyz")).status_code == 503
        assert (await service.client.get(JWKS)).status_code == 200
        await execute_statement(migrated_postgres_url, "DROP TRIGGER full_disk ON nodes")
        await clock.advance(2)  # the answer is cached for a second
        assert (await service.client.get("/readyz")).status_code == 200


@pytest.mark.parametrize("failure", [apsw.FullError, apsw.IOError, apsw.ReadOnlyError])
async def test_r_09_whatever_the_disk_says_it_is_503_and_ends_with_its_cause(
    disk: FaultyDisk, migrated_sqlite_url: str, tmp_path: Path, failure: type[apsw.Error]
) -> None:
    async with running_service(migrated_sqlite_url, tmp_path) as service:
        token = await service.services.accounts.setup.new_link(AuditOrigin(actor="test"))
        disk.write_failure = failure
        await only_reading_works(service.client, token)
        disk.write_failure = None
        assert (await service.client.post("/setup", data={**FORM, "token": token})).status_code == 200
