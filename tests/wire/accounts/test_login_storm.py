"""More logins than password checks can handle: the excess is refused, everything else works (P15, R-19).

No test here measures time; `make bench` does.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from gatehouse.accounts import passwords
from gatehouse.accounts.model import User
from gatehouse.accounts.passwords import MAX_WAITING
from gatehouse.kernel.errors import Unavailable
from tests.support.browser import PASSWORD
from tests.support.service import RunningService, running_service

PATH: Final = "/proxy/api/login"
KEYS: Final = "/proxy/oauth/keys"
TIMEOUT: Final = 60.0  # seconds until a worker stops waiting for the test
EXCESS: Final = 5
WORKERS: Final = 2


class SlowHashes:
    """Password checks that last until the test releases them, with the threads they ran in."""

    def __init__(self) -> None:
        self.threads: list[str] = []
        self.go = threading.Event()

    def verify(self, _password: bytes, _hash: str) -> bool:
        self.threads.append(threading.current_thread().name)
        self.go.wait(TIMEOUT)
        return False


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    environment = {"GATEHOUSE__RATES__ENABLED": "false", "GATEHOUSE__PASSWORDS__WORKERS": str(WORKERS)}
    async with running_service(installed_url, tmp_path, environment=environment) as running:
        await (
            running.services.accounts.passwords.decoy_hash()
        )  # computed once, with the first login of an unknown account
        yield running


@pytest.fixture
def slow_hashes(service: RunningService, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowHashes]:
    del service  # the service waits for its workers when it ends, so they are released first
    hashes = SlowHashes()
    monkeypatch.setattr(passwords, "verify", hashes.verify)
    yield hashes
    hashes.go.set()


async def log_in(service: RunningService, login: str, password: str = "wrong") -> httpx2.Response:
    return await service.client.post(PATH, json={"login": login, "password": password})


def begin(service: RunningService, number: int) -> list[asyncio.Task[httpx2.Response]]:
    return [asyncio.create_task(log_in(service, f"no_one{n}@studio.example")) for n in range(number)]


async def first_answers(tasks: list[asyncio.Task[httpx2.Response]], number: int) -> list[httpx2.Response]:
    done: set[asyncio.Task[httpx2.Response]] = set()
    async with asyncio.timeout(TIMEOUT):
        while len(done) < number:
            more, _ = await asyncio.wait([task for task in tasks if task not in done], return_when="FIRST_COMPLETED")
            done |= more
    return [task.result() for task in done]


async def test_r_19_while_the_pool_is_full_the_excess_is_shed_and_keys_are_answered(
    service: RunningService, slow_hashes: SlowHashes
) -> None:
    tasks = begin(service, MAX_WAITING + EXCESS)
    shed = await first_answers(tasks, EXCESS)
    assert [response.status_code for response in shed] == [503] * EXCESS
    assert all(int(response.headers["retry-after"]) > 0 for response in shed)
    assert len(slow_hashes.threads) <= WORKERS
    assert (await service.client.get(KEYS)).status_code == 200
    assert (await log_in(service, "late@studio.example")).status_code == 503
    assert sum(task.done() for task in tasks) == EXCESS
    slow_hashes.go.set()
    responses = await asyncio.gather(*tasks)
    assert sum(
        response.status_code == 200 and response.json() == {"status": "LOGINERROR"} for response in responses
    ) == (MAX_WAITING)
    assert len(slow_hashes.threads) == MAX_WAITING
    assert {name.rpartition("_")[0] for name in slow_hashes.threads} == {"argon2"}
    assert len(set(slow_hashes.threads)) <= WORKERS


@pytest.mark.usefixtures("anna")
async def test_r_19_many_guesses_at_one_account_at_once_are_blocked_with_the_seconds_to_wait(
    service: RunningService, slow_hashes: SlowHashes
) -> None:
    tasks = [asyncio.create_task(log_in(service, "anna@studio.example")) for _ in range(30)]
    blocked = await first_answers(tasks, 20)
    bodies: list[dict[str, Any]] = [response.json() for response in blocked]
    assert all(body["status"] == "BLOCKED" and 0 < body["retry_after"] <= 30 for body in bodies)
    assert len(blocked) == 20
    slow_hashes.go.set()
    responses = await asyncio.gather(*tasks)
    assert sum(response.json() == {"status": "LOGINERROR"} for response in responses) == 10
    assert len(slow_hashes.threads) == 10


async def test_r_19_a_login_that_was_shed_is_not_counted_as_a_failure(
    service: RunningService, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def raise_unavailable(_work: object) -> bool:
        raise Unavailable

    with monkeypatch.context() as storm:
        storm.setattr(service.services.accounts.passwords, "_run", raise_unavailable)
        responses = [await log_in(service, anna.login or "", PASSWORD) for _ in range(12)]
    assert [response.status_code for response in responses] == [503] * 12
    again = await log_in(service, anna.login or "", PASSWORD)
    assert again.json()["status"] == "OK"


async def test_r_19_a_full_pool_turns_logins_away_before_anything_is_written(
    service: RunningService, anna: User, slow_hashes: SlowHashes, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = begin(service, MAX_WAITING + EXCESS)
    await first_answers(tasks, EXCESS)
    written: list[object] = []
    with monkeypatch.context() as watched:
        watched.setattr(service.services.storage.runner, "write", partial(note_write, written))
        assert (await log_in(service, anna.login or "")).status_code == 503
    assert written == []
    slow_hashes.go.set()
    await asyncio.gather(*tasks)


async def note_write(written: list[object], make: object) -> None:
    written.append(make)
