from collections.abc import AsyncIterator

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import Origin
from tests.support.resident import Resident
from tests.support.service import Service
from tests.support.visitor import PASSWORD, Visitor


@pytest.fixture
async def anna(service: Service) -> User:
    """An account with a password and no second factor."""
    return await service.house.administration.create(
        login="anna@studio.example", nick="Anna", password=PASSWORD, origin=Origin(actor="test")
    )


@pytest.fixture
async def visitor(service: Service) -> AsyncIterator[Visitor]:
    someone = Visitor(service)
    yield someone
    await someone.client.aclose()


@pytest.fixture
async def other(service: Service) -> AsyncIterator[Visitor]:
    someone = Visitor(service, agent="Mozilla/5.0 (Windows NT 10.0) Chrome/156.0 Safari/537.36")
    yield someone
    await someone.client.aclose()


@pytest.fixture
async def resident(service: Service, anna: User) -> AsyncIterator[Resident]:
    """Anna, just signed in, with her account page in front of her."""
    someone = Resident(service)
    await someone.come_home(anna.login or "")
    yield someone
    await someone.client.aclose()
