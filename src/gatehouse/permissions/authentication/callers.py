"""Callers of permission endpoints, and what their credentials prove (interface §4.1, R1, R2, R5, R6)."""

from collections.abc import Collection
from typing import Annotated, Final, assert_never

from gatehouse.fields.secrets import HIDDEN, SecretRecord
from gatehouse.kernel.addresses import Address, any_network_contains, parse_network
from gatehouse.kernel.digests import constant_time_equal
from gatehouse.permissions.authentication.credentials import CredentialPolicy, RequestCredentials
from gatehouse.permissions.authentication.jwts import CallerClaims
from gatehouse.permissions.authentication.vouching import CallerKind, VouchingApplication
from gatehouse.permissions.errors import WrongCredentials
from gatehouse.permissions.model.facts import Facts
from gatehouse.tokens.claims import (
    ExchangedUserClaims,
    InvalidToken,
    ServiceAccountClaims,
    UserJwtClaims,
    factor_digest,
)

MAX_FACTOR_LENGTH: Final = 1_024  # characters; no login accepts a longer one


class Caller(SecretRecord, frozen=True, kw_only=True):
    by: CallerKind
    facts: Facts | None = None  # of the person or service account; None when a service calls for itself
    claims: Annotated[CallerClaims | None, HIDDEN] = None
    application_id: int | None = None  # the application the request names, otherwise the one that vouches for it
    vouching_application_id: int | None = (
        None  # the one application the request may be about, when one vouches for it (R6)
    )
    expired: bool = False  # the user JWT has expired, within the grace time
    audience: int | None = None  # the one application the user JWT is for
    account_id: str = ""  # of the service account whose token vouches, for the applications of its project (R11)
    project_id: str = ""
    address: Address | None = None  # the address for `ip` conditions on the caller's own record (R5)

    @property
    def user_id(self) -> str:
        """The user's id; empty when a service calls for itself."""
        return "" if self.facts is None else self.facts.subject.user_id

    @property
    def name(self) -> str:
        """The name in the audit log."""
        return self.user_id or self.account_id or f"application {self.application_id}"


def caller_kind(
    claims: CallerClaims,
    credentials: RequestCredentials,
    policy: CredentialPolicy,
    vouching: VouchingApplication | None,
) -> CallerKind:
    """Return what proves that the JWT's owner, or an application they use, sent the request."""
    if credentials.factor and not (vouching is not None and vouching.by_jwt):
        refuse_other_factor(claims, credentials.factor)
    match claims:
        case ServiceAccountClaims():
            if not policy.service_accounts:
                raise InvalidToken("a service account's JWT is not a user JWT")
            return CallerKind.SERVICE_ACCOUNT
        case ExchangedUserClaims():
            return CallerKind.EXCHANGED
        case UserJwtClaims():
            return user_caller_kind(credentials, policy, vouching)
        case _:
            assert_never(claims)


def user_caller_kind(
    credentials: RequestCredentials, policy: CredentialPolicy, vouching: VouchingApplication | None
) -> CallerKind:
    """Return the kind of a person as caller; a sent factor was already verified."""
    if vouching is not None and vouching.kind is not CallerKind.SIGNATURE:
        return vouching.kind
    if credentials.factor:
        return CallerKind.FACTOR
    if vouching is None:
        raise InvalidToken("user JWT without factor or service JWT")
    if not policy.key:
        raise WrongCredentials("a Signature cannot replace the factor here")
    return CallerKind.SIGNATURE


def refuse_other_factor(claims: CallerClaims, factor: str) -> None:
    """Raise InvalidToken unless `fac` was made from this factor; without `fac` every factor is refused (R2)."""
    if not isinstance(claims, UserJwtClaims) or claims.fac is None:
        raise InvalidToken("a factor was sent, but the JWT has none")
    if len(factor) > MAX_FACTOR_LENGTH or not constant_time_equal(factor_digest(factor, claims.slt), claims.fac):
        raise InvalidToken("wrong factor")


def audience_of(claims: CallerClaims) -> int | None:
    if isinstance(claims, ServiceAccountClaims) or claims.aud is None:
        return None
    return int(claims.aud)


def allowed_networks(claims: CallerClaims, facts: Facts) -> tuple[tuple[str, ...], ...]:
    """Return the networks of `fip`; each non-empty list must contain the caller's address."""
    account = facts.service_account
    return (claims.fip or (), () if account is None else account.ip_ranges)


def refuse_other_addresses(lists: Collection[tuple[str, ...]], address: Address | None) -> None:
    """Raise WrongCredentials for an address that `fip` does not allow, and for an unknown address (R2)."""
    for ranges in lists:
        networks = tuple(parse_network(text) for text in ranges)
        if networks and (address is None or not any_network_contains(networks, address)):
            raise WrongCredentials("the client IP address is not in fip")
