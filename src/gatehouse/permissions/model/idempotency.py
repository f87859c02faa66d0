"""Requests that are carried out once, however often they are sent (R9)."""

from msgspec import Struct

from gatehouse.fields.secrets import SecretBytes, SecretRecord


class CallerKey(Struct, frozen=True, kw_only=True):
    """An Idempotency-Key as one caller sent it; the same key of another caller is another one."""

    user_id: str
    through: int  # the application that vouches for the caller; 0 in person
    digest: bytes


class EarlierRequest(SecretRecord, frozen=True, kw_only=True):
    request_digest: bytes
    sealed_answer: SecretBytes | None  # None while it runs, or when its outcome is unknown
