"""What a user holds in applications: in claims that a client has mapped (R3), and by scope (R9)."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Protocol

import structlog
from msgspec import Struct

from gatehouse.accounts.model import CLAIM_FIELDS, User
from gatehouse.oauth.model import ClaimContent, ClaimSource, Client
from gatehouse.oauth.vocabulary import GROUPS, PERMISSIONS, ROLES
from gatehouse.tokens.claim_sizes import claims_that_fit
from gatehouse.tokens.claims import TOKEN_CLAIMS

log = structlog.get_logger(__name__)

MAX_CLAIM_ENTRIES: Final = 1_000  # of one claim; a longer list is omitted, because a partial one would be wrong
MAX_APPLICATION_CLAIMS: Final = 6_144  # bytes of JSON (R9)
CLAIMS_OMITTED: Final = "claims_omitted"
APPLICATION_CLAIMS: Final[Mapping[str, ClaimContent]] = {
    GROUPS: ClaimContent.GROUPS,
    ROLES: ClaimContent.ROLES,
    PERMISSIONS: ClaimContent.RULES,
}  # by scope, which is also the name of the claim
# Claims of tokens and userinfo, which a mapped claim never replaces (OpenID Connect Core §2, §5.1, R9).
RESERVED_CLAIMS: Final = (
    TOKEN_CLAIMS
    | {
        *("nbf", "scope", "client_id", "acr", "amr", "c_hash", "s_hash"),
        *("status", "email", "email_verified", "nickname", "name"),
        *("preferred_username", "picture", "locale", "updated_at"),
        *(claim_field.field.claim for claim_field in CLAIM_FIELDS),
        *("phone_verified", "phone_number", "phone_number_verified"),
    }
) - APPLICATION_CLAIMS.keys()


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


class MappedClaims(Struct, eq=False):
    permissions: PermissionSource

    async def claims(self, user: User, client: Client) -> Mapping[str, tuple[str, ...]]:
        """Return the claims that the client has mapped, by name, with what the user holds now."""
        return await self.load(user.user_id, client.claims, client_id=client.client_id)

    async def application_claims(
        self, user_id: str, application_id: int | None, scopes: Collection[str], *, client_id: str
    ) -> dict[str, object]:
        """Return what the user holds in one application, by scope: at most 6 KB, with `claims_omitted` (R9)."""
        sources = application_sources(application_id, scopes)
        if not sources:
            return {}
        read = await self.load(user_id, sources, client_id=client_id)
        return fitting_claims(read, sources, MAX_APPLICATION_CLAIMS)

    async def load(
        self, user_id: str, sources: Mapping[str, ClaimSource], *, client_id: str
    ) -> Mapping[str, tuple[str, ...]]:
        """Return the claims of these sources; a list that is too long is left out."""
        if not sources:
            return {}
        numbers = {source.application_id for source in sources.values()}
        holdings = await self.permissions.holdings_by_application(user_id, sorted(numbers))
        entries = {
            claim: entries_of(holdings.get(source.application_id), source.told) for claim, source in sources.items()
        }
        for claim in (claim for claim, listed in entries.items() if len(listed) > MAX_CLAIM_ENTRIES):
            log.warning("mapped claim omitted: too long", client_id=client_id, claim=claim)
        return {claim: listed for claim, listed in entries.items() if len(listed) <= MAX_CLAIM_ENTRIES}


def application_sources(application_id: int | None, scopes: Collection[str]) -> dict[str, ClaimSource]:
    """Return the sources of `groups`, `roles` and `permissions`, by scope; none without an application."""
    if application_id is None or APPLICATION_CLAIMS.keys().isdisjoint(scopes):
        return {}
    return {
        scope: ClaimSource(application_id=application_id, told=content)
        for scope, content in APPLICATION_CLAIMS.items()
        if scope in scopes
    }


def fitting_claims(claims: Mapping[str, object], names: Iterable[str], bytes_left: int) -> dict[str, object]:
    """Return the claims that fit, the shortest first; `claims_omitted` names the missing ones."""
    retained_claims = claims_that_fit(claims, bytes_left)
    omitted = tuple(sorted(name for name in names if name not in retained_claims))
    return {**retained_claims, CLAIMS_OMITTED: omitted} if omitted else dict(retained_claims)


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
