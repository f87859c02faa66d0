"""Storage without HTTP: one audited, durable write, alone and among many; one look-up by key."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

import uvloop
from bench.figures import ROUNDS, Figure, cost, per_second
from tests.support.builders import a_record, a_user

from gatehouse.storage.database import Storage, open_storage

MANY_CALLERS: Final = 64  # callers at a time
SECONDS: Final = 1.0
USERS: Final = 1_000
PAGE: Final = 4_096

Act = Callable[[], Awaitable[object]]


def synced_write(place: Path) -> Figure:
    """What the disk takes by itself: the floor under every durable write."""
    file = os.open(place / "synced", os.O_RDWR | os.O_CREAT)

    def write() -> None:
        os.pwrite(file, bytes(PAGE), 0)
        os.fdatasync(file)

    try:
        return cost("write and fdatasync of 4 KiB", write)
    finally:
        os.close(file)


def storage(url: str, kind: str) -> list[Figure]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measure(url, kind))


async def measure(url: str, kind: str) -> list[Figure]:
    async with open_storage(url, migrate=True) as opened:
        known = await fill(opened)
        rounds = [await one_round(opened, known) for _ in range(ROUNDS)]
    alone, among_many, looked_up = zip(*rounds, strict=True)
    return [
        per_second(f"account with its audit record, durable, one caller, {kind}", alone),
        per_second(f"the same, {MANY_CALLERS} callers, {kind}", among_many),
        Figure(name=f"account by its id, {kind}", value=1e6 / median(looked_up), unit="µs"),
    ]


async def fill(opened: Storage) -> str:
    users = [a_user() for _ in range(USERS)]
    await asyncio.gather(*(opened.accounts.create_user(user, a_record()) for user in users))
    return users[USERS // 2].user_id


async def one_round(opened: Storage, known: str) -> tuple[float, float, float]:
    def write() -> Awaitable[object]:
        return opened.accounts.create_user(a_user(), a_record())

    return (
        await rate(write, callers=1),
        await rate(write, callers=MANY_CALLERS),
        await rate(lambda: opened.accounts.user(known), callers=1),
    )


async def rate(act: Act, *, callers: int) -> float:
    begin = perf_counter()
    done = await asyncio.gather(*(repeat(act, begin + SECONDS) for _ in range(callers)))
    return sum(done) / (perf_counter() - begin)


async def repeat(act: Act, end: float) -> int:
    done = 0
    while perf_counter() < end:
        await act()
        done += 1
    return done
