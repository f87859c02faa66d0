"""Capture what the service logs, and restore logging afterwards, so that tests do not affect each other."""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import structlog

from gatehouse import logs


class LogStream(io.BytesIO):
    def getvalue(self) -> bytes:
        logs.access_log.flush()
        return super().getvalue()

    def lines(self) -> list[bytes]:
        return self.getvalue().splitlines()

    def only_line(self) -> dict[str, Any]:
        (line,) = self.lines()
        decoded: dict[str, Any] = msgspec.json.decode(line)
        return decoded


@contextmanager
def capture_logs() -> Iterator[LogStream]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = LogStream()
    logs.current_request_id.set(None)  # a request of an earlier test may have left its id
    logs.configure(stream=stream)
    try:
        yield stream
    finally:
        structlog.reset_defaults()
        logs.access_log.set_output(None)
        logs.current_request_id.set(None)
        root.handlers[:] = handlers
        root.setLevel(level)
