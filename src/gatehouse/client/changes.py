"""Follows the service's change stream, so that cached permissions stay valid until they change (interface §4.14).

One thread reads the stream and connects again when it is cut. It decides nothing: the cache forgets what a change may
concern, and while there is no stream it uses `max_age` as without one.
"""

import asyncio
import secrets
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import msgspec

from gatehouse.client.clock import Clock
from gatehouse.client.errors import Unavailable
from gatehouse.client.transport import EventStream, Request, StreamRefused

CHANGES_PATH: Final = "/api/permissions/changes"
OPEN_SECONDS: Final = 5.0  # how long `follow` waits for the first connection
FIRST_DELAY: Final = 1.0  # seconds before the second attempt to connect; doubled up to the longest
LONGEST_DELAY: Final = 30.0
BUCKET_DIGITS: Final = 3
BAD_REQUEST: Final = 400
ABOUT_A_USER: Final = frozenset({"record", "user", "service_account"})
ABOUT_NO_PERMISSION: Final = frozenset({"credential"})


class ChangeNotice(msgspec.Struct, frozen=True, kw_only=True):
    """A change; members that a newer service adds are ignored."""

    kind: str
    user_id: str = ""
    user_bucket: str = ""

    @property
    def concerns_everyone(self) -> bool:
        """Whether it may concern any user; so may a kind that is not known here."""
        if self.kind in ABOUT_NO_PERMISSION:
            return False
        return self.kind not in ABOUT_A_USER or not (self.user_id or self.user_bucket)

    def concerns(self, user_id: str) -> bool:
        return self.user_id == user_id or (bool(self.user_bucket) and self.user_bucket == bucket_of(user_id))


def bucket_of(user_id: str) -> str:
    return sha256(user_id.encode()).hexdigest()[:BUCKET_DIGITS]


@dataclass(slots=True)
class EventParser:
    """Collects the lines of server-sent events; only `id` and `data` are used."""

    last_id: str = ""
    _data: str = ""

    def feed(self, line: str) -> ChangeNotice | None:
        """Take one line; return the notice that it completes. Raises Unavailable for one that cannot be read."""
        name, _, value = line.partition(":")
        if name == "id":
            self.last_id = value.removeprefix(" ")
        elif name == "data":
            self._data += value.removeprefix(" ")
        elif not line and self._data:
            data, self._data = self._data, ""
            try:
                return msgspec.json.decode(data, type=ChangeNotice)
            except msgspec.DecodeError as error:
                raise Unavailable(f"the change stream cannot be read: {error}") from None
        return None


class ChangeFollower:
    """`open_stream` connects; `headers` makes the credentials of each attempt; `handle` gets every notice."""

    def __init__(
        self,
        *,
        open_stream: Callable[[Request], EventStream],
        headers: Callable[[], Mapping[str, str]],
        handle: Callable[[ChangeNotice], object],
        application_id: int,
        clock: Clock,
    ) -> None:
        self._open_stream = open_stream
        self._headers = headers
        self._handle = handle
        self._path = f"{CHANGES_PATH}?application_id={application_id}"
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._opened = asyncio.Event()
        self._closing = threading.Event()
        self._stream: EventStream | None = None
        self._parser = EventParser()
        self._thread = threading.Thread(target=self._run, name="gatehouse-changes", daemon=True)
        self.live_since: float | None = None  # when the present stream was opened; None while there is none

    async def start(self) -> bool:
        """Begin to follow; return whether the stream was open soon. Otherwise it is tried on."""
        self._thread.start()
        with suppress(TimeoutError):
            async with asyncio.timeout(OPEN_SECONDS):
                await self._opened.wait()
        return self.live_since is not None

    async def close(self) -> None:
        self._closing.set()
        if self._stream is not None:
            self._stream.interrupt()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        delay = FIRST_DELAY
        while not self._closing.is_set():
            try:
                if self._read_stream():
                    delay = FIRST_DELAY
            except StreamRefused as refused:
                if refused.http_status == BAD_REQUEST:  # the id is not known any more
                    self._parser = EventParser()
            except Unavailable:
                pass  # tried again, and until then max_age counts
            except RuntimeError:
                return  # the event loop is closed
            finally:
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._set_live, None)
            self._closing.wait(
                delay * (0.5 + secrets.randbelow(500) / 1_000)
            )  # so that clients do not return together
            delay = min(2 * delay, LONGEST_DELAY)

    def _read_stream(self) -> bool:
        """Read until the stream is cut; return whether it was open."""
        parser = self._parser = EventParser(self._parser.last_id)
        resume = {"Last-Event-ID": parser.last_id} if parser.last_id else {}
        headers = {"Accept": "text/event-stream", **self._headers(), **resume}
        self._stream = stream = self._open_stream(Request(method="GET", path=self._path, headers=headers))
        is_open = False
        try:
            for line in stream.lines():
                notice = parser.feed(line)
                if not is_open and not line:  # the first event: the position is known from here on
                    is_open = True
                    self._loop.call_soon_threadsafe(self._set_live, self._clock.monotonic())
                if notice is not None:
                    self._loop.call_soon_threadsafe(self._handle, notice)
        finally:
            stream.close()
        return is_open

    def _set_live(self, since: float | None) -> None:
        self.live_since = since
        if since is not None:
            self._opened.set()
