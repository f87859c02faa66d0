"""How long answers take, for known and unknown accounts (LG-05): many samples, so run on its own.

`pytest tests/adversarial/timing.py` on a machine that does nothing else; not part of the ordinary tests.
"""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median
from typing import Final

import pytest

from gatehouse.accounts.model import User
from tests.support.builders import a_record
from tests.support.service import Service, running_service
from tests.support.visitor import Visitor

SAMPLES: Final = 500  # of each kind
WARM_UP: Final = 20
TOLERANCE: Final = 0.05
AN_HOUR: Final = 3_600
A_BATCH: Final = 40  # requests before letters from one source run out
NEW: Final = "a quite different phrase"


@pytest.fixture
async def service(migrated_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    async with running_service(migrated_url, tmp_path, environment={"GATEHOUSE__RATES__ENABLED": "false"}) as running:
        yield running


@pytest.fixture
async def visitor(service: Service) -> AsyncIterator[Visitor]:
    someone = Visitor(service)
    await someone.get("/register")
    yield someone
    await someone.client.aclose()


async def people_of(service: Service) -> list[str]:
    """Accounts as registration leaves them, all with one password."""
    hashed = await service.house.passwords.hash("correct horse battery staple")
    logins = [f"known{number:04}@studio.example" for number in range(SAMPLES + WARM_UP)]
    for number, login in enumerate(logins):
        user = User(user_id=str(2_000_000_000 + number), login=login, nick="Known", password_hash=hashed, reg_time=1)
        await service.house.storage.accounts.create(user, a_record())
    return logins


@pytest.mark.parametrize("path", ["/forgot", "/verify-email/again", "/register"])
async def test_lg_05_known_and_unknown_addresses_take_as_long(service: Service, visitor: Visitor, path: str) -> None:
    logins = await people_of(service)
    page = visitor.page
    more = {"nick": "Somebody", "password": NEW, "repeated": NEW} if path == "/register" else {}
    taken: dict[bool, list[float]] = {True: [], False: []}
    for number, login in enumerate(logins):
        if number % A_BATCH == 0:
            await service.clock.advance(AN_HOUR)
        for exists in (True, False) if number % 2 else (False, True):
            visitor.page = page
            began = time.perf_counter()
            answer = await visitor.post(path, login=login if exists else login.replace("known", "other"), **more)
            taken[exists].append(time.perf_counter() - began)
            assert answer.status_code == 200
    # Pairs, one after the other: what else the machine does weighs on both alike.
    pairs = list(zip(taken[True], taken[False], strict=True))[WARM_UP:]
    difference = median(known - unknown for known, unknown in pairs)
    usual = median(unknown for _, unknown in pairs)
    assert abs(difference) <= TOLERANCE * usual, (difference, usual)
