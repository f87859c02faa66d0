"""Who is calling a permission endpoint (interface §4.1, R1, R2, R6).

Every credential that was sent must be valid, and for this very request: only a factor beside a service JWT is not
looked at. The account's state comes with the facts that the decision is made from anyway.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, assert_never

from gatehouse.kernel.addresses import Address, contains, parse_network
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import same_secret
from gatehouse.kernel.errors import TooMany
from gatehouse.permissions.callers.credentials import Credentials, Exchanged, Need
from gatehouse.permissions.callers.key_proofs import KeyProofs
from gatehouse.permissions.callers.live_projects import LiveProjects
from gatehouse.permissions.callers.service_jwts import ServiceJwts
from gatehouse.permissions.callers.standing import CallerKind, Standing, address_of, together
from gatehouse.permissions.callers.user_jwts import Token, UserJwts
from gatehouse.permissions.errors import WrongCredentials
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.facts import Facts
from gatehouse.permissions.store import PermissionStore
from gatehouse.throttle.volume import Volume
from gatehouse.tokens.claims import ExchangedClaims, ServiceAccountClaims, UserClaims, factor_digest
from gatehouse.tokens.errors import InvalidToken
from gatehouse.tokens.request_signatures import is_signed_request

FACTOR_LONGEST: Final = 1_024  # characters; none longer is ever taken at a login
PRINCIPAL: Final = "principal"  # the class under which one principal's requests are counted (PA-15)


class Grants(Protocol):
    async def is_live(self, grant_id: str) -> bool:
        """Whether the OAuth grant an exchanged JWT came from is there and not revoked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    by: CallerKind
    facts: Facts | None = None  # of the person or service account; None when a service asks for itself
    claims: Token | None = field(default=None, repr=False)
    application_id: int | None = None  # what the request names, else the application that vouches for it
    service: int | None = None  # the one application the request may be about, when one vouches for it (R6)
    expired: bool = False  # the user JWT is past its end, within the grace
    audience: int | None = None  # the one application the user JWT is for
    address: Address | None = None  # what an `ip` condition on the caller's own record may see (R5)

    @property
    def user_id(self) -> str:
        """Empty when a service asks for itself."""
        return "" if self.facts is None else self.facts.subject.user_id

    @property
    def name(self) -> str:
        """As the audit log names him."""
        return self.user_id or f"application {self.application_id}"


class Callers:
    """`grace`: seconds for which an expired user JWT still names its user to a service."""

    def __init__(
        self,
        *,
        store: PermissionStore,
        user_jwts: UserJwts,
        service_jwts: ServiceJwts,
        keys: KeyProofs,
        grants: Grants,
        volume: Volume,
        clock: Clock,
        grace: int,
    ) -> None:
        self._store = store
        self._projects = LiveProjects(store)
        self._user_jwts = user_jwts
        self._service_jwts = service_jwts
        self._keys = keys
        self._grants = grants
        self._volume = volume
        self._clock = clock
        self._grace = grace

    async def identify(
        self,
        credentials: Credentials,
        need: Need,
        *,
        application_id: int | None = None,
        also: Collection[int] = (),
    ) -> Caller:
        """Raise InvalidToken, or WrongCredentials for valid ones that are not good for this request.

        `application_id` is the one the request names. The facts are read for it, for application 1 and for
        those in `also`, at once.
        """
        standing = await self._standing(credentials, need)
        caller = self._about(standing, need, application_id, address_of(credentials, standing))
        if credentials.user_jwt:
            caller = await self._person(caller, credentials, need, standing, also)
        elif standing is None or not need.no_jwt:
            raise InvalidToken("user JWT is missing")
        else:
            self._admit(caller.name)
        await self._note_use(standing)
        return caller

    async def _standing(self, credentials: Credentials, need: Need) -> Standing | None:
        """Every application that vouches must be the same one."""
        found: list[Standing] = []
        if credentials.access_key:
            key = await self._keys.by_value(credentials.access_key, source=credentials.source)
            if not need.key:
                raise WrongCredentials("access keys are not accepted here")
            found.append(Standing(application_id=key.application_id, key=key))
        if credentials.signed is not None:
            signed = await self._keys.by_signature(credentials.signed, source=credentials.source)
            if not (need.key or need.audience):  # else the key of one application would tell addresses to all
                raise WrongCredentials("a Signature is accepted only for requests about its application")
            found.append(Standing(application_id=signed.key.application_id, signed=signed))
        if credentials.service_jwt:
            application_id = await self._service_jwts.application_of(credentials.service_jwt)
            found.append(Standing(application_id=application_id, by_jwt=True))
        return together(found)

    def _about(
        self, standing: Standing | None, need: Need, application_id: int | None, address: Address | None
    ) -> Caller:
        """Raise WrongCredentials when another application vouches than the one in question (R6)."""
        if standing is None:
            return Caller(by=CallerKind.FACTOR, application_id=application_id, address=address)
        everywhere = need.any_service or standing.application_id == CENTRAL_ID
        unlimited = everywhere and standing.kind is CallerKind.SERVICE_JWT and standing.signed is None
        about = standing.application_id if application_id is None else application_id
        if about != standing.application_id and not unlimited:
            raise WrongCredentials(
                f"application {standing.application_id} authenticates, but the request is about {about}"
            )
        service = None if unlimited else standing.application_id
        return Caller(by=standing.kind, application_id=about, service=service, address=address)

    async def _person(
        self,
        caller: Caller,
        credentials: Credentials,
        need: Need,
        standing: Standing | None,
        also: Collection[int],
    ) -> Caller:
        own = standing is not None and standing.application_id == caller.application_id
        lenience = self._lenience(need, standing) if own else 0
        claims = await self._user_jwts.read(credentials.user_jwt, expired_by=lenience)
        if isinstance(claims, ExchangedClaims):
            await self._refuse_exchanged(claims, need, beside_service=own)
        kind = vouched_for(claims, credentials, need, standing)
        audience = audience_of(claims)
        if audience is not None and not (need.audience and audience == caller.application_id):
            raise WrongCredentials(f"the JWT is for application {audience}")
        self._admit(claims.uid)
        facts = await self._facts(claims, {CENTRAL_ID, caller.application_id or CENTRAL_ID, *also})
        await self._refuse_service_account(claims, facts, credentials)
        refuse_other_places(fixed_networks(claims, facts), caller.address)
        return replace(
            caller,
            by=kind,
            facts=facts,
            claims=claims,
            expired=claims.exp <= self._clock.now(),
            audience=audience,
        )

    def _lenience(self, need: Need, standing: Standing | None) -> int:
        """How many seconds a user JWT may be past its end (R6)."""
        if standing is None:
            return 0
        allowed = need.expired_beside_service if standing.by_jwt else need.expired_beside_key
        return self._grace if allowed else 0

    async def _refuse_exchanged(self, claims: ExchangedClaims, need: Need, *, beside_service: bool) -> None:
        if not await self._grants.is_live(claims.gid):
            raise InvalidToken(f"grant {claims.gid} has ended")
        enough = need.exchanged is Exchanged.ALONE or (need.exchanged is Exchanged.BESIDE_SERVICE and beside_service)
        if not enough:
            raise WrongCredentials("exchanged JWTs are not accepted here")

    def _admit(self, principal: str) -> None:
        wait = self._volume.admit(PRINCIPAL, principal)
        if wait:
            raise TooMany(wait, f"requests of {principal}")

    async def _facts(self, claims: Token, application_ids: Collection[int]) -> Facts:
        facts = await self._store.facts(claims.uid, application_ids)
        if facts is None or facts.blocked or facts.rev != claims.rev:
            raise InvalidToken(f"user {claims.uid} does not exist or is blocked, or the JWT was revoked")
        await self._user_jwts.confirm(claims, keys_version=facts.keys_version)
        return facts

    async def _refuse_service_account(self, claims: Token, facts: Facts, credentials: Credentials) -> None:
        account = facts.service_account
        if not isinstance(claims, ServiceAccountClaims):
            if account is not None:
                raise InvalidToken("a user JWT of a service account")
            return
        if account is None or account.revoked or account.jti != claims.jti:
            raise InvalidToken(f"service account {claims.uid} is revoked or has a newer JWT")
        if not await self._projects.is_live(account.project_id, facts.structure):
            raise InvalidToken(f"project {account.project_id} of the service account is removed")
        key = account.public_key or claims.pub_key
        if key and not is_signed_request(credentials.request_sign, credentials.body, key):
            raise InvalidToken("Request-Sign is missing or wrong")

    async def _note_use(self, standing: Standing | None) -> None:
        if standing is not None and standing.key is not None:
            await self._keys.note_use(standing.key)
        elif standing is not None and standing.signed is not None:
            await self._keys.note_use(standing.signed.key)


def vouched_for(claims: Token, credentials: Credentials, need: Need, standing: Standing | None) -> CallerKind:
    """By what whoever shows the JWT is known to be its owner, or someone whom he gave it."""
    if credentials.factor and not (standing is not None and standing.by_jwt):
        refuse_other_factor(claims, credentials.factor)
    match claims:
        case ServiceAccountClaims():
            if not need.service_accounts:
                raise InvalidToken("a service account's JWT is not a user JWT")
            return CallerKind.SERVICE_ACCOUNT
        case ExchangedClaims():
            return CallerKind.EXCHANGED
        case UserClaims():
            return kind_of_user(credentials, need, standing)
        case _:
            assert_never(claims)


def kind_of_user(credentials: Credentials, need: Need, standing: Standing | None) -> CallerKind:
    """The factor, if one was sent, has been found right."""
    if standing is not None and standing.kind is not CallerKind.SIGNATURE:
        return standing.kind
    if credentials.factor:
        return CallerKind.FACTOR
    if standing is None:
        raise InvalidToken("user JWT without factor or service JWT")
    if not need.key:
        raise WrongCredentials("a Signature cannot replace the factor here")
    return CallerKind.SIGNATURE


def refuse_other_factor(claims: Token, factor: str) -> None:
    """Raise InvalidToken unless `fac` was made from it; without `fac` nothing passes (R2)."""
    if not isinstance(claims, UserClaims) or claims.fac is None:
        raise InvalidToken("a factor was sent, but the JWT has none")
    if len(factor) > FACTOR_LONGEST or not same_secret(factor_digest(factor, claims.slt), claims.fac):
        raise InvalidToken("wrong factor")


def audience_of(claims: Token) -> int | None:
    if isinstance(claims, ServiceAccountClaims) or claims.aud is None:
        return None
    return int(claims.aud)


def fixed_networks(claims: Token, facts: Facts) -> tuple[tuple[str, ...], ...]:
    """Each of these lists, when it is not empty, must hold the caller's address."""
    account = facts.service_account
    return (claims.fip or (), () if account is None else account.ip_ranges)


def refuse_other_places(lists: Collection[tuple[str, ...]], address: Address | None) -> None:
    """`fip`: raise WrongCredentials from any other address, and when there is none to go by (R2)."""
    for ranges in lists:
        networks = tuple(parse_network(text) for text in ranges)
        if networks and (address is None or not contains(networks, address)):
            raise WrongCredentials("the client IP address is not in fip")
