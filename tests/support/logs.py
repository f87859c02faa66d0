"""What the service logs, caught; afterwards the process logs as it did before, so that no test hears another's."""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import structlog

from gatehouse import logs


class Stream(io.BytesIO):
    def lines(self) -> list[bytes]:
        return self.getvalue().splitlines()

    def only(self) -> dict[str, Any]:
        (line,) = self.lines()
        decoded: dict[str, Any] = msgspec.json.decode(line)
        return decoded


@contextmanager
def caught_logs() -> Iterator[Stream]:
    root = logging.getLogger()
    kept, level = root.handlers[:], root.level
    stream = Stream()
    logs.configure(stream=stream)
    try:
        yield stream
    finally:
        structlog.reset_defaults()
        logs.request_lines.write_to(None)
        structlog.contextvars.clear_contextvars()
        root.handlers[:] = kept
        root.setLevel(level)
