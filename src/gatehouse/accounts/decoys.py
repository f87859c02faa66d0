"""Decoy hashes: what a password is checked against at a login that has none to check (LG-05).

Hashes of other systems take other times than ours. A decoy is of a kind that accounts of this installation have, as
often as they have it, and the same for one login each time: its time says nothing about the login.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Final

from gatehouse.accounts.importing.hashes import BadHash, blank_hash
from gatehouse.accounts.store import AccountStore
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import hmac_sha256
from gatehouse.kernel.times import DAY

COUNT_EVERY: Final = DAY  # seconds; an import counts at its end
PAGE: Final = 1_000  # hashes read at once
MAX_KINDS: Final = 32  # the most frequent ones: each is a keyed digest at a sign-in


class DecoyHashes:
    """Counts the kinds of hashes that accounts have, and chooses one for a login."""

    def __init__(self, *, store: AccountStore, key: bytes, clock: Clock) -> None:
        self._store = store
        self._key = key
        self._clock = clock
        self._kinds: Mapping[str, int] = {}  # how many accounts have a hash of each kind

    def choose(self, login: str) -> str | None:
        """Return the hash for a login, in its canonical spelling; None while no account is known to have one.

        Rendezvous hashing: when the share of a kind changes, only logins of that share get another one.
        """
        return min(self._kinds, key=lambda kind: self._score(login, kind), default=None)

    async def run_once(self) -> None:
        """Use what was counted last, by any process; count again when that is a day old."""
        counted_at = await self.load()
        if counted_at is None or counted_at <= self._clock.now() - COUNT_EVERY:
            await self.count()

    async def load(self) -> int | None:
        """Use what was counted last, and return when that was."""
        stored = await self._store.hash_kinds()
        if stored is None:
            return None
        count = json.loads(stored)
        self._kinds = count["kinds"]
        return int(count["at"])

    async def count(self) -> None:
        """Count the kinds of all accounts, a page at a time."""
        now = self._clock.now()
        kinds: Counter[str] = Counter()
        last = ""
        while page := await self._store.password_hashes(last, PAGE):
            kinds += await run_off_loop(OFF_LOOP_WEIGHT, _count_kinds, list(page.values()))
            *_, last = page
        self._kinds = dict(kinds.most_common(MAX_KINDS))
        await self._store.set_hash_kinds(json.dumps({"at": now, "kinds": self._kinds}))

    def _score(self, login: str, kind: str) -> float:
        """Return a number of an exponential distribution: the kind's is the smallest as often as its share says."""
        digest = hmac_sha256(self._key, f"{login}\0{kind}".encode("utf-8", "surrogatepass"))
        uniform = (int.from_bytes(digest[:8]) + 1) / (2**64 + 1)
        return -math.log(uniform) / self._kinds[kind]


def _count_kinds(hashes: list[str]) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for password_hash in hashes:
        try:
            kinds[blank_hash(password_hash)] += 1
        except BadHash:  # of an older version; checking it takes no time
            continue
    return kinds
