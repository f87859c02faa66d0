"""Ending sessions on the account page."""

from collections.abc import AsyncIterator

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser
from tests.support.service import RunningService

PHONE = "Mozilla/5.0 (iPhone) Safari/605.1"


@pytest.fixture
async def phone(service: RunningService, anna: User) -> AsyncIterator[AccountBrowser]:
    someone = AccountBrowser(service, agent=PHONE)
    await someone.sign_in_and_open_account(anna.login or "")
    yield someone
    await someone.client.aclose()


async def test_every_device_is_listed_and_this_one_is_marked(
    service: RunningService, account_browser: AccountBrowser, phone: AccountBrowser
) -> None:
    await service.clock.advance(120)
    page = (await account_browser.get("/account")).text
    assert page.count("last seen") == 2
    assert page.index("this device") < page.index("Safari, iPhone")
    assert page.count("this device") == 1
    assert "2 minutes ago" in page
    assert await phone.is_signed_in()


async def test_single_device_is_signed_out_immediately(
    account_browser: AccountBrowser, phone: AccountBrowser
) -> None:
    assert (
        await account_browser.submit_and_read_notice("/account/sessions/end", "Safari, iPhone") == "Device signed out"
    )
    assert not await phone.is_signed_in()
    assert await account_browser.is_signed_in()


async def test_everything_else_is_signed_out_at_once(
    service: RunningService, account_browser: AccountBrowser, phone: AccountBrowser
) -> None:
    body = {"login": LOGIN, "password": PASSWORD, "short_token": "1"}
    stoken = (await service.client.post("/proxy/api/login", json=body)).json()["stoken"]
    assert (
        await account_browser.submit_and_read_notice("/account/sessions/end-others") == "All other devices signed out"
    )
    assert await account_browser.is_signed_in()
    assert not await phone.is_signed_in()
    assert (await service.client.get(f"/?stoken={stoken}")).status_code == 403


async def test_no_one_ends_someone_elses_session(service: RunningService, account_browser: AccountBrowser) -> None:
    bob = await service.services.accounts.administration.create(
        login="bob@studio.example", nick="Bob", password=PASSWORD, origin=AuditOrigin(actor="test")
    )
    guest = AccountBrowser(service)
    await guest.sign_in_and_open_account("bob@studio.example")
    (session,) = await service.services.storage.sessions.sessions_of_user(bob.user_id, service.clock.now())
    response = await account_browser.post_with_csrf("/account/sessions/end", session_id=session.session_id)
    assert response.status_code == 303
    assert await guest.is_signed_in()
    assert await service.services.storage.audit.newest_records(9, bob.user_id, "session.ended") == []
    await guest.client.aclose()


async def test_sign_outs_of_one_and_of_all_devices_are_recorded(
    service: RunningService, account_browser: AccountBrowser, phone: AccountBrowser
) -> None:
    assert await phone.is_signed_in()
    await account_browser.submit_and_read_notice("/account/sessions/end", "Safari, iPhone")
    again = AccountBrowser(service, agent=PHONE)
    await again.sign_in_and_open_account()
    await again.client.aclose()
    await account_browser.submit_and_read_notice("/account/sessions/end-others")
    page = (await account_browser.get("/account")).text
    assert "Signed out everywhere" in page
    assert "Signed out</strong>" in page
