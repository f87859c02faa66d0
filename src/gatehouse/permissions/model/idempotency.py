"""Requests that are carried out once, however often they are sent (R9)."""

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerKey:
    """An Idempotency-Key as one caller sent it; the same key of another caller is another one."""

    user_id: str
    through: int  # the application that vouches for the caller; 0 in person
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRequest:
    request_digest: bytes
    sealed_answer: bytes | None = field(repr=False)  # None while it runs, or when its outcome is unknown


class IdempotencyStore(Protocol):
    async def claim_key(self, key: CallerKey, request_digest: bytes, now: int, ends_at: int) -> EarlierRequest | None:
        """Claim the key; return the earlier request that has it already. Of two at once one gets it."""

    async def keep_answer(self, key: CallerKey, sealed_answer: bytes) -> None:
        """Keep the answer for those who send the request again."""

    async def release_key(self, key: CallerKey) -> None:
        """Make the key usable again: its request was refused, and nothing was done."""
