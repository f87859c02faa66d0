"""Which client is asking (interface §5.1, R3).

A native client shows the SHA-1 proof, which fits one redirect_uri; a client of profile oidc its secret, a signed
assertion, or, when it is public, nothing but its name. What fits the other profile is refused.
"""

from dataclasses import dataclass, field
from typing import Final

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.refusals import RefusalLog
from gatehouse.oauth.client_assertions import ClientAssertions
from gatehouse.oauth.client_rules import check_client_id
from gatehouse.oauth.client_secrets import ClientSecretVerifier
from gatehouse.oauth.errors import ClientNotFound, InvalidClient, InvalidRequest
from gatehouse.oauth.model import Client, ClientProfile
from gatehouse.oauth.store import ClientStore
from gatehouse.oauth.vocabulary import ASSERTION_TYPE
from gatehouse.throttle.guesses import AttemptLimiter, ThrottleSubject
from gatehouse.throttle.model import AttemptLimit

# Nobody guesses 256 bits: this ends the noise, and a right proof is served whatever its neighbours do (TK-29).
GUESS_LIMIT: Final = AttemptLimit(free_attempts=100, first_delay=30, max_delay=3_600, window=3_600)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """What a request brought along to show which client it comes from; an empty text was not sent."""

    proof: str = field(default="", repr=False)  # Bearer
    basic_id: str = ""
    basic_secrets: tuple[str, ...] = field(default=(), repr=False)  # as it came, and decoded (RFC 6749 §2.3.1)
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    assertion_type: str = ""
    assertion: str = field(default="", repr=False)
    source: str = ""  # the caller as the throttles count him
    origin: AuditOrigin

    @property
    def secrets(self) -> tuple[str, ...]:
        """What was given for a secret; the empty password of a public client's Basic is none."""
        return tuple(secret for secret in (*self.basic_secrets, self.client_secret) if secret)

    @property
    def is_unnamed_proof(self) -> bool:
        """A native proof, which only what is presented beside it can tell whose it would be."""
        return bool(self.proof) and not self.client_id


class ClientAuthenticator:
    def __init__(
        self,
        *,
        store: ClientStore,
        secrets: ClientSecretVerifier,
        assertions: ClientAssertions,
        guesses: AttemptLimiter,
        refusals: RefusalLog,
    ) -> None:
        self._store = store
        self._secrets = secrets
        self._assertions = assertions
        self._guesses = guesses
        self._refusals = refusals

    async def authenticate_at_token_endpoint(
        self, credentials: ClientCredentials, owner: Client | None, redirect_uri: str
    ) -> Client:
        """Who shows it: the owner of what is presented, when nobody is named.

        Raises InvalidClient; InvalidRequest for two proofs at once; TooMany for a source that keeps guessing.
        """
        client = await self._find_client(credentials, owner)
        if client.profile is ClientProfile.OIDC:
            return await self._accept_or_refuse(
                client, credentials, proved=await self._proves_oidc(credentials, client)
            )
        proved = bool(credentials.proof) and await self._secrets.is_correct_proof(
            client, credentials.proof, redirect_uri, source=credentials.source
        )
        return await self._accept_or_refuse(client, credentials, proved=proved)

    async def authenticate_by_secret(self, credentials: ClientCredentials) -> Client:
        """Where there is no redirect_uri native clients show the secret itself (interface §4.2, revoke)."""
        client = await self._find_client(credentials, None)
        native = client.profile is ClientProfile.NATIVE
        proved = await (self._knows_secret(credentials, client) if native else self._proves_oidc(credentials, client))
        return await self._accept_or_refuse(client, credentials, proved=proved)

    async def _find_client(self, credentials: ClientCredentials, owner: Client | None) -> Client:
        name = self._client_id_in(credentials)
        if owner is not None and name in ("", owner.client_id):
            return owner
        try:
            return await self._store.active_client(check_client_id(name))
        except ClientNotFound:
            await self._count_guess("", credentials)
            raise InvalidClient("unknown client, or its application was removed") from None

    def _client_id_in(self, credentials: ClientCredentials) -> str:
        """The one name the request gives its client; empty for a native one, whose proof needs none."""
        refuse_multiple_methods(credentials)
        asserted = self._assertions.client_id_in(credentials.assertion) if credentials.assertion else ""
        names = {name for name in (credentials.basic_id, credentials.client_id, asserted) if name}
        if len(names) > 1:
            raise InvalidRequest("the request names two clients")
        if not names and not credentials.proof:
            raise InvalidClient("no client credentials")
        return next(iter(names), "")

    async def _proves_oidc(self, credentials: ClientCredentials, client: Client) -> bool:
        if credentials.proof:
            return False
        if client.public:
            return not credentials.secrets and not credentials.assertion
        if credentials.assertion:
            return credentials.assertion_type == ASSERTION_TYPE and await self._assertions.is_valid_for(
                client, credentials.assertion
            )
        return await self._knows_secret(credentials, client)

    async def _knows_secret(self, credentials: ClientCredentials, client: Client) -> bool:
        for secret in dict.fromkeys(credentials.secrets):
            if await self._secrets.is_correct_secret(client, secret, source=credentials.source):
                return True
        return False

    async def _accept_or_refuse(self, client: Client, credentials: ClientCredentials, *, proved: bool) -> Client:
        if not proved:
            await self._count_guess(client.client_id, credentials)
            # After the count: whom that keeps out writes nothing more.
            record_id = await self._refusals.add(
                AuditEvent.CLIENT_REFUSED, credentials.origin, reason="wrong credentials", subject=client.client_id
            )
            raise InvalidClient(f"wrong credentials for {client.client_id}, record {record_id}")
        return client

    async def _count_guess(self, client_id: str, credentials: ClientCredentials) -> None:
        await self._guesses.begin_attempt(
            [ThrottleSubject(("client", client_id, credentials.source), GUESS_LIMIT, is_shared=True)]
        )


def refuse_multiple_methods(credentials: ClientCredentials) -> None:
    """One way at a time (RFC 6749 §2.3); a client that says the same in header and body has one."""
    twice = (
        credentials.basic_id
        and credentials.client_secret
        and credentials.client_secret not in credentials.basic_secrets
    )
    ways = (credentials.proof, credentials.basic_id or credentials.client_secret, credentials.assertion)
    if twice or sum(map(bool, ways)) > 1:
        raise InvalidRequest("more than one authentication method")
