"""Run the tests on both event loops: uvloop, which a release uses where it exists, and the standard loop."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import pytest
import uvloop

LoopFactory = Callable[[], asyncio.AbstractEventLoop]
STANDARD: Final[Mapping[str, LoopFactory]] = {"asyncio": asyncio.new_event_loop}
BOTH: Final[Mapping[str, LoopFactory]] = {**STANDARD, "uvloop": uvloop.new_event_loop}
AT_THE_SOCKET: Final = ("test_http_patience", "test_http_protocol", "test_http_sharing")


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, LoopFactory]:
    return BOTH if item.path.stem in AT_THE_SOCKET else STANDARD
