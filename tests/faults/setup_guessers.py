"""Clients that guess the setup token over HTTP.

An answered guess has been counted in the database exactly (S-15): it is a write that any client can cause.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Final

import pytest

from gatehouse.app.services import Services
from gatehouse.kernel.errors import TooMany
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter
from tests.support.processes import LOOPBACK
from tests.support.raw_http import RawConnection, RawResponse

TIMEOUT: Final = 30.0  # seconds
GUESSES: Final = 9  # from each address: the tenth would block it


def get_request(target: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


class Guessers:
    """Clients that guess repeatedly, each from its own address, until setup is closed."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()  # answered guesses by address
        self.answers: list[RawResponse] = []
        self._answered = asyncio.Condition()
        self._addresses = loopback_addresses()

    async def guess(self, port: int) -> None:
        """Guess until the server is gone."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            for address in self._addresses:
                await self._guess_from(port, address)

    async def wait_for_answers(self, status: int, *, more: int) -> None:
        """Wait until this many more guesses got this answer."""
        wanted = self._count_status(status) + more
        async with asyncio.timeout(TIMEOUT), self._answered:
            await self._answered.wait_for(lambda: self._count_status(status) >= wanted)

    async def _guess_from(self, port: int, address: str) -> None:
        connection = RawConnection(*await asyncio.open_connection(LOOPBACK, port, local_addr=(address, 0)))
        try:
            for _ in range(GUESSES):
                connection.send(get_request("/setup?token=guess"))
                await self._record_answer(address, await connection.read_response())
        finally:
            await connection.close()

    async def _record_answer(self, address: str, response: RawResponse) -> None:
        self.counted[address] += response.status == 403
        async with self._answered:
            self.answers.append(response)
            self._answered.notify_all()

    def _count_status(self, status: int) -> int:
        return sum(response.status == status for response in self.answers)


def loopback_addresses() -> Iterator[str]:
    return (f"127.{1 + number // 62_500}.{number // 250 % 250}.{1 + number % 250}" for number in count())


async def every_guess_was_counted(services: Services, guessers: Guessers) -> None:
    for address, counted in guessers.counted.items():
        limit = AttemptLimit(free_attempts=counted + 1)  # so that one more guess blocks, if all of them were counted
        guesses = AttemptLimiter(store=services.storage.throttle, limit=limit, clock=services.clock)
        await guesses.record_failure("setup", address)
        with pytest.raises(TooMany):
            await guesses.refuse_blocked("setup", address)
