from collections.abc import AsyncIterator

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD, AccountBrowser, HttpBrowser
from tests.support.service import RunningService


@pytest.fixture
async def anna(service: RunningService) -> User:
    """An account with a password and no second factor."""
    return await service.services.accounts.administration.create(
        login="anna@studio.example", nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
    )


@pytest.fixture
async def browser_client(service: RunningService) -> AsyncIterator[HttpBrowser]:
    someone = HttpBrowser(service)
    yield someone
    await someone.client.aclose()


@pytest.fixture
async def other(service: RunningService) -> AsyncIterator[HttpBrowser]:
    someone = HttpBrowser(service, agent="Mozilla/5.0 (Windows NT 10.0) Chrome/156.0 Safari/537.36")
    yield someone
    await someone.client.aclose()


@pytest.fixture
async def account_browser(service: RunningService, anna: User) -> AsyncIterator[AccountBrowser]:
    """Anna's browser, signed in, on the account page."""
    someone = AccountBrowser(service)
    await someone.sign_in_and_open_account(anna.login or "")
    yield someone
    await someone.client.aclose()
