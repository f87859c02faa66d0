"""The clients and service accounts that prove themselves at the token endpoint, without a person (R9)."""

from msgspec import Struct

from gatehouse.accounts.model import MachineAccount
from gatehouse.kernel.addresses import any_network_contains, parse_network
from gatehouse.oauth.api_model import Api
from gatehouse.oauth.api_tokens import ACCOUNT_SCOPES, TokenSubject
from gatehouse.oauth.client_assertions import ClientAssertions
from gatehouse.oauth.client_auth import ClientAuthenticator, ClientCredentials
from gatehouse.oauth.errors import NoClientCredentials, UnsupportedGrantType
from gatehouse.oauth.model import Client, ClientProfile
from gatehouse.oauth.store import FindAccount, VerifyAccountJwt
from gatehouse.oauth.vocabulary import ASSERTION_TYPE
from gatehouse.oauth.workloads.assertions import Workload, workload_of
from gatehouse.tokens.claims import InvalidToken


class Machine(Struct, frozen=True, kw_only=True):
    """An authenticated client or service account."""

    subject: TokenSubject
    client: Client | None = None
    account: MachineAccount | None = None
    workload: Workload | None = None  # that the client authenticated as

    def may_ask_for(self, api: Api) -> bool:
        if self.account is not None:
            return api.admits_account(self.account.user_id, self.account.project_id)
        return self.client is not None and api.admits_client(self.client)

    @property
    def own_api_scopes(self) -> tuple[str, ...]:
        """The scopes of the service's own API that it may ask for (R11)."""
        return ACCOUNT_SCOPES if self.client is None else self.client.own_api_scopes


class MachineAuthenticator(Struct, kw_only=True, eq=False):
    clients: ClientAuthenticator
    find_account: FindAccount
    verify_account_jwt: VerifyAccountJwt
    assertions: ClientAssertions

    async def authenticate(self, credentials: ClientCredentials) -> Machine:
        """Authenticate a client, or a service account by its user ID.

        Raises InvalidClient, InvalidRequest; NoClientCredentials for a public client, and for one that no one here
        registered: it acts for people who consented, never for itself.
        """
        account = await self.authenticate_account(credentials)
        if account is not None:
            return account
        client = await self.clients.authenticate_at_token_endpoint(credentials, None, "")
        if client.profile is ClientProfile.NATIVE:
            raise UnsupportedGrantType
        if client.public or client.has_document:
            raise NoClientCredentials(f"{client.client_id} is a public client or has a metadata document")
        workload = workload_of(client, credentials.assertion)
        return Machine(subject=TokenSubject.of_client(client), client=client, workload=workload)

    async def authenticate_account(self, credentials: ClientCredentials) -> Machine | None:
        """Authenticate the service account that the credentials name; None if they name none."""
        name = self.clients.client_id_in(credentials)
        account = await self.find_account(name) if name.isdigit() else None
        if account is None:
            return None
        proved = await (
            self._signed_assertion(account, credentials)
            if credentials.assertion
            else self._sent_jwt(account, credentials)
        )
        if not proved:
            await self.clients.refuse(account.user_id, credentials)
        return Machine(subject=TokenSubject.of_account(account.user_id, account.rev), account=account)

    async def _signed_assertion(self, account: MachineAccount, credentials: ClientCredentials) -> bool:
        if not account.public_key or credentials.assertion_type != ASSERTION_TYPE:
            return False
        networks = tuple(parse_network(text) for text in account.ip_ranges)
        if networks and (credentials.address is None or not any_network_contains(networks, credentials.address)):
            return False
        return await self.assertions.is_signed_by_account(account.user_id, account.public_key, credentials.assertion)

    async def _sent_jwt(self, account: MachineAccount, credentials: ClientCredentials) -> bool:
        """Whether its JWT was sent as the secret; of an account with a key it proves nothing alone (R1)."""
        for secret in dict.fromkeys(credentials.secrets):
            try:
                sender = await self.verify_account_jwt(secret, credentials.address, credentials.source)
            except InvalidToken:
                continue
            if sender.user_id == account.user_id:
                return True
        return False
