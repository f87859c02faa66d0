"""What accounts asks of others; `app/people.py` hands the answers in."""

from collections.abc import Sequence
from typing import Protocol

from gatehouse.accounts.model import User


class ApplicationRules(Protocol):
    """The permission room's word about signing in to applications."""

    async def may_log_in(self, user: User, application_ids: Sequence[int]) -> bool:
        """Whether the login rules of every one of them let this user in (R5); an unknown one lets nobody in."""

    async def shares_email(self, application_id: int, secret: str) -> bool:
        """Whether the secret is one that lets this application see login e-mails (R1)."""


class Countries(Protocol):
    """What an operator's GeoIP file tells."""

    def country(self, address: str) -> str:
        """The ISO 3166 code of the country the address is in; empty when it is not known."""
