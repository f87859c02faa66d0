"""Logs: one JSON object per line on stderr, from our own code and from the libraries alike.

A value is printed only under a key on the list below; under any other key a marker is printed instead, so that a
secret logged by mistake does not appear. Output is limited in length and cannot break or color the line (checklist
HT-15, S-25).
"""

import asyncio
import atexit
import io
import logging
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from types import TracebackType
from typing import BinaryIO, Final, cast

import msgspec
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

MAX_VALUE: Final = 512  # characters
MAX_TRACE_LINES: Final = 120
MAX_FRAMES: Final = 30
MICROSECONDS: Final = 1_000_000  # in a second
BATCH_SECONDS: Final = 0.05  # that the line of a request waits for others
BATCH_LINES: Final = 500  # written at once when so many wait
REDACTED: Final = "[redacted: key is not on the allow list]"

ALLOWED_KEYS: Final = frozenset(
    {
        "address",
        "application_id",
        "attempt",
        "base_url",
        "bytes",
        "channel",
        "check",
        "claim",
        "client_id",
        "count",
        "detail",
        "endpoint",
        "event",
        "event_id",
        "file",
        "grant_type",
        "head",
        "host",
        "issuer",
        "key_id",
        "kind",
        "level",
        "limit",
        "logger",
        "method",
        "ms",
        "pid",
        "place",
        "port",
        "project_id",
        "provider",
        "purpose",
        "reason",
        "record_id",
        "request_id",
        "revision",
        "seconds",
        "setting",
        "signal",
        "source",
        "status",
        "timestamp",
        "user_id",
        "version",
        "webhook_id",
        "worker",
    }
)
current_request_id: Final[ContextVar[str | None]] = ContextVar("request_id", default=None)  # in the task of a request
TRACE_KEY: Final = "exception"  # made and cleaned here, line by line

QUIET_LOGGERS: Final = {
    "uvicorn.access": logging.CRITICAL,  # prints paths with their queries; ours prints endpoint names
    "python_multipart": logging.ERROR,  # complains about every malformed form
    "asyncio": logging.WARNING,
}
LOGGERS_WITH_HANDLERS: Final = ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi")

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


def utc_timestamp() -> str:
    second, microseconds = divmod(time.time_ns() // 1_000, MICROSECONDS)  # real time, whatever clock tests move
    return f"{formatted_second(second)}.{microseconds:06}Z"


@lru_cache(maxsize=1)
def formatted_second(second: int) -> str:
    """Cached, because many lines are written within one second."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


class AccessLogLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The fields logged for every request; no caller can write them."""

    endpoint: str
    method: str
    status: int
    ms: float
    source: str
    request_id: str
    timestamp: str = msgspec.field(default_factory=utc_timestamp)
    event: str = "request"
    logger: str = "gatehouse.access"
    level: str = "info"


class BestEffortStream(io.BufferedIOBase):
    """A log stream that never fails a request: lines that cannot be written are dropped (faults R-09)."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._pending: deque[bytes] = deque()  # of the event loop; other threads may take from it

    def write(self, line: bytes) -> int:  # type: ignore[override]
        """Write the line now, after those that wait."""
        return self._write(b"".join((*self._take_pending(), line)))

    def write_soon(self, line: bytes) -> None:
        """Write the line together with others, at most BATCH_SECONDS later."""
        self._pending.append(line)
        if len(self._pending) == BATCH_LINES:
            self.flush()
        elif len(self._pending) == 1:
            self._flush_later()

    def flush(self) -> None:
        if self._pending:
            self._write(b"".join(self._take_pending()))
        with suppress(OSError):
            self._out.flush()

    def _take_pending(self) -> Iterator[bytes]:
        with suppress(IndexError):
            while True:
                yield self._pending.popleft()

    def _write(self, lines: bytes) -> int:
        with suppress(OSError):
            return self._out.write(lines)
        return 0

    def _flush_later(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
        else:
            loop.call_later(BATCH_SECONDS, self.flush)


class AccessLogWriter:
    """Writes one line per request without the processors, which cost a quarter of a small response."""

    def __init__(self) -> None:
        self._out: BestEffortStream | None = None

    def set_output(self, out: BestEffortStream | None) -> None:
        self._out = out

    def write(self, line: AccessLogLine) -> None:
        if self._out is None:  # development format, or not configured: like all other lines
            fields = msgspec.structs.asdict(line)
            printed = {name: fields[name] for name in ("endpoint", "method", "status", "ms", "source")}
            structlog.get_logger(line.logger).info(line.event, **printed)
            return
        self._out.write_soon(msgspec.json.encode(line) + b"\n")

    def flush(self) -> None:
        if self._out is not None:
            self._out.flush()


access_log: Final = AccessLogWriter()


def configure(*, dev: bool = False, level: str = "info", stream: BinaryIO | None = None) -> None:
    """Send all logs of this process to the stream (stderr): JSON, or with `dev` lines for a person."""
    stderr = stream or sys.stderr.buffer
    out = BestEffortStream(stderr)
    atexit.register(out.flush)
    logs_requests = logging.getLevelNamesMapping()[level.upper()] <= logging.INFO
    access_log.set_output(out if logs_requests and not dev else None)
    structlog.configure(
        processors=[
            add_request_id,
            structlog.stdlib.add_logger_name,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            format_exception,
            redact,
            *_renderers(dev=dev, colors=stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.BytesLoggerFactory(cast("BinaryIO", out)),
        cache_logger_on_first_use=False,
    )
    _take_over_standard_logging(level)


def clean_value(text: str) -> str:
    """Return one line of at most MAX_VALUE characters without terminal control characters."""
    if len(text) > MAX_VALUE:
        text = f"{text[:MAX_VALUE]}..."
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )


def add_request_id(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    request_id = current_request_id.get()
    return event if request_id is None else {"request_id": request_id, **event}


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {key: value if key == TRACE_KEY else _printable(key, value) for key, value in event.items()}


def format_exception(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Turn `exc_info` into text; the names and source lines of frames, never the values in them."""
    error = _exception_of(event.pop("exc_info", None))
    if error is not None:
        trace = traceback.TracebackException.from_exception(error, limit=-MAX_FRAMES)
        lines = "".join(trace.format()).splitlines()[-MAX_TRACE_LINES:]
        event[TRACE_KEY] = "\n".join(clean_value(line) for line in lines)
    return event


def _exception_of(given: BaseException | ExcInfo | bool | None) -> BaseException | None:  # noqa: FBT001 - structlog's
    if isinstance(given, tuple):
        return given[1]
    if isinstance(given, BaseException):
        return given
    return sys.exc_info()[1] if given else None


def _printable(key: str, value: object) -> object:
    if key not in ALLOWED_KEYS:
        return REDACTED
    return value if isinstance(value, int | float | None) else clean_value(str(value))


def _renderers(*, dev: bool, colors: bool) -> list[Processor]:
    if dev:
        return [structlog.dev.ConsoleRenderer(colors=colors), _encode_line]
    return [_as_json]


def _as_json(_logger: WrappedLogger, _method: str, event: EventDict) -> bytes:
    return msgspec.json.encode(event)


def _encode_line(_logger: WrappedLogger, _method: str, line: EventDict) -> bytes:
    return str(line).encode()


class StdlibBridge(logging.Handler):
    """Passes what libraries log through the standard module to the same processors."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            level = min(max(record.levelno // 10 * 10, logging.DEBUG), logging.CRITICAL)
            log = structlog.get_logger(record.name)
            log.log(level, record.getMessage(), exc_info=record.exc_info)
        except Exception:  # noqa: BLE001 - a log line must never end what it reports on
            self.handleError(record)


def _take_over_standard_logging(level: str) -> None:
    logging.basicConfig(handlers=[StdlibBridge()], level=level.upper(), force=True)
    for name in LOGGERS_WITH_HANDLERS:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    for name, least in QUIET_LOGGERS.items():
        logging.getLogger(name).setLevel(least)
