from collections.abc import AsyncIterator

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import Origin
from tests.support.game import ANNA
from tests.support.service import Service
from tests.support.visitor import PASSWORD, Visitor


@pytest.fixture
async def anna(service: Service) -> User:
    return await service.house.administration.create(
        login=ANNA, nick="Anna", password=PASSWORD, origin=Origin(actor="test")
    )


@pytest.fixture
async def visitor(service: Service) -> AsyncIterator[Visitor]:
    someone = Visitor(service)
    yield someone
    await someone.client.aclose()
