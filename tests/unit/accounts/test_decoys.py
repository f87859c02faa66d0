"""Decoy hashes: of a kind that accounts have, by share, and the same for one login."""

from collections import Counter
from collections.abc import Mapping
from typing import cast

import pytest
from bcrypt import checkpw

from gatehouse.accounts.decoys import MAX_KINDS, PAGE, DecoyHashes
from gatehouse.accounts.importing.hashes import (
    MIN_SHA_CRYPT_ROUNDS,
    Argon2,
    Bcrypt,
    ForeignHash,
    SaltedSha,
    ShaCrypt,
    blank_hash,
    parse_hash,
)
from gatehouse.accounts.passwords import PasswordCost, Passwords
from gatehouse.accounts.store import AccountStore
from gatehouse.kernel.times import DAY
from tests.support.clock import MovableClock
from tests.unit.accounts.importing.test_hashes import VECTORS

NOW = 1_800_000_000
KEY = bytes(32)
LOGINS = [f"person{number}@studio.example" for number in range(4_000)]
OURS = "$argon2id$v=19$m=65536,t=3,p=1$c2FsdHNhbHRzYWx0c2E$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNoaGFzaGhhc2g"


class HashStore:
    """The part of AccountStore that decoys use, in memory."""

    def __init__(self, hashes: list[str]) -> None:
        self.hashes = {f"{number:010}": one for number, one in enumerate(hashes)}
        self.kinds: str | None = None
        self.pages = 0

    async def password_hashes(self, after: str, limit: int) -> Mapping[str, str]:
        self.pages += 1
        return dict(list(filter(lambda one: one[0] > after, self.hashes.items()))[:limit])

    async def hash_kinds(self) -> str | None:
        return self.kinds

    async def set_hash_kinds(self, value: str) -> None:
        self.kinds = value


def bcrypt(cost: int, number: int = 0) -> str:
    return f"imported:$2b${cost:02}$CCCCCCCCCCCCCCCCCCCCC.{number:031}"


def decoys_of(store: HashStore, *, key: bytes = KEY, clock: MovableClock | None = None) -> DecoyHashes:
    return DecoyHashes(store=cast("AccountStore", store), key=key, clock=clock or MovableClock(NOW))


async def counted(hashes: list[str], *, key: bytes = KEY) -> DecoyHashes:
    decoys = decoys_of(HashStore(hashes), key=key)
    await decoys.count()
    return decoys


def parameters(known: ForeignHash) -> object:
    """What a check costs by: everything but the salt, the checksum and the text they are in."""
    match known:
        case Bcrypt():
            return known.text[:7], known.prehashed
        case ShaCrypt():
            return known.make, known.rounds
        case SaltedSha():
            return known.digest, known.salt_first, len(known.salt)
    facts = {name: getattr(known, name) for name in known.__slots__}
    return {name: len(value) if isinstance(value, bytes) else value for name, value in facts.items()}


def is_checked(known: ForeignHash) -> bool:
    """Whether the library that checks the hash accepts it: what it rejects costs no time."""
    if isinstance(known, Bcrypt):
        return not checkpw(b"wrong", known.text.encode())
    if isinstance(known, Argon2):
        return known.derivation().derive(b"wrong") != known.checksum
    return True


@pytest.mark.parametrize("text", VECTORS)
def test_lg_05_a_blank_hash_has_the_parameters_of_the_real_one_and_matches_nothing(text: str) -> None:
    real, blank = parse_hash(text), parse_hash(blank_hash(text))
    assert parameters(blank) == parameters(real)
    assert blank != real
    assert is_checked(blank)
    assert not blank.verify(VECTORS[text].encode())
    assert blank_hash(f"imported:{text}") == f"imported:{blank_hash(text)}"


def test_hashes_of_one_kind_and_cost_are_one_blank_hash() -> None:
    assert blank_hash(bcrypt(12, 1)) == blank_hash(bcrypt(12, 2)) != blank_hash(bcrypt(10, 1))
    assert blank_hash(OURS) != blank_hash(f"imported:{OURS}")
    rounds = f"imported:$6$rounds={MIN_SHA_CRYPT_ROUNDS}$salt$"
    assert blank_hash(rounds + "a" * 86) == blank_hash(rounds + "b" * 86)


async def test_lg_05_each_kind_is_a_decoy_as_often_as_accounts_have_it() -> None:
    decoys = await counted([OURS] * 60 + [bcrypt(12, one) for one in range(30)] + [bcrypt(5)] * 10)
    found = Counter(decoys.choose(login) for login in LOGINS)
    shares = {kind: round(number / len(LOGINS), 1) for kind, number in found.items()}
    assert shares == {blank_hash(OURS): 0.6, blank_hash(bcrypt(12)): 0.3, blank_hash(bcrypt(5)): 0.1}


async def test_lg_05_a_login_keeps_its_decoy_and_another_installation_has_others() -> None:
    hashes = [OURS] * 50 + [bcrypt(12)] * 50
    first, second, other = (
        await counted(hashes),
        await counted(hashes[::-1]),
        await counted(hashes, key=bytes([1] * 32)),
    )
    assert [first.choose(one) for one in LOGINS] == [second.choose(one) for one in LOGINS]
    assert [first.choose(one) for one in LOGINS] != [other.choose(one) for one in LOGINS]


async def test_lg_05_a_decoy_changes_only_from_a_kind_that_got_rarer_or_to_one_that_got_more_frequent() -> None:
    before = await counted([OURS] * 50 + [bcrypt(12)] * 30 + [bcrypt(5)] * 20)
    after = await counted([OURS] * 60 + [bcrypt(12)] * 20 + [bcrypt(5)] * 20)
    changed = [(before.choose(one), after.choose(one)) for one in LOGINS]
    moves = Counter(pair for pair in changed if pair[0] != pair[1])
    assert moves
    assert all(old == blank_hash(bcrypt(12)) or new == blank_hash(OURS) for old, new in moves)
    assert sum(moves.values()) < len(LOGINS) / 4


async def test_without_any_account_there_is_no_decoy_of_a_kind() -> None:
    assert (await counted([])).choose("anna@studio.example") is None


async def test_a_hash_of_no_known_kind_is_not_counted_and_rare_kinds_are_left_out() -> None:
    kinds = [f"imported:$6$rounds={2_000 + number}$salt${'a' * 86}" for number in range(MAX_KINDS + 8)]
    decoys = await counted(["imported:unknown"] * 100 + [*kinds[:MAX_KINDS], *kinds])
    chosen = {decoys.choose(login) for login in LOGINS}
    assert chosen == {blank_hash(one) for one in kinds[:MAX_KINDS]}


async def test_accounts_are_counted_in_pages_once_a_day_and_every_process_uses_the_count() -> None:
    store, clock = HashStore([OURS] * (PAGE + 1)), MovableClock(NOW)
    decoys, other = decoys_of(store, clock=clock), decoys_of(store, clock=clock)
    await decoys.run_once()
    assert store.pages == 3  # the last one is empty
    await other.run_once()
    assert (store.pages, other.choose("anna")) == (3, blank_hash(OURS))
    await clock.advance(DAY)
    await other.run_once()
    assert store.pages == 6


async def test_our_own_blank_hash_costs_a_whole_check() -> None:
    passwords = Passwords(PasswordCost(memory_kib=64, time_cost=1, workers=1))
    try:
        kept = await passwords.hash("correct horse")
        assert blank_hash(kept).rsplit("$", 2)[0] == kept.rsplit("$", 2)[0]
        assert not await passwords.matches("correct horse", blank_hash(kept))
    finally:
        passwords.close()
