"""The demo in a running service, for tests that change nothing."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.demo import Demo, running_demo


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def demo(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Demo]:
    data = tmp_path_factory.mktemp("demo")
    async with running_demo(f"sqlite:///{data / 'gatehouse.db'}", data) as running:
        yield running
