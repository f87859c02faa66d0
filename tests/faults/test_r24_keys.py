"""Signing keys and the master key change under load, and the commands that change them are killed (faults R-24)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import httpx2
import pytest
from joserfc import jws
from joserfc.jwk import KeySet
from sqlalchemy import insert

from gatehouse.app.rewrapping import count_under_old_keys
from gatehouse.app.services import Services, open_services
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import SystemClock
from gatehouse.keys.model import KeyState, key_state
from gatehouse.keys.sealing import new_master_key
from gatehouse.oauth.client_commands import client_secret_purpose
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.oauth import client_secrets
from tests.faults.run_record import on_databases
from tests.support.browser import PASSWORD
from tests.support.command_line import InstallationPaths
from tests.support.database_contents import open_services_on, verified_audit_log
from tests.support.processes import GATEHOUSE_COMMAND, DidNotStart, Node, WatchedProcess
from tests.support.service import FAST_SETTINGS
from tests.support.tls import NO_TRUST_STORE

ANNA: Final = "anna@studio.example"
MASTER: Final = "GATEHOUSE__SECURITY__MASTER_KEY"
PREVIOUS: Final = "GATEHOUSE__SECURITY__PREVIOUS_MASTER_KEYS"
SECRETS: Final = 3_000  # several batches
UNLIMITED: Final = {**FAST_SETTINGS, "GATEHOUSE__RATES__ENABLED": "false"}
PUT_SECRET = Statement(lambda: insert(client_secrets))


class Prober:
    """Sign in continuously, and verify every token so far with the published keys."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self._tokens: list[str] = []
        self.kids: set[str] = set()
        self._finished_round = asyncio.Condition()

    async def wait_for_rounds(self, number: int) -> None:
        async with self._finished_round:
            for _ in range(number):
                await self._finished_round.wait()

    async def probe(self) -> None:
        while True:
            body = {"login": ANNA, "password": PASSWORD, "factor": "device"}
            response = await self._client.post("/proxy/api/login", json=body)
            self._tokens.append(response.json()["jwt"])
            keys = KeySet.import_key_set((await self._client.get("/proxy/oauth/keys")).json())
            for token in self._tokens:  # raises if it does not verify
                self.kids.add(jws.deserialize_compact(token, keys, algorithms=["RS256"]).headers()["kid"])
            async with self._finished_round:
                self._finished_round.notify_all()


@asynccontextmanager
async def run_prober(node: Node) -> AsyncIterator[Prober]:
    async with (
        httpx2.AsyncClient(base_url=node.address, timeout=30, verify=NO_TRUST_STORE) as client,
        asyncio.TaskGroup() as probing,
    ):
        prober = Prober(client)
        task = probing.create_task(prober.probe())  # its failure ends the test
        yield prober
        await prober.wait_for_rounds(2)
        task.cancel()


def command(installation: InstallationPaths, *words: str) -> WatchedProcess:
    return WatchedProcess(
        [*GATEHOUSE_COMMAND, *words, "--dev", "--data", str(installation.data)], environment=installation.settings
    )


@on_databases("sqlite")
async def test_r_24_a_rotation_killed_in_the_middle_costs_no_token_and_is_finished_later(
    url: str, tmp_path: Path, rounds: int
) -> None:
    installation = InstallationPaths(data=tmp_path, url=url, environment=UNLIMITED)
    async with open_services_on(url, tmp_path) as services:
        await services.accounts.administration.create(
            login=ANNA, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
        )
    with Node(data=tmp_path, database_url=url, environment=UNLIMITED) as node:
        async with run_prober(node) as prober, open_storage(url, migrate=False) as storage:
            for _ in range(rounds):
                version = (await storage.keys.load_keys()).version
                with command(installation, "key", "rotate", "--now") as rotating:
                    await wait_until_changed(storage, version)
                    rotating.kill()
            assert await asyncio.to_thread(command(installation, "key", "rotate", "--now").wait) == 0
        assert len(prober.kids) > 1
        assert node.terminate() == 0
    async with open_services_on(url, tmp_path) as services:
        keys, now = (await services.storage.keys.load_keys()).keys, services.clock.now()
        signing = Counter(key.line for key in keys if key_state(key, now) is KeyState.SIGNING)
        assert signing == dict.fromkeys((key.line for key in keys), 1)  # one per line, in any case
        assert [record.event for record in await verified_audit_log(services)].count("key.rotated") >= 5


async def wait_until_changed(storage: Storage, seen: int) -> None:
    async with asyncio.timeout(60):
        while (await storage.keys.load_keys()).version == seen:
            pass  # another process writes it


@on_databases("postgres")
async def test_r_24_a_new_master_key_is_taken_over_though_the_command_was_killed_halfway(
    url: str, tmp_path: Path
) -> None:
    old, new = (tmp_path / "dev.key").read_text().strip(), new_master_key()
    both = InstallationPaths(data=tmp_path, url=url, environment={**UNLIMITED, MASTER: new, PREVIOUS: old})
    only = InstallationPaths(data=tmp_path, url=url, environment={**UNLIMITED, MASTER: new})
    await seal_many(url, tmp_path)
    async with open_installation(both) as services:
        before = sum((await count_under_old_keys(services.storage, services.core.masters)).values())
        with command(both, "key", "rewrap") as moving:
            while (
                left := sum((await count_under_old_keys(services.storage, services.core.masters)).values())
            ) == before:
                assert moving.running, moving.output()
            moving.kill()
        left = sum((await count_under_old_keys(services.storage, services.core.masters)).values())
    assert 0 <= left < before
    if left:
        with pytest.raises(DidNotStart, match="encrypted with"):
            Node(data=tmp_path, environment=only.settings).start()
    with Node(data=tmp_path, environment=both.settings) as node:  # a half-done change is served
        assert httpx2.get(f"{node.address}/readyz").status_code == 200
        assert await asyncio.to_thread(command(both, "key", "rewrap").wait, 60.0) == 0
    with Node(data=tmp_path, environment=only.settings) as node:
        assert httpx2.get(f"{node.address}/readyz").status_code == 200
    async with open_installation(only) as services:
        assert await count_under_old_keys(services.storage, services.core.masters) == {}


async def seal_many(url: str, data: Path) -> None:
    async with open_services_on(url, data) as services:
        rows = [
            {
                "client_id": f"c{number}",
                "slot": 1,
                "kind": "sealed",
                "secret": services.core.masters.seal(b"secret", purpose=client_secret_purpose(f"c{number}")),
                "created_at": 1,
                "expires_at": 0,
            }
            for number in range(SECRETS)
        ]

        def put() -> Verb[None]:
            yield PUT_SECRET.bulk(rows)

        await services.storage.runner.write(partial(put))


@asynccontextmanager
async def open_installation(installation: InstallationPaths) -> AsyncIterator[Services]:
    async with open_services(installation.load_settings(), clock=SystemClock(), serving=False) as services:
        yield services
