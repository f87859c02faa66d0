"""Client authentication: native proof, PKCE, secrets, and which client makes a request."""

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Final, Never, TypeAlias

from cachetools import LRUCache

from gatehouse.accounts.passwords import Passwords
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.refusals import RefusalLog
from gatehouse.fields.secrets import SecretBytes, SecretRecord, SecretText
from gatehouse.kernel.addresses import Address
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import SecretPair, as_bytes, constant_time_equal, first_equal, hmac_sha256, sha256
from gatehouse.keys.encoding import encode_base64url
from gatehouse.keys.sealing import MasterKeys
from gatehouse.oauth.client_assertions import ClientAssertions
from gatehouse.oauth.client_commands import client_secret_purpose
from gatehouse.oauth.clients import check_client_id
from gatehouse.oauth.errors import BadDocument, ClientNotFound, InvalidClient, InvalidRequest
from gatehouse.oauth.metadata_clients import DocumentCaller, MetadataClients
from gatehouse.oauth.model import Client, ClientProfile, ClientSecret, SecretKind
from gatehouse.oauth.store import ClientStore
from gatehouse.oauth.vocabulary import ASSERTION_TYPE
from gatehouse.oauth.workloads.assertions import WorkloadAssertions, WorkloadRefused, parse_workload_token
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter, ThrottleSubject

# The length of RFC 7636 §4.1. Its alphabet is smaller, but git-credential-oauth of Debian 12 sends plain base64.
VERIFIER_PATTERN: Final = re.compile(r"[!-~]{43,128}", re.ASCII)


def native_proof(redirect_uri: str, secret: bytes) -> str:
    """Return the hex SHA-1 of redirect_uri + client_secret; clients send it in either case (interface §5.1, R3)."""
    return hashlib.sha1(as_bytes(redirect_uri) + secret, usedforsecurity=False).hexdigest()


def matches_code_challenge(verifier: str, challenge: str) -> bool:
    """Whether the verifier matches the S256 challenge; one without a challenge is refused too (checklist TK-26)."""
    if not challenge or not verifier:
        return not challenge and not verifier
    return VERIFIER_PATTERN.fullmatch(verifier) is not None and constant_time_equal(
        encode_base64url(sha256(verifier)), challenge
    )


# Compares a secret with the live ones of a client, in constant time (R3).


STRONG_SECRET_LENGTH: Final = 32  # characters of a secret that cannot be guessed
# An imported secret can be guessed, so every guess at it is counted before it is made.
WEAK_GUESS_LIMIT: Final = AttemptLimit(free_attempts=20, first_delay=30, max_delay=3_600, window=86_400)
VERIFIED_CACHE_SIZE: Final = 1_000


class LiveSecret(SecretRecord, frozen=True, kw_only=True):
    """A live secret; `plain` is set if the proof needs the secret itself."""

    secret: ClientSecret
    plain: SecretBytes | None

    @property
    def is_weak(self) -> bool:
        weak_seal = self.plain is not None and len(self.plain) < STRONG_SECRET_LENGTH
        return weak_seal or self.secret.kind is SecretKind.ARGON2


# What was given and what is expected; None where the secret cannot be compared so.
PairOf: TypeAlias = Callable[[LiveSecret], SecretPair | None]


def find_secret(secrets: Sequence[LiveSecret], pair_of: PairOf) -> LiveSecret | None:
    pairs = [(stored, pair) for stored in secrets if (pair := pair_of(stored)) is not None]
    index = first_equal(pair for _, pair in pairs)
    return None if index is None else pairs[index][0]


class ClientSecretVerifier:
    """`cache_key` keys the cache of weak secrets that were verified.

    A slow hash is computed once, not per request.
    """

    def __init__(
        self, *, masters: MasterKeys, hashes: Passwords, guesses: AttemptLimiter, clock: Clock, cache_key: bytes
    ) -> None:
        self._masters = masters
        self._hashes = hashes
        self._guesses = guesses
        self._clock = clock
        self._cache_key = cache_key
        self._verified_cache: LRUCache[bytes, ClientSecret] = LRUCache(VERIFIED_CACHE_SIZE)

    async def is_correct_secret(self, client: Client, presented: str, *, source: str) -> bool:
        """Whether the secret is right.

        Raises TooMany for a source that keeps guessing at a weak secret, as the methods below.
        """

        def pair_of(stored: LiveSecret) -> SecretPair | None:
            if stored.secret.kind is SecretKind.SHA256:
                return sha256(presented), stored.secret.secret
            return None if stored.plain is None else (presented, stored.plain)

        return await self._any_matches(client, presented, pair_of, source, hashed=presented)

    async def is_correct_proof(self, client: Client, proof: str, redirect_uri: str, *, source: str) -> bool:
        lower_proof = proof.lower()

        def pair_of(stored: LiveSecret) -> SecretPair | None:
            return None if stored.plain is None else (lower_proof, native_proof(redirect_uri, stored.plain))

        return await self._any_matches(client, proof + redirect_uri, pair_of, source)

    async def _any_matches(
        self, client: Client, presented: str, pair_of: PairOf, source: str, *, hashed: str | None = None
    ) -> bool:
        """Compare with the strong secrets first; then with weak ones, which counts as a guess.

        `hashed`: what is compared with secrets of which only a slow hash is stored.
        """
        live = self._live_secrets(client)
        if find_secret([stored for stored in live if not stored.is_weak], pair_of) is not None:
            return True
        weak = [stored for stored in live if stored.is_weak]
        if not weak:
            return False
        memory = hmac_sha256(self._cache_key, sha256(client.client_id) + sha256(presented))
        if self._verified_cache.get(memory) in [stored.secret for stored in weak]:
            return True
        guess = await self._guesses.begin_attempt(
            [ThrottleSubject(("client secret", client.client_id, source), WEAK_GUESS_LIMIT)]
        )
        secret = find_secret(weak, pair_of) or await self._find_hashed(weak, hashed)
        if secret is None:
            return False
        self._verified_cache[memory] = secret.secret
        await self._guesses.mark_succeeded(guess)
        return True

    async def _find_hashed(self, weak: Sequence[LiveSecret], presented: str | None) -> LiveSecret | None:
        if presented is None:
            return None
        for stored in weak:
            secret = stored.secret
            if secret.kind is SecretKind.ARGON2 and await self._hashes.matches(presented, secret.secret.decode()):
                return stored
        return None

    def _live_secrets(self, client: Client) -> list[LiveSecret]:
        now = self._clock.now()
        live = [secret for secret in client.secrets if not secret.expires_at or secret.expires_at > now]
        return [LiveSecret(secret=secret, plain=self._open_secret(client, secret)) for secret in live]

    def _open_secret(self, client: Client, secret: ClientSecret) -> bytes | None:
        """Open a sealed secret; None if it is damaged, so that the other secret still works (faults R-25)."""
        if secret.kind is not SecretKind.SEALED:
            return None
        return self._masters.try_open(secret.secret, purpose=client_secret_purpose(client.client_id))


# Identifies the client of a request (interface §5.1, R3).
#
# A native client shows the SHA-1 proof, which fits one redirect_uri; a client of profile oidc shows its secret, a
# signed assertion or, if it is public, only its name. A proof of the other profile is refused.


# 256 bits cannot be guessed: this only limits load, and a right proof always succeeds (TK-29).
GUESS_LIMIT: Final = AttemptLimit(free_attempts=100, first_delay=30, max_delay=3_600, window=3_600)


class ClientCredentialFields(SecretRecord, frozen=True, kw_only=True):
    """The fields that every request of a client may have; unknown parameters are ignored (RFC 6749 §3.2)."""

    client_id: str = ""
    client_secret: SecretText = ""
    client_assertion_type: str = ""
    client_assertion: SecretText = ""


class ClientCredentials(SecretRecord, frozen=True, kw_only=True):
    """The client credentials of a request; an empty text was not sent."""

    proof: SecretText = ""  # Bearer
    basic_id: str = ""
    basic_secrets: tuple[SecretText, ...] = ()  # as received, and decoded (RFC 6749 §2.3.1)
    client_id: str = ""
    client_secret: SecretText = ""
    assertion_type: str = ""
    assertion: SecretText = ""
    source: str = ""  # the caller as the throttles count them
    address: Address | None = None  # if the connection proves it
    origin: AuditOrigin

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets that were sent; the empty Basic password of a public client does not count."""
        return tuple(secret for secret in (*self.basic_secrets, self.client_secret) if secret)

    @property
    def is_unnamed_proof(self) -> bool:
        """Whether it is a native proof, whose client is known only from the code or token."""
        return bool(self.proof) and not self.client_id


class ClientAuthenticator:
    def __init__(
        self,
        *,
        store: ClientStore,
        metadata_clients: MetadataClients,
        secrets: ClientSecretVerifier,
        assertions: ClientAssertions,
        workloads: WorkloadAssertions,
        guesses: AttemptLimiter,
        refusals: RefusalLog,
    ) -> None:
        self._store = store
        self._metadata_clients = metadata_clients
        self._secrets = secrets
        self._assertions = assertions
        self._workloads = workloads
        self._guesses = guesses
        self._refusals = refusals

    async def authenticate_at_token_endpoint(
        self, credentials: ClientCredentials, owner: Client | None, redirect_uri: str
    ) -> Client:
        """Return the client that proves itself: the owner of what is presented, when none is named.

        Raises InvalidClient; InvalidRequest for two proofs at once; TooMany for a source that keeps guessing.
        """
        client = await self._find_client(credentials, owner)
        if client.profile is ClientProfile.OIDC:
            return await self._authenticate_oidc(credentials, client)
        proved = bool(credentials.proof) and await self._secrets.is_correct_proof(
            client, credentials.proof, redirect_uri, source=credentials.source
        )
        return await self._accept_or_refuse(client, credentials, proved=proved)

    async def authenticate_by_secret(self, credentials: ClientCredentials, owner: Client | None = None) -> Client:
        """Authenticate where there is no redirect_uri.

        Native clients send the secret itself (interface §4.2, revoke). `owner` is that of what is presented; if it is
        the client that is named, no other is read.
        """
        client = await self._find_client(
            credentials, owner if credentials.basic_id or credentials.client_id else None
        )
        if client.profile is ClientProfile.OIDC:
            return await self._authenticate_oidc(credentials, client)
        return await self._accept_or_refuse(client, credentials, proved=await self._knows_secret(credentials, client))

    async def _authenticate_oidc(self, credentials: ClientCredentials, client: Client) -> Client:
        if client.workload_identities and credentials.assertion_type == ASSERTION_TYPE:
            try:
                await self._workloads.verify(client, credentials.assertion)
            except WorkloadRefused as error:
                await self.refuse(client.client_id, credentials, reason=error.detail)
            return client
        return await self._accept_or_refuse(client, credentials, proved=await self._proves_oidc(credentials, client))

    async def _find_client(self, credentials: ClientCredentials, owner: Client | None) -> Client:
        client = await self._find_stored_client(credentials, owner)
        if not client.has_document:
            return client
        try:
            caller = DocumentCaller(source=credentials.source, origin=credentials.origin)
            current = await self._metadata_clients.recheck(client, caller)
            if current.public or not credentials.assertion:
                return current
            kid = self._assertions.key_id_in(credentials.assertion)
            return await self._metadata_clients.with_key(current, kid, caller)
        except BadDocument as error:
            raise InvalidClient(error.detail) from None

    async def _find_stored_client(self, credentials: ClientCredentials, owner: Client | None) -> Client:
        name = self.client_id_in(credentials)
        if owner is not None and name in ("", owner.client_id):
            return owner
        try:
            return await self._store.active_client(check_client_id(name))
        except ClientNotFound:
            await self._count_guess("", credentials)
            raise InvalidClient("unknown client, or its application was removed") from None

    def client_id_in(self, credentials: ClientCredentials) -> str:
        """Return the client id of the request; empty for a native client, whose proof needs none."""
        refuse_multiple_methods(credentials)
        asserted = asserted_client_id(credentials) if credentials.assertion else ""
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
        # It has no secret, unless another node stored one at the same moment.
        return not client.workload_identities and await self._knows_secret(credentials, client)

    async def _knows_secret(self, credentials: ClientCredentials, client: Client) -> bool:
        for secret in dict.fromkeys(credentials.secrets):
            if await self._secrets.is_correct_secret(client, secret, source=credentials.source):
                return True
        return False

    async def _accept_or_refuse(self, client: Client, credentials: ClientCredentials, *, proved: bool) -> Client:
        if not proved:
            await self.refuse(client.client_id, credentials)
        return client

    async def refuse(
        self, client_id: str, credentials: ClientCredentials, *, reason: str = "wrong credentials"
    ) -> Never:
        """Count and record a failed authentication. Raises InvalidClient, TooMany."""
        await self._count_guess(client_id, credentials)
        # After the count, so that a throttled caller causes no further writes.
        record_id = await self._refusals.add(
            AuditEvent.CLIENT_REFUSED, credentials.origin, reason=reason, subject=client_id
        )
        raise InvalidClient(f"{reason} for {client_id}, record {record_id}")

    async def _count_guess(self, client_id: str, credentials: ClientCredentials) -> None:
        await self._guesses.begin_attempt(
            [ThrottleSubject(("client", client_id, credentials.source), GUESS_LIMIT, is_shared=True)]
        )


def asserted_client_id(credentials: ClientCredentials) -> str:
    """Return the client that the assertion names; for one of another issuer, the request names it (R11).

    Nothing is verified yet.
    """
    payload = parse_workload_token(credentials.assertion).payload
    issuer, subject = payload.get("iss"), str(payload.get("sub", ""))
    if issuer in (subject, credentials.client_id):
        return subject
    if not credentials.client_id:
        raise InvalidClient("client_id is required with an assertion of another issuer")
    return credentials.client_id


def refuse_multiple_methods(credentials: ClientCredentials) -> None:
    """Refuse more than one method (RFC 6749 §2.3); the same secret in header and body is one method."""
    twice = (
        credentials.basic_id
        and credentials.client_secret
        and credentials.client_secret not in credentials.basic_secrets
    )
    ways = (credentials.proof, credentials.basic_id or credentials.client_secret, credentials.assertion)
    if twice or sum(map(bool, ways)) > 1:
        raise InvalidRequest("more than one authentication method")
