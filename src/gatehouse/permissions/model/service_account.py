"""A service account: a user without login and password that belongs to a project (R1)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccount:
    user_id: str
    project_id: str
    name: str
    comment: str = ""
    ip_ranges: tuple[str, ...] = ()
    public_key: str = ""  # when there is one, each request is signed with its private half
    created_by: str
    created_at: int
    jti: str  # of the one token that is live
    revoked: bool = False
    version: int = 1
