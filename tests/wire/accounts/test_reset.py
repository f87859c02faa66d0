"""Choosing a new password by an emailed link."""

from pathlib import Path

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.accounts.password_rules import sha1
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.mailbox import link_in_new_message, new_messages, token_in_link
from tests.support.service import RunningService, running_service

LOGIN = "anna@studio.example"
NEW = "a quite different phrase"


async def reset_link(service: RunningService, browser_client: HttpBrowser, login: str = LOGIN) -> str:
    await browser_client.get("/forgot")
    await browser_client.post("/forgot", login=login)
    return await link_in_new_message(service)


async def choose(browser_client: HttpBrowser, link: str, password: str = NEW) -> httpx2.Response:
    await browser_client.get(link)
    return await browser_client.post("/reset", password=password)


async def test_the_new_password_is_good_the_old_one_is_not_and_signs_this_browser_in(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    response = await choose(browser_client, await reset_link(service, browser_client))
    assert (response.status_code, response.headers["location"]) == (303, "/account")
    assert (await browser_client.follow()).status_code == 200
    browser_client.client.cookies.delete("gh_session")
    assert (await browser_client.sign_in(LOGIN, PASSWORD)).status_code == 403
    assert (await browser_client.sign_in(LOGIN, NEW)).status_code == 303
    assert (await service.services.storage.accounts.user(anna.user_id)).email_verified


async def test_the_owner_is_told_where_from_and_with_what(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await choose(browser_client, await reset_link(service, browser_client))
    (message,) = await new_messages(service)
    assert (message.to, message.subject) == (anna.login, "Your password was changed")
    assert "Firefox, Linux" in message.text


async def test_invalid_new_password_shows_the_error_and_keeps_the_link_valid(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    link = await reset_link(service, browser_client)
    for password, words in (("tiny", "at least 10"), ("AnnaAnna2027", "too easy to guess")):
        response = await choose(browser_client, link, password)
        assert (response.status_code, words in response.text) == (400, True)
        assert password not in response.text
    assert await service.services.storage.accounts.user(anna.user_id) == anna
    assert (await choose(browser_client, link)).status_code == 303


async def test_the_owner_who_forgot_need_not_wait_after_a_reset(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser, anna: User
) -> None:
    link = await reset_link(service, browser_client)
    for _ in range(10):
        await browser_client.sign_in(LOGIN, "what was it")
    assert (await browser_client.sign_in(LOGIN)).status_code == 429
    assert (await choose(browser_client, link)).status_code == 303
    assert (await browser_client.sign_in(LOGIN, NEW)).status_code == 303
    assert (await other.sign_in(LOGIN, NEW)).status_code == 303
    assert anna.login == LOGIN


@pytest.mark.usefixtures("anna")
async def test_a_known_browser_need_not_wait_after_a_reset_either(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await browser_client.sign_in(LOGIN)
    for _ in range(10):
        await browser_client.sign_in(LOGIN, "what was it")
    assert (await browser_client.sign_in(LOGIN)).status_code == 429
    assert (await choose(browser_client, await reset_link(service, browser_client))).status_code == 303
    assert (await browser_client.sign_in(LOGIN, NEW)).status_code == 303


async def test_a_password_of_the_operators_list_is_refused(installed_url: str, tmp_path: Path) -> None:
    stolen = tmp_path / "breached.txt"
    stolen.write_text(f"{sha1(NEW)}:2\n")
    listed = {"GATEHOUSE__ACCOUNTS__BREACHED_PASSWORDS": str(stolen)}
    async with running_service(installed_url, tmp_path, environment=listed) as service:
        await service.services.accounts.administration.create(
            login=LOGIN, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
        )
        browser_client = HttpBrowser(service)
        link = await reset_link(service, browser_client)
        refusal = await choose(browser_client, link)
        assert refusal.status_code == 400
        assert "appeared in a data breach" in refusal.text
        assert (await choose(browser_client, link, f"{NEW} and more")).status_code == 303
        await browser_client.client.aclose()


async def test_the_act_is_in_the_audit_log_without_password_or_link(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    link = await reset_link(service, browser_client)
    await choose(browser_client, link)
    records = [
        record
        for record in await service.services.storage.audit.unsealed_records(100)
        if record.subject == anna.user_id
    ]
    record_by_event = {record.event: record for record in records}
    assert {"password.reset_asked", "password.reset"} <= set(record_by_event)
    assert (record_by_event["password.reset"].actor, record_by_event["password.reset_asked"].actor) == (
        anna.user_id,
        "visitor",
    )
    assert NEW not in repr(records)
    assert token_in_link(link) not in repr(records)
