"""The claims of profile oidc about a person: by scope, and as the parameter `claims` requests them (R9)."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final

from gatehouse.accounts.model import User
from gatehouse.oauth.claims import APPLICATION_CLAIMS
from gatehouse.oauth.model import GrantHolder
from gatehouse.oauth.vocabulary import EMAIL, PROFILE, TRUST

ID_TOKEN: Final = "id_token"  # noqa: S105 - a place of claims
USERINFO: Final = "userinfo"
PLACES: Final = (ID_TOKEN, USERINFO)

EMAIL_CLAIMS: Final = ("email", "email_verified")
PROFILE_CLAIMS: Final = (
    *("name", "given_name", "family_name", "nickname", "preferred_username", "picture", "locale", "zoneinfo"),
    "updated_at",
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
        claim
        for scope, claims in CLAIMS_BY_SCOPE.items()
        if scope in scopes and (place, scope) != (ID_TOKEN, TRUST)
        for claim in claims
    }
    return frozenset(by_scope | requested_at(place, holder))


def requested_at(place: str, holder: GrantHolder) -> set[str]:
    allowed = holder.client.scopes
    asked = (name.partition(".") for name in holder.grant.wanted_claims)
    return {claim for where, _, claim in asked if where == place and SCOPE_OF_CLAIM.get(claim) in allowed}


class UserClaims:
    """`profile_claims` returns those of the scope profile that are known."""

    def __init__(self, profile_claims: ProfileReader) -> None:
        self._profile_claims = profile_claims

    async def claims_of(self, user: User, names: Collection[str]) -> dict[str, object]:
        """Return the claims of these names; those about applications are read elsewhere."""
        known: dict[str, object] = {
            "email": user.login,
            "email_verified": user.email_verified if user.login is not None else None,
            "phone_verified": user.phone_verified,
        }
        if not set(PROFILE_CLAIMS).isdisjoint(names):
            known |= await self._profile_claims(user)
        return {name: value for name, value in known.items() if name in names and value is not None}
