"""The client credentials grant: clients and service accounts get access tokens for themselves (RFC 6749 §4.4, R9)."""

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.api_model import API_TOKEN_SECONDS, Api
from gatehouse.oauth.api_tokens import ApiTokens
from gatehouse.oauth.client_auth import ClientCredentials
from gatehouse.oauth.errors import InvalidScope, InvalidTarget
from gatehouse.oauth.hourly_records import HourlyRecords
from gatehouse.oauth.machines import Machine, MachineAuthenticator
from gatehouse.oauth.mapped_claims import APPLICATION_CLAIMS
from gatehouse.oauth.store import ClientStore, refuse_long_scope
from gatehouse.oauth.token_endpoint import TokenRequest, refuse_native_proof
from gatehouse.oauth.token_issuer import BEARER, TokenResponse
from gatehouse.oauth.vocabulary import SCOPE_TEXT


class ClientCredentialsGrant(Struct, kw_only=True, eq=False):
    authentication: MachineAuthenticator
    clients: ClientStore
    tokens: ApiTokens
    records: HourlyRecords
    recorder: Recorder
    clock: Clock

    async def issue(self, token_request: TokenRequest, credentials: ClientCredentials) -> TokenResponse:
        """Issue an access token. Raises InvalidClient, InvalidTarget, InvalidScope and other errors of OAuth."""
        refuse_native_proof(credentials)
        machine = await self.authentication.authenticate(credentials)
        if not token_request.resource:
            return await self._issue_opaque(token_request, machine, credentials)
        api = await self.clients.find_api(token_request.resource)
        if api is None or not machine.may_ask_for(api):
            raise InvalidTarget(f"{machine.subject.sub} may not ask for {token_request.resource}")
        scopes = machine_scopes(token_request.scope, api, machine)
        await self._record(machine, credentials, api.resource)
        token = await self.tokens.issue(api, machine.subject, scopes, ends_at=self.clock.now() + api.token_seconds)
        return TokenResponse(
            access_token=token, token_type=BEARER, expires_in=api.token_seconds, scope=" ".join(scopes)
        )

    async def _issue_opaque(
        self, token_request: TokenRequest, machine: Machine, credentials: ClientCredentials
    ) -> TokenResponse:
        """Issue a token for the service's own API (R11); one without scopes tells who the machine is."""
        wanted = token_request.scope.split()
        scopes = tuple(scope for scope in machine.own_api_scopes if scope in wanted)
        refuse_ungranted(token_request.scope, scopes)
        await self._record(machine, credentials, "")
        ends_at = self.clock.now() + API_TOKEN_SECONDS
        return TokenResponse(
            access_token=await self.tokens.issue_opaque(machine.subject, scopes, ends_at=ends_at),
            token_type=BEARER,
            expires_in=API_TOKEN_SECONDS,
            scope=" ".join(scopes),
        )

    async def _record(self, machine: Machine, credentials: ClientCredentials, resource: str) -> None:
        """Record the first token in a while: machines ask every few minutes."""
        await self.records.add(
            (machine.subject.sub, resource, machine.workload),
            lambda: self.recorder.record(
                AuditEvent.MACHINE_TOKEN_MADE,
                replace(credentials.origin, actor=machine.subject.sub),
                subject=machine.subject.client_id,
                details={"resource": resource, **(machine.workload.audit_details if machine.workload else {})},
            ),
        )


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
