"""A new master key is brought to two nodes in any order while people sign in; the log stays sound (faults R-24)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import permutations
from pathlib import Path
from typing import Final

import pytest

from gatehouse.app.rewrapping import count_under_old_keys, rewrap_all
from gatehouse.app.services import Services, open_services
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import SystemClock
from gatehouse.keys.model import MasterKeyMissing, WrongMasterKey
from gatehouse.keys.nodes import NodesWithoutKey
from gatehouse.keys.sealing import new_master_key
from tests.faults.run_record import sample
from tests.support.browser import PASSWORD
from tests.support.clock import MovableClock
from tests.support.command_line import InstallationPaths
from tests.support.database_contents import open_services_on, verified_audit_log
from tests.support.service import RunningService, running_service

ANNA: Final = "anna@studio.example"
MASTER: Final = "GATEHOUSE__SECURITY__MASTER_KEY"
PREVIOUS: Final = "GATEHOUSE__SECURITY__PREVIOUS_MASTER_KEYS"
UNLIMITED: Final = {"GATEHOUSE__RATES__ENABLED": "false"}
# "a": the node a gets both keys; "A": it gets the new one alone; "r": `gatehouse key rewrap`.
ORDERS: Final = [
    "".join(steps)
    for steps in permutations("abrAB")
    if steps.index("a") < steps.index("A") and steps.index("b") < steps.index("B")
]
ROTATIONS: Final = sample(  # and whether the rewrap is forced
    [(order, force) for order in ORDERS for force in (False, True)],
    *(("abrAB", False), ("aArbB", False), ("arbAB", False), ("arbAB", True), ("raAbB", True)),
)
SIGN_INS: Final = 2  # by each node after every step

Keys = Sequence[str]  # the new one first


def key_settings(keys: Keys) -> dict[str, str]:
    settings = {MASTER: keys[0], PREVIOUS: ",".join(keys[1:])}
    return {**UNLIMITED, **{name: value for name, value in settings.items() if value}}


class RollingNode:
    """Signs people in and seals the log all the time, and restarts with other keys."""

    def __init__(self, url: str, data: Path) -> None:
        self._url = url
        self._data = data
        self._stack = AsyncExitStack()
        self._work: asyncio.Task[None] | None = None
        self._answers: Counter[int] = Counter()
        self._answered = asyncio.Condition()
        self.keys: Keys = ()
        self.service: RunningService

    async def restart(self, keys: Keys) -> None:
        """Raises WrongMasterKey, and does not run then."""
        await self.stop()
        clock = MovableClock(SystemClock().now())  # readiness compares it with the database
        service = running_service(self._url, self._data, clock=clock, environment=key_settings(keys))
        self.service = await self._stack.enter_async_context(service)
        self.keys = keys
        await self.service.services.keys.node_reporter.run_once()
        self._work = asyncio.create_task(self._sign_in_and_seal())

    async def stop(self) -> None:
        if self._work is not None:
            self._work.cancel()
            with suppress(asyncio.CancelledError):
                await self._work
            self._work = None
            await self.service.services.keys.node_reporter.leave()
            await self._stack.aclose()

    async def wait_for_sign_ins(self, *, status: int) -> None:
        """Wait until several more requests were answered, all the last ones like this."""
        async with asyncio.timeout(60), self._answered:
            self._answers.clear()
            await self._answered.wait_for(lambda: self._answers[status] >= SIGN_INS or self._is_over())
        if self._work is not None and self._work.done():
            self._work.result()

    def _is_over(self) -> bool:
        return self._work is None or self._work.done()

    async def _sign_in_and_seal(self) -> None:
        try:
            while True:
                await self._sign_in()
                await self.service.services.keys.node_reporter.run_once()
                with suppress(MasterKeyMissing):
                    await self.service.services.audit.sealer.seal_all()
        finally:
            async with self._answered:
                self._answered.notify_all()

    async def _sign_in(self) -> None:
        body = {"login": ANNA, "password": PASSWORD, "factor": "device"}
        response = await self.service.client.post("/proxy/api/login", json=body)
        assert response.status_code in (200, 503), response.text
        async with self._answered:
            self._answers[response.status_code] += 1
            self._answered.notify_all()

    async def is_ready(self) -> bool:
        await self.service.clock.advance(2)  # the last answer is cached for a second
        return (await self.service.client.get("/readyz")).status_code == 200


@asynccontextmanager
async def open_command(url: str, data: Path, keys: Keys) -> AsyncIterator[Services]:
    """Open the services like a command does, with the keys of the settings."""
    paths = InstallationPaths(data=data, url=url, environment=key_settings(keys))
    async with open_services(paths.load_settings(), clock=SystemClock(), serving=False) as services:
        yield services


class Rotation:
    def __init__(self, url: str, data: Path, old: str, *, force: bool) -> None:
        self._url = url
        self._data = data
        self._old = old
        self._new = new_master_key()
        self._force = force
        self.nodes = {name: RollingNode(url, data) for name in "ab"}

    @property
    def only_new(self) -> Keys:
        return (self._new,)

    async def start(self) -> None:
        for node in self.nodes.values():
            await node.restart((self._old,))

    async def take_step(self, step: str) -> bool:
        """Return whether it was possible now; one that is not changes nothing."""
        match step:
            case "r":
                return await self._rewrap()
            case "a" | "b":
                await self.nodes[step].restart((self._new, self._old))
                return True
            case _:
                return await self._drop_old_key(self.nodes[step.lower()])

    async def _rewrap(self) -> bool:
        lacking = [node for node in self.nodes.values() if self._new not in node.keys]
        async with open_command(self._url, self._data, (self._new, self._old)) as services:
            if lacking:
                with pytest.raises(NodesWithoutKey):
                    await rewrap_all(services, AuditOrigin(actor="test"))
            if lacking and not self._force:
                return False
            assert (await rewrap_all(services, AuditOrigin(actor="test"), force=self._force)).left == {}
        for node in lacking:
            await node.wait_for_sign_ins(status=503)
            assert not await node.is_ready()
        return True

    async def _drop_old_key(self, node: RollingNode) -> bool:
        both = node.keys
        try:
            await node.restart(self.only_new)
        except WrongMasterKey:
            await node.restart(both)
            return False
        return True

    async def check_nodes(self) -> None:
        """Every node serves that has a key the installation uses."""
        in_use = (await self.nodes["a"].service.services.storage.nodes.master_keys_in_use()).split()
        for node in self.nodes.values():
            held = set(in_use) <= set(node.service.services.core.masters.key_ids)
            await node.wait_for_sign_ins(status=200 if held else 503)
            assert await node.is_ready() is held


@pytest.mark.parametrize(
    ("order", "force"), ROTATIONS, ids=[f"{order}-{'forced' if force else 'patient'}" for order, force in ROTATIONS]
)
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_mk_01_any_order_of_a_rolling_rotation_leaves_a_sound_log(
    url: str, tmp_path: Path, order: str, *, force: bool
) -> None:
    async with open_services_on(url, tmp_path) as services:
        await services.accounts.administration.create(
            login=ANNA, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
        )
    rotation = Rotation(url, tmp_path, (tmp_path / "dev.key").read_text().strip(), force=force)
    try:
        await rotation.start()
        postponed = [step for step in order if not await run_step(rotation, step)]
        for step in sorted(postponed, key="abrAB".index):
            assert await run_step(rotation, step), step
        for node in rotation.nodes.values():
            assert node.keys == rotation.only_new
    finally:
        for node in rotation.nodes.values():
            await node.stop()
    async with open_command(url, tmp_path, rotation.only_new) as services:
        assert await count_under_old_keys(services.storage, services.core.masters) == {}
        events = [record.event for record in await verified_audit_log(services)]
        assert "audit.broken" not in events
        assert events.count("login.done") >= 2 * len(order)


async def run_step(rotation: Rotation, step: str) -> bool:
    done = await rotation.take_step(step)
    await rotation.check_nodes()
    return done
