"""Devices at sign-ins, which a ban can cover: an HMAC of the factor, kept for 30 days for this purpose only (R10)."""

from typing import TypeGuard

from gatehouse.accounts.bans.model import UserBan
from gatehouse.accounts.bans.store import BanStore
from gatehouse.accounts.sample_factor import SAMPLE_FACTOR
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import hmac_sha256


class SignInDevices:
    def __init__(self, *, store: BanStore, key: bytes, clock: Clock) -> None:
        self._store = store
        self._key = key
        self._clock = clock

    async def record_sign_in(self, user_id: str, factor: str | None) -> None:
        """Store the device of a sign-in.

        Before its bans are read: a ban that is saved meanwhile finds the account, or is found.
        """
        if names_a_device(factor):
            await self._store.record_device(user_id, self._digest(factor), self._clock.now())

    async def find_bans(self, factor: str | None) -> tuple[UserBan, ...]:
        """Return the bans that count for every account on the device."""
        if not names_a_device(factor):
            return ()
        return await self._store.bans_of_device(self._digest(factor), self._clock.now())

    def _digest(self, factor: str) -> str:
        return hmac_sha256(self._key, factor.encode()).hex()


def names_a_device(factor: str | None) -> TypeGuard[str]:
    """Whether the factor stands for one device; the sample one is the same on all."""
    return bool(factor) and factor != SAMPLE_FACTOR
