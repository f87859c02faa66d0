"""The claims of profile oidc about a person: by scope, and as the parameter `claims` requests them (R9)."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from gatehouse.accounts.model import CLAIM_FIELDS, User
from gatehouse.oauth.mapped_claims import APPLICATION_CLAIMS
from gatehouse.oauth.model import Client, GrantHolder
from gatehouse.oauth.vocabulary import EMAIL, PHONE, PROFILE, TRUST

ID_TOKEN: Final = "id_token"  # noqa: S105 - a place of claims
USERINFO: Final = "userinfo"
PLACES: Final = (ID_TOKEN, USERINFO)

EMAIL_CLAIMS: Final = ("email", "email_verified")
PROFILE_CLAIMS: Final = (
    *("name", "nickname", "preferred_username", "picture", "locale", "updated_at"),
    *(claim_field.field.claim for claim_field in CLAIM_FIELDS),
)
PHONE_CLAIMS: Final = ("phone_number", "phone_number_verified")
TRUST_CLAIMS: Final = ("email_verified", "phone_verified")
CLAIMS_BY_SCOPE: Final[Mapping[str, tuple[str, ...]]] = {
    TRUST: TRUST_CLAIMS,
    EMAIL: EMAIL_CLAIMS,
    PROFILE: PROFILE_CLAIMS,
    PHONE: PHONE_CLAIMS,
    **{name: (name,) for name in APPLICATION_CLAIMS},
}
USERINFO_SCOPES: Final = frozenset(CLAIMS_BY_SCOPE)
APPLICATION_SCOPES: Final = frozenset(APPLICATION_CLAIMS)
ID_TOKEN_SCOPES: Final = APPLICATION_SCOPES | {EMAIL, PROFILE, PHONE}
PROFILE_NAMES: Final = frozenset(PROFILE_CLAIMS)
# A claim that is requested by name needs this scope among those of the client, and the person's consent to it.
SCOPE_OF_CLAIM: Final[Mapping[str, str]] = {
    claim: scope for scope, claims in CLAIMS_BY_SCOPE.items() for claim in claims
}

ProfileReader = Callable[[User], Awaitable[dict[str, object]]]


def claims_at(place: str, holder: GrantHolder, scopes: Collection[str]) -> frozenset[str]:
    """Return the names of the claims for the id_token or for userinfo: of the scopes, and those requested by name."""
    by_scope = claims_of_scopes(scopes_at(place, holder.client).intersection(scopes))
    return by_scope | requested_at(place, holder) if holder.grant.wanted_claims else by_scope


@cache
def claims_of_scopes(scopes: frozenset[str]) -> frozenset[str]:
    """Return the names of the claims of these scopes, each of which has some."""
    return frozenset(claim for scope in scopes for claim in CLAIMS_BY_SCOPE[scope])


def scopes_at(place: str, client: Client) -> frozenset[str]:
    """Return the scopes whose claims are given in this place (R9); OpenID Connect Core §5.4 names userinfo only."""
    if place == USERINFO:
        return USERINFO_SCOPES
    return ID_TOKEN_SCOPES if client.claims_in_id_token else APPLICATION_SCOPES


def requested_at(place: str, holder: GrantHolder) -> set[str]:
    allowed = holder.client.scopes
    asked = (name.partition(".") for name in holder.grant.wanted_claims)
    return {claim for where, _, claim in asked if where == place and SCOPE_OF_CLAIM.get(claim) in allowed}


class UserClaims(Struct, eq=False):
    """`profile_claims` returns those of the scope profile that are known."""

    profile_claims: ProfileReader

    async def claims_of(self, user: User, names: frozenset[str]) -> dict[str, object]:
        """Return the claims of these names; those about applications are read elsewhere."""
        claims: dict[str, object] = {}
        if user.login is not None:
            if "email" in names:
                claims["email"] = user.login
            if "email_verified" in names:
                claims["email_verified"] = user.email_verified
        if "phone_verified" in names:
            claims["phone_verified"] = user.phone_verified
        if user.phone:
            if "phone_number" in names:
                claims["phone_number"] = user.phone
            if "phone_number_verified" in names:
                claims["phone_number_verified"] = user.phone_verified
        if not PROFILE_NAMES.isdisjoint(names):
            profile = await self.profile_claims(user)
            if names >= PROFILE_NAMES:
                return claims | profile
            claims |= {name: value for name, value in profile.items() if name in names}
        return claims
