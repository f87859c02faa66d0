"""A user's permissions, read from the service's `list_short` (interface §4.5, R5)."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, Never, TypeAlias

import msgspec

from gatehouse.client.changes import ChangeNotice
from gatehouse.client.clock import Clock
from gatehouse.client.credential_probe import INVALID_TOKEN, CredentialProbe
from gatehouse.client.credentials import Credential, PermissionQuery
from gatehouse.client.errors import Denied, Unauthenticated, Unavailable
from gatehouse.client.transport import Reply, Transport
from gatehouse.client.verification import User


class Resource(NamedTuple):
    """A resource of a project."""

    kind: Literal["applications", "services", "groups"]
    resource_id: str


class PermissionKey(NamedTuple):
    """A rule and where it is held. Keys are compared field by field, because joined text would be ambiguous."""

    project: str | None  # None is the root
    resource: Resource | None
    rule: str


Params: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Permissions:
    entries: Mapping[PermissionKey, Params]

    def allows(self, rule: str, project: str | None = None, resource: Resource | None = None) -> bool:
        """True when the rule is held there, or on the whole project of a resource.

        What is held at the root counts at the root only. Rule and project are named as the list names them:
        without a section, and by id, never by an alias. The resource has to be one of the project: a list does not
        tell what a project has, so a name from another source is a question for the service's `check`.
        """
        return any(place in self.entries for place in lookup_keys(rule, project, resource))

    def params(self, rule: str, project: str | None = None, resource: Resource | None = None) -> Params:
        """Return the params of the narrowest place where the rule is held; empty when there are none."""
        return next(
            (self.entries[place] for place in lookup_keys(rule, project, resource) if place in self.entries), ()
        )


def lookup_keys(rule: str, project: str | None, resource: Resource | None) -> list[PermissionKey]:
    """Return the places whose rules decide about this one, the narrowest first."""
    if resource is None:
        return [PermissionKey(project, None, rule)]
    if project is None:
        raise ValueError("a resource needs a project")
    return [PermissionKey(project, resource, rule), PermissionKey(project, None, rule)]


def parse_permissions(entries: Iterable[str]) -> Permissions:
    return Permissions(dict(filter(None, map(parse_entry, entries))))


def parse_entry(entry: str) -> tuple[PermissionKey, Params] | None:
    """`rule`, `P/rule` or `P/applications/A/rule`, with `|a,b` behind it; any other form gives no right."""
    place, _, params = entry.partition("|")
    listed = tuple(params.split(",")) if params else ()
    match place.split("/"):
        case [rule]:
            return PermissionKey(None, None, rule), listed
        case [project, rule]:
            return PermissionKey(project, None, rule), listed
        case [project, "applications" | "services" | "groups" as kind, resource_id, rule]:
            return PermissionKey(project, Resource(kind, resource_id), rule), listed
    return None


# What users hold, cached for as long as each response allows, and revalidated with its ETag (R5).


OK: Final = 200
NOT_MODIFIED: Final = 304
FOLLOWED_MAX_AGE: Final = 300.0  # seconds an answer is used at most while the change stream is open
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
    """A response, and the time up to which it is complete: when it was requested."""

    permissions: Permissions
    etag: str
    asked_at: float
    max_age: float
    ends_at: int  # Unix time at which something in it ends; 0 for never
    user_id: str
    is_followed: bool = False  # no change came while it was requested: it is valid until one comes


class PermissionCache:
    """Sends one request per user at a time; the least recently used entries are evicted first."""

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
        self._changes = 0  # notices so far
        self.live_since: Callable[[], float | None] = lambda: None  # of the change stream

    def handle_change(self, notice: ChangeNotice) -> None:
        """Use no entry again that the change may concern, until the service has confirmed it."""
        self._changes += 1
        for session, known in tuple(self._entries.items()):
            if notice.concerns_everyone or notice.concerns(known.user_id):
                self._entries[session] = replace(known, asked_at=float("-inf"), is_followed=False)

    async def get(self, user: User) -> Permissions:
        """Return the permissions.

        Raises Unauthenticated or Denied as the service responds, Unavailable when it does not respond or refuses this
        application.
        """
        began = self._clock.monotonic()
        known = self._entries.get(user.cache_key)
        while known is None or not self._is_fresh(known, began):
            known = await self._fetch_shared(user, began)
        if user.cache_key in self._entries:
            self._entries.move_to_end(user.cache_key)
        return known.permissions

    def _is_fresh(self, known: CachedPermissions, began: float) -> bool:
        """Whether the entry is new enough for a request made at that time; one that was requested later always is."""
        if known.asked_at >= began:
            return True
        max_age = max(known.max_age, FOLLOWED_MAX_AGE) if self._is_followed(known) else known.max_age
        return began - known.asked_at < max_age and not self._has_expired(known)

    def _is_followed(self, known: CachedPermissions) -> bool:
        """Whether the change stream was open all the time since the entry was requested."""
        since = self.live_since()
        return known.is_followed and since is not None and known.asked_at >= since

    def _has_expired(self, known: CachedPermissions) -> bool:
        return 0 < known.ends_at <= self._clock.now()

    async def _fetch_shared(self, user: User, began: float) -> CachedPermissions:
        task = self._in_flight.get(user.cache_key)
        if task is None:
            task = asyncio.create_task(self._fetch(user), name="gatehouse permissions")
            self._in_flight[user.cache_key] = task
            task.add_done_callback(lambda done: self._finish_fetch(user.cache_key, done))
        try:
            # Shielded: one caller may be canceled while others still wait for the response.
            return await asyncio.shield(task)
        except Unavailable as silence:
            return self._stale_entry(user, began, silence)

    def _finish_fetch(self, session: CacheKey, task: asyncio.Task[CachedPermissions]) -> None:
        del self._in_flight[session]
        if not task.cancelled():
            task.exception()  # retrieved here too, in case no caller waits any more

    def _stale_entry(self, user: User, began: float, silence: Unavailable) -> CachedPermissions:
        """Return the cached entry while the service cannot be reached, for `stale_seconds` longer than usual."""
        known = self._entries.get(user.cache_key)
        if known is None or began - known.asked_at >= known.max_age + self._stale or self._has_expired(known):
            raise silence
        return replace(known, asked_at=began)

    async def _fetch(self, user: User) -> CachedPermissions:
        asked_at, before, changes = self._clock.monotonic(), self._entries.get(user.cache_key), self._changes
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
        known = replace(known, is_followed=changes == self._changes)
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
        user_id=user_id,
    )


def raise_refusal(answer: PermissionListResponse) -> Never:
    """Raise the error of a response; a service with `permissions.always_200` reports it in the body only."""
    raise (Unauthenticated if answer.error == INVALID_TOKEN else Denied)(f"the service answered {answer.error!r}")


def decode_response(body: bytes) -> PermissionListResponse:
    try:
        return msgspec.json.decode(body, type=PermissionListResponse)
    except msgspec.DecodeError as error:
        raise Unavailable(f"no answer from the service: {error}") from None
