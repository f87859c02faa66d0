"""A static service JWT: issued by an administrator for an application, revocable (R2)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceToken:
    jti: str
    application_id: int
    comment: str = ""
    created_at: int
    ends_at: int
    revoked: bool = False
