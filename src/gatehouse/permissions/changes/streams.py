"""The open change streams of this process: their limits, positions and ends."""

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

from msgspec import Struct

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import BadInput, GatehouseError, TooMany
from gatehouse.keys.model import Tampered, WrongMasterKey
from gatehouse.keys.sealing import MasterKeys
from gatehouse.permissions.changes.feed import ChangeFeed
from gatehouse.permissions.changes.model import StreamChange, StreamChangeKind
from gatehouse.permissions.changes.readers import ChangeReader

HEARTBEAT_SECONDS: Final = 15.0  # proxies end a response that is silent for a minute
MAX_BEHIND: Final = 200_000  # records that a stream reads to catch up; a reader further behind starts anew
FULL_RETRY_SECONDS: Final = 30
PLACE_BYTES: Final = 8
MAX_ID_LENGTH: Final = 512

Authorize: TypeAlias = Callable[[], Awaitable[ChangeReader]]


class BadEventId(BadInput):
    public = "Last-Event-ID: not an id that this caller received."


class StreamEvent(Struct, frozen=True):
    """An id, with a change or, as a heartbeat, without one."""

    event_id: str
    change: StreamChange | None = None


class EventIds(Struct, eq=False):
    """Ids of events: a place in the log, sealed for one caller, so that it says nothing and fits no other caller."""

    masters: MasterKeys

    def encode(self, place: int, caller: str) -> str:
        sealed = self.masters.seal(place.to_bytes(PLACE_BYTES), purpose=purpose_for(caller))
        return urlsafe_b64encode(sealed).rstrip(b"=").decode()

    def decode(self, event_id: str, caller: str) -> int:
        """Raises BadEventId."""
        if len(event_id) > MAX_ID_LENGTH:
            raise BadEventId(BadEventId.public)
        try:
            sealed = urlsafe_b64decode(event_id.encode() + b"=" * (-len(event_id) % 4))
            return int.from_bytes(self.masters.open(sealed, purpose=purpose_for(caller)))
        except (ValueError, NotBase64, Tampered, WrongMasterKey) as error:
            raise BadEventId(BadEventId.public) from error


def purpose_for(caller: str) -> str:
    return f"change-stream:{caller}"


class ChangeStreams:
    """`per_caller`, `most`: how many streams one caller may have open here, and all callers together."""

    def __init__(self, *, feed: ChangeFeed, masters: MasterKeys, clock: Clock, per_caller: int, most: int) -> None:
        self._feed = feed
        self._event_ids = EventIds(masters)
        self._clock = clock
        self._per_caller = per_caller
        self._most = most
        self._open: Counter[str] = Counter()
        self._streams: set[ChangeStream] = set()
        self._stopping = False

    def __len__(self) -> int:
        return len(self._streams)

    def stop(self) -> None:
        """End all streams, because this process ends; later ones end at once."""
        self._stopping = True
        for stream in tuple(self._streams):
            stream.end()

    async def prepare(self, authorize: Authorize, last_event_id: str | None) -> "ChangeStream":
        """Return a stream that is not open yet. Raises what `authorize` raises, BadEventId and TooMany."""
        reader = await authorize()
        start = None if last_event_id is None else self._event_ids.decode(last_event_id, reader.name)
        if self._open[reader.name] >= self._per_caller or len(self._streams) >= self._most:
            raise TooMany(FULL_RETRY_SECONDS, f"change streams of {reader.name}")
        return ChangeStream(
            self, self._feed, self._event_ids, self._clock, authorize=authorize, reader=reader, start=start
        )

    @contextmanager
    def admit(self, stream: "ChangeStream", caller: str) -> Iterator[None]:
        self._streams.add(stream)
        self._open[caller] += 1
        if self._stopping:
            stream.end()
        try:
            yield
        finally:
            self._streams.discard(stream)
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]


class ChangeStream:
    """One stream. It queues nothing: it has a position, and reads on when its client has taken what it got."""

    def __init__(
        self,
        streams: ChangeStreams,
        feed: ChangeFeed,
        event_ids: EventIds,
        clock: Clock,
        *,
        authorize: Authorize,
        reader: ChangeReader,
        start: int | None,
    ) -> None:
        self._streams = streams
        self._feed = feed
        self._event_ids = event_ids
        self._clock = clock
        self._authorize = authorize
        self._reader = reader
        self._place = start
        self._woken = asyncio.Event()
        self._ended = False

    def end(self) -> None:
        """End the stream: its client has left, or this process ends."""
        self._ended = True
        self._woken.set()

    async def batches(self) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """Yield what to send: at once the position, then changes as they happen, and heartbeats.

        Ends with the caller's credential, and when their rights end: both are checked before changes are sent and
        with every heartbeat.
        """
        with self._streams.admit(self, self._reader.name):
            await self._feed.join(self._woken.set)
            try:
                first = await self._first()
            except BaseException:
                self._feed.leave(self._woken.set)
                raise
            try:
                yield first
                while not self._ended:
                    events = await self._next()
                    if events is None:
                        return
                    if events:
                        yield events
            except GatehouseError:
                return  # the client connects again, and gets the error as a response
            finally:
                self._feed.leave(self._woken.set)

    async def _first(self) -> Sequence[StreamEvent]:
        first, newest = await self._feed.bounds()
        if self._place is None:
            self._place = newest
        elif not max(first - 1, newest - MAX_BEHIND) <= self._place <= newest:
            self._place = newest
            return (self._event(StreamChange(place=newest, kind=StreamChangeKind.RESET)),)
        return (self._heartbeat(),)

    async def _next(self) -> Sequence[StreamEvent] | None:
        """Return the next events, none when there is nothing for this caller, None when the stream has ended."""
        self._woken.clear()
        before = self._place or 0
        changes, place = await self._feed.read_after(before)
        if not any(map(self._reader.view, changes)):
            self._place = place
            return () if place > before else await self._wait()
        self._reader = await self._authorize()  # nothing is sent after a right has ended
        seen = [view for view in map(self._reader.view, changes) if view is not None]
        self._place = place
        return [self._event(change) for change in seen]

    async def _wait(self) -> Sequence[StreamEvent]:
        """Wait for the log to grow, at most until a heartbeat is due, and return it."""
        is_due = False

        def beat() -> None:
            nonlocal is_due
            is_due = True
            self._woken.set()

        timer = self._clock.call_later(HEARTBEAT_SECONDS, beat)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()
        if not is_due:
            return ()
        self._reader = await self._authorize()
        return (self._heartbeat(),)

    def _heartbeat(self) -> StreamEvent:
        return StreamEvent(self._event_ids.encode(self._place or 0, self._reader.name))

    def _event(self, change: StreamChange) -> StreamEvent:
        return StreamEvent(self._event_ids.encode(change.place, self._reader.name), change)
