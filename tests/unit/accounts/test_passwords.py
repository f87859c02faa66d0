"""Our own password hashes, and the threads that make them."""

import asyncio
import os
import secrets
import threading

import pytest

from gatehouse.accounts import passwords as passwords_module
from gatehouse.accounts.passwords import LOWEST_PRIORITY, PasswordCost, Passwords

CHEAP = PasswordCost(memory_kib=64, time_cost=1, workers=1)
# Made by argon2-cffi 25.1, as they are in databases; the last one with a pepper.
STORED = "$argon2id$v=19$m=65536,t=3,p=1$c2l4dGVlbi1ieXRlcy1vZg$Xd+zGKxH0F3j3O2DYRwL6K1YHk4yqmENe9oiAcZUAFw"
FOUR_LANES = "$argon2id$v=19$m=19456,t=2,p=4$c2l4dGVlbi1ieXRlcy1vZg$ngK4ZOQBtvQ88hwDgdh6EDaJDogxuOCDvQ1Qu84bLSE"
PEPPERED = "$argon2id$v=19$m=64,t=1,p=1$YW5vdGhlci0xNi1ieXRlcw$u1CjIhExLlCSp6rYQxjMzhR7Ktbba/QzT3zJE1KFhEY"


@pytest.mark.parametrize(
    ("stored", "password", "pepper"),
    [
        (STORED, "correct horse battery", b""),
        (FOUR_LANES, "pässwörd", b""),
        (FOUR_LANES, "pa\u0308sswo\u0308rd", b""),
        (PEPPERED, "pässwörd", b"pepper"),
    ],
)
async def test_a_hash_made_by_argon2_cffi_matches_its_password_and_no_other(
    stored: str, password: str, pepper: bytes
) -> None:
    passwords = Passwords(CHEAP, pepper=pepper)
    assert await passwords.matches(password, stored)
    assert not await passwords.matches(f"{password} ", stored)
    assert not await passwords.matches("", stored)
    passwords.close()


async def test_a_new_hash_has_the_notation_lengths_and_cost_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a node of the version before accepts it during an upgrade."""
    monkeypatch.setattr(secrets, "token_bytes", lambda size: b"sixteen-bytes-of"[:size])
    passwords = Passwords(PasswordCost(memory_kib=19_456, time_cost=2, parallelism=4))
    assert await passwords.hash("pässwörd") == FOUR_LANES
    passwords.close()


async def test_each_hash_has_a_salt_of_its_own() -> None:
    passwords = Passwords(CHEAP)
    first, second = [await passwords.hash("password") for _ in range(2)]
    assert first.split("$")[4] != second.split("$")[4]
    assert await passwords.matches("password", first)
    assert await passwords.matches("password", second)
    passwords.close()


@pytest.mark.parametrize(
    ("cost", "outdated"),
    [
        (PasswordCost(memory_kib=65_536, time_cost=3, parallelism=1), False),
        (PasswordCost(memory_kib=65_537, time_cost=3, parallelism=1), True),
        (PasswordCost(memory_kib=6_553, time_cost=3, parallelism=1), True),
        (PasswordCost(memory_kib=65_536, time_cost=2, parallelism=1), True),
        (PasswordCost(memory_kib=65_536, time_cost=3, parallelism=2), True),
        (PasswordCost(memory_kib=65_536, time_cost=3, parallelism=10), True),
    ],
)
def test_a_hash_is_outdated_when_any_cost_changed(cost: PasswordCost, *, outdated: bool) -> None:
    passwords = Passwords(cost)
    assert passwords.is_outdated(STORED) is outdated
    passwords.close()


@pytest.mark.parametrize(
    "stored",
    [
        "",
        "$argon2id$x",
        "plain",
        STORED[:-1],
        STORED + "$",
        STORED.replace("m=65536", "m=7"),
        STORED.replace("t=3", "t=0"),
        STORED.replace("p=1", "p=0"),
        STORED.replace("m=65536", "m=99999999999"),
        STORED.replace("v=19", "v=16"),
        STORED.replace("argon2id", "argon2i"),
        STORED.replace("Xd+z", "Xä\0z"),
        STORED.replace("c2l4dGVlbi1ieXRlcy1vZg", "c2FsdA"),
    ],
)
async def test_a_malformed_hash_matches_no_password(stored: str) -> None:
    passwords = Passwords(CHEAP)
    assert not await passwords.matches("correct horse battery", stored)
    passwords.close()


async def test_the_event_loop_runs_while_a_password_is_hashed() -> None:
    """The library releases the interpreter lock: otherwise the loop would stand still for the whole hash."""
    passwords = Passwords(PasswordCost(memory_kib=65_536, time_cost=3, workers=1))
    await passwords.hash("warm up")
    turns = 0
    hashing = asyncio.ensure_future(passwords.hash("correct horse battery"))
    while not hashing.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 1_000
    passwords.close()


async def test_the_workers_stand_back_for_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    # A service that runs in this process for all tests has raised it (tests/support/service.py).
    monkeypatch.setattr(passwords_module, "LOWEST_PRIORITY", LOWEST_PRIORITY)
    passwords = Passwords(PasswordCost(memory_kib=19_456, time_cost=2, workers=1))
    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    there = set(threading.enumerate())
    await passwords.hash("correct horse battery")
    [worker] = set(threading.enumerate()) - there
    assert os.getpriority(os.PRIO_PROCESS, worker.native_id or 0) == LOWEST_PRIORITY
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before
    passwords.close()
