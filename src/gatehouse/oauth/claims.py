"""What a client learns about a person, by scope (interface §2.1, §4.2)."""

from collections.abc import Collection, Mapping
from typing import Final, Protocol

import structlog

from gatehouse.accounts.model import User
from gatehouse.oauth.model import ClaimContent, Client
from gatehouse.oauth.vocabulary import EMAIL, PROFILE, TRUST


def email_for(user: User, scopes: Collection[str]) -> str | None:
    return user.login if EMAIL in scopes else None


def nickname_for(user: User, scopes: Collection[str]) -> str | None:
    return user.nick if PROFILE in scopes else None


def trust_claims(user: User, scopes: Collection[str]) -> dict[str, bool]:
    if TRUST not in scopes:
        return {}
    return {"email_verified": user.email_verified, "phone_verified": user.phone_verified}


# Claims that a client has mapped: what a user holds in chosen applications (R3).


log = structlog.get_logger(__name__)

MAX_CLAIM_ENTRIES: Final = 1_000  # of one claim; a longer list is omitted, because a partial one would be wrong


class ApplicationHoldings(Protocol):
    """What a user holds in one application."""

    @property
    def roles(self) -> tuple[str, ...]: ...

    @property
    def groups(self) -> tuple[str, ...]: ...

    @property
    def rules(self) -> tuple[str, ...]: ...


class PermissionSource(Protocol):
    """What permissions know about users."""

    async def holdings_by_application(
        self, user_id: str, application_ids: Collection[int]
    ) -> Mapping[int, ApplicationHoldings]:
        """Return what the user holds now, by application; unknown applications are left out."""


class MappedClaims:
    def __init__(self, permissions: PermissionSource) -> None:
        self._permissions = permissions

    async def claims(self, user: User, client: Client) -> Mapping[str, tuple[str, ...]]:
        """Return the claims that the client has mapped, by name, with what the user holds now."""
        if not client.claims:
            return {}
        numbers = {source.application_id for source in client.claims.values()}
        holdings = await self._permissions.holdings_by_application(user.user_id, sorted(numbers))
        entries = {
            claim: entries_of(holdings.get(source.application_id), source.told)
            for claim, source in client.claims.items()
        }
        for claim in (claim for claim, listed in entries.items() if len(listed) > MAX_CLAIM_ENTRIES):
            log.warning("mapped claim omitted: too long", client_id=client.client_id, claim=claim)
        return {claim: listed for claim, listed in entries.items() if len(listed) <= MAX_CLAIM_ENTRIES}


def entries_of(holdings: ApplicationHoldings | None, content: ClaimContent) -> tuple[str, ...]:
    """Return the entries of a claim; none for an unknown application."""
    if holdings is None:
        return ()
    match content:
        case ClaimContent.ROLES:
            return holdings.roles
        case ClaimContent.GROUPS:
            return holdings.groups
        case ClaimContent.RULES:
            return holdings.rules
