"""Authenticates a request to a permission endpoint: from credentials to a caller with rights (§4.1, R1, R2, R6).

Every credential in the request must be valid for exactly this request; only a factor beside a service JWT is ignored.
The state of the account comes with the facts that the decision needs anyway.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.bans.model import Banned, UserBan
from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.addresses import Address
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import TooMany
from gatehouse.permissions.authentication.access_keys import AccessKeyVerifier
from gatehouse.permissions.authentication.callers import (
    Caller,
    allowed_networks,
    audience_of,
    caller_kind,
    refuse_other_addresses,
)
from gatehouse.permissions.authentication.credentials import CredentialPolicy, ExchangedJwtPolicy, RequestCredentials
from gatehouse.permissions.authentication.jwts import CallerClaims, CallerJwtVerifier
from gatehouse.permissions.authentication.service_jwts import ServiceJwtVerifier
from gatehouse.permissions.authentication.vouching import (
    CallerKind,
    TokenOwner,
    VouchingApplication,
    client_address,
    merge_vouching,
)
from gatehouse.permissions.errors import ApplicationNotFound, Malformed, NoRight, WrongCredentials
from gatehouse.permissions.evaluation.loader import EvaluationInput, PermissionLoader
from gatehouse.permissions.model.facts import ApplicationModel, Facts
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import GuardTarget, Operation, require_operation
from gatehouse.permissions.rights.rights import Rights, ServiceReach, secret_data_of
from gatehouse.permissions.rights.secret_data import FULL_SECRET_DATA, NO_SECRET_DATA, PERMISSION_PARTS, RecordPart
from gatehouse.throttle.rate_limiter import RateLimiter
from gatehouse.tokens.claims import ExchangedUserClaims, InvalidToken, ServiceAccountClaims
from gatehouse.tokens.request_signatures import is_signed_request

NO_APPLICATION: Final = 0  # no application has this ID
PRINCIPAL_RATE_CLASS: Final = "principal"  # the class under which one principal's requests are counted (PA-15)


class AuthenticatedRequest(Struct, frozen=True, kw_only=True):
    """A caller with everything that decides about the request."""

    caller: Caller
    evaluation_input: EvaluationInput
    rights: Rights
    application_id: int | None  # what the request is about

    def actor(self, origin: AuditOrigin) -> Actor:
        return Actor(rights=self.rights, origin=origin)

    @property
    def central(self) -> ApplicationModel:
        return self.evaluation_input.models[CENTRAL_APPLICATION]

    @property
    def model(self) -> ApplicationModel | None:
        """The application the request is about; None when it names none or an unknown one."""
        return None if self.application_id is None else self.evaluation_input.models.get(self.application_id)

    @property
    def target(self) -> GuardTarget:
        """The request's application, in the project that is stored for it (R5)."""
        model = self.model
        return GuardTarget(
            application_id=self.application_id,
            project_id=None if model is None else model.application.project_id,
        )

    def named_application(self) -> ApplicationModel:
        """The application the request must name; an unknown one is NoRight unless the caller is an administrator."""
        self._refuse_unnamed()
        if self.model is None:
            raise ApplicationNotFound if self.rights.administers else NoRight("unknown application")
        return self.model

    def require_application(self, operation: Operation) -> ApplicationModel:
        """The application, if the caller may do this to it; NoRight is checked before NotFound (R6)."""
        self._refuse_unnamed()
        require_operation(self.rights, operation, self.target)
        if self.model is None:
            raise ApplicationNotFound
        return self.model

    def _refuse_unnamed(self) -> None:
        """Raise Malformed if neither the request nor a vouching service names one (interface §4.9, §4.10)."""
        if self.application_id is None:
            raise Malformed("application_id: required")


class Authenticator:
    """Answers who calls, and with which rights.

    `grace`: seconds for which an expired user JWT still names its user to a service.
    `find_token_owner`: whose token of client_credentials a text is; None for what is none. Raises InvalidToken for a
    token that is not good for the endpoints of this scope.
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
        find_token_owner: Callable[[str, str], Awaitable[TokenOwner | None]],
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
        self._find_token_owner = find_token_owner
        self._is_grant_live = is_grant_live
        self._find_device_bans = find_device_bans
        self._volume = volume
        self._clock = clock
        self._grace = grace

    async def authenticate(
        self,
        credentials: RequestCredentials,
        policy: CredentialPolicy,
        *,
        application_id: int | None = None,
        also: Collection[int] = (),
    ) -> AuthenticatedRequest:
        """Identify the caller and load their rights.

        Raises InvalidToken, WrongCredentials; NoRight when a service calls without a required person.
        """
        return await self.attach_rights(
            await self.identify(credentials, policy, application_id=application_id, also=also)
        )

    async def identify(
        self,
        credentials: RequestCredentials,
        policy: CredentialPolicy,
        *,
        application_id: int | None = None,
        also: Collection[int] = (),
    ) -> Caller:
        """The caller without rights; a service alone is accepted where the policy says so.

        Raises InvalidToken, or WrongCredentials for valid credentials that do not fit this request. `application_id`
        is the one the request names. The facts are read for it, for application 1 and for those in `also`, at once.
        """
        owner = await self._token_owner(credentials, policy)
        if owner is not None and owner.application_id is None:
            return self._account_caller(owner, credentials)
        vouching = await self._find_vouching_application(credentials, policy, owner)
        caller = self._caller_about(vouching, policy, application_id, client_address(credentials, vouching))
        if credentials.user_jwt:
            caller = await self._with_user(caller, credentials, policy, vouching, also)
        elif vouching is None or not policy.no_jwt:
            raise InvalidToken("user JWT is missing")
        else:
            self._limit_rate(caller.name)
        await self._record_key_use(vouching)
        return caller

    async def attach_rights(self, caller: Caller) -> AuthenticatedRequest:
        if caller.facts is None:
            raise NoRight("a service can only ask about itself")
        evaluation_input = await self._permission_loader.load_input(caller.facts)
        return AuthenticatedRequest(
            caller=caller,
            evaluation_input=evaluation_input,
            rights=await self._evaluate_rights(caller, evaluation_input),
            application_id=caller.application_id,
        )

    async def attach_rights_in_each(
        self, caller: Caller, application_ids: Collection[int]
    ) -> Mapping[int, AuthenticatedRequest]:
        """The same caller with rights on each of these applications, from one read of the facts."""
        facts = await self._permission_loader.load_facts(caller.user_id, {CENTRAL_APPLICATION, *application_ids})
        if facts is None:
            raise NoRight("the account does not exist")
        return {
            application_id: await self.attach_rights(replace(caller, facts=facts, application_id=application_id))
            for application_id in application_ids
        }

    async def _token_owner(self, credentials: RequestCredentials, policy: CredentialPolicy) -> TokenOwner | None:
        """Return whose token was sent where an access key could be; None for none."""
        if not policy.scope or not credentials.access_key:
            return None
        return await self._find_token_owner(credentials.access_key, policy.scope)

    def _account_caller(self, owner: TokenOwner, credentials: RequestCredentials) -> Caller:
        """Return the caller behind the token of a service account, which must be the only credential."""
        if credentials.user_jwt or credentials.service_jwt or credentials.signed is not None:
            raise WrongCredentials("the token of a service account is accepted alone only")
        refuse_other_addresses((owner.ip_ranges,), credentials.address)
        self._limit_rate(owner.user_id)
        return Caller(
            by=CallerKind.TOKEN,
            vouching_application_id=NO_APPLICATION,
            account_id=owner.user_id,
            project_id=owner.project_id,
        )

    async def _find_vouching_application(
        self, credentials: RequestCredentials, policy: CredentialPolicy, owner: TokenOwner | None
    ) -> VouchingApplication | None:
        """Find the application that vouches; all proofs must be of the same one."""
        applications: list[VouchingApplication] = []
        if owner is not None and owner.application_id is not None:
            applications.append(VouchingApplication(application_id=owner.application_id, by_token=True))
        elif credentials.access_key:
            key = await self._access_keys.verify_value(credentials.access_key, source=credentials.source)
            if not policy.key:
                raise WrongCredentials("access keys are not accepted here")
            applications.append(VouchingApplication(application_id=key.application_id, key=key))
        if credentials.signed is not None:
            signed = await self._access_keys.verify_signature(credentials.signed, source=credentials.source)
            if not (policy.key or policy.audience):  # else the key of one application would tell addresses to all
                raise WrongCredentials("a Signature is accepted only for requests about its application")
            applications.append(VouchingApplication(application_id=signed.key.application_id, signed=signed))
        if credentials.service_jwt:
            application_id = await self._service_jwts.verify(credentials.service_jwt)
            applications.append(VouchingApplication(application_id=application_id, by_jwt=True))
        return merge_vouching(applications)

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
        claims, checked_in = await self._user_jwts.verify(credentials.user_jwt, expiry_grace=lenience)
        if isinstance(claims, ExchangedUserClaims):
            await self._refuse_exchanged(claims, policy, beside_service=own)
        kind = caller_kind(claims, credentials, policy, vouching)
        audience = audience_of(claims)
        if audience is not None and not (policy.audience and audience == caller.application_id):
            raise WrongCredentials(f"the JWT is for application {audience}")
        self._limit_rate(claims.uid)
        facts = await self._permission_loader.load_facts(
            claims.uid, {CENTRAL_APPLICATION, caller.application_id or CENTRAL_APPLICATION, *also}
        )
        if facts is None or facts.blocked or facts.rev != claims.rev:
            raise InvalidToken(f"user {claims.uid} does not exist or is blocked, or the JWT was revoked")
        await self._user_jwts.recheck_key(claims, checked_in=checked_in, keys_version=facts.keys_version)
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

    def charge(self, caller: Caller, weight: int) -> None:
        """Count the request of an identified caller as `weight` requests in all. Raises TooMany."""
        if weight > 1:
            self._limit_rate(caller.name, weight - 1)

    def _limit_rate(self, principal: str, weight: int = 1) -> None:
        wait = self._volume.admit(PRINCIPAL_RATE_CLASS, principal, weight=weight)
        if wait:
            raise TooMany(wait, f"requests of {principal}")

    def _refuse_banned(self, facts: Facts, application_id: int | None, device_bans: tuple[UserBan, ...]) -> None:
        """Raise Banned, which tells the caller why: their credentials were right."""
        about = CENTRAL_APPLICATION if application_id is None else application_id
        ban = facts.ban_from(about, self._clock.now(), device_bans)
        if ban is not None:
            raise Banned(facts.subject.user_id, ban)

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

    async def _evaluate_rights(self, caller: Caller, evaluation_input: EvaluationInput) -> Rights:
        # An address that an application signed for its user gives no rights in application 1.
        address = (
            caller.address if caller.by is CallerKind.FACTOR and caller.vouching_application_id is None else None
        )
        effective = await self._permission_loader.evaluate(evaluation_input, CENTRAL_APPLICATION, address)
        rights = Rights(user_id=caller.user_id, central=effective)
        application_id = caller.application_id
        model = None if application_id is None else evaluation_input.models.get(application_id)
        if model is None or application_id is None:
            secret = FULL_SECRET_DATA if rights.holds_can_administer else NO_SECRET_DATA
        else:
            own = evaluation_input.facts.records[application_id].secret_data
            secret = secret_data_of(effective, model, own, self._clock.now())
            if is_project_removed(model, evaluation_input) and not rights.holds_can_administer:
                secret = NO_SECRET_DATA
            if evaluation_input.facts.ban_from(application_id, self._clock.now()) is not None:
                secret = NO_SECRET_DATA
        return Rights(
            user_id=caller.user_id,
            central=effective,
            secret=secret,
            also_readable=frozenset() if model is None else service_account_parts(model, evaluation_input),
            service_reach=service_reach(caller, evaluation_input),
        )


def is_project_removed(model: ApplicationModel, evaluation_input: EvaluationInput) -> bool:
    """Whether the application's project is removed: then no rights on it count (R5)."""
    project_id = model.application.project_id
    if project_id is None:
        return False
    home = evaluation_input.structure.projects.get(project_id)
    return home is None or home.project.removed


def service_account_parts(model: ApplicationModel, evaluation_input: EvaluationInput) -> frozenset[RecordPart]:
    """What a service account reads of any user in applications of its project (R1)."""
    account = evaluation_input.facts.service_account
    return (
        PERMISSION_PARTS
        if account is not None and account.project_id == model.application.project_id
        else frozenset()
    )


def service_reach(caller: Caller, evaluation_input: EvaluationInput) -> ServiceReach | None:
    """The reach of the application that vouches for the caller; None when none does."""
    if caller.vouching_application_id is None:
        return None
    state = evaluation_input.facts.applications.get(caller.vouching_application_id)
    return ServiceReach(
        application_id=caller.vouching_application_id, project_id=None if state is None else state.project_id
    )
