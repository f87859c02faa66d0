"""Claims that a client has mapped: what a user holds in chosen applications (R3); fills the port ClaimMapping."""

from collections.abc import Collection, Mapping
from typing import Final, Protocol

import structlog

from gatehouse.accounts.model import User
from gatehouse.oauth.model import Client, Told

log = structlog.get_logger(__name__)

ENTRIES_MOST: Final = 1_000  # of one claim; a longer list is not told at all, for half of it would be a lie


class Held(Protocol):
    """What somebody holds in one application."""

    @property
    def roles(self) -> tuple[str, ...]: ...

    @property
    def groups(self) -> tuple[str, ...]: ...

    @property
    def rules(self) -> tuple[str, ...]: ...


class Holdings(Protocol):
    """The permission room's word."""

    async def held(self, user_id: str, application_ids: Collection[int]) -> Mapping[int, Held]:
        """What the user holds right now, by application; one that never was is left out."""


class MappedClaims:
    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings

    async def claims(self, user: User, client: Client) -> Mapping[str, tuple[str, ...]]:
        if not client.claims:
            return {}
        numbers = {source.application_id for source in client.claims.values()}
        held = await self._holdings.held(user.user_id, sorted(numbers))
        told = {
            claim: entries(held.get(source.application_id), source.told) for claim, source in client.claims.items()
        }
        for claim in (claim for claim, listed in told.items() if len(listed) > ENTRIES_MOST):
            log.warning("mapped claim omitted: too long", client_id=client.client_id, claim=claim)
        return {claim: listed for claim, listed in told.items() if len(listed) <= ENTRIES_MOST}


def entries(held: Held | None, told: Told) -> tuple[str, ...]:
    """Nobody holds anything in an application that never was."""
    if held is None:
        return ()
    match told:
        case Told.ROLES:
            return held.roles
        case Told.GROUPS:
            return held.groups
        case Told.RULES:
            return held.rules
