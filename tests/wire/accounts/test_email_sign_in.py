"""Sign-in by a link or code sent by email (checklist EM-01 to EM-09, docs/decisions/0050)."""

import re

import httpx2
import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION, User
from gatehouse.audit.model import AuditOrigin
from gatehouse.mail.model import Message
from gatehouse.permissions.model.rules import ROOT
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, HttpBrowser, totp_code
from tests.support.builders import a_record
from tests.support.database_contents import read_all_tables, tables_that_mention
from tests.support.game import register_game
from tests.support.mailbox import new_messages, token_in_link
from tests.support.oauth import a_public_client, an_oidc_client, claims_of, success_body
from tests.support.permission_builders import holdings_with, set_fields
from tests.support.service import RunningService
from tests.wire.oauth.test_device import ask as ask_for_device
from tests.wire.oauth.test_device import poll as poll_with_device

ORIGIN = AuditOrigin(actor="test")
UNKNOWN = "unknown@studio.example"
CODE = re.compile(r"^    (\d{4} \d{4})$", re.MULTILINE)
LINK = re.compile(r"https?://\S+(/sign-in/link\?token=\S+)")
WRONG = "0000 0000"  # a right one once in a hundred million runs


@pytest.fixture
async def service(service: RunningService) -> RunningService:
    await service.services.settings_editor.save({"accounts.email_sign_in": True}, ORIGIN)
    return service


async def ask(browser: HttpBrowser, login: str = LOGIN, path: str = "/sign-in") -> httpx2.Response:
    await browser.get(path)
    return await ask_here(browser, login)


async def ask_here(browser: HttpBrowser, login: str = LOGIN) -> httpx2.Response:
    """Press the second button of the sign-in form, which sends it to another address."""
    assert browser.page is not None
    assert 'formaction="/sign-in/email"' in browser.page.text
    hidden = dict(re.findall(r'name="(csrf|interaction)" value="([^"]*)"', browser.page.text))
    browser.page = await browser.client.post("/sign-in/email", data={**hidden, "login": login, "password": ""})
    return browser.page


async def only_message(service: RunningService) -> Message:
    (message,) = await new_messages(service)
    return message


def code_in(message: Message) -> str:
    (code,) = CODE.findall(message.text)
    return str(code)


def link_in(message: Message) -> str:
    (link,) = LINK.findall(message.text)
    return str(link)


async def find_user(service: RunningService, login: str = LOGIN) -> User:
    user = await service.services.storage.accounts.user_by_login(login)
    assert user is not None
    return user


async def session_methods(service: RunningService, user: User) -> set[str]:
    return {session.auth.value for session in await service.services.accounts.sessions.of_user(user.user_id)}


async def set_verified(service: RunningService, user: User) -> User:
    storage = service.services.storage
    await storage.profile.change_account(replace(user, email_verified=True), [a_record()], [], ends_links=False)
    return await storage.accounts.user(user.user_id)


async def make_administrator(service: RunningService, user: User) -> None:
    edit = set_fields(scopes={ROOT: holdings_with(ADMINISTRATOR_ROLE)})
    await service.services.storage.user_records.edit_record(
        CENTRAL_APPLICATION, user.user_id, edit, service.clock.now()
    )


async def test_code_signs_in_and_verifies_the_address(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    page = await ask(browser_client)
    assert page.status_code == 200
    assert LOGIN in page.text
    message = await only_message(service)
    assert (message.to, "Sign in to" in message.subject) == (LOGIN, True)
    assert code_in(message) in message.html
    response = await browser_client.post("/sign-in/email/code", otp=code_in(message))
    assert (response.status_code, response.headers["location"]) == (303, "/account")
    assert (await browser_client.get("/account")).status_code == 200
    assert await session_methods(service, anna) == {"email"}
    after = await find_user(service)
    assert after.email_verified
    assert after.password_hash is not None  # an administrator made the account: its password is the owner's


async def test_link_signs_in_after_a_question(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await ask(browser_client)
    link = link_in(await only_message(service))
    page = await browser_client.get(link)
    assert "Sign in as" in page.text
    assert await session_methods(service, anna) == set()  # a GET, which mail programs send too, changes nothing
    assert (await browser_client.post("/sign-in/link")).headers["location"] == "/account"
    assert await session_methods(service, anna) == {"email"}


@pytest.mark.usefixtures("anna")
async def test_em_01_link_in_another_browser_signs_no_one_in_and_stays_usable(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser
) -> None:
    await ask(browser_client)
    link = link_in(await only_message(service))
    await ask(other)  # an attacker asks for the same address in their own browser
    page = await other.get(link)
    assert page.status_code == 403
    assert "Go back to the browser where you started" in page.text
    assert LOGIN not in page.text
    await other.get("/sign-in")
    forced = await other.post("/sign-in/link", token=token_in_link(link))
    assert (forced.status_code, "gh_session" in other.cookies) == (403, False)
    await browser_client.get(link)
    assert (await browser_client.post("/sign-in/link")).status_code == 303


@pytest.mark.usefixtures("anna")
async def test_em_01_code_works_only_in_the_browser_that_asked(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser
) -> None:
    await ask(browser_client)
    code = code_in(await only_message(service))
    await ask(other)
    refused = await other.post("/sign-in/email/code", otp=code)
    assert (refused.status_code, "gh_session" in other.cookies) == (403, False)
    assert (await browser_client.post("/sign-in/email/code", otp=code)).status_code == 303


@pytest.mark.usefixtures("anna")
async def test_em_02_link_and_code_are_used_once_together(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await ask(browser_client)
    message = await only_message(service)
    used = await browser_client.post("/sign-in/email/code", otp=code_in(message))
    assert used.status_code == 303
    assert (await browser_client.get(link_in(message))).status_code == 403
    await browser_client.client.post("/sign-out")
    browser_client.client.cookies.delete("gh_session")
    await browser_client.get("/sign-in")
    again = await browser_client.post("/sign-in/email/code", login=LOGIN, otp=code_in(message))
    assert again.status_code == 403
    assert "already used" in again.text


@pytest.mark.usefixtures("anna")
async def test_em_02_request_ends_after_ten_minutes_and_with_a_newer_one(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await ask(browser_client)
    first = await only_message(service)
    await ask(browser_client)
    second = await only_message(service)
    assert (await browser_client.post("/sign-in/email/code", otp=code_in(first))).status_code == 403
    await service.clock.advance(600)
    await browser_client.get("/sign-in")
    late = await browser_client.post("/sign-in/email/code", login=LOGIN, otp=code_in(second))
    assert "expired" in late.text


@pytest.mark.usefixtures("anna")
@pytest.mark.parametrize("login", [LOGIN, UNKNOWN])
async def test_em_03_wrong_codes_end_the_request_with_and_without_an_account(
    service: RunningService, browser_client: HttpBrowser, login: str
) -> None:
    await ask(browser_client, login)
    answers = [await browser_client.post("/sign-in/email/code", otp=WRONG) for _ in range(6)]
    assert ["Wrong code" in answer.text for answer in answers] == [True] * 4 + [False] * 2
    assert all("already used" in answer.text for answer in answers[4:])
    messages = await new_messages(service)
    if messages:
        spent = await browser_client.post("/sign-in/email/code", otp=code_in(messages[0]))
        assert (spent.status_code, "gh_session" in browser_client.cookies) == (403, False)


@pytest.mark.usefixtures("anna")
async def test_em_04_page_is_the_same_for_every_address_and_emails_are_limited(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    known = (await ask(browser_client)).text
    unknown = (await ask(browser_client, UNKNOWN)).text
    assert unknown == known.replace(LOGIN, UNKNOWN)
    assert [message.to for message in await new_messages(service)] == [LOGIN]
    pages = [(await ask(browser_client)).text for _ in range(10)]
    assert set(pages) == {known}
    assert len(await new_messages(service)) == 4  # five in half an hour, also for password resets


@pytest.mark.usefixtures("anna")
async def test_em_10_others_cannot_use_up_the_emails_of_a_browser_that_signed_in_before(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser
) -> None:
    await ask(browser_client)
    await browser_client.post("/sign-in/email/code", otp=code_in(await only_message(service)))
    await browser_client.get("/account")
    await browser_client.post("/sign-out")
    for _ in range(10):
        await ask(other)
    await new_messages(service)
    await ask(browser_client)
    assert await only_message(service)


async def test_em_05_second_factor_is_asked_and_a_code_by_email_is_not_one(
    service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser, anna: User
) -> None:
    secret, _ = await account_browser.set_up_totp(service)
    user = await set_verified(service, await find_user(service))
    await service.services.factors.email_codes.enable(user, origin=ORIGIN)
    await new_messages(service)
    await service.clock.advance(60)
    await ask(browser_client)
    await browser_client.post("/sign-in/email/code", otp=code_in(await only_message(service)))
    page = await browser_client.follow()
    assert page.url.path == "/sign-in/factor"
    assert 'value="email"' not in page.text
    chosen = await browser_client.post("/sign-in/factor/method", method="email")
    assert chosen.status_code == 404
    assert await new_messages(service) == []
    assert (await browser_client.get("/account")).status_code == 303
    browser_client.page = page
    assert (await browser_client.post("/sign-in/factor", otp=totp_code(secret, service))).status_code == 303
    assert (await browser_client.get("/account")).status_code == 200
    assert "2step" in await session_methods(service, anna)


async def test_em_05_account_with_only_a_code_by_email_as_second_factor_is_refused(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await service.services.factors.email_codes.enable(await set_verified(service, anna), origin=ORIGIN)
    await new_messages(service)
    page = await ask(browser_client)
    assert page.status_code == 200
    message = await only_message(service)
    assert "is off for your account" in message.subject
    assert not CODE.findall(message.text)
    assert not LINK.findall(message.text)


async def test_em_06_protected_role_is_refused_also_after_the_email_was_sent(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await ask(browser_client)
    code = code_in(await only_message(service))
    await make_administrator(service, anna)
    refused = await browser_client.post("/sign-in/email/code", otp=code)
    assert (refused.status_code, "gh_session" in browser_client.cookies) == (403, False)
    await ask(browser_client)
    assert "is off for your account" in (await only_message(service)).subject


@pytest.mark.both_databases
async def test_em_07_owner_of_the_address_takes_over_an_account_that_a_stranger_registered(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser
) -> None:
    stranger = {"login": LOGIN, "nick": "Stranger", "password": PASSWORD}
    await service.services.settings_editor.save({"accounts.registration": True}, ORIGIN)
    await other.get("/register")
    await other.post("/register", **stranger)
    await other.sign_in(LOGIN)
    assert (await other.get("/account")).status_code == 200
    await new_messages(service)
    await ask(browser_client)
    page = await browser_client.post("/sign-in/email/code", otp=code_in(await only_message(service)))
    assert "The password" in page.text
    assert not (await find_user(service)).email_verified  # the right code only showed what will end
    assert (await browser_client.post("/sign-in/email/code")).status_code == 303
    assert (await browser_client.get("/account")).status_code == 200
    owner = await find_user(service)
    assert (owner.email_verified, owner.password_hash) == (True, None)
    assert (await other.get("/account")).status_code == 303  # the stranger's session has ended
    assert (await other.sign_in(LOGIN)).status_code == 403
    assert "old sign-in methods ended" in "".join(message.subject for message in await new_messages(service))


@pytest.mark.usefixtures("anna")
async def test_em_08_database_has_digests_only(service: RunningService, browser_client: HttpBrowser) -> None:
    await ask(browser_client)
    message = await only_message(service)
    rows = await read_all_tables(service.services.storage)
    assert rows["once"]
    assert not tables_that_mention(rows, code_in(message).replace(" ", ""), token_in_link(link_in(message)))
    assert "once" not in tables_that_mention(rows, LOGIN)


async def test_em_09_off_by_default_and_nothing_answers(service: RunningService, browser_client: HttpBrowser) -> None:
    await ask(browser_client)
    await service.services.settings_editor.save({"accounts.email_sign_in": False}, ORIGIN)
    page = await browser_client.get("/sign-in")
    assert "/sign-in/email" not in page.text
    hidden = dict(re.findall(r'name="(csrf)" value="([^"]*)"', page.text))
    refused = await browser_client.client.post("/sign-in/email", data={**hidden, "login": LOGIN})
    assert refused.status_code == 404


async def test_blocked_account_gets_no_email_and_no_session(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await ask(browser_client)
    code = code_in(await only_message(service))
    await service.services.accounts.administration.block(anna.user_id, ORIGIN)
    assert (await browser_client.post("/sign-in/email/code", otp=code)).status_code == 403
    assert (await ask(browser_client)).status_code == 200
    assert await new_messages(service) == []


async def test_not_an_address_is_said_at_the_form(browser_client: HttpBrowser) -> None:
    page = await ask(browser_client, "anna")
    assert (page.status_code, "Enter an email address." in page.text) == (400, True)


async def test_flow_of_a_client_goes_on_and_tokens_say_how(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    shelf = await an_oidc_client(service)
    await browser_client.get(shelf.authorize_path(scope="openid"))
    await browser_client.follow()
    await ask_here(browser_client)
    await browser_client.get(link_in(await only_message(service)))
    response = await browser_client.post("/sign-in/link")
    if "/sign-in/consent" in response.headers["location"]:
        await browser_client.follow()
        response = await browser_client.post("/sign-in/consent", decision="allow")
    tokens = await shelf.tokens(shelf.code_from(response.headers["location"]))
    claims = claims_of(tokens["id_token"])
    assert (claims["sub"], claims["amr"], claims["acr"]) == (anna.user_id, ["otp", "mca"], "urn:gatehouse:1")


async def test_game_is_told_the_method(service: RunningService, browser_client: HttpBrowser, anna: User) -> None:
    game = await register_game(service, factor="device-factor-of-the-game")
    await browser_client.get(f"/?gsid={game.gsid}")
    await browser_client.follow()
    await ask_here(browser_client)
    await browser_client.post("/sign-in/email/code", otp=code_in(await only_message(service)))
    await browser_client.follow()
    await browser_client.post("/sign-in/confirm", decision="confirm")
    answer = (await game.poll()).json()
    assert (answer["status"], answer["auth"], answer["user_id"]) == ("OK", "email", anna.user_id)
    assert claims_of(answer["jwt"])["auth"] == "email"


async def test_device_grant_goes_on_after_sign_in_by_email(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    tv = await a_public_client(service, "tv", name="Sofa TV", redirect_uris=(), device_grant=True)
    device = await ask_for_device(tv)
    await browser_client.get("/device")
    await browser_client.post("/device", user_code=device["user_code"])
    await browser_client.follow()
    await ask_here(browser_client)
    await browser_client.post("/sign-in/email/code", otp=code_in(await only_message(service)))
    page = await browser_client.follow()
    assert (page.url.path, "Sofa TV" in page.text) == ("/sign-in/confirm", True)
    await browser_client.post("/sign-in/confirm", decision="confirm")
    tokens = success_body(await poll_with_device(tv, device["device_code"]))
    claims = claims_of(tokens["id_token"])
    assert (claims["sub"], claims["amr"], claims["acr"]) == (anna.user_id, ["otp", "mca"], "urn:gatehouse:1")


# Registration without a password.


NEW = "newcomer@studio.example"


@pytest.fixture
async def registering(service: RunningService) -> RunningService:
    wanted = {"accounts.registration": True, "accounts.password_optional": True}
    await service.services.settings_editor.save(wanted, ORIGIN)
    return service


async def register(browser: HttpBrowser, login: str = NEW, path: str = "/register") -> httpx2.Response:
    await browser.get(path)
    return await browser.post("/register", login=login, nick="New")


async def test_code_creates_the_account_and_leads_to_the_first_passkey(
    registering: RunningService, browser_client: HttpBrowser
) -> None:
    assert "(optional)" in (await browser_client.get("/register")).text
    page = await register(browser_client)
    assert page.status_code == 200
    users = registering.services.storage.accounts
    assert await users.user_by_login(NEW) is None  # nothing is created before the address is proved
    message = await only_message(registering)
    assert "Create your account" in message.subject
    response = await browser_client.post("/sign-in/email/code", otp=code_in(message))
    assert (response.status_code, response.headers["location"]) == (303, "/account/passkey")
    assert (await browser_client.follow()).status_code == 200
    user = await find_user(registering, NEW)
    assert (user.nick, user.email_verified, user.password_hash) == ("New", True, None)
    assert await session_methods(registering, user) == {"email"}


async def test_link_of_a_registration_asks_before_it_creates_the_account(
    registering: RunningService, browser_client: HttpBrowser
) -> None:
    await register(browser_client)
    page = await browser_client.get(link_in(await only_message(registering)))
    assert "Create an account for" in page.text
    assert "Sign in as" not in page.text
    assert await registering.services.storage.accounts.user_by_login(NEW) is None
    await browser_client.post("/sign-in/link")
    assert (await find_user(registering, NEW)).nick == "New"


@pytest.mark.usefixtures("anna")
async def test_em_04_registering_a_known_address_looks_the_same_and_signs_its_owner_in(
    registering: RunningService, browser_client: HttpBrowser
) -> None:
    unknown = (await register(browser_client)).text
    await new_messages(registering)
    known = (await register(browser_client, LOGIN)).text
    assert known == unknown.replace(NEW, LOGIN)
    message = await only_message(registering)
    assert "Sign in to" in message.subject
    await browser_client.post("/sign-in/email/code", otp=code_in(message))
    assert (await find_user(registering)).nick == "Anna"


async def test_registration_by_email_continues_the_flow_and_obeys_the_rules(
    registering: RunningService, browser_client: HttpBrowser
) -> None:
    await browser_client.get("/sign-in")
    handle = await registering.services.sign_in_flows.start(
        "account", {"to": "/account/totp"}, browser=browser_client.cookies["gh_browser"]
    )
    await register(browser_client, path=f"/register?interaction={handle}")
    response = await browser_client.post("/sign-in/email/code", otp=code_in(await only_message(registering)))
    assert response.headers["location"] == "/account/totp"
    await registering.services.settings_editor.save({"accounts.allowed_domains": ["other.example"]}, ORIGIN)
    browser_client.client.cookies.clear()
    assert (await register(browser_client, "second@studio.example")).status_code == 400
    assert await new_messages(registering) == []


async def test_password_is_required_unless_the_setting_says_otherwise(
    registering: RunningService, browser_client: HttpBrowser
) -> None:
    await registering.services.settings_editor.save({"accounts.password_optional": False}, ORIGIN)
    page = await register(browser_client)
    assert (page.status_code, "at least 10 characters" in page.text) == (400, True)
    assert await new_messages(registering) == []


async def test_setting_without_email_sign_in_is_refused(service: RunningService) -> None:
    with pytest.raises(Exception, match=r"needs accounts\.email_sign_in"):
        await service.services.settings_editor.save(
            {"accounts.email_sign_in": False, "accounts.password_optional": True}, ORIGIN
        )


@pytest.mark.both_databases
async def test_wrong_codes_are_counted_for_the_owner_and_for_no_one_else(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    for login in (LOGIN, "no_one@studio.example"):
        await ask(browser_client, login)
        for _ in range(6):  # the last ones find no request any more
            await browser_client.post("/sign-in/email/code", login=login, otp="00000000")
    await service.services.core.failed_sign_ins.flush()
    storage = service.services.storage.failed_sign_ins
    (counted,) = await storage.failures_of_user(anna.user_id, 0, 10)
    assert (counted.reason, counted.network, counted.times) == ("email_code", "127.0.0.0/24", 5)
    assert await storage.failures_of_user("none", 0, 10) == []
