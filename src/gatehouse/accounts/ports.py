"""What accounts asks of others; `app/people.py` hands the answers in."""

from collections.abc import Sequence
from typing import Protocol

from gatehouse.accounts.model import User
from gatehouse.tokens.claims import PermissionClaims


class ApplicationAccess(Protocol):
    """The permission room's word about signing in to applications."""

    async def may_log_in(self, user: User, application_ids: Sequence[int]) -> bool:
        """Whether the login rules of every one of them let this user in (R5); an unknown one lets nobody in."""

    async def service_application(self, service_jwt: str) -> int:
        """Whose service JWT this is. Raises InvalidToken."""

    async def permissions(self, user: User, application_id: int) -> PermissionClaims | None:
        """What the user holds there, for his JWT; None when there is no such application."""

    async def shares_email(self, application_id: int, secret: str) -> bool:
        """Whether the secret is one that lets this application see login e-mails (R1)."""


class CountryLookup(Protocol):
    """What an operator's GeoIP file tells."""

    def country(self, address: str) -> str:
        """The ISO 3166 code of the country the address is in; empty when it is not known."""
