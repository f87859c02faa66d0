"""The client credentials grant: clients and service accounts get access tokens for themselves (RFC 6749 §4.4, R9)."""

from dataclasses import dataclass, replace
from typing import Final

from cachetools import LRUCache

from gatehouse.accounts.model import MachineAccount
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.addresses import any_network_contains, parse_network
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.api_tokens import ApiTokens, TokenSubject
from gatehouse.oauth.claims import APPLICATION_CLAIMS
from gatehouse.oauth.client_auth import ClientAuthenticator, ClientCredentials
from gatehouse.oauth.errors import InvalidScope, InvalidTarget, NoClientCredentials, UnsupportedGrantType
from gatehouse.oauth.grants import SCOPE_TEXT
from gatehouse.oauth.model import API_TOKEN_SECONDS, Api, Client, ClientProfile
from gatehouse.oauth.private_key_jwt import ClientAssertions
from gatehouse.oauth.store import ClientStore, FindAccount, GrantStore, VerifyAccountJwt, refuse_long_scope
from gatehouse.oauth.token_endpoint import TokenRequest
from gatehouse.oauth.tokens import TokenSet
from gatehouse.oauth.vocabulary import ASSERTION_TYPE
from gatehouse.tokens.claims import InvalidToken

AUDIT_PERIOD: Final = 3_600  # seconds in which one machine's tokens for one API are recorded once, by each node
MAX_RECORDED: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """An authenticated client or service account."""

    subject: TokenSubject
    client: Client | None = None
    account: MachineAccount | None = None

    def may_ask_for(self, api: Api) -> bool:
        if self.account is not None:
            return api.admits_account(self.account.user_id, self.account.project_id)
        return self.client is not None and api.admits_client(self.client)


class MachineAuthenticator:
    def __init__(
        self,
        *,
        clients: ClientAuthenticator,
        find_account: FindAccount,
        verify_account_jwt: VerifyAccountJwt,
        assertions: ClientAssertions,
    ) -> None:
        self._clients = clients
        self._find_account = find_account
        self._verify_account_jwt = verify_account_jwt
        self._assertions = assertions

    async def authenticate(self, credentials: ClientCredentials) -> Machine:
        """Authenticate a client, or a service account by its user ID.

        Raises InvalidClient, InvalidRequest; NoClientCredentials for a public client, and for one that no one here
        registered: it acts for people who consented, never for itself.
        """
        account = await self.authenticate_account(credentials)
        if account is not None:
            return account
        client = await self._clients.authenticate_at_token_endpoint(credentials, None, "")
        if client.profile is ClientProfile.NATIVE:
            raise UnsupportedGrantType
        if client.public or client.has_document:
            raise NoClientCredentials(f"{client.client_id} is a public client or has a metadata document")
        return Machine(subject=TokenSubject.of_client(client), client=client)

    async def authenticate_account(self, credentials: ClientCredentials) -> Machine | None:
        """Authenticate the service account that the credentials name; None if they name none."""
        name = self._clients.client_id_in(credentials)
        account = await self._find_account(name) if name.isdigit() else None
        if account is None:
            return None
        proved = await (
            self._signed_assertion(account, credentials)
            if credentials.assertion
            else self._sent_jwt(account, credentials)
        )
        if not proved:
            await self._clients.refuse(account.user_id, credentials)
        return Machine(subject=TokenSubject.of_account(account.user_id, account.rev), account=account)

    async def _signed_assertion(self, account: MachineAccount, credentials: ClientCredentials) -> bool:
        if not account.public_key or credentials.assertion_type != ASSERTION_TYPE:
            return False
        networks = tuple(parse_network(text) for text in account.ip_ranges)
        if networks and (credentials.address is None or not any_network_contains(networks, credentials.address)):
            return False
        return await self._assertions.is_signed_by_account(account.user_id, account.public_key, credentials.assertion)

    async def _sent_jwt(self, account: MachineAccount, credentials: ClientCredentials) -> bool:
        """Whether its JWT was sent as the secret; of an account with a key it proves nothing alone (R1)."""
        for secret in dict.fromkeys(credentials.secrets):
            try:
                found = await self._verify_account_jwt(secret, credentials.address, credentials.source)
            except InvalidToken:
                continue
            if found.user_id == account.user_id:
                return True
        return False


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
        self._recorded: LRUCache[tuple[str, str], int] = LRUCache(MAX_RECORDED)

    async def issue(self, token_request: TokenRequest) -> TokenSet:
        """Issue an access token. Raises InvalidClient, InvalidTarget, InvalidScope and other errors of OAuth."""
        machine = await self._authentication.authenticate(token_request.credentials)
        if not token_request.resource:
            return await self._issue_opaque(machine, token_request)
        api = await self._clients.find_api(token_request.resource)
        if api is None or not machine.may_ask_for(api):
            raise InvalidTarget(f"{machine.subject.sub} may not ask for {token_request.resource}")
        scopes = machine_scopes(token_request.scope, api, machine)
        await self._record(machine, token_request, api.resource)
        token = await self._tokens.issue(api, machine.subject, scopes, ends_at=self._clock.now() + api.token_seconds)
        return TokenSet(access_token=token, expires_in=api.token_seconds, scope=" ".join(scopes))

    async def _issue_opaque(self, machine: Machine, token_request: TokenRequest) -> TokenSet:
        await self._record(machine, token_request, "")
        token = await self._tokens.issue_opaque(machine.subject, ends_at=self._clock.now() + API_TOKEN_SECONDS)
        return TokenSet(access_token=token, expires_in=API_TOKEN_SECONDS, scope="")

    async def _record(self, machine: Machine, token_request: TokenRequest, resource: str) -> None:
        """Record the first token in a while: machines ask every few minutes, and the log is not their meter."""
        now, key = self._clock.now(), (machine.subject.sub, resource)
        if abs(now - self._recorded.get(key, -AUDIT_PERIOD)) < AUDIT_PERIOD:
            return
        record = self._recorder.record(
            AuditEvent.MACHINE_TOKEN_MADE,
            replace(token_request.origin, actor=machine.subject.sub),
            subject=machine.subject.client_id,
            details={"resource": resource},
        )
        await self._grants.add_machine_record(record)
        self._recorded[key] = now


def machine_scopes(scope: str, api: Api, machine: Machine) -> tuple[str, ...]:
    """Return the requested scopes that the API declares; roles and the like only for a service account.

    Unknown ones are not granted (R9).
    """
    if scope and SCOPE_TEXT.fullmatch(scope) is None:
        raise InvalidScope("scope contains invalid characters")
    wanted = set(scope.split())
    held = APPLICATION_CLAIMS if machine.account is not None else {}
    granted = tuple(name for name in (*api.scopes, *held) if name in wanted)
    refuse_long_scope(granted)
    return granted
