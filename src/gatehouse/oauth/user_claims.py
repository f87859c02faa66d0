"""The claims of profile oidc about a person: by scope, and as the parameter `claims` requests them (R9)."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final

from msgspec import Struct

from gatehouse.accounts.model import CLAIM_FIELDS, User
from gatehouse.oauth.mapped_claims import APPLICATION_CLAIMS
from gatehouse.oauth.model import Client, GrantHolder
from gatehouse.oauth.vocabulary import EMAIL, PROFILE, TRUST

ID_TOKEN: Final = "id_token"  # noqa: S105 - a place of claims
USERINFO: Final = "userinfo"
PLACES: Final = (ID_TOKEN, USERINFO)

EMAIL_CLAIMS: Final = ("email", "email_verified")
PROFILE_CLAIMS: Final = (
    *("name", "nickname", "preferred_username", "picture", "locale", "updated_at"),
    *(one.field.claim for one in CLAIM_FIELDS),
)
TRUST_CLAIMS: Final = ("email_verified", "phone_verified")
CLAIMS_BY_SCOPE: Final[Mapping[str, tuple[str, ...]]] = {
    TRUST: TRUST_CLAIMS,
    EMAIL: EMAIL_CLAIMS,
    PROFILE: PROFILE_CLAIMS,
    **{name: (name,) for name in APPLICATION_CLAIMS},
}
# A claim that is requested by name needs this scope among those of the client, and the person's consent to it.
SCOPE_OF_CLAIM: Final[Mapping[str, str]] = {
    claim: scope for scope, claims in CLAIMS_BY_SCOPE.items() for claim in claims
}

ProfileReader = Callable[[User], Awaitable[Mapping[str, object]]]


def claims_at(place: str, holder: GrantHolder, scopes: Collection[str]) -> frozenset[str]:
    """Return the names of the claims for the id_token or for userinfo: of the scopes, and those requested by name."""
    by_scope = {
        claim for scope in scopes_at(place, holder.client) if scope in scopes for claim in CLAIMS_BY_SCOPE[scope]
    }
    return frozenset(by_scope | requested_at(place, holder))


def scopes_at(place: str, client: Client) -> Collection[str]:
    """Return the scopes whose claims are given in this place (R9); OpenID Connect Core §5.4 names userinfo only."""
    if place == USERINFO:
        return CLAIMS_BY_SCOPE
    return (*APPLICATION_CLAIMS, EMAIL, PROFILE) if client.claims_in_id_token else (*APPLICATION_CLAIMS,)


def requested_at(place: str, holder: GrantHolder) -> set[str]:
    allowed = holder.client.scopes
    asked = (name.partition(".") for name in holder.grant.wanted_claims)
    return {claim for where, _, claim in asked if where == place and SCOPE_OF_CLAIM.get(claim) in allowed}


class UserClaims(Struct, eq=False):
    """`profile_claims` returns those of the scope profile that are known."""

    profile_claims: ProfileReader

    async def claims_of(self, user: User, names: Collection[str]) -> dict[str, object]:
        """Return the claims of these names; those about applications are read elsewhere."""
        known: dict[str, object] = {
            "email": user.login,
            "email_verified": user.email_verified if user.login is not None else None,
            "phone_verified": user.phone_verified,
        }
        if not set(PROFILE_CLAIMS).isdisjoint(names):
            known |= await self.profile_claims(user)
        return {name: value for name, value in known.items() if name in names and value is not None}
