"""Self-registration."""

import re
from pathlib import Path

import httpx2

from gatehouse.accounts.model import User
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.mailbox import link_in_new_message, new_messages
from tests.support.service import RunningService, running_service

BOB = {"login": "bob@studio.example", "nick": "Bob", "password": PASSWORD}


async def register(browser_client: HttpBrowser, **fields: str) -> httpx2.Response:
    await browser_client.get("/register")
    return await browser_client.post("/register", **{**BOB, **fields})


async def account(service: RunningService, login: str = BOB["login"]) -> User | None:
    return await service.services.storage.accounts.user_by_login(login)


async def test_a_person_registers_confirms_the_address_and_signs_in(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    response = await register(browser_client)
    assert response.status_code == 200
    assert "bob@studio.example" in response.text
    new_account = await account(service)
    assert new_account is not None
    assert (new_account.nick, new_account.email_verified, new_account.has_second_factor) == ("Bob", False, False)
    assert "gh_session" not in browser_client.cookies
    await browser_client.get(await link_in_new_message(service))
    assert (await browser_client.post("/verify-email")).headers["location"] == "/account"
    proved = await account(service)
    assert proved is not None
    assert proved.email_verified
    assert "email_verified" in proved.system_tags
    assert "gh_session" in browser_client.cookies
    assert (await browser_client.sign_in("bob@studio.example")).status_code == 303


async def test_invalid_registration_form_shows_the_error_and_creates_nothing(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    weak = "gatehouse-bob-2027"
    for fields, words in (
        ({"password": "short"}, "at least 10 characters"),
        ({"password": "x" * 1_025}, "at most 1,024 bytes"),
        ({"password": "1234567890"}, "too easy to guess"),
        ({"password": weak}, "too easy to guess"),
        ({"login": "not an address"}, "Enter an email address."),
        ({"login": "not-a-mail@x"}, "Enter an email address."),
        ({"nick": "\u202eanna"}, "1 to 64 visible characters"),
    ):
        response = await register(browser_client, **fields)
        assert response.status_code == 400
        assert words in response.text
        assert PASSWORD not in response.text
    assert await account(service) is None
    assert await new_messages(service) == []


async def test_the_form_comes_back_with_what_was_typed_in_the_readers_language(browser_client: HttpBrowser) -> None:
    browser_client.client.headers["Accept-Language"] = "de"
    response = await register(browser_client, nick='"><script>', password="kurz")
    assert 'lang="de"' in response.text
    assert "mindestens 10 Zeichen" in response.text
    assert 'value="bob@studio.example"' in response.text
    assert "<script>" not in response.text


async def test_the_account_speaks_the_language_it_was_made_in(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    browser_client.client.headers["Accept-Language"] = "de-AT,en;q=0.5"
    await register(browser_client)
    (message,) = await new_messages(service)
    new_account = await account(service)
    assert new_account is not None
    assert (message.lang, new_account.lang) == ("de", "de")


async def test_registering_a_known_address_tells_its_owner_and_changes_nothing(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    response = await register(
        browser_client,
        login="ANNA@studio.example",
        nick="Not Anna",
        password="another good phrase",
    )
    assert response.status_code == 200
    (message,) = await new_messages(service)
    assert (message.to, message.subject) == ("anna@studio.example", "You already have an account")
    assert "Not Anna" not in message.text
    assert await account(service, "anna@studio.example") == anna


async def test_the_same_form_sent_twice_gets_its_letter_twice_and_the_newer_link_works(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await register(browser_client)
    first = await link_in_new_message(service)
    await register(browser_client)
    second = await link_in_new_message(service)
    assert (await browser_client.get(first)).status_code == 403
    assert (await browser_client.get(second)).status_code == 200


async def test_a_stranger_who_registered_first_is_not_confirmed_by_the_owner_who_comes_second(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser
) -> None:
    await register(other, password="the stranger's own")
    planted = await link_in_new_message(service)
    await register(browser_client)
    (message,) = await new_messages(service)
    assert message.subject == "You already have an account"
    assert (await browser_client.get(planted)).status_code == 403
    await browser_client.get("/forgot")
    await browser_client.post("/forgot", login=BOB["login"])
    await browser_client.get(await link_in_new_message(service))
    await browser_client.post("/reset", password=PASSWORD)
    assert (await other.sign_in(BOB["login"], "the stranger's own")).status_code == 403
    assert (await browser_client.sign_in(BOB["login"])).status_code == 303


async def test_the_acts_are_in_the_audit_log_without_password_or_link(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await register(browser_client)
    link = await link_in_new_message(service)
    await browser_client.get(link)
    await browser_client.post("/verify-email")
    await register(browser_client, login=anna.login or "", password="another good phrase")
    records = await service.services.storage.audit.unsealed_records(100)
    assert {"user.registered", "user.email_verified", "user.registered_again"} <= {record.event for record in records}
    assert PASSWORD not in repr(records)
    assert link.partition("=")[2] not in repr(records)


async def test_no_one_registers_where_registration_is_closed(installed_url: str, tmp_path: Path) -> None:
    closed = {"GATEHOUSE__ACCOUNTS__REGISTRATION": "false"}
    async with running_service(installed_url, tmp_path, environment=closed) as service:
        assert (await service.client.get("/register")).status_code == 403
        browser_client = HttpBrowser(service)
        await browser_client.get("/forgot")
        response = await browser_client.post("/register", **BOB)
        assert response.status_code == 403
        assert "invitation" in response.text
        assert await account(service) is None
        await browser_client.client.aclose()


async def test_only_addresses_of_the_allowed_domains_register(installed_url: str, tmp_path: Path) -> None:
    allowed = {"GATEHOUSE__ACCOUNTS__ALLOWED_DOMAINS": "studio.example,partner.example"}
    async with running_service(installed_url, tmp_path, environment=allowed) as service:
        browser_client = HttpBrowser(service)
        for login in ("bob@evil.example", "bob@studio.example.evil.example", "bob@sub.studio.example"):
            response = await register(browser_client, login=login)
            assert response.status_code == 400
            assert "addresses of this domain cannot register" in response.text
            assert await account(service, login) is None
        assert "studio.example, partner.example" in response.text
        assert (await register(browser_client, login="bob@STUDIO.example")).status_code == 200
        assert await account(service) is not None
        await browser_client.client.aclose()


async def test_a_form_that_is_not_this_browsers_own_is_refused(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    for path, fields in (
        ("/register", BOB),
        ("/verify-email", {"token": "x"}),
        ("/verify-email/again", {"login": "bob@studio.example"}),
        ("/forgot", {"login": "bob@studio.example"}),
        ("/reset", {"token": "x", "password": PASSWORD}),
        ("/invite", {"token": "x", "nick": "Bob", "password": PASSWORD}),
    ):
        bare = await service.client.post(path, data=dict(fields))
        assert (bare.status_code, re.findall("Set-Cookie", str(bare.headers))) == (403, [])
        await browser_client.get("/forgot")
        browser_client.client.headers["Origin"] = "https://evil.example"
        assert (await browser_client.post(path, **fields)).status_code == 403
        del browser_client.client.headers["Origin"]
    assert await account(service) is None
