"""Identify the caller of a permission endpoint (interface §4.1, R1, R2, R6).

Every credential in the request must be valid for exactly this request; only a factor beside a service JWT is ignored.
The state of the account comes with the facts that the decision needs anyway.
"""

from collections.abc import Awaitable, Callable, Collection
from typing import Annotated, Final, assert_never

from msgspec.structs import replace

from gatehouse.accounts.bans.model import Banned, UserBan
from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.fields.secrets import HIDDEN, SecretRecord
from gatehouse.kernel.addresses import Address, any_network_contains, parse_network
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal
from gatehouse.kernel.errors import TooMany
from gatehouse.permissions.authentication.access_keys import AccessKeyVerifier
from gatehouse.permissions.authentication.credentials import CredentialPolicy, ExchangedJwtPolicy, RequestCredentials
from gatehouse.permissions.authentication.jwts import CallerClaims, CallerJwtVerifier
from gatehouse.permissions.authentication.service_jwts import ServiceJwtVerifier
from gatehouse.permissions.authentication.vouching import (
    CallerKind,
    VouchingApplication,
    client_address,
    merge_vouching,
)
from gatehouse.permissions.errors import WrongCredentials
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.model.facts import Facts
from gatehouse.throttle.rate_limiter import RateLimiter
from gatehouse.tokens.claims import (
    ExchangedUserClaims,
    InvalidToken,
    ServiceAccountClaims,
    UserJwtClaims,
    factor_digest,
)
from gatehouse.tokens.request_signatures import is_signed_request

MAX_FACTOR_LENGTH: Final = 1_024  # characters; no login accepts a longer one
PRINCIPAL_RATE_CLASS: Final = "principal"  # the class under which one principal's requests are counted (PA-15)


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
    address: Address | None = None  # the address for `ip` conditions on the caller's own record (R5)

    @property
    def user_id(self) -> str:
        """The user's id; empty when a service calls for itself."""
        return "" if self.facts is None else self.facts.subject.user_id

    @property
    def name(self) -> str:
        """The name in the audit log."""
        return self.user_id or f"application {self.application_id}"


class CallerIdentifier:
    """`grace`: seconds for which an expired user JWT still names its user to a service.

    `is_grant_live`: whether the OAuth grant of an exchanged JWT exists and is not revoked.
    `find_device_bans`: the bans of the device with this factor that count for this user.
    """

    def __init__(
        self,
        *,
        permission_loader: PermissionLoader,
        user_jwts: CallerJwtVerifier,
        service_jwts: ServiceJwtVerifier,
        access_keys: AccessKeyVerifier,
        is_grant_live: Callable[[str], Awaitable[bool]],
        find_device_bans: Callable[[str, str], Awaitable[tuple[UserBan, ...]]],
        volume: RateLimiter,
        clock: Clock,
        grace: int,
    ) -> None:
        self._permission_loader = permission_loader
        self._user_jwts = user_jwts
        self._service_jwts = service_jwts
        self._access_keys = access_keys
        self._is_grant_live = is_grant_live
        self._find_device_bans = find_device_bans
        self._volume = volume
        self._clock = clock
        self._grace = grace

    async def identify(
        self,
        credentials: RequestCredentials,
        policy: CredentialPolicy,
        *,
        application_id: int | None = None,
        also: Collection[int] = (),
    ) -> Caller:
        """Identify the caller.

        Raises InvalidToken, or WrongCredentials for valid credentials that do not fit this request. `application_id`
        is the one the request names. The facts are read for it, for application 1 and for those in `also`, at once.
        """
        vouching = await self._find_vouching_application(credentials, policy)
        caller = self._caller_about(vouching, policy, application_id, client_address(credentials, vouching))
        if credentials.user_jwt:
            caller = await self._with_user(caller, credentials, policy, vouching, also)
        elif vouching is None or not policy.no_jwt:
            raise InvalidToken("user JWT is missing")
        else:
            self._limit_rate(caller.name)
        await self._record_key_use(vouching)
        return caller

    async def _find_vouching_application(
        self, credentials: RequestCredentials, policy: CredentialPolicy
    ) -> VouchingApplication | None:
        """Find the application that vouches; all proofs must be of the same one."""
        found: list[VouchingApplication] = []
        if credentials.access_key:
            key = await self._access_keys.verify_value(credentials.access_key, source=credentials.source)
            if not policy.key:
                raise WrongCredentials("access keys are not accepted here")
            found.append(VouchingApplication(application_id=key.application_id, key=key))
        if credentials.signed is not None:
            signed = await self._access_keys.verify_signature(credentials.signed, source=credentials.source)
            if not (policy.key or policy.audience):  # else the key of one application would tell addresses to all
                raise WrongCredentials("a Signature is accepted only for requests about its application")
            found.append(VouchingApplication(application_id=signed.key.application_id, signed=signed))
        if credentials.service_jwt:
            application_id = await self._service_jwts.verify(credentials.service_jwt)
            found.append(VouchingApplication(application_id=application_id, by_jwt=True))
        return merge_vouching(found)

    def _caller_about(
        self,
        vouching: VouchingApplication | None,
        policy: CredentialPolicy,
        application_id: int | None,
        address: Address | None,
    ) -> Caller:
        """Return the caller. Raises WrongCredentials when another application vouches than the requested one (R6)."""
        if vouching is None:
            return Caller(by=CallerKind.FACTOR, application_id=application_id, address=address)
        everywhere = policy.any_service or vouching.application_id == CENTRAL_APPLICATION
        unlimited = everywhere and vouching.kind is CallerKind.SERVICE_JWT and vouching.signed is None
        about = vouching.application_id if application_id is None else application_id
        if about != vouching.application_id and not unlimited:
            raise WrongCredentials(
                f"application {vouching.application_id} authenticates, but the request is about {about}"
            )
        service = None if unlimited else vouching.application_id
        return Caller(by=vouching.kind, application_id=about, vouching_application_id=service, address=address)

    async def _with_user(
        self,
        caller: Caller,
        credentials: RequestCredentials,
        policy: CredentialPolicy,
        vouching: VouchingApplication | None,
        also: Collection[int],
    ) -> Caller:
        own = vouching is not None and vouching.application_id == caller.application_id
        lenience = self._grace_seconds(policy, vouching) if own else 0
        claims = await self._user_jwts.verify(credentials.user_jwt, expiry_grace=lenience)
        if isinstance(claims, ExchangedUserClaims):
            await self._refuse_exchanged(claims, policy, beside_service=own)
        kind = caller_kind(claims, credentials, policy, vouching)
        audience = audience_of(claims)
        if audience is not None and not (policy.audience and audience == caller.application_id):
            raise WrongCredentials(f"the JWT is for application {audience}")
        self._limit_rate(claims.uid)
        facts = await self._load_facts(
            claims, {CENTRAL_APPLICATION, caller.application_id or CENTRAL_APPLICATION, *also}
        )
        await self._refuse_service_account(claims, facts, credentials)
        device_bans = await self._find_device_bans(claims.uid, credentials.factor) if facts.device_bans else ()
        self._refuse_banned(facts, caller.application_id, device_bans)
        refuse_other_addresses(allowed_networks(claims, facts), caller.address)
        return replace(
            caller,
            by=kind,
            facts=facts,
            claims=claims,
            expired=claims.exp <= self._clock.now(),
            audience=audience,
        )

    def _grace_seconds(self, policy: CredentialPolicy, vouching: VouchingApplication | None) -> int:
        """Return the seconds for which an expired user JWT is accepted (R6)."""
        if vouching is None:
            return 0
        allowed = policy.expired_beside_service if vouching.by_jwt else policy.expired_beside_key
        return self._grace if allowed else 0

    async def _refuse_exchanged(
        self, claims: ExchangedUserClaims, policy: CredentialPolicy, *, beside_service: bool
    ) -> None:
        if not await self._is_grant_live(claims.gid):
            raise InvalidToken(f"grant {claims.gid} has ended")
        enough = policy.exchanged is ExchangedJwtPolicy.ALONE or (
            policy.exchanged is ExchangedJwtPolicy.BESIDE_SERVICE and beside_service
        )
        if not enough:
            raise WrongCredentials("exchanged JWTs are not accepted here")

    def _limit_rate(self, principal: str) -> None:
        wait = self._volume.admit(PRINCIPAL_RATE_CLASS, principal)
        if wait:
            raise TooMany(wait, f"requests of {principal}")

    async def _load_facts(self, claims: CallerClaims, application_ids: Collection[int]) -> Facts:
        facts = await self._permission_loader.load_facts(claims.uid, application_ids)
        if facts is None or facts.blocked or facts.rev != claims.rev:
            raise InvalidToken(f"user {claims.uid} does not exist or is blocked, or the JWT was revoked")
        await self._user_jwts.recheck_key(claims, keys_version=facts.keys_version)
        return facts

    def _refuse_banned(self, facts: Facts, application_id: int | None, device_bans: tuple[UserBan, ...]) -> None:
        """Raise Banned, which tells the caller why: their credentials were right."""
        about = CENTRAL_APPLICATION if application_id is None else application_id
        ban = facts.ban_from(about, self._clock.now(), device_bans)
        if ban is not None:
            raise Banned(ban)

    async def _refuse_service_account(
        self, claims: CallerClaims, facts: Facts, credentials: RequestCredentials
    ) -> None:
        account = facts.service_account
        if not isinstance(claims, ServiceAccountClaims):
            if account is not None:
                raise InvalidToken("a user JWT of a service account")
            return
        if account is None or account.revoked or account.jti != claims.jti:
            raise InvalidToken(f"service account {claims.uid} is revoked or has a newer JWT")
        if not await self._permission_loader.is_project_live(account.project_id, facts):
            raise InvalidToken(f"project {account.project_id} of the service account is removed")
        key = account.public_key or claims.pub_key
        if key and not is_signed_request(credentials.request_sign, credentials.body, key):
            raise InvalidToken("Request-Sign is missing or wrong")

    async def _record_key_use(self, vouching: VouchingApplication | None) -> None:
        if vouching is not None and vouching.key is not None:
            await self._access_keys.record_use(vouching.key)
        elif vouching is not None and vouching.signed is not None:
            await self._access_keys.record_use(vouching.signed.key)


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
