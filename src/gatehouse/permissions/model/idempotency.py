"""Requests that are carried out once, however often they are sent (R9)."""

from dataclasses import dataclass, field


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
