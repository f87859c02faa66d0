"""An outbox on each database, and mail servers on loopback."""

from collections.abc import AsyncIterator

import pytest

from gatehouse.storage.database import Storage, open_storage
from tests.support.clock import MovableClock
from tests.support.mail import Mailbox


@pytest.fixture
async def storage(migrated_url: str) -> AsyncIterator[Storage]:
    async with open_storage(migrated_url, migrate=False) as opened:
        yield opened


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()
