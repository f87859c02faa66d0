"""Anna, and clients of each profile, on each database in turn."""

from collections.abc import AsyncIterator

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import Origin
from tests.support.oauth import Relying, a_native_client, a_public_client, an_oidc_client
from tests.support.service import Service
from tests.support.visitor import PASSWORD, Visitor


@pytest.fixture
async def anna(service: Service) -> User:
    """An account with a password and no second factor."""
    return await service.house.administration.create(
        login="anna@studio.example", nick="Anna", password=PASSWORD, origin=Origin(actor="test")
    )


@pytest.fixture
async def web(service: Service) -> Relying:
    """A client of profile native."""
    return await a_native_client(service)


@pytest.fixture
async def shelf(service: Service) -> Relying:
    """A client of profile oidc that has a secret."""
    return await an_oidc_client(service)


@pytest.fixture
async def app(service: Service) -> Relying:
    """A public client."""
    return await a_public_client(service)


@pytest.fixture
async def visitor(service: Service) -> AsyncIterator[Visitor]:
    """Somebody's browser."""
    someone = Visitor(service)
    yield someone
    await someone.client.aclose()


@pytest.fixture
async def at_home(visitor: Visitor, anna: User) -> Visitor:
    """The same with Anna signed in."""
    await visitor.sign_in(anna.login or "")
    return visitor
