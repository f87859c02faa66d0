"""Requesting a password reset."""

import httpx2

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import HttpBrowser
from tests.support.mailbox import link_in_new_message, new_messages
from tests.support.service import RunningService

LOGIN = "anna@studio.example"


async def ask(browser_client: HttpBrowser, login: str = LOGIN) -> httpx2.Response:
    await browser_client.get("/forgot")
    return await browser_client.post("/forgot", login=login)


async def test_a_link_is_mailed_to_the_address_of_the_account_as_its_owner_writes_it(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    response = await ask(browser_client, "ANNA@Studio.Example")
    assert response.status_code == 200
    (message,) = await new_messages(service)
    assert (message.to, message.subject) == (anna.login, "Reset your password")
    assert "127.0.0.1" in message.text


async def test_the_letter_can_be_asked_for_again_from_the_page_that_promised_it(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await ask(browser_client)
    assert (await browser_client.post("/forgot")).status_code == 200
    assert [message.to for message in await new_messages(service)] == [anna.login, anna.login]


async def test_unknown_and_blocked_accounts_get_no_email_and_the_same_page(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await service.services.accounts.administration.block(anna.user_id, AuditOrigin(actor="test"))
    responses = [await ask(browser_client), await ask(browser_client, "no_one@studio.example")]
    assert [response.status_code for response in responses] == [200, 200]
    assert await new_messages(service) == []


async def test_a_link_of_someone_blocked_meanwhile_is_dead(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await ask(browser_client)
    link = await link_in_new_message(service)
    await service.services.accounts.administration.block(anna.user_id, AuditOrigin(actor="test"))
    assert (await browser_client.get(link)).status_code == 403


async def test_invalid_email_shows_an_error(browser_client: HttpBrowser) -> None:
    response = await ask(browser_client, "anna")
    assert response.status_code == 400
    assert "Enter an email address." in response.text


async def test_letters_are_counted_per_source_too_without_telling(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await browser_client.get("/forgot")
    page = browser_client.page
    for number in range(100):
        browser_client.page = page
        await browser_client.post("/forgot", login=f"user{number}@studio.example")
    for number in range(2):
        await service.services.accounts.administration.create(
            login=f"late{number}@studio.example", nick="Late", password=None, origin=AuditOrigin(actor="test")
        )
    limited = await ask(browser_client, "late0@studio.example")
    assert limited.status_code == 200
    assert await new_messages(service) == []
    await service.clock.advance(3_600)
    await ask(browser_client, "late1@studio.example")
    assert [message.to for message in await new_messages(service)] == ["late1@studio.example"]
