"""What users hold, remembered for as long as each answer says, and asked for again with its ETag (R5)."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final, Never, TypeAlias

import msgspec

from gatehouse.client.clock import Clock
from gatehouse.client.credentials import Credential, PermissionQuery
from gatehouse.client.errors import Denied, Unauthenticated, Unavailable
from gatehouse.client.permissions import Permissions, parse_permissions
from gatehouse.client.standing import INVALID_TOKEN, CredentialProbe
from gatehouse.client.transport import Reply, Transport
from gatehouse.client.user import User

OK: Final = 200
NOT_MODIFIED: Final = 304
REFUSALS: Final = {401: Unauthenticated, 403: Denied, 404: Denied}

CacheKey: TypeAlias = tuple[bytes, str]


class PermissionListResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    error: str = ""
    data: tuple[str, ...] = ()
    user_id: str = ""
    expired: int = 0
    max_age: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedPermissions:
    """An answer, and the moment up to which it surely tells everything: when it was asked for."""

    permissions: Permissions
    etag: str
    asked_at: float
    max_age: float
    ends_at: int  # Unix time at which something in it ends; 0 for never


class PermissionCache:
    """One question for each user at a time; the least recently used are forgotten first."""

    def __init__(
        self,
        *,
        base_url: str,
        application_id: int,
        credential: Credential,
        transport: Transport,
        clock: Clock,
        most: int,
        stale_seconds: float,
    ) -> None:
        self._base_url = base_url
        self._application_id = application_id
        self._credential = credential
        self._transport = transport
        self._clock = clock
        self._most = most
        self._stale = stale_seconds
        self._credential_probe = CredentialProbe(
            base_url=base_url,
            application_id=application_id,
            credential=credential,
            transport=transport,
            clock=clock,
        )
        self._entries: OrderedDict[CacheKey, CachedPermissions] = OrderedDict()
        self._in_flight: dict[CacheKey, asyncio.Task[CachedPermissions]] = {}

    async def get(self, user: User) -> Permissions:
        """Raise Unauthenticated or Denied as the service says, Unavailable when it says nothing, or not to us."""
        began = self._clock.monotonic()
        known = self._entries.get(user.cache_key)
        while known is None or not self._is_fresh(known, began):
            known = await self._fetch_shared(user, began)
        if user.cache_key in self._entries:
            self._entries.move_to_end(user.cache_key)
        return known.permissions

    def _is_fresh(self, known: CachedPermissions, began: float) -> bool:
        """Whether it is new enough for a question put then. One asked for since always is, at any age allowed."""
        if known.asked_at >= began:
            return True
        return began - known.asked_at < known.max_age and not self._has_expired(known)

    def _has_expired(self, known: CachedPermissions) -> bool:
        return 0 < known.ends_at <= self._clock.now()

    async def _fetch_shared(self, user: User, began: float) -> CachedPermissions:
        task = self._in_flight.get(user.cache_key)
        if task is None:
            task = asyncio.create_task(self._fetch(user), name="gatehouse permissions")
            self._in_flight[user.cache_key] = task
            task.add_done_callback(lambda done: self._finish_fetch(user.cache_key, done))
        try:
            # Shielded: one who waits may leave, the others still want the answer.
            return await asyncio.shield(task)
        except Unavailable as silence:
            return self._stale_entry(user, began, silence)

    def _finish_fetch(self, session: CacheKey, task: asyncio.Task[CachedPermissions]) -> None:
        del self._in_flight[session]
        if not task.cancelled():
            task.exception()  # looked at here too, in case nobody waits any more

    def _stale_entry(self, user: User, began: float, silence: Unavailable) -> CachedPermissions:
        """While the service is silent: what is known, for `stale_seconds` longer than usual."""
        known = self._entries.get(user.cache_key)
        if known is None or began - known.asked_at >= known.max_age + self._stale or self._has_expired(known):
            raise silence
        return replace(known, asked_at=began)

    async def _fetch(self, user: User) -> CachedPermissions:
        asked_at, before = self._clock.monotonic(), self._entries.get(user.cache_key)
        question = PermissionQuery(
            base_url=self._base_url,
            application_id=self._application_id,
            jwt=user.jwt,
            address=user.address,
            now=self._clock.now(),
        )
        request = self._credential.build_request(question)
        if before is not None and before.etag:
            request = replace(request, headers={**request.headers, "If-None-Match": before.etag})
        reply = await self._transport.send(request)
        try:
            known = parse_reply(reply, before, user.user_id, asked_at)
        except (Unauthenticated, Denied) as refusal:
            self._entries.pop(user.cache_key, None)
            if await self._credential_probe.is_refused(user.user_id):
                raise Unavailable(
                    "the service rejects this application's credentials: check that the key is valid and "
                    f"belongs to application {self._application_id}"
                ) from refusal
            raise
        self._store(user.cache_key, known)
        return known

    def _store(self, session: CacheKey, known: CachedPermissions) -> None:
        self._entries[session] = known
        self._entries.move_to_end(session)
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)


def parse_reply(reply: Reply, before: CachedPermissions | None, user_id: str, asked_at: float) -> CachedPermissions:
    if reply.status == NOT_MODIFIED and before is not None:
        return replace(before, asked_at=asked_at)
    if reply.status in REFUSALS:
        raise REFUSALS[reply.status](f"the service answered {reply.status} for this JWT")
    if reply.status != OK:
        raise Unavailable(f"the service answered {reply.status}")
    answer = decode_response(reply.body)
    if answer.status != "OK":
        raise_refusal(answer)
    if answer.user_id != user_id:
        raise Denied("the service answered for another user")
    return CachedPermissions(
        permissions=parse_permissions(answer.data),
        etag=reply.etag,
        asked_at=asked_at,
        max_age=answer.max_age,
        ends_at=answer.expired,
    )


def raise_refusal(answer: PermissionListResponse) -> Never:
    """A service with `permissions.always_200` says it in words only."""
    raise (Unauthenticated if answer.error == INVALID_TOKEN else Denied)(f"the service answered {answer.error!r}")


def decode_response(body: bytes) -> PermissionListResponse:
    try:
        return msgspec.json.decode(body, type=PermissionListResponse)
    except msgspec.DecodeError as error:
        raise Unavailable(f"no answer from the service: {error}") from None
