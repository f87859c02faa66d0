"""Clients that are known by their client ID metadata document: fetched, checked, stored like registered ones (R9).

The document is fetched from listed hosts only. What was fetched is a row among the clients
(docs/decisions/0041-clients-by-their-document.md); this process remembers how long it may be used.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from typing import Any, Final

import structlog
from msgspec import Struct
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.images.loading import ImageLoader
from gatehouse.images.model import LOGO, BadImage, StoredImage
from gatehouse.images.upload_limit import OPERATOR
from gatehouse.kernel.cache import WeightedCache
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import GatehouseError, TooMany, Unavailable
from gatehouse.oauth.client_commands import changed_fields
from gatehouse.oauth.document_hosts import DocumentHosts
from gatehouse.oauth.errors import BadDocument, ClientChanged, ClientExists, ClientNotFound
from gatehouse.oauth.metadata_document import (
    DescribedClient,
    cache_seconds,
    logo_host,
    read_document,
    with_keys,
)
from gatehouse.oauth.model import Client
from gatehouse.oauth.redirects import document_host
from gatehouse.oauth.store import ClientStore
from gatehouse.outbound.client import OutboundClient
from gatehouse.outbound.model import CallFailed, CallLimits, OutboundResponse
from gatehouse.throttle.rate_limiter import RateLimit, RateLimiter

log = structlog.get_logger(__name__)

KEYS_LIMITS: Final = CallLimits(connect_seconds=5, total_seconds=5, body_bytes=65_536)  # R11
KEYS_AGAIN_SECONDS: Final = 60  # between two readings of a client's keys for a key ID that is not among them (R11)
DOCUMENT_LIMITS: Final = CallLimits(connect_seconds=5, total_seconds=5, body_bytes=16_384)  # R9
LOGO_LIMITS: Final = CallLimits(connect_seconds=5, total_seconds=5, body_bytes=2**20, max_concurrent=2)
CACHE_BYTES: Final = 2**20
CACHE_GROUP: Final = "documents"
FAILURE_SECONDS: Final = 60  # a document that was not accepted is not fetched again for so long
BY_SOURCE: Final = "document.source"
BY_HOST: Final = "document.host"
IN_USE: Final = ".in_use"  # ends the same classes for clients that people use, which strangers cannot use up
# Fetches per minute that one caller can cause, and that one host gets from this process.
DOCUMENT_RATES: Final = {
    f"{rate_class}{client}": RateLimit(per_minute)
    for rate_class, per_minute in ((BY_SOURCE, 20), (BY_HOST, 60))
    for client in ("", IN_USE)
}
MAX_STRANGERS: Final = 4  # fetches at a time for clients that no one uses, of the 8 in all


class DocumentCaller(Struct, frozen=True, kw_only=True):
    """Whose request needs the document."""

    source: str  # as the rate limits count them
    origin: AuditOrigin


class FetchedDocument(Struct, frozen=True, kw_only=True):
    """The outcome of the last fetch."""

    ends_at: float
    app_uris: tuple[str, ...]  # that were listed for the host: with others the document may mean something else
    problem: str = ""  # why the document was not accepted
    version: int = 0  # of the client as this document left it; 0 if another process stored another one
    jwks_uri: str = ""
    keys_read_at: float = 0


class MetadataClients:
    def __init__(
        self,
        *,
        store: ClientStore,
        outbound: OutboundClient,
        keys_outbound: OutboundClient,
        images: ImageLoader,
        hosts: Callable[[], DocumentHosts],
        rate_limiter: RateLimiter,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        """`hosts`: the allow list, which may change at any time."""
        self._store = store
        self._outbound = outbound
        self._keys_outbound = keys_outbound
        self._images = images
        self._hosts = hosts
        self._rate_limiter = rate_limiter
        self._recorder = recorder
        self._clock = clock
        self._cache: WeightedCache[FetchedDocument] = WeightedCache(CACHE_BYTES)
        self._failures: WeightedCache[FetchedDocument] = WeightedCache(CACHE_BYTES)  # never in place of the others
        self._strangers = asyncio.Semaphore(MAX_STRANGERS)
        self._fetches: dict[
            str, asyncio.Task[Client]
        ] = {}  # by client_id; readings of keys alone under a name of theirs

    async def find(self, client_id: str, caller: DocumentCaller) -> Client:
        """Return the client as its document describes it now. Raises BadDocument, TooMany."""
        self._refuse_unlisted(client_id)
        failed = self._current(self._failures, client_id)
        if failed is not None:
            raise BadDocument(failed.problem)
        if self._current(self._cache, client_id) is not None:
            with suppress(ClientNotFound):  # the row of a client that no one used was deleted
                return await self._store.client(client_id)
        return await self._fetch_once(client_id, caller)

    async def recheck(self, client: Client, caller: DocumentCaller) -> Client:
        """Return the stored client if it may still be served. Raises BadDocument, TooMany.

        A client with keys needs a current document: a key that it removed must not work. A public client has
        nothing in it that the token endpoint uses, so its tokens do not depend on the document's server.
        """
        self._refuse_unlisted(client.client_id)
        return client if client.public else await self.find(client.client_id, caller)

    async def with_key(self, client: Client, kid: str, caller: DocumentCaller) -> Client:
        """Return the client with the keys that its jwks_uri has now, if the stored ones lack this key ID.

        They are read once a minute at most; when that fails, the stored keys stay. After a change by another process
        the document is read with them: the keys may be at another address now.
        """
        fetched = self._current(self._cache, client.client_id)
        if fetched is None or not kid or has_key_id(client, kid):
            return client
        if fetched.version != client.version:
            return client if client.public else await self._fetch_once(client.client_id, caller)
        if not fetched.jwks_uri:
            return client
        name = f"keys of {client.client_id}"
        reading = self._fetches.get(name)
        if reading is None:
            if self._clock.monotonic() < fetched.keys_read_at + KEYS_AGAIN_SECONDS:
                return client
            reading = self._start(name, self._read_keys(client, fetched, caller))
        return await asyncio.shield(reading)

    async def _read_keys(self, client: Client, fetched: FetchedDocument, caller: DocumentCaller) -> Client:
        try:
            self._refuse_too_many(client.client_id, caller, in_use=True)
            read_now = replace(fetched, keys_read_at=self._clock.monotonic())
            self._store_fetched(self._cache, client.client_id, read_now)
            keys = await self._get_keys(fetched.jwks_uri)
            current = await self._store.client(client.client_id)
            if current.version != client.version:  # another process read the document meanwhile: it may say otherwise
                return current
            stored, version = await self._save(with_keys(current, keys), None, caller.origin)
        except (CallFailed, BadDocument, ClientNotFound, TooMany) as error:
            problem = error.detail or error.public
            log.warning("keys of a client not read", client_id=client.client_id, reason=problem)
            return client
        self._store_fetched(self._cache, client.client_id, replace(read_now, version=version))
        return stored

    async def _get_keys(self, jwks_uri: str) -> OutboundResponse:
        return await self._keys_outbound.get(jwks_uri, accept="application/jwk-set+json, application/json")

    def _current(self, cache: WeightedCache[FetchedDocument], client_id: str) -> FetchedDocument | None:
        fetched = cache.get(CACHE_GROUP, client_id)
        if fetched is None or fetched.ends_at <= self._clock.monotonic():
            return None
        return fetched if fetched.app_uris == self._app_uris(client_id) else None

    def _app_uris(self, client_id: str) -> tuple[str, ...]:
        return self._hosts().app_uris_of(document_host(client_id))

    def _refuse_unlisted(self, client_id: str) -> None:
        if not self._hosts().is_listed(document_host(client_id)):
            raise BadDocument("the host of the client_id is not listed in oauth.client_document_hosts")

    async def _fetch_once(self, client_id: str, caller: DocumentCaller) -> Client:
        """Fetch the document, or wait for a fetch that is running; one that a caller leaves goes on for others."""
        in_use = client_id not in self._fetches and await self._store.is_client_in_use(client_id)
        fetch = self._fetches.get(client_id)
        if fetch is None:
            self._refuse_too_many(client_id, caller, in_use=in_use)
            slot = nullcontext() if in_use else self._strangers
            fetch = self._start(client_id, self._fetch(client_id, caller.origin, slot))
        return await asyncio.shield(fetch)

    def _start(self, name: str, work: Coroutine[Any, Any, Client]) -> asyncio.Task[Client]:
        fetch = self._fetches[name] = asyncio.create_task(work)
        fetch.add_done_callback(partial(self._end_fetch, name))
        return fetch

    def _end_fetch(self, name: str, fetch: asyncio.Task[Client]) -> None:
        del self._fetches[name]
        if not fetch.cancelled():
            fetch.exception()  # asyncio reports an exception that no one has read

    def _refuse_too_many(self, client_id: str, caller: DocumentCaller, *, in_use: bool) -> None:
        subjects = ((BY_SOURCE, caller.source), (BY_HOST, document_host(client_id)))
        for rate_class, subject in subjects:
            if wait := self._rate_limiter.admit(f"{rate_class}{IN_USE if in_use else ''}", subject):
                raise TooMany(wait, "client ID metadata documents")

    async def _fetch(self, client_id: str, origin: AuditOrigin, slot: AbstractAsyncContextManager[None]) -> Client:
        app_uris, started = self._app_uris(client_id), self._clock.monotonic()
        try:
            async with slot, asyncio.timeout(DOCUMENT_LIMITS.total_seconds):
                response = await self._outbound.get(client_id)
                described = read_document(client_id, response, self._clock.now(), app_uris=app_uris)
                seconds = cache_seconds(response.headers)
                if described.jwks_uri:
                    keys = await self._get_keys(described.jwks_uri)
                    described = replace(described, client=with_keys(described.client, keys))
                    seconds = min(seconds, cache_seconds(keys.headers))
            client, version = await self._save(described.client, await self._load_logo(described), origin)
        except (CallFailed, BadDocument, ClientNotFound, TimeoutError) as error:
            problem = problem_with(error)
            log.warning("client ID metadata document not accepted", client_id=client_id, reason=problem)
            ends_at = self._clock.monotonic() + FAILURE_SECONDS
            failed = FetchedDocument(ends_at=ends_at, app_uris=app_uris, problem=problem)
            self._store_fetched(self._failures, client_id, failed)
            raise BadDocument(problem) from None
        fetched = FetchedDocument(
            ends_at=self._clock.monotonic() + seconds,
            app_uris=app_uris,
            version=version,
            jwks_uri=described.jwks_uri,
            keys_read_at=started,
        )
        self._store_fetched(self._cache, client_id, fetched)
        return client

    def _store_fetched(self, cache: WeightedCache[FetchedDocument], client_id: str, fetched: FetchedDocument) -> None:
        texts = sum(100 + len(uri) for uri in fetched.app_uris) + len(fetched.problem) + len(fetched.jwks_uri)
        cache.put(CACHE_GROUP, client_id, fetched, len(client_id) + texts + 200)

    async def _load_logo(self, described: DescribedClient) -> StoredImage | None:
        """Fetch the logo with its document, from a listed host; None without one, and for any failure."""
        if not self._hosts().is_listed(logo_host(described.logo_uri)):
            return None
        try:
            return await self._images.load(described.logo_uri, LOGO, uploader=OPERATOR)
        except (BadImage, Unavailable) as error:
            log.warning(
                "logo of a client ID metadata document not accepted",
                client_id=described.client.client_id,
                reason=error.detail or error.public,
            )
            return None

    async def _save(self, described: Client, logo: StoredImage | None, origin: AuditOrigin) -> tuple[Client, int]:
        """Store what the document says; return the stored client and its version, 0 if it says something else.

        Raises ClientNotFound for a removed one.
        """
        client = described if logo is None else replace(described, logo=logo.image_id)
        with suppress(ClientExists, ClientChanged):  # saved by another process just now, or removed
            await self._create_or_change(client, logo, origin)
        stored = await self._store.client(client.client_id)
        return stored, stored.version if stored == as_stored(client, stored) else 0

    async def _create_or_change(self, client: Client, logo: StoredImage | None, origin: AuditOrigin) -> None:
        try:
            before = await self._store.client(client.client_id)
        except ClientNotFound:
            details = {"profile": client.profile.value, "source": "metadata document"}
            record = self._recorder.record(
                AuditEvent.CLIENT_CREATED, origin, subject=client.client_id, details=details
            )
            await self._store.create_client(client, record, logo)
            return
        after = as_stored(client, before)
        if after == before:
            return
        # What was granted to a client with keys is not for one that anyone can pose as (R11).
        loses_keys = after.public and not before.public
        details = {"fields": ", ".join(changed_fields(before, after))}
        record = self._recorder.record(AuditEvent.CLIENT_CHANGED, origin, subject=client.client_id, details=details)
        ended = self._recorder.record(AuditEvent.CLIENT_TOKENS_REVOKED, origin, subject=client.client_id)
        await self._store.change_client(after, record, logo, ended=ended if loses_keys else None)


def as_stored(client: Client, stored: Client) -> Client:
    """Return what the document says, with what only the stored client has."""
    return replace(
        client, created_at=stored.created_at, version=stored.version, secrets=stored.secrets, rev=stored.rev
    )


def has_key_id(client: Client, kid: str) -> bool:
    return any(key.get("kid") == kid for key in client.jwks.get("keys", ()))


def problem_with(error: GatehouseError | TimeoutError) -> str:
    if isinstance(error, GatehouseError):
        return error.detail or error.public
    return f"the document and its keys took more than {DOCUMENT_LIMITS.total_seconds:g} s"
