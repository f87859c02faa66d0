"""Invitations: the account exists, and its owner chooses the password."""

import httpx2
import pytest

from gatehouse.accounts.errors import LoginTaken
from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.mailbox import link_in_new_message, new_messages, token_in_link
from tests.support.service import RunningService

BOB = "bob@studio.example"
WEEK = 7 * 86_400
NEW_PASSWORD = "quite another long phrase"


async def invite(service: RunningService, login: str = BOB, lang: str = "en") -> User:
    invitations, origin = service.services.registration.invitations, AuditOrigin(actor="test")
    return (await invitations.invite(login=login, nick="bob", lang=lang, origin=origin)).user


async def accept(browser_client: HttpBrowser, link: str, **fields: str) -> httpx2.Response:
    await browser_client.get(link)
    return await browser_client.post("/invite", **{"nick": "Bob", "password": PASSWORD, **fields})


async def test_the_invited_person_chooses_name_and_password_and_signs_in(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    invited = await invite(service)
    assert invited.password_hash is None
    link = await link_in_new_message(service)
    page = await browser_client.get(link)
    assert (page.status_code, BOB in page.text, 'value="bob"' in page.text) == (200, True, True)
    response = await accept(browser_client, link)
    assert (response.status_code, response.headers["location"]) == (303, "/account")
    assert (await browser_client.follow()).status_code == 200
    ready = await service.services.storage.accounts.user(invited.user_id)
    assert (ready.nick, ready.email_verified) == ("Bob", True)
    assert (await browser_client.sign_in(BOB)).status_code == 303
    assert (await browser_client.get(link)).status_code == 403


async def test_invalid_invitation_form_shows_the_error_and_keeps_the_invitation(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await invite(service)
    link = await link_in_new_message(service)
    for fields, words in (
        ({"password": "bob@studio.example"}, "too easy to guess"),
        ({"nick": " "}, "1 to 64 visible characters"),
    ):
        response = await accept(browser_client, link, **fields)
        assert (response.status_code, words in response.text, BOB in response.text) == (400, True, True)
    assert (await accept(browser_client, link)).status_code == 303


async def test_invitation_is_valid_for_a_week(service: RunningService, browser_client: HttpBrowser) -> None:
    await invite(service)
    link = await link_in_new_message(service)
    await service.clock.advance(WEEK - 1)
    assert (await browser_client.get(link)).status_code == 200
    await service.clock.advance(1)
    dead = await browser_client.get(link)
    assert dead.status_code == 403
    assert "Ask for a new invitation" in dead.text


async def test_copied_link_sets_the_password_and_leaves_the_address_unverified(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    invitations, origin = service.services.registration.invitations, AuditOrigin(actor="test")
    copied = await invitations.invite(login=BOB, nick="bob", lang="en", origin=origin)
    mailed = await link_in_new_message(service)
    assert copied.path != mailed
    assert (await accept(browser_client, copied.path)).status_code == 303
    bob = await service.services.storage.accounts.user(copied.user.user_id)
    assert (bob.password_hash is not None, bob.email_verified) == (True, False)
    assert (await browser_client.get(mailed)).status_code == 403


async def test_reset_link_to_hand_over_sets_the_password_and_verifies_nothing(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    recovery = service.services.registration.password_recovery
    assert not anna.email_verified
    path = await recovery.show_link(anna, AuditOrigin(actor="test"))
    assert await new_messages(service) == []
    await browser_client.get(path)
    await browser_client.post("/reset", password=NEW_PASSWORD)
    assert (await browser_client.sign_in(anna.login or "", NEW_PASSWORD)).headers["location"] == "/account"
    assert not (await service.services.storage.accounts.user(anna.user_id)).email_verified


async def test_inviting_again_ends_the_earlier_link_and_makes_no_second_account(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    first = await invite(service)
    old = await link_in_new_message(service)
    assert await invite(service, "BOB@studio.example") == first
    new = await link_in_new_message(service)
    assert (await browser_client.get(old)).status_code == 403
    assert (await accept(browser_client, new)).status_code == 303


async def test_invitation_to_an_existing_login_is_refused(service: RunningService, anna: User) -> None:
    with pytest.raises(LoginTaken):
        await invite(service, anna.login or "")
    assert await new_messages(service) == []


async def test_an_invited_person_who_asks_for_a_new_password_gets_one_and_the_invitation_ends(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await invite(service)
    invitation = await link_in_new_message(service)
    await browser_client.get("/forgot")
    await browser_client.post("/forgot", login=BOB)
    await browser_client.get(await link_in_new_message(service))
    assert (await browser_client.post("/reset", password=PASSWORD)).status_code == 303
    assert (await browser_client.sign_in(BOB)).status_code == 303
    assert (await browser_client.get(invitation)).status_code == 403


async def test_the_account_speaks_the_language_the_invitation_was_accepted_in(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    invited = await invite(service, lang="en")
    browser_client.client.headers["Accept-Language"] = "de-AT,en;q=0.5"
    await accept(browser_client, await link_in_new_message(service))
    assert (await service.services.storage.accounts.user(invited.user_id)).lang == "de"
    await browser_client.sign_in(BOB)
    browser_client.client.headers["Accept-Language"] = "en"
    assert 'lang="de"' in (await browser_client.follow()).text


async def test_a_language_chosen_on_the_page_is_the_one_that_is_kept(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    invited = await invite(service, lang="de")
    await browser_client.get("/sign-in?lang=en")
    browser_client.client.headers["Accept-Language"] = "de"
    link = await link_in_new_message(service)
    assert 'lang="en"' in (await browser_client.get(link)).text
    await accept(browser_client, link)
    assert (await service.services.storage.accounts.user(invited.user_id)).lang == "en"


async def test_a_link_of_one_kind_opens_no_other_page(service: RunningService, browser_client: HttpBrowser) -> None:
    await invite(service)
    token = token_in_link(await link_in_new_message(service))
    for path in ("/reset", "/verify-email", "/setup"):
        assert (await browser_client.get(f"{path}?token={token}")).status_code == 403


async def test_the_letter_is_in_the_language_asked_for_and_the_log_has_no_secret(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    invited = await invite(service, lang="de")
    (message,) = await new_messages(service)
    assert (message.lang, message.to) == ("de", BOB)
    await invite(service)
    link = await link_in_new_message(service)
    await accept(browser_client, link)
    records = [
        record
        for record in await service.services.storage.audit.unsealed_records(100)
        if record.subject == invited.user_id
    ]
    assert sorted(record.event for record in records if record.event.startswith("user.")) == [
        "user.invitation_accepted",
        "user.invited",
        "user.invited",
    ]
    assert token_in_link(link) not in repr(records)
    assert PASSWORD not in repr(records)
