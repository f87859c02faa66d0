from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.tokens import Desk, a_desk


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    with ThreadPoolExecutor(1) as executor:
        yield await a_desk(executor)
