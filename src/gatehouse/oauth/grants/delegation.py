"""Token exchange by a program that acts for a person (RFC 8693 §2, R11)."""

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.store import ApplicationAccess
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.access_token_verifier import AccessTokenVerifier
from gatehouse.oauth.api_model import SCOPE_MARK, Api, resource_in
from gatehouse.oauth.api_tokens import ApiTokens, TokenSubject
from gatehouse.oauth.client_auth import ClientCredentials
from gatehouse.oauth.delegation import DELEGATED_SECONDS, MAX_ACTORS, actors_in, may_act_for, new_act
from gatehouse.oauth.errors import InvalidRequest, InvalidScope, InvalidTarget
from gatehouse.oauth.given_grants import GrantUses
from gatehouse.oauth.hourly_records import HourlyRecords
from gatehouse.oauth.model import Client, GrantHolder
from gatehouse.oauth.store import ClientStore, deciding_applications
from gatehouse.oauth.token_endpoint import TokenRequest
from gatehouse.oauth.token_issuer import BEARER, TokenResponse
from gatehouse.oauth.vocabulary import SCOPE_TEXT
from gatehouse.oauth.workloads.assertions import workload_of
from gatehouse.tokens.claims import ActClaim, InvalidToken

TYPE_PREFIX: Final = "urn:ietf:params:oauth:token-type:"
ACCESS_TOKEN: Final = f"{TYPE_PREFIX}access_token"


class DelegatedSubject(Struct, frozen=True, kw_only=True):
    """What a program presents: a live token of a person, its scopes as grants name them, and who acted before."""

    holder: GrantHolder
    scopes: tuple[str, ...]
    ends_at: int
    act: ActClaim | None = None
    jti: str = ""  # of a token with which another program acts


class DelegationGrant(Struct, kw_only=True, eq=False):
    """`has_pending_terms`: as in GrantAccess."""

    access_token_verifier: AccessTokenVerifier
    api_tokens: ApiTokens
    clients: ClientStore
    rules: ApplicationAccess
    has_pending_terms: Callable[[str, int], Awaitable[bool]]
    records: HourlyRecords
    uses: GrantUses
    recorder: Recorder
    clock: Clock

    async def issue(
        self, token_request: TokenRequest, credentials: ClientCredentials, acting: Client
    ) -> TokenResponse:
        """Issue a token for the authenticated client. Raises InvalidRequest, InvalidTarget, InvalidScope."""
        refuse_other_delegation(token_request)
        if token_request.actor_token:
            await self._check_actor(token_request.actor_token, acting)
        subject = await self._find_subject(token_request.subject_token)
        if not may_act_for(acting, subject.holder.client, subject.scopes):
            raise InvalidRequest(f"subject_token: the person did not allow {acting.client_id} to act for them")
        api = await self._find_api(token_request.resource, subject, acting)
        act = new_act(acting, subject.act)
        if len(actors_in(act)) > MAX_ACTORS:
            raise InvalidRequest(f"subject_token: more than {MAX_ACTORS} programs would act")
        await self._refuse_denied_person(subject.holder, acting, api)
        scopes = delegated_scopes(token_request.scope, api, subject, acting)
        await self._record(credentials, acting, subject.holder, api)
        await self.uses.mark(subject.holder.grant)
        now = self.clock.now()
        ends_at = min(now + min(DELEGATED_SECONDS, api.token_seconds), subject.ends_at, subject.holder.grant.ends_at)
        token = await self.api_tokens.issue(
            api,
            TokenSubject.of_delegation(subject.holder, acting, subject.jti),
            scopes,
            ends_at=ends_at,
            act=act,
            keys_version=subject.holder.keys_version,
        )
        return TokenResponse(
            access_token=token,
            token_type=BEARER,
            issued_token_type=ACCESS_TOKEN,
            expires_in=ends_at - now,
            scope=" ".join(scopes),
        )

    async def _check_actor(self, token: str, acting: Client) -> None:
        """Refuse another token than the client's own: never one of another program, and never one with a person."""
        actor = await self.api_tokens.find(token)
        if actor is None or actor.holder is not None or actor.sub != acting.subject:
            raise InvalidRequest("actor_token is not a token that the client got for itself")

    async def _find_subject(self, token: str) -> DelegatedSubject:
        """Return the live token of a person: an opaque one, or one for an API with which another program acts.

        A token for an API without `act` is none: its API could act with whatever it receives.
        """
        bearer = await self.access_token_verifier.find(token)
        if bearer is not None:
            return DelegatedSubject(
                holder=bearer.holder, scopes=bearer.delegable_scopes, ends_at=bearer.token.ends_at
            )
        found = await self.api_tokens.find(token)
        if found is None or found.act is None or found.holder is None or found.api is None:
            raise InvalidToken("not a live access token of a person, or not one to act with")
        carried = {f"{found.api.resource}{SCOPE_MARK}{name}" for name in ("", *found.scope.split())}
        scopes = tuple(scope for scope in found.holder.grant.scopes if scope in carried or SCOPE_MARK not in scope)
        return DelegatedSubject(
            holder=found.holder, scopes=scopes, ends_at=found.ends_at, act=found.act, jti=found.jti
        )

    async def _find_api(self, resource: str, subject: DelegatedSubject, acting: Client) -> Api:
        api = await self.clients.find_api(resource)
        if api is None or not api.accepts_act or resource_in(subject.scopes) != resource:
            raise InvalidTarget(f"{resource} does not accept act, or the person did not allow access to it")
        if not api.admits_client_of_person(acting) or not api.admits_client_of_person(subject.holder.client):
            raise InvalidTarget(f"{resource} does not admit {acting.client_id}, or the client of the person")
        return api

    async def _refuse_denied_person(self, holder: GrantHolder, acting: Client, api: Api) -> None:
        """Refuse for a person whom one of the three applications does not let in, or who has not accepted terms."""
        user_id = holder.user.user_id
        applications = (*deciding_applications(holder.client, api), *acting.application_ids)
        if not await self.rules.may_log_in(holder.user, applications):
            raise InvalidRequest(f"subject_token: one of {applications} does not allow {user_id} to sign in")
        if await self.has_pending_terms(user_id, api.application_id):
            raise InvalidRequest(f"subject_token: {user_id} has not accepted the terms of {api.application_id}")

    async def _record(self, credentials: ClientCredentials, acting: Client, holder: GrantHolder, api: Api) -> None:
        details = {
            "client": holder.client.client_id,
            "grant_id": holder.grant.grant_id,
            "resource": api.resource,
        }
        if workload := workload_of(acting, credentials.assertion):
            details |= workload.audit_details
        await self.records.add(
            (acting.client_id, *details.values()),
            lambda: self.recorder.record(
                AuditEvent.DELEGATED_TOKEN_MADE,
                replace(credentials.origin, actor=acting.subject),
                subject=holder.user.user_id,
                details=details,
            ),
        )


def is_delegation(token_request: TokenRequest) -> bool:
    """Whether the request is one of a program that acts for a person: the other exchanges have none of these."""
    return bool(
        token_request.resource
        or token_request.actor_token
        or token_request.actor_token_type
        or token_request.requested_token_type == ACCESS_TOKEN
    )


def refuse_other_delegation(token_request: TokenRequest) -> None:
    """Refuse what delegation does not have. Raises InvalidRequest, InvalidTarget."""
    if not token_request.subject_token or not token_request.resource:
        raise InvalidRequest("subject_token or resource is missing")
    if token_request.audience:
        raise InvalidTarget("audience is not supported: resource names the API")
    wanted = ACCESS_TOKEN if token_request.actor_token else ""
    if token_request.actor_token_type != wanted:
        raise InvalidRequest("actor_token and actor_token_type belong together")
    if token_request.subject_token_type != ACCESS_TOKEN:
        raise InvalidRequest("subject_token_type is not supported")
    if token_request.requested_token_type not in ("", ACCESS_TOKEN):
        raise InvalidRequest("requested_token_type is not supported")


def delegated_scopes(scope: str, api: Api, subject: DelegatedSubject, acting: Client) -> tuple[str, ...]:
    """Return the requested scopes that the subject token has and that the API gives both clients.

    Raises InvalidScope when nothing of what was requested is left: the token would open nothing.
    """
    if scope and SCOPE_TEXT.fullmatch(scope) is None:
        raise InvalidScope("scope contains invalid characters")
    of_owner = api.scopes_in(subject.scopes, subject.holder.client)
    carried = tuple(name for name in api.scopes_in(subject.scopes, acting) if name in of_owner)
    wanted = scope.split()
    granted = tuple(name for name in carried if name in wanted) if wanted else carried
    if wanted and not granted:
        raise InvalidScope("none of the requested scopes can be granted")
    return granted
