"""Changing the email address: requested on the account page, completed by the link sent to it (checklist LG-19)."""

from pathlib import Path

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, HttpBrowser, totp_code
from tests.support.mailbox import link_in_new_message, new_messages
from tests.support.service import RunningService, running_service

NEW = "anna@new.example"
BOB = "bob@studio.example"
SENT = "We sent a link to the new address. Open it to complete the change."


@pytest.fixture
async def bob(service: RunningService) -> User:
    return await service.services.accounts.administration.create(
        login=BOB, nick="Bob", password="another horse entirely", origin=AuditOrigin(actor="test")
    )


async def read_user(service: RunningService, user: User) -> User:
    return await service.services.storage.accounts.user(user.user_id)


async def test_the_new_address_is_taken_over_by_its_link_and_old_and_new_are_told(
    service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser, anna: User
) -> None:
    assert await account_browser.submit_and_read_notice("/account/email", login=NEW) == SENT
    assert "Waiting for confirmation of anna@new.example." in (await account_browser.get("/account")).text
    assert (await read_user(service, anna)).login == LOGIN
    link = await link_in_new_message(service)
    response = await account_browser.get(link)
    assert NEW in response.text
    assert (await read_user(service, anna)).login == LOGIN
    assert (await account_browser.post("/verify-email")).status_code == 200
    moved = await read_user(service, anna)
    assert (moved.login, moved.email_verified) == (NEW, True)
    subjects = {message.to: message.subject for message in await new_messages(service)}
    assert subjects == {
        LOGIN: "Your account has a new email",
        NEW: "Your account's email was changed",
    }
    assert (await browser_client.sign_in(LOGIN)).status_code == 403
    assert (await browser_client.sign_in(NEW)).status_code == 303


async def test_email_change_keeps_sessions_and_records_request_and_change(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await account_browser.submit_and_read_notice("/account/email", login=NEW)
    await account_browser.get(await link_in_new_message(service))
    await account_browser.post("/verify-email")
    page = await account_browser.get("/account")
    assert page.status_code == 200
    assert "Waiting for confirmation" not in page.text
    assert "Email changed" in page.text
    (record,) = await service.services.storage.audit.newest_records(1, anna.user_id, "user.email_change_asked")
    (changed,) = await service.services.storage.audit.newest_records(1, anna.user_id, "user.email_changed")
    assert record.personal == {"address": "127.0.0.1", "login": NEW}
    assert (changed.actor, changed.personal) == (
        anna.user_id,
        {"address": "127.0.0.1", "old": LOGIN, "new": NEW},
    )


async def test_the_link_works_once_for_half_an_hour_and_a_newer_one_ends_it(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await account_browser.submit_and_read_notice("/account/email", login="first@new.example")
    first = await link_in_new_message(service)
    await account_browser.submit_and_read_notice("/account/email", login=NEW)
    second = await link_in_new_message(service)
    assert (await account_browser.get(first)).status_code == 403
    await account_browser.get(second)
    page = account_browser.page
    assert (await account_browser.post("/verify-email")).status_code == 200
    account_browser.page = page
    assert (await account_browser.post("/verify-email")).status_code == 403
    await account_browser.get("/account")
    await account_browser.submit_and_read_notice("/account/email", login="third@new.example")
    await service.clock.advance(1_800)
    late = [message for message in await new_messages(service) if message.to == "third@new.example"]
    assert "/verify-email?token=" in late[0].text
    assert (await account_browser.get(late[0].text.split(service.base_url)[1].split()[0])).status_code == 403
    assert (await read_user(service, anna)).login == NEW


async def test_fp_05_new_address_is_proved_only_in_the_session_that_asked(
    service: RunningService, account_browser: AccountBrowser, other: HttpBrowser, anna: User
) -> None:
    """Otherwise one click of its owner gives the address to a stranger's account."""
    await account_browser.submit_and_read_notice("/account/email", login=NEW)
    link = await link_in_new_message(service)
    page = await other.get(link)
    assert "Open this link in the browser where you asked for it" in page.text
    assert 'name="token"' not in page.text
    token = link.partition("token=")[2]
    await other.get("/forgot")
    assert (await other.post("/verify-email", token=token)).status_code == 403
    await other.sign_in(LOGIN)  # a session of the account, but not the one that asked, and without a second factor
    await other.get("/account")
    await other.get(link)
    assert (await other.post("/verify-email", token=token)).status_code == 403
    assert (await read_user(service, anna)).login == LOGIN
    await account_browser.get(link)
    assert (await account_browser.post("/verify-email")).status_code == 200
    assert (await read_user(service, anna)).login == NEW


async def test_fp_05_new_address_is_proved_after_the_second_factor(
    service: RunningService, account_browser: AccountBrowser, other: HttpBrowser, anna: User
) -> None:
    secret, _ = await account_browser.set_up_totp(service)
    await new_messages(service)
    await account_browser.get("/account")
    await account_browser.submit_and_read_notice("/account/email", login=NEW)
    link = await link_in_new_message(service)
    await service.clock.advance(60)
    await other.sign_in(LOGIN)
    await other.follow()
    await other.post("/sign-in/factor", otp=totp_code(secret, service))
    await other.get(link)
    assert (await other.post("/verify-email")).status_code == 200
    assert (await read_user(service, anna)).login == NEW


async def test_a_reset_link_of_the_old_address_is_dead_afterwards(
    service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser
) -> None:
    await browser_client.get("/forgot")
    await browser_client.post("/forgot", login=LOGIN)
    reset = await link_in_new_message(service)
    await account_browser.submit_and_read_notice("/account/email", login=NEW)
    await account_browser.get(await link_in_new_message(service))
    await account_browser.post("/verify-email")
    assert (await browser_client.get(reset)).status_code == 403


@pytest.mark.parametrize("act", ["/account/password", "/account/sessions/end-others"])
async def test_pending_email_change_ends_with_password_change_or_sign_out_everywhere(
    service: RunningService, account_browser: AccountBrowser, other: HttpBrowser, anna: User, act: str
) -> None:
    other_browser = AccountBrowser(service)
    await other_browser.sign_in_and_open_account()
    await other_browser.submit_and_read_notice("/account/email", login="thief@evil.example")
    await other_browser.client.aclose()
    link = await link_in_new_message(service)
    fields = {"current": PASSWORD, "password": "something else now"}
    assert "thief@evil.example" in (await account_browser.get("/account")).text
    await account_browser.submit_and_read_notice(act, **(fields if act == "/account/password" else {}))
    assert "thief@evil.example" not in (await account_browser.get("/account")).text
    assert (await other.get(link)).status_code == 403
    assert (await read_user(service, anna)).login == LOGIN


async def test_an_address_that_has_an_account_looks_the_same_and_its_owner_is_told(
    service: RunningService, account_browser: AccountBrowser, bob: User, anna: User
) -> None:
    assert await account_browser.submit_and_read_notice("/account/email", login="BOB@studio.example") == SENT
    assert "Waiting for confirmation of BOB@studio.example." in (await account_browser.get("/account")).text
    (message,) = await new_messages(service)
    assert (message.to, message.subject) == (BOB, "You already have an account")
    assert "token=" not in message.text
    assert [(await read_user(service, person)).login for person in (anna, bob)] == [LOGIN, BOB]


async def test_an_address_taken_meanwhile_is_not_taken_over(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await account_browser.submit_and_read_notice("/account/email", login=BOB)
    link = await link_in_new_message(service)
    await account_browser.get(link)
    await service.services.accounts.administration.create(
        login="Bob@STUDIO.example", nick="Bob", password=None, origin=AuditOrigin(actor="test")
    )
    assert (await account_browser.post("/verify-email")).status_code == 403
    assert (await read_user(service, anna)).login == LOGIN
    assert await new_messages(service) == []


@pytest.mark.parametrize(
    ("login", "words"),
    [
        ("no_one", "Enter an email address."),
        ("anna@new.example.", "Enter an email address."),
        (" ANNA@studio.example", "Your account already uses this address."),
    ],
)
async def test_invalid_new_email_is_refused_at_its_field(
    service: RunningService, account_browser: AccountBrowser, anna: User, login: str, words: str
) -> None:
    response = await account_browser.submit("/account/email", login=login)
    assert response.status_code == 400
    assert words in account_browser.problem_in(response)
    assert login in response.text
    assert await new_messages(service) == []
    assert (await read_user(service, anna)).login == LOGIN


async def test_email_change_needs_a_recent_confirmation(
    service: RunningService, account_browser: AccountBrowser
) -> None:
    await service.clock.advance(601)
    response = await account_browser.submit("/account/email", login=NEW)
    assert (response.status_code, response.headers["location"]) == (303, "/confirm?next=%2Faccount%2Femail")
    assert await new_messages(service) == []
    back = await account_browser.confirm(password=PASSWORD)
    assert back.headers["location"] == "/account#email"
    assert await account_browser.submit_and_read_notice("/account/email", login=NEW) == SENT


async def test_email_change_is_limited_to_the_allowed_domains(installed_url: str, tmp_path: Path) -> None:
    allowed = {"GATEHOUSE__ACCOUNTS__ALLOWED_DOMAINS": "studio.example"}
    async with running_service(installed_url, tmp_path, environment=allowed) as service:
        await service.services.accounts.administration.create(
            login=LOGIN, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
        )
        account_browser = AccountBrowser(service)
        await account_browser.sign_in_and_open_account()
        refusal = await account_browser.submit("/account/email", login=NEW)
        assert (refusal.status_code, await new_messages(service)) == (400, [])
        assert await account_browser.submit_and_read_notice("/account/email", login="anna.b@studio.example") == SENT
        await account_browser.client.aclose()


async def test_a_mailbox_is_not_flooded_by_someone_who_asks_again_and_again(
    service: RunningService, account_browser: AccountBrowser
) -> None:
    for _ in range(8):
        assert await account_browser.submit_and_read_notice("/account/email", login=NEW) == SENT
    assert len(await new_messages(service)) == 5
