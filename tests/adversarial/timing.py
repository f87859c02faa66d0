"""How long answers take, for known and unknown accounts (LG-05): many samples, so run on its own.

`make adversarial` on a machine that does nothing else; not part of the ordinary tests, which only see that the
measuring works (test_timing.py).
"""

import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import httpx2
import pytest

from gatehouse.accounts.model import User
from tests.support.builders import a_record
from tests.support.service import Service, running_service
from tests.support.visitor import Visitor

SAMPLES: Final = 500  # of each kind
WARM_UP: Final = 20
TOLERANCE: Final = 0.05
A_DAY: Final = 86_400
A_BATCH: Final = 40  # pairs before letters, or failures, of one source run out
NEW: Final = "a quite different phrase"
LOGIN: Final = "/proxy/api/login"
DOORS: Final = (LOGIN, "/register", "/forgot", "/verify-email/again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    pairs: int
    usual: float  # seconds, the median for unknown accounts
    difference: float  # seconds, the median of what a known account takes longer

    @property
    def share(self) -> float:
        return self.difference / self.usual

    def __str__(self) -> str:
        return f"{self.usual * 1e3:8.2f} ms, known accounts {self.share:+.2%} ({self.pairs} pairs)"


@pytest.fixture
async def service(migrated_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    async with running_service(migrated_url, tmp_path, environment={"GATEHOUSE__RATES__ENABLED": "false"}) as running:
        yield running


@pytest.mark.parametrize("path", DOORS)
async def test_lg_05_known_and_unknown_addresses_take_as_long(
    service: Service, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    timing = await timed(service, path, samples=SAMPLES, warm_up=WARM_UP)
    database = service.house.settings.database.url.reveal().partition(":")[0]
    with capsys.disabled():
        sys.stdout.write(f"\n{path:<22} {database:<12} {timing}\n")
    assert abs(timing.share) <= TOLERANCE


async def timed(service: Service, path: str, *, samples: int, warm_up: int) -> Timing:
    """Pairs, one after the other and in turn first: what else the machine does weighs on both alike."""
    logins = await people_of(service, samples + warm_up)
    visitor = Visitor(service)
    await visitor.get("/register")
    page = visitor.page
    taken: dict[bool, list[float]] = {True: [], False: []}
    for number, login in enumerate(logins):
        if number % A_BATCH == 0:
            await service.clock.advance(A_DAY)
        for exists in (True, False) if number % 2 else (False, True):
            visitor.page = page
            began = time.perf_counter()
            answer = await knock(visitor, path, login if exists else login.replace("known", "other"))
            taken[exists].append(time.perf_counter() - began)
            assert answer.status_code == 200
    await visitor.client.aclose()
    pairs = list(zip(taken[True], taken[False], strict=True))[warm_up:]
    return Timing(
        pairs=len(pairs),
        usual=median(unknown for _, unknown in pairs),
        difference=median(known - unknown for known, unknown in pairs),
    )


async def knock(visitor: Visitor, path: str, login: str) -> httpx2.Response:
    if path == LOGIN:
        answer = await visitor.client.post(path, json={"login": login, "password": NEW})
        assert answer.json() == {"status": "LOGINERROR"}
        return answer
    more = {"nick": "Somebody", "password": NEW, "repeated": NEW} if path == "/register" else {}
    return await visitor.post(path, login=login, **more)


async def people_of(service: Service, number: int) -> list[str]:
    """Accounts as registration leaves them, all with one password."""
    hashed = await service.house.passwords.hash("correct horse battery staple")
    logins = [f"known{one:04}@studio.example" for one in range(number)]
    for one, login in enumerate(logins):
        user = User(user_id=str(2_000_000_000 + one), login=login, nick="Known", password_hash=hashed, reg_time=1)
        await service.house.storage.accounts.create(user, a_record())
    return logins
