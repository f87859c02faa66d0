"""What users hold, remembered for as long as each answer says, and asked for again with its ETag (R5)."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final, Never, TypeAlias

import msgspec

from gatehouse.client.clock import Clock
from gatehouse.client.credentials import Credential, Question
from gatehouse.client.errors import Denied, Unauthenticated, Unavailable
from gatehouse.client.permissions import Permissions, parse_list
from gatehouse.client.standing import INVALID_TOKEN, Standing
from gatehouse.client.transport import Reply, Transport
from gatehouse.client.user import User

OK: Final = 200
NOT_MODIFIED: Final = 304
REFUSALS: Final = {401: Unauthenticated, 403: Denied, 404: Denied}

Session: TypeAlias = tuple[bytes, str]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    error: str = ""
    data: tuple[str, ...] = ()
    user_id: str = ""
    expired: int = 0
    max_age: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """An answer, and the moment up to which it surely tells everything: when it was asked for."""

    permissions: Permissions
    etag: str
    asked_at: float
    max_age: float
    ends_at: int  # Unix time at which something in it ends; 0 for never


class Lists:
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
        self._standing = Standing(
            base_url=base_url,
            application_id=application_id,
            credential=credential,
            transport=transport,
            clock=clock,
        )
        self._known: OrderedDict[Session, Known] = OrderedDict()
        self._asking: dict[Session, asyncio.Task[Known]] = {}

    async def get(self, user: User) -> Permissions:
        """Raise Unauthenticated or Denied as the service says, Unavailable when it says nothing, or not to us."""
        began = self._clock.monotonic()
        known = self._known.get(user.session)
        while known is None or not self._counts(known, began):
            known = await self._asked(user, began)
        if user.session in self._known:
            self._known.move_to_end(user.session)
        return known.permissions

    def _counts(self, known: Known, began: float) -> bool:
        """Whether it is new enough for a question put then. One asked for since always is, at any age allowed."""
        if known.asked_at >= began:
            return True
        return began - known.asked_at < known.max_age and not self._has_ended(known)

    def _has_ended(self, known: Known) -> bool:
        return 0 < known.ends_at <= self._clock.now()

    async def _asked(self, user: User, began: float) -> Known:
        task = self._asking.get(user.session)
        if task is None:
            task = asyncio.create_task(self._ask(user), name="gatehouse permissions")
            self._asking[user.session] = task
            task.add_done_callback(lambda done: self._over(user.session, done))
        try:
            # Shielded: one who waits may leave, the others still want the answer.
            return await asyncio.shield(task)
        except Unavailable as silence:
            return self._remembered(user, began, silence)

    def _over(self, session: Session, task: asyncio.Task[Known]) -> None:
        del self._asking[session]
        if not task.cancelled():
            task.exception()  # looked at here too, in case nobody waits any more

    def _remembered(self, user: User, began: float, silence: Unavailable) -> Known:
        """While the service is silent: what is known, for `stale_seconds` longer than usual."""
        known = self._known.get(user.session)
        if known is None or began - known.asked_at >= known.max_age + self._stale or self._has_ended(known):
            raise silence
        return replace(known, asked_at=began)

    async def _ask(self, user: User) -> Known:
        asked_at, before = self._clock.monotonic(), self._known.get(user.session)
        question = Question(
            base_url=self._base_url,
            application_id=self._application_id,
            jwt=user.jwt,
            address=user.address,
            now=self._clock.now(),
        )
        request = self._credential.ask(question)
        if before is not None and before.etag:
            request = replace(request, headers={**request.headers, "If-None-Match": before.etag})
        reply = await self._transport.send(request)
        try:
            known = read(reply, before, user.user_id, asked_at)
        except (Unauthenticated, Denied) as refusal:
            self._known.pop(user.session, None)
            if await self._standing.is_refused(user.user_id):
                raise Unavailable(
                    "the service rejects this application's credentials: check that the key is valid and "
                    f"belongs to application {self._application_id}"
                ) from refusal
            raise
        self._keep(user.session, known)
        return known

    def _keep(self, session: Session, known: Known) -> None:
        self._known[session] = known
        self._known.move_to_end(session)
        while len(self._known) > self._most:
            self._known.popitem(last=False)


def read(reply: Reply, before: Known | None, user_id: str, asked_at: float) -> Known:
    if reply.status == NOT_MODIFIED and before is not None:
        return replace(before, asked_at=asked_at)
    if reply.status in REFUSALS:
        raise REFUSALS[reply.status](f"the service answered {reply.status} for this JWT")
    if reply.status != OK:
        raise Unavailable(f"the service answered {reply.status}")
    answer = decoded(reply.body)
    if answer.status != "OK":
        refuse(answer)
    if answer.user_id != user_id:
        raise Denied("the service answered for another user")
    return Known(
        permissions=parse_list(answer.data),
        etag=reply.etag,
        asked_at=asked_at,
        max_age=answer.max_age,
        ends_at=answer.expired,
    )


def refuse(answer: Answer) -> Never:
    """A service with `permissions.always_200` says it in words only."""
    raise (Unauthenticated if answer.error == INVALID_TOKEN else Denied)(f"the service answered {answer.error!r}")


def decoded(body: bytes) -> Answer:
    try:
        return msgspec.json.decode(body, type=Answer)
    except msgspec.DecodeError as error:
        raise Unavailable(f"no answer from the service: {error}") from None
