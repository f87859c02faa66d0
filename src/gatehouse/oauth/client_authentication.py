"""Which client is asking (interface §5.1, R3).

A native client shows the SHA-1 proof, which fits one redirect_uri; a client of profile oidc its secret, a signed
assertion, or, when it is public, nothing but its name. What fits the other profile is refused.
"""

from dataclasses import dataclass, field
from typing import Final

from gatehouse.audit.events import Event
from gatehouse.audit.model import Origin
from gatehouse.audit.refusals import Refusals
from gatehouse.oauth.client_assertions import ClientAssertions
from gatehouse.oauth.client_rules import checked_id
from gatehouse.oauth.client_secrets import ClientSecrets
from gatehouse.oauth.errors import ClientNotFound, InvalidClient, InvalidRequest
from gatehouse.oauth.model import Client, Profile
from gatehouse.oauth.store import ClientStore
from gatehouse.oauth.vocabulary import ASSERTION_TYPE
from gatehouse.throttle.guesses import Guesses, Subject
from gatehouse.throttle.model import GuessLimit

# Nobody guesses 256 bits: this ends the noise, and a right proof is served whatever its neighbours do (TK-29).
GUESSES: Final = GuessLimit(free=100, delay=30, longest=3_600, window=3_600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a request brought along to show which client it comes from; an empty text was not sent."""

    proof: str = field(default="", repr=False)  # Bearer
    basic_id: str = ""
    basic_secrets: tuple[str, ...] = field(default=(), repr=False)  # as it came, and decoded (RFC 6749 §2.3.1)
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    assertion_type: str = ""
    assertion: str = field(default="", repr=False)
    source: str = ""  # the caller as the throttles count him
    origin: Origin

    @property
    def secrets(self) -> tuple[str, ...]:
        """What was given for a secret; the empty password of a public client's Basic is none."""
        return tuple(secret for secret in (*self.basic_secrets, self.client_secret) if secret)

    @property
    def is_nameless(self) -> bool:
        """A native proof, which only what is presented beside it can tell whose it would be."""
        return bool(self.proof) and not self.client_id


class ClientAuthentication:
    def __init__(
        self,
        *,
        store: ClientStore,
        secrets: ClientSecrets,
        assertions: ClientAssertions,
        guesses: Guesses,
        refusals: Refusals,
    ) -> None:
        self._store = store
        self._secrets = secrets
        self._assertions = assertions
        self._guesses = guesses
        self._refusals = refusals

    async def at_token_endpoint(self, shown: Credentials, owner: Client | None, redirect_uri: str) -> Client:
        """Who shows it: the owner of what is presented, when nobody is named.

        Raises InvalidClient; InvalidRequest for two proofs at once; TooMany for a source that keeps guessing.
        """
        client = await self._named(shown, owner)
        if client.profile is Profile.OIDC:
            return await self._believed(client, shown, proved=await self._proves_oidc(shown, client))
        proved = bool(shown.proof) and await self._secrets.made_proof(
            client, shown.proof, redirect_uri, source=shown.source
        )
        return await self._believed(client, shown, proved=proved)

    async def by_secret(self, shown: Credentials) -> Client:
        """Where there is no redirect_uri native clients show the secret itself (interface §4.2, revoke)."""
        client = await self._named(shown, None)
        native = client.profile is Profile.NATIVE
        proved = await (self._knows_secret(shown, client) if native else self._proves_oidc(shown, client))
        return await self._believed(client, shown, proved=proved)

    async def _named(self, shown: Credentials, owner: Client | None) -> Client:
        name = self._name_in(shown)
        if owner is not None and name in ("", owner.client_id):
            return owner
        try:
            return await self._store.serving_client(checked_id(name))
        except ClientNotFound:
            await self._count_guess("", shown)
            raise InvalidClient("unknown client, or its application was removed") from None

    def _name_in(self, shown: Credentials) -> str:
        """The one name the request gives its client; empty for a native one, whose proof needs none."""
        refuse_several_proofs(shown)
        asserted = self._assertions.client_id_in(shown.assertion) if shown.assertion else ""
        names = {name for name in (shown.basic_id, shown.client_id, asserted) if name}
        if len(names) > 1:
            raise InvalidRequest("the request names two clients")
        if not names and not shown.proof:
            raise InvalidClient("no client credentials")
        return next(iter(names), "")

    async def _proves_oidc(self, shown: Credentials, client: Client) -> bool:
        if shown.proof:
            return False
        if client.public:
            return not shown.secrets and not shown.assertion
        if shown.assertion:
            return shown.assertion_type == ASSERTION_TYPE and await self._assertions.is_by(client, shown.assertion)
        return await self._knows_secret(shown, client)

    async def _knows_secret(self, shown: Credentials, client: Client) -> bool:
        for secret in dict.fromkeys(shown.secrets):
            if await self._secrets.is_known(client, secret, source=shown.source):
                return True
        return False

    async def _believed(self, client: Client, shown: Credentials, *, proved: bool) -> Client:
        if not proved:
            await self._count_guess(client.client_id, shown)
            # After the count: whom that keeps out writes nothing more.
            record_id = await self._refusals.keep(
                Event.CLIENT_REFUSED, shown.origin, reason="wrong credentials", subject=client.client_id
            )
            raise InvalidClient(f"wrong credentials for {client.client_id}, record {record_id}")
        return client

    async def _count_guess(self, client_id: str, shown: Credentials) -> None:
        await self._guesses.begin([Subject(("client", client_id, shown.source), GUESSES, is_shared=True)])


def refuse_several_proofs(shown: Credentials) -> None:
    """One way at a time (RFC 6749 §2.3); a client that says the same in header and body has one."""
    twice = shown.basic_id and shown.client_secret and shown.client_secret not in shown.basic_secrets
    ways = (shown.proof, shown.basic_id or shown.client_secret, shown.assertion)
    if twice or sum(map(bool, ways)) > 1:
        raise InvalidRequest("more than one authentication method")
