from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.tokens import TokenSetup, token_setup


@pytest.fixture
async def tokens() -> AsyncIterator[TokenSetup]:
    with ThreadPoolExecutor(1) as executor:
        yield await token_setup(executor)
