"""The authorize endpoint: consents to clients that are not trusted, and the decision about a request (R3)."""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.failed_sign_ins.counter import FailedSignIns
from gatehouse.accounts.failed_sign_ins.model import denial_reason
from gatehouse.accounts.model import User
from gatehouse.accounts.session_model import UserSession
from gatehouse.accounts.store import ApplicationAccess
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord, Details
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.times import iso8601
from gatehouse.oauth.acr import acr_of, best_acr, includes, met_value
from gatehouse.oauth.api_model import Api
from gatehouse.oauth.authorize.grant_creator import GrantCreator
from gatehouse.oauth.authorize.pushed import PushedRequests
from gatehouse.oauth.authorize.request import (
    AuthorizationRequest,
    AuthorizeParameters,
    Prompt,
    read_request,
    wanted_resource,
)
from gatehouse.oauth.authorize.response import ResponseTarget, error_target, respond_to, response_target
from gatehouse.oauth.clients import check_client_id
from gatehouse.oauth.delegation import (
    MAX_DELEGATES,
    delegate_scope,
    delegate_scopes_in,
    delegated_applications,
)
from gatehouse.oauth.errors import (
    AuthorizeRefused,
    BadDocument,
    ClientNotFound,
    InteractionRequired,
    InvalidScope,
    InvalidTarget,
    LoginRequired,
    NotLetIn,
    NotRedirected,
    ScopeRefused,
    TargetRefused,
    UnmetAuthenticationRequirements,
)
from gatehouse.oauth.metadata_clients import DocumentCaller, MetadataClients
from gatehouse.oauth.model import Client, ClientProfile, Consent
from gatehouse.oauth.redirects import document_host, is_on_device, is_registered_redirect, reserved_parameter_in
from gatehouse.oauth.store import (
    ClientStore,
    ConsentStore,
    api_scope_texts,
    deciding_applications,
    find_granted_api,
    scopes_for_api,
)
from gatehouse.sign_in_flow.model import Continuation, SignInProof, proof_of_session
from gatehouse.tokens.claims import InvalidToken
from gatehouse.tokens.verifier import TokenVerifier

DAY: Final = 86_400  # seconds


class Consents(Struct, kw_only=True, eq=False):
    store: ConsentStore
    clients: ClientStore
    recorder: Recorder
    clock: Clock

    async def is_needed(self, user_id: str, client: Client, scopes: Sequence[str]) -> bool:
        """Whether consent is needed: not for first-party clients, and not for scopes that were allowed before."""
        if client.first_party:
            return False
        consent = await self.store.consent(user_id, client.client_id)
        if consent is None or consent.has_ended(self.clock.now()):
            return True
        return not set(scopes) <= set(consent.scopes)

    async def give(
        self, user_id: str, client: Client, scopes: Sequence[str], origin: AuditOrigin, *, days: int | None = None
    ) -> None:
        """Store the consent; it ends after `days`, 0 for never.

        Without `days`, where the person cannot choose an end, the end that they chose before stays.
        """
        now = self.clock.now()
        ends_at = await self.end_of(user_id, client) if days is None else now + days * DAY if days else 0
        consent = Consent(
            user_id=user_id,
            client_id=client.client_id,
            scopes=tuple(scopes),
            given_at=now,
            ends_at=ends_at,
        )
        details: Details = {"client": client.client_id, "scope": " ".join(scopes)}
        if ends_at:
            details = {**details, "ends": iso8601(consent.ends_at)}
        entry = self.recorder.record(AuditEvent.CONSENT_GIVEN, origin, subject=user_id, details=details)
        await self.store.add_consent(consent, entry)

    async def end_of(self, user_id: str, client: Client) -> int:
        """Return when the person's consent ends; 0 for never, and without one that is in force."""
        consent = await self.store.consent(user_id, client.client_id)
        return 0 if consent is None or consent.has_ended(self.clock.now()) else consent.ends_at

    def denial_record(self, user_id: str, client_id: str, scopes: Sequence[str], origin: AuditOrigin) -> AuditRecord:
        """The audit record of a refused consent; nothing else is stored."""
        details = {"client": client_id, "scope": " ".join(scopes)}
        return self.recorder.record(AuditEvent.CONSENT_DENIED, origin, subject=user_id, details=details)

    async def withdraw(self, user_id: str, client_id: str, origin: AuditOrigin) -> bool:
        """Withdraw a consent; everything the client was granted ends with it."""
        entry = self.recorder.record(
            AuditEvent.CONSENT_WITHDRAWN, origin, subject=user_id, details={"client": client_id}
        )
        return await self.store.withdraw_consent(user_id, client_id, self.clock.now(), entry)

    async def of_user(self, user_id: str) -> Sequence[tuple[Consent, Client]]:
        """Consents of a person, and grants of trusted clients, which need no consent."""
        return await self.store.consents(user_id, self.clock.now())

    async def scope_texts(self, given: Sequence[tuple[Consent, Client]]) -> Mapping[str, str]:
        """Return how pages show the scopes of APIs in them."""
        return await api_scope_texts(self.clients, (scope for consent, _ in given for scope in consent.scopes))


# Authorize: the client, its request, and whether a person has to be asked first (interface §4.2, R3).


class NextStep(Enum):
    """The next step for the person."""

    RETURN_TO_CLIENT = auto()  # back to the client
    SIGN_IN = auto()
    CHOOSE_ACCOUNT = auto()  # which account
    CONSENT = auto()


class ReceivedRequest(Struct, frozen=True, kw_only=True):
    """An authorization request whose client and redirect_uri are known."""

    client: Client
    target: ResponseTarget
    may_ask: bool  # without prompt=none
    asked: AuthorizeParameters
    pushed: AuthorizationRequest | None = None


def check_redirect(client: Client, uri: str) -> None:
    """Raise NotRedirected unless the redirect_uri is registered for this client."""
    if is_registered_redirect(client, uri):
        return
    reserved = reserved_parameter_in(uri)
    why = (
        f"reserved parameter {reserved} in the query of redirect_uri"
        if reserved
        else "redirect_uri is not registered for this client"
    )
    raise NotRedirected(why, client=client, received=uri)


class AuthorizeService(Struct, kw_only=True, eq=False):
    clients: ClientStore
    metadata_clients: MetadataClients
    pushed_requests: PushedRequests
    consents: Consents
    grant_creator: GrantCreator
    rules: ApplicationAccess
    verifier: TokenVerifier
    failures: FailedSignIns
    clock: Clock
    issuer: str

    async def receive(self, asked: AuthorizeParameters, caller: DocumentCaller, *, take: bool) -> ReceivedRequest:
        """Find the client, and check that the redirect_uri is its own. Raises NotRedirected, TooMany.

        Of a pushed request only client_id and request_uri count (R11); with `take` no one can use it again.
        """
        if "client_id" in asked.repeated or ("redirect_uri" in asked.repeated and not asked.names_pushed_request):
            raise NotRedirected("client_id or redirect_uri is given more than once", client_id=asked["client_id"])
        client = await self.find_client(asked["client_id"], caller)
        if asked.names_pushed_request and client.profile is ClientProfile.OIDC:
            pushed = await self.pushed_requests.find(client, asked["request_uri"], take=take)
            check_redirect(client, pushed.redirect_uri)
            may_ask = not pushed.wants(Prompt.NONE)
            target = response_target(pushed)
            return ReceivedRequest(client=client, target=target, may_ask=may_ask, asked=asked, pushed=pushed)
        check_redirect(client, asked["redirect_uri"])
        may_ask = Prompt.NONE not in asked["prompt"].split(" ")
        return ReceivedRequest(client=client, target=error_target(asked, client), may_ask=may_ask, asked=asked)

    async def find_client(self, client_id: str, caller: DocumentCaller) -> Client:
        """Return the client, as its document describes it now. Raises NotRedirected, TooMany."""
        try:
            if document_host(client_id):
                return await self.metadata_clients.find(client_id, caller)
            return await self.clients.client(check_client_id(client_id))
        except ClientNotFound as error:
            raise NotRedirected("the client is unknown or removed", client_id=client_id) from error
        except BadDocument as error:
            raise NotRedirected(error.detail, client_id=client_id) from error

    async def read_received(self, received: ReceivedRequest) -> AuthorizationRequest:
        """Return the request; a pushed one was read when its client sent it. Raises AuthorizeRefused."""
        return received.pushed or await self.read_request(received.asked, received.client)

    async def read_request(self, asked: AuthorizeParameters, client: Client) -> AuthorizationRequest:
        """Read and check the request. Raises AuthorizeRefused, which is reported to the client's redirect_uri."""
        request = read_request(asked, client)
        resource = wanted_resource(asked, client)
        if resource:
            request = replace(request, scopes=await self._api_scopes(request, resource, asked["scope"], client))
        if delegates := await self._delegate_scopes(asked, client):
            if not resource:
                raise ScopeRefused("a delegate scope needs a resource")
            request = replace(request, scopes=(*request.scopes, *delegates))
        if not request.id_token_hint:
            return request
        hinted = await self._hinted_subject(request.id_token_hint, client)
        if hinted and request.subjects and hinted not in request.subjects:
            raise LoginRequired("id_token_hint and claims name different users")
        return replace(request, subjects=(hinted,) if hinted else request.subjects, hint_is_unknown=not hinted)

    async def _api_scopes(
        self, request: AuthorizationRequest, resource: str, scope: str, client: Client
    ) -> tuple[str, ...]:
        """Return the scopes of a request for an API as grants name them. Raises TargetRefused, ScopeRefused."""
        wanted = scope.split(" ")
        try:
            return await scopes_for_api(self.clients, client, resource, own=request.scopes, wanted=wanted)
        except InvalidTarget:
            raise TargetRefused from None
        except InvalidScope as error:
            raise ScopeRefused(error.detail) from None

    async def _delegate_scopes(self, asked: AuthorizeParameters, client: Client) -> tuple[str, ...]:
        """Return the requested scopes that let an application act for the person.

        One whose programs may not act through this client is ignored, like an unknown scope.
        """
        wanted = delegate_scopes_in(asked["scope"].split(" ")) if client.profile is ClientProfile.OIDC else ()
        if not wanted:
            return ()
        if len(wanted) > MAX_DELEGATES:
            raise ScopeRefused("too many delegate scopes")
        programs = await self.clients.acting_programs(delegated_applications(wanted))
        known = {
            delegate_scope(program.application_id)
            for program in programs
            if program.acts_through(client.application_id)
        }
        return tuple(scope for scope in wanted if scope in known)

    async def _find_api(self, scopes: Sequence[str], client: Client) -> Api | None:
        """Return the API that the scopes are for; None for none. Raises TargetRefused."""
        try:
            return await find_granted_api(self.clients, client, scopes)
        except InvalidTarget:
            raise TargetRefused from None

    async def deciding_applications(self, request: AuthorizationRequest, client: Client) -> tuple[int, ...]:
        """Return the applications whose bans, login rules and terms count. Raises TargetRefused."""
        return deciding_applications(client, await self._find_api(request.scopes, client))

    async def next_step(
        self, request: AuthorizationRequest, client: Client, signed_in: UserSession | None
    ) -> NextStep:
        """Return what is left to ask of the person; with prompt=none nothing may be asked."""
        way = await self._next_step(request, client, signed_in)
        if way is not NextStep.RETURN_TO_CLIENT and request.wants(Prompt.NONE):
            raise LoginRequired if way is NextStep.SIGN_IN else InteractionRequired
        return way

    async def _next_step(
        self, request: AuthorizationRequest, client: Client, signed_in: UserSession | None
    ) -> NextStep:
        if signed_in is None:
            return NextStep.SIGN_IN
        proof = proof_of_session(signed_in.session)
        if not self.is_proof_sufficient(request, client, proof):
            return NextStep.SIGN_IN
        if self.can_step_up(request, signed_in.user, proof):
            return NextStep.SIGN_IN
        if request.wants(Prompt.SELECT_ACCOUNT):
            return NextStep.CHOOSE_ACCOUNT
        await self.refuse_wrong_user(request, client, signed_in.user)
        self.refuse_unmet_acr(request, proof)
        return (
            NextStep.CONSENT
            if await self.needs_consent(request, client, signed_in.user)
            else NextStep.RETURN_TO_CLIENT
        )

    def is_proof_sufficient(self, request: AuthorizationRequest, client: Client, proof: SignInProof) -> bool:
        """Whether this authentication is enough to sign in to this client.

        A session from a short-lived token signs in to first-party clients only, cannot consent, and does not count as
        recent authentication (R1).
        """
        if proof.is_new and not proof.limited:
            return True
        needs_consent = not client.first_party or request.wants(Prompt.CONSENT) or request.names_programs
        if proof.limited and (needs_consent or request.max_age is not None):
            return False
        is_recent = request.max_age is None or self.clock.now() - proof.proved_at <= request.max_age
        return is_recent and not request.needs_new_proof

    def can_step_up(self, request: AuthorizationRequest, user: User, proof: SignInProof) -> bool:
        """Whether the person can sign in as the client prefers, and has not: they are asked once.

        With prompt=none only an essential value is worth an error.
        """
        if proof.is_new or not request.acr_values:
            return False
        reached = acr_of(proof)
        is_enough = not request.acr_is_essential or met_value(request.acr_values, reached)
        if is_enough and request.wants(Prompt.NONE):
            return False
        preferred = met_value(request.acr_values, best_acr(user))
        return bool(preferred) and not includes(reached, preferred)

    def refuse_unmet_acr(self, request: AuthorizationRequest, proof: SignInProof) -> None:
        """Refuse a sign-in below an essential acr; a preference is told what was reached."""
        if request.acr_is_essential and not met_value(request.acr_values, acr_of(proof)):
            raise UnmetAuthenticationRequirements

    async def refuse_wrong_user(self, request: AuthorizationRequest, client: Client, user: User) -> None:
        """Refuse another person than the client requested, and one whom an application denies access.

        The application is the client's, or that of the API the client asks access to.
        """
        if request.subjects and user.user_id not in request.subjects:
            raise LoginRequired("id_token_hint or claims name another user")
        applications = await self.deciding_applications(request, client)
        if not await self.rules.may_log_in(user, applications):
            raise NotLetIn(application_ids=applications)

    async def count_denial(self, user: User, refused: NotLetIn, address: str) -> None:
        """Count the sign-in as failed, for the person and their support."""
        ban = await self.rules.find_ban_from(user, refused.application_ids)
        self.failures.count(user.user_id, denial_reason(user, ban), address)

    async def needs_consent(self, request: AuthorizationRequest, client: Client, user: User) -> bool:
        """Whether the person must consent first: for new scopes, or because the client requests it.

        Another program on the device can pose as a public client that listens there, so consent to such a client
        counts once (RFC 8252 §8.6, R3). So does consent to programs that act for the person, of any client (R11).
        """
        is_unproved = client.public and not client.first_party and is_on_device(request.redirect_uri)
        return (
            is_unproved
            or request.names_programs
            or request.wants(Prompt.CONSENT)
            or await self.consents.is_needed(user.user_id, client, request.consent_scopes)
        )

    async def create_grant(
        self, request: AuthorizationRequest, client: Client, proof: SignInProof, origin: AuditOrigin
    ) -> Continuation:
        """Create the grant; return the response with its code."""
        needs_consent = not client.first_party or request.names_programs
        ends_at = await self.consents.end_of(proof.user_id, client) if needs_consent else 0
        code = await self.grant_creator.create(client, proof, request, origin, ends_at=ends_at)
        return respond_to(response_target(request), {"code": code}, issuer=self.issuer)

    def refusal(self, target: ResponseTarget, refused: AuthorizeRefused) -> Continuation:
        """Return the response that tells the client about a refusal."""
        parameters = {"error": refused.code, "error_description": refused.description}
        return respond_to(target, parameters, issuer=self.issuer)

    async def _hinted_subject(self, id_token: str, client: Client) -> str:
        """Return the user named by the hint.

        "" for a hint that cannot be verified or was issued to another client.
        """
        try:
            claims = await self.verifier.verify_id_token_hint(id_token)
        except InvalidToken:
            return ""
        return claims.sub if claims.client_id == client.client_id else ""
