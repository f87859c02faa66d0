"""Anna, and clients of each profile, on each database."""

from collections.abc import AsyncIterator

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.oauth import RelyingPartyClient, a_native_client, a_public_client, an_oidc_client
from tests.support.service import RunningService


@pytest.fixture
async def anna(service: RunningService) -> User:
    """An account with a password and no second factor."""
    return await service.services.accounts.administration.create(
        login="anna@studio.example", nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
    )


@pytest.fixture
async def web(service: RunningService) -> RelyingPartyClient:
    """A client of profile native."""
    return await a_native_client(service)


@pytest.fixture
async def oidc_client(service: RunningService) -> RelyingPartyClient:
    """A client of profile oidc that has a secret."""
    return await an_oidc_client(service)


@pytest.fixture
async def app(service: RunningService) -> RelyingPartyClient:
    """A public client."""
    return await a_public_client(service)


@pytest.fixture
async def browser_client(service: RunningService) -> AsyncIterator[HttpBrowser]:
    """A browser that is not signed in."""
    someone = HttpBrowser(service)
    yield someone
    await someone.client.aclose()


@pytest.fixture
async def signed_in_browser(browser_client: HttpBrowser, anna: User) -> HttpBrowser:
    """The same browser with Anna signed in."""
    await browser_client.sign_in(anna.login or "")
    return browser_client
