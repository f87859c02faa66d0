"""Verifying an email address."""

import httpx2

from gatehouse.accounts.model import User
from tests.support.browser import HttpBrowser
from tests.support.mailbox import link_in_new_message, new_messages
from tests.support.service import RunningService

LOGIN = "anna@studio.example"


async def ask_again(browser_client: HttpBrowser, login: str = LOGIN) -> httpx2.Response:
    await browser_client.get("/forgot")
    return await browser_client.post("/verify-email/again", login=login)


async def is_proved(service: RunningService, user: User) -> bool:
    return (await service.services.storage.accounts.user(user.user_id)).email_verified


async def test_looking_at_the_link_spends_nothing_and_the_button_spends_it_once(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    assert (await ask_again(browser_client)).status_code == 200
    link = await link_in_new_message(service)
    for _ in range(3):
        page = await browser_client.get(link)
        assert (page.status_code, LOGIN in page.text) == (200, True)
    assert (await browser_client.client.head(link)).status_code == 200
    assert not await is_proved(service, anna)
    assert (await browser_client.post("/verify-email")).status_code == 200
    assert await is_proved(service, anna)
    again = await browser_client.get(link)
    assert again.status_code == 403
    assert "This link no longer works" in again.text


async def test_the_link_can_be_opened_in_another_browser_than_the_one_that_asked(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser, anna: User
) -> None:
    await ask_again(browser_client)
    await other.get(await link_in_new_message(service))
    await other.post("/verify-email")
    assert await is_proved(service, anna)


async def test_a_newer_link_ends_the_older_one_and_time_ends_both(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await ask_again(browser_client)
    old = await link_in_new_message(service)
    await ask_again(browser_client)
    new = await link_in_new_message(service)
    assert (await browser_client.get(old)).status_code == 403
    assert (await browser_client.get(new)).status_code == 200
    await service.clock.advance(1_799)
    assert (await browser_client.get(new)).status_code == 200
    page = browser_client.page
    await service.clock.advance(1)
    assert (await browser_client.get(new)).status_code == 403
    browser_client.page = page
    assert (await browser_client.post("/verify-email")).status_code == 403
    assert not await is_proved(service, anna)


async def test_no_verification_email_goes_to_a_confirmed_or_unknown_address(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await ask_again(browser_client)
    link = await link_in_new_message(service)
    await browser_client.get(link)
    await browser_client.post("/verify-email")
    responses = [await ask_again(browser_client), await ask_again(browser_client, "no_one@studio.example")]
    assert [response.status_code for response in responses] == [200, 200]
    assert await new_messages(service) == []
    assert await is_proved(service, anna)


async def test_a_guess_is_no_link(browser_client: HttpBrowser) -> None:
    assert (await browser_client.get("/verify-email?token=guess")).status_code == 403
    assert (await browser_client.get("/verify-email")).status_code == 400
