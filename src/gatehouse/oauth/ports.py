"""What OAuth asks of others; `app/oauth.py` hands the answers in."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gatehouse.accounts.model import User
from gatehouse.oauth.model import Client


class ApplicationLoginRules(Protocol):
    """The permission room's word about signing in to applications."""

    async def may_log_in(self, user: User, application_ids: Sequence[int]) -> bool:
        """Whether the login rules of every one of them let this user in (R5); an unknown one lets nobody in."""


class ClaimMapping(Protocol):
    """What a user holds in applications, as claims of his tokens."""

    async def claims(self, user: User, client: Client) -> Mapping[str, tuple[str, ...]]:
        """The claims this client has mapped, by their names; only what the permission room grants right now."""


class AccessKeyLookup(Protocol):
    """Access keys of applications (interface §4.8)."""

    async def application_of(self, access_key: str, *, source: str) -> int:
        """Whose access key this is. Raises InvalidToken, or TooMany for a source that keeps guessing."""


class SecretHasher(Protocol):
    """Argon2id, for imported secrets that are too weak for a quick digest (R3)."""

    async def matches(self, password: str, password_hash: str) -> bool:
        """Whether the hash was made of it."""
