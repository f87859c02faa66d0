from collections.abc import AsyncIterator

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.game import ANNA
from tests.support.service import RunningService


@pytest.fixture
async def anna(service: RunningService) -> User:
    return await service.services.accounts.administration.create(
        login=ANNA, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
    )


@pytest.fixture
async def browser_client(service: RunningService) -> AsyncIterator[HttpBrowser]:
    someone = HttpBrowser(service)
    yield someone
    await someone.client.aclose()
