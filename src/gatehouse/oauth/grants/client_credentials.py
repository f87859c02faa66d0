"""The client credentials grant: clients and service accounts get access tokens for themselves (RFC 6749 §4.4, R9)."""

from typing import Final

from cachetools import LRUCache
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.api_model import API_TOKEN_SECONDS, Api
from gatehouse.oauth.api_tokens import ApiTokens
from gatehouse.oauth.client_auth import ClientCredentials
from gatehouse.oauth.errors import InvalidScope, InvalidTarget
from gatehouse.oauth.machines import Machine, MachineAuthenticator
from gatehouse.oauth.mapped_claims import APPLICATION_CLAIMS
from gatehouse.oauth.store import ClientStore, GrantStore, refuse_long_scope
from gatehouse.oauth.token_endpoint import TokenRequest, refuse_native_proof
from gatehouse.oauth.token_issuer import BEARER, TokenResponse
from gatehouse.oauth.vocabulary import SCOPE_TEXT
from gatehouse.oauth.workloads.assertions import Workload

# Seconds in which the tokens for one API of one machine, and of one workload, are recorded once, by each node.
AUDIT_PERIOD: Final = 3_600
MAX_RECORDED: Final = 10_000


class ClientCredentialsGrant:
    def __init__(
        self,
        *,
        authentication: MachineAuthenticator,
        clients: ClientStore,
        grants: GrantStore,
        tokens: ApiTokens,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._authentication = authentication
        self._clients = clients
        self._grants = grants
        self._tokens = tokens
        self._recorder = recorder
        self._clock = clock
        self._recorded: LRUCache[tuple[str, str, Workload | None], int] = LRUCache(MAX_RECORDED)

    async def issue(self, token_request: TokenRequest, credentials: ClientCredentials) -> TokenResponse:
        """Issue an access token. Raises InvalidClient, InvalidTarget, InvalidScope and other errors of OAuth."""
        refuse_native_proof(credentials)
        machine = await self._authentication.authenticate(credentials)
        if not token_request.resource:
            return await self._issue_opaque(token_request, machine, credentials)
        api = await self._clients.find_api(token_request.resource)
        if api is None or not machine.may_ask_for(api):
            raise InvalidTarget(f"{machine.subject.sub} may not ask for {token_request.resource}")
        scopes = machine_scopes(token_request.scope, api, machine)
        await self._record(machine, credentials, api.resource)
        token = await self._tokens.issue(api, machine.subject, scopes, ends_at=self._clock.now() + api.token_seconds)
        return TokenResponse(
            access_token=token, token_type=BEARER, expires_in=api.token_seconds, scope=" ".join(scopes)
        )

    async def _issue_opaque(
        self, token_request: TokenRequest, machine: Machine, credentials: ClientCredentials
    ) -> TokenResponse:
        refuse_ungranted(token_request.scope, ())
        await self._record(machine, credentials, "")
        token = await self._tokens.issue_opaque(machine.subject, ends_at=self._clock.now() + API_TOKEN_SECONDS)
        return TokenResponse(access_token=token, token_type=BEARER, expires_in=API_TOKEN_SECONDS, scope="")

    async def _record(self, machine: Machine, credentials: ClientCredentials, resource: str) -> None:
        """Record the first token in a while: machines ask every few minutes, and the log is not their meter."""
        now, key = self._clock.now(), (machine.subject.sub, resource, machine.workload)
        if abs(now - self._recorded.get(key, -AUDIT_PERIOD)) < AUDIT_PERIOD:
            return
        record = self._recorder.record(
            AuditEvent.MACHINE_TOKEN_MADE,
            replace(credentials.origin, actor=machine.subject.sub),
            subject=machine.subject.client_id,
            details={"resource": resource, **(machine.workload.audit_details if machine.workload else {})},
        )
        await self._grants.add_machine_record(record)
        self._recorded[key] = now


def machine_scopes(scope: str, api: Api, machine: Machine) -> tuple[str, ...]:
    """Return the requested scopes that the API declares; roles and the like only for a service account.

    Unknown ones are not granted (R9). Raises InvalidScope when nothing of what was requested is.
    """
    if scope and SCOPE_TEXT.fullmatch(scope) is None:
        raise InvalidScope("scope contains invalid characters")
    wanted = set(scope.split())
    application_claims = APPLICATION_CLAIMS if machine.account is not None else {}
    granted = tuple(name for name in (*api.scopes, *application_claims) if name in wanted)
    refuse_ungranted(scope, granted)
    refuse_long_scope(granted)
    return granted


def refuse_ungranted(scope: str, granted: tuple[str, ...]) -> None:
    """Raise InvalidScope when scopes were requested and none is granted: the token would open nothing."""
    if scope.split() and not granted:
        raise InvalidScope("none of the requested scopes can be granted")
