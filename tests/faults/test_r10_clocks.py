"""Clocks jump and differ: a node with a wrong clock reports it, and nothing ended becomes valid again (R-10, I16).

The simulation tests clocks that jump during operations (test_r30_simulation.py).
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2

from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.digests import sha256
from gatehouse.oauth.model import Client, ClientProfile
from tests.faults.run_record import in_full_run
from tests.support.browser import PASSWORD
from tests.support.builders import a_record
from tests.support.capabilities import FAKETIME, require_program
from tests.support.database_contents import open_services_on
from tests.support.oauth import DAY, REDIRECT, TOKEN, a_grant, native_proof
from tests.support.processes import Node
from tests.support.service import FAST_SETTINGS

TIMEOUT: Final = 30.0  # seconds
TEST: Final = AuditOrigin(actor="test")
RIGHT: Final = "+0"
JUMPS: Final = ("+300", "-3600", "+2592000", "-300")  # five minutes, an hour, thirty days


class Clock:
    """The time of a node started with `environment`; durations are not affected."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(RIGHT)
        self.environment = {
            "LD_PRELOAD": str(require_program(FAKETIME)),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, offset: str) -> None:
        self._file.write_text(f"{offset}\n")


@contextmanager
def a_right_and_a_wrong_node(url: str, data: Path) -> Iterator[tuple[Node, Node, Clock]]:
    clock = Clock(data / "faketime")
    right = Node(data=data, database_url=url, environment=FAST_SETTINGS)
    address = {"GATEHOUSE__SERVER__BASE_URL": right.address}
    wrong = Node(data=data, database_url=url, environment={**FAST_SETTINGS, **address, **clock.environment})
    with right, wrong:
        yield right, wrong, clock


def readiness_status(node: Node) -> int:
    return httpx2.get(f"{node.address}/readyz", timeout=TIMEOUT).status_code


async def wait_for_readiness(status: int, node: Node) -> None:
    """Poll readiness until it changes: a report is cached for a second."""
    async with asyncio.timeout(TIMEOUT):
        while await asyncio.to_thread(readiness_status, node) != status:
            pass


def guess(node: Node) -> int:
    return httpx2.get(f"{node.address}/setup?token=guess", timeout=TIMEOUT).status_code


class Shop:
    """A client that two people signed in to."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def redeem(self, node: Node, code: str) -> Any:
        return self._ask(node, grant_type="authorization_code", code=code)

    def refresh(self, node: Node, token: str) -> Any:
        return self._ask(node, grant_type="refresh_token", refresh_token=token)

    def _ask(self, node: Node, **fields: str) -> Any:
        headers = {"Authorization": f"Bearer {native_proof(REDIRECT, self._secret)}"}
        body = {**fields, "redirect_uri": REDIRECT}
        return httpx2.post(f"{node.address}{TOKEN}", data=body, headers=headers, timeout=TIMEOUT).json()


async def a_shop(url: str, data: Path) -> Shop:
    async with open_services_on(url, data) as services:
        now = services.clock.now()
        anna = await services.accounts.administration.create(
            login="anna@x.example", nick="A", password=PASSWORD, origin=TEST
        )
        bob = await services.accounts.administration.create(
            login="bob@x.example", nick="B", password=PASSWORD, origin=TEST
        )
        client = Client(
            client_id="web",
            name="Web",
            profile=ClientProfile.NATIVE,
            redirect_hosts=("shop.example",),
            created_at=now,
        )
        secret = await services.oauth.clients.commands.create(client, TEST)
        for code, user in (("spent", anna), ("blocked", bob)):
            grant = a_grant(
                grant_id=sha256(code).hex()[:32],
                user_id=user.user_id,
                code=sha256(code),
                created_at=now,
                auth_time=now,
                code_ends_at=now + 60,
                ends_at=now + 90 * DAY,
            )
            assert await services.storage.grants.create_grant(grant, a_record())
        return Shop(secret or "")


async def block_bob(url: str, data: Path) -> None:
    async with open_services_on(url, data) as services:
        [bob] = [user for user in await services.storage.accounts.all_users() if user.nick == "B"]
        await services.accounts.administration.block(bob.user_id, TEST)


@in_full_run
async def test_r_10_a_node_that_is_wrong_about_the_time_is_not_ready_and_revives_nothing(
    installed_postgres_url: str, tmp_path: Path
) -> None:
    url = installed_postgres_url
    shop = await a_shop(url, tmp_path)
    with a_right_and_a_wrong_node(url, tmp_path) as (right, wrong, clock):
        assert [readiness_status(right), readiness_status(wrong)] == [200, 200]
        spent, blocked = (shop.redeem(right, code)["refresh_token"] for code in ("spent", "blocked"))
        assert shop.redeem(right, "spent")["error"] == "invalid_grant"  # reuse, which ends the family
        await block_bob(url, tmp_path)
        assert [guess(right) for _ in range(11)] == [403] * 10 + [429]
        for jump in JUMPS:
            clock.set(jump)
            await wait_for_readiness(503, wrong)
            assert readiness_status(right) == 200
            refusals = [shop.redeem(wrong, "spent"), shop.refresh(wrong, spent), shop.refresh(wrong, blocked)]
            assert [answer["error"] for answer in refusals] == ["invalid_grant"] * 3, jump
            body = {"login": "bob@x.example", "password": PASSWORD, "factor": "f"}
            login = httpx2.post(f"{wrong.address}/proxy/api/login", json=body, timeout=TIMEOUT)
            assert login.json()["status"] == "LOGINERROR", jump
        assert guess(wrong) == 429  # a login blocked by guessing stays blocked when the clock goes back
        clock.set(RIGHT)
        await wait_for_readiness(200, wrong)
        assert shop.refresh(wrong, spent)["error"] == "invalid_grant"
