"""The first proof of an address by email ends what the proving browser did not prove itself (R10)."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import IMPORTED_ACCOUNT, JOINED_KEY, SELF_REGISTERED, Identity, SignInMethod, User
from gatehouse.accounts.second_factors.model import totp_sealing_purpose
from gatehouse.app.services.provisioning import build_provisioning
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, HttpBrowser, totp_code
from tests.support.builders import PASSKEY_HOST, a_passkey, a_record, a_user
from tests.support.console import apply_document
from tests.support.game import confirm_in_browser, poll_ended_session, register_game
from tests.support.mailbox import link_in_new_message, new_messages
from tests.support.oauth import a_public_client, an_oidc_client, oauth_error, query_of
from tests.support.service import RunningService
from tests.wire.accounts.test_email_sign_in import ask, code_in, link_in, only_message
from tests.wire.oauth.test_device import ask as ask_device
from tests.wire.oauth.test_device import poll as poll_device
from tests.wire.oauth.test_device import type_code

pytestmark = pytest.mark.both_databases

Prove = Callable[[RunningService, HttpBrowser], Awaitable[str]]
ORIGIN = AuditOrigin(actor="test")
TOTP = "JBSWY3DPEHPK3PXP"
NEW_PASSWORD = "a new password of the owner"
ISSUER = "https://vendor.example"
EVERYTHING = "password, identity, totp, passkey, recovery, phone, session"


@pytest.fixture
async def service(service: RunningService) -> RunningService:
    settings = {"accounts.email_sign_in": True, "accounts.registration": True}
    await service.services.settings_editor.save(settings, ORIGIN)
    return service


async def a_strangers_account(service: RunningService, joined: str = IMPORTED_ACCOUNT, **fields: object) -> User:
    """Store an account with an unverified address, and with everything that opens it."""
    services = service.services
    made = a_user(
        user_id="4711",
        login=LOGIN,
        password_hash=await services.accounts.passwords.hash(PASSWORD),
        meta={JOINED_KEY: joined},
        email_verified=False,
        phone_verified=True,
        sealed_totp=services.core.masters.seal(TOTP.encode(), purpose=totp_sealing_purpose("4711")),
    )
    user = replace(made, **fields)
    await services.storage.accounts.create_user(user, a_record())
    await services.storage.passkeys.add_passkey(
        a_passkey(user_id=user.user_id), [b"recovery"], a_record(), (), host=PASSKEY_HOST
    )
    identity = Identity(
        issuer=ISSUER, subject="1", user_id=user.user_id, provider="vendor", label="1", created_at=1, used_at=0
    )
    await services.storage.profile.link_identity(identity, a_record(), (), rev=user.rev)
    return user


@pytest.fixture
async def stranger(service: RunningService) -> AsyncIterator[AccountBrowser]:
    """The browser of a stranger, signed in to the account with password and code."""
    await a_strangers_account(service)
    browser = AccountBrowser(service)
    await sign_in_with_code(service, browser)
    assert await browser.is_signed_in()
    yield browser
    await browser.client.aclose()


async def sign_in_with_code(service: RunningService, browser: HttpBrowser) -> None:
    await browser.sign_in(LOGIN)
    await browser.follow()
    await browser.post("/sign-in/factor", otp=totp_code(TOTP, service))
    await new_messages(service)


async def reset(service: RunningService, browser: HttpBrowser) -> str:
    """Reset the password and return the page that asked."""
    await browser.get("/forgot")
    await browser.post("/forgot", login=LOGIN)
    page = await browser.get(await link_in_new_message(service))
    answer = await browser.post("/reset", password=NEW_PASSWORD)
    assert answer.status_code == 303, answer.text
    return page.text


async def confirm(service: RunningService, browser: HttpBrowser) -> str:
    await browser.get("/forgot")
    await browser.post("/verify-email/again", login=LOGIN)
    page = await browser.get(await link_in_new_message(service))
    answer = await browser.post("/verify-email")
    assert answer.status_code == 200, answer.text
    return page.text


async def use_code(service: RunningService, browser: HttpBrowser) -> str:
    await ask(browser)
    page = await browser.post("/sign-in/email/code", otp=code_in(await only_message(service)))
    answer = await browser.post("/sign-in/email/code")
    assert answer.status_code == 303, answer.text
    return page.text


async def use_link(service: RunningService, browser: HttpBrowser) -> str:
    await ask(browser)
    page = await browser.get(link_in(await only_message(service)))
    answer = await browser.post("/sign-in/link")
    assert answer.status_code == 303, answer.text
    return page.text


async def kept(service: RunningService) -> set[str]:
    """Return what still opens the account."""
    user = await service.services.storage.accounts.user("4711")
    details = await service.services.storage.profile.account_details("4711", service.clock.now())
    found = {
        "password": user.password_hash is not None,
        "totp": user.sealed_totp is not None,
        "passkey": bool(user.passkeys),
        "identity": bool(details.identities),
        "tag": "linked_vendor" in user.service_tags,
        "recovery": details.overview.recovery_left > 0,
        "phone": user.phone_verified,
    }
    return {name for name, holds in found.items() if holds}


@pytest.mark.parametrize("prove", [reset, confirm, use_code, use_link])
async def test_fp_01_first_proof_ends_everything_a_stranger_set_up(
    service: RunningService, stranger: AccountBrowser, browser_client: HttpBrowser, prove: Prove
) -> None:
    page = await prove(service, browser_client)
    listed = (
        "Sign-in with vendor: <bdi>1</bdi>",
        "The authenticator app",
        "The passkey <bdi>Laptop</bdi>",
        "The recovery codes",
    )
    assert [words for words in (*listed, "The phone number", "Other sessions") if words not in page] == []
    assert ("The password" in page) == (prove is not reset)  # which the reset replaces
    user = await service.services.storage.accounts.user("4711")
    assert user.email_verified
    assert await kept(service) == ({"password"} if prove is reset else set())
    assert not await stranger.is_signed_in()
    assert (await stranger.sign_in(LOGIN)).status_code == 403
    (record,) = await service.services.storage.audit.newest_records(1, "4711", "user.methods_ended")
    ended = EVERYTHING.removeprefix("password, ") if prove is reset else EVERYTHING
    assert (record.actor, record.details) == ("4711", {"ended": ended, "providers": "vendor"})
    told = [message for message in await new_messages(service) if "old sign-in methods ended" in message.subject]
    assert [(message.to, "passkeys, recovery codes" in " ".join(message.text.split())) for message in told] == [
        (LOGIN, True)
    ]


async def test_fp_01_invitation_of_an_imported_account_ends_its_identities(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await a_strangers_account(service, password_hash=None)
    await service.services.registration.invitations.invite(login=LOGIN, nick="Anna", lang="en", origin=ORIGIN)
    page = await browser_client.get(await link_in_new_message(service))
    assert "Sign-in with vendor: <bdi>1</bdi>" in page.text
    await browser_client.post("/invite", nick="Anna", password=NEW_PASSWORD)
    assert await kept(service) == {"password"}


async def test_fp_01_sign_in_that_waits_for_the_second_factor_ends(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    """The factor that it waits for is gone afterwards, and must not be missed."""
    await a_strangers_account(service)
    stranger = AccountBrowser(service)
    await stranger.sign_in(LOGIN)
    assert (await stranger.follow()).status_code == 200
    body = {"login": LOGIN, "password": PASSWORD, "factor": "the device"}
    game = (await service.client.post("/proxy/api/login", json=body)).json()
    assert game["status"] == "2STEP"
    await new_messages(service)
    await confirm(service, browser_client)
    assert (await stranger.post("/sign-in/factor", otp=totp_code(TOTP, service))).status_code == 400
    assert not await stranger.is_signed_in()
    body = {"request_id": game["request_id"], "otp": totp_code(TOTP, service)}
    assert (await service.client.post("/proxy/api/login", json=body)).json() == {"status": "2STEPERROR"}
    await stranger.client.aclose()


async def test_fp_02_methods_of_the_browsers_own_session_stay(
    service: RunningService, stranger: AccountBrowser, browser_client: HttpBrowser
) -> None:
    """A session with password and authenticator app proves those two, and the recovery codes belong to a factor."""
    await service.clock.advance(60)
    await sign_in_with_code(service, browser_client)
    await browser_client.get("/account")
    page = await confirm(service, browser_client)
    assert "The passkey <bdi>Laptop</bdi>" in page
    assert "The authenticator app" not in page
    assert await kept(service) == {"password", "totp", "recovery"}
    assert (await browser_client.get("/account")).status_code == 200
    assert not await stranger.is_signed_in()


async def test_fp_02_passkey_of_the_session_stays_and_others_end(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    user = await a_strangers_account(service)
    own = a_passkey(user_id=user.user_id, credential_id=b"own", name="Phone")
    services = service.services
    await services.storage.passkeys.add_passkey(own, [], a_record(), (), host=PASSKEY_HOST)
    opened = await services.accounts.sessions.open(
        await services.storage.accounts.user("4711"),
        SignInMethod.PASSKEY,
        origin=ORIGIN,
        agent="",
        proved=[f"passkey:{own.passkey_id}"],
    )
    browser_client.client.cookies.set("gh_session", opened.secret)
    await use_link(service, browser_client)
    assert [one.name for one in await services.storage.passkeys.passkeys_of_user("4711")] == ["Phone"]
    assert await kept(service) == {"passkey", "recovery"}


async def test_fp_02_first_password_set_in_the_session_stays(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    """A person whose account was imported with an identity only sets a password, then confirms the address."""
    await a_strangers_account(service, password_hash=None, sealed_totp=None)
    services = service.services
    user = await services.storage.accounts.user("4711")
    opened = await services.accounts.sessions.open(
        user,
        SignInMethod.PROVIDER,
        origin=ORIGIN,
        agent="",
        proved=[f"identity:{ISSUER} 1"],
    )
    session = await services.storage.sessions.find_session(opened.session.digest, service.clock.now())
    assert session is not None
    await services.storage.profile.set_password(
        user,
        "$hash",
        a_record(),
        (),
        keep=opened.session.digest,
        proved=session.session.with_proofs("password"),
        now=service.clock.now(),
    )
    browser_client.client.cookies.set("gh_session", opened.secret)
    await confirm(service, browser_client)
    assert await kept(service) == {"password", "identity", "tag"}


async def test_fp_03_password_stays_in_the_browser_that_registered_and_ends_in_another(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser
) -> None:
    for browser, login in ((browser_client, "own@studio.example"), (other, "other@studio.example")):
        await browser.get("/register")
        await browser.post("/register", login=login, nick="Anna", password=PASSWORD)
        link = await link_in_new_message(service)
        await browser_client.get(link)
        chosen = {"password": NEW_PASSWORD} if browser is other else {}
        assert (await browser_client.post("/verify-email", **chosen)).status_code == 303
        user = await service.services.storage.accounts.user_by_login(login)
        assert user is not None
        assert user.email_verified
        assert ((await other.sign_in(login)).status_code == 303) == (browser is browser_client)


async def test_fp_03_new_password_can_be_set_with_the_confirmation(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await a_strangers_account(service, SELF_REGISTERED)
    await browser_client.get("/forgot")
    await browser_client.post("/verify-email/again", login=LOGIN)
    page = await browser_client.get(await link_in_new_message(service))
    assert 'name="password"' in page.text
    refused = await browser_client.post("/verify-email", password="short")
    assert refused.status_code == 400
    assert not (await service.services.storage.accounts.user("4711")).email_verified
    await browser_client.post("/verify-email", password=NEW_PASSWORD)
    assert await kept(service) == {"password"}
    assert (await browser_client.sign_in(LOGIN, NEW_PASSWORD)).status_code == 303


async def test_fp_04_address_set_by_an_administrator_ends_nothing_and_needs_the_second_factor(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    user = await a_strangers_account(service, login="old@studio.example", email_verified=True)
    services = service.services
    stored = await services.storage.accounts.user(user.user_id)
    changes = {"login": LOGIN, "email_verified": False}
    await services.accounts.editor.save(stored, changes, ORIGIN, version=stored.version)
    await new_messages(service)
    before = await kept(service)
    page = await reset(service, browser_client)
    assert "The passkey" not in page
    assert await kept(service) == before
    assert not (await services.storage.accounts.user("4711")).email_verified
    await browser_client.sign_in(LOGIN, NEW_PASSWORD)
    await browser_client.follow()
    await browser_client.post("/sign-in/factor", otp=totp_code(TOTP, service))
    await new_messages(service)
    await confirm(service, browser_client)
    assert await kept(service) == before
    assert (await services.storage.accounts.user("4711")).email_verified


async def open_reset(service: RunningService, browser: HttpBrowser) -> tuple[str, dict[str, str]]:
    """Open the page with the button, and return where it leads and what the person types."""
    await browser.get("/forgot")
    await browser.post("/forgot", login=LOGIN)
    await browser.get(await link_in_new_message(service))
    return "/reset", {"password": NEW_PASSWORD}


async def open_confirmation(service: RunningService, browser: HttpBrowser) -> tuple[str, dict[str, str]]:
    await browser.get("/forgot")
    await browser.post("/verify-email/again", login=LOGIN)
    await browser.get(await link_in_new_message(service))
    return "/verify-email", {}


async def open_link(service: RunningService, browser: HttpBrowser) -> tuple[str, dict[str, str]]:
    signed_in = browser.client.cookies.get("gh_session")
    browser.client.cookies.delete("gh_session")  # people who are signed in are not asked
    await ask(browser)
    browser.client.cookies.set("gh_session", signed_in)
    await browser.get(link_in(await only_message(service)))
    return "/sign-in/link", {}


@pytest.mark.parametrize("open_page", [open_reset, open_confirmation, open_link])
async def test_fp_09_nothing_ends_that_the_page_did_not_list(
    service: RunningService,
    browser_client: HttpBrowser,
    open_page: Callable[[RunningService, HttpBrowser], Awaitable[tuple[str, dict[str, str]]]],
) -> None:
    """A form of a session that ended in another tab proves nothing: the page is opened again, with all that ends."""
    await a_strangers_account(service)
    await sign_in_with_code(service, browser_client)
    action, typed = await open_page(service, browser_client)
    assert browser_client.page is not None
    page = browser_client.page.text
    assert ("The passkey <bdi>Laptop</bdi>" in page, "The authenticator app" in page) == (True, False)
    browser_client.client.cookies.delete("gh_session")
    before = await kept(service)
    assert (await browser_client.post(action, **typed)).status_code == 403
    assert await kept(service) == before
    assert not (await service.services.storage.accounts.user("4711")).email_verified


@pytest.mark.parametrize("prove", [reset, confirm, use_code, use_link])
async def test_fp_06_no_application_keeps_what_a_stranger_gave_it(
    service: RunningService, stranger: AccountBrowser, browser_client: HttpBrowser, other: HttpBrowser, prove: Prove
) -> None:
    """Tokens, codes and a device's approval end, and the owner is asked for consent as at the first time."""
    tv = await a_public_client(service, "tv", name="TV", redirect_uris=(), device_grant=True)
    shop = await an_oidc_client(service, "evil", first_party=False, name="Evil")
    device = await ask_device(tv)
    await type_code(stranger, device["user_code"])
    await stranger.follow()
    await stranger.post("/sign-in/confirm", decision="confirm")
    game = await register_game(service, factor="the device")
    await confirm_in_browser(stranger, game)
    scope = "openid offline_access email"
    first = await shop.tokens(shop.code_from(await shop.walk_authorize(stranger, LOGIN, scope=scope)))
    code = shop.code_from(await shop.walk_authorize(stranger, LOGIN, scope=scope))
    await service.clock.advance(40)
    login = await log_in(service)
    page = await prove(service, browser_client)
    assert "Sign-ins to applications, and consent to them" in page
    assert (await poll_device(tv, device["device_code"])).json()["error"] == "invalid_grant"
    assert (await poll_ended_session(game)).json()["status"] == "ERROR"
    assert oauth_error(await shop.refresh(first["refresh_token"])) == (400, "invalid_grant")
    assert oauth_error(await shop.redeem(code)) == (400, "invalid_grant")
    assert (await shop.userinfo(first["access_token"])).status_code == 401
    headers = {"Authorization": f"Bearer {login['jwt']}", "Factor": "the device"}
    assert (await service.client.post("/api/permissions/user/info", json={}, headers=headers)).status_code == 401
    owner = await service.services.storage.accounts.user("4711")
    opened = await service.services.accounts.sessions.open(owner, SignInMethod.EMAIL, origin=ORIGIN, agent="")
    other.client.cookies.set("gh_session", opened.secret)
    silent = await other.get(shop.authorize_path(scope=scope, prompt="none"))
    assert query_of(silent.headers["location"])["error"] == "interaction_required"


async def log_in(service: RunningService) -> dict[str, Any]:
    """The sign-in of a game that has both factors."""
    ask = {"login": LOGIN, "password": PASSWORD, "otp": totp_code(TOTP, service), "factor": "the device"}
    answer: dict[str, Any] = (await service.client.post("/proxy/api/login", json=ask)).json()
    assert answer["status"] == "OK", answer
    return answer


async def test_fp_07_address_that_no_one_proved_is_first_proved_whatever_a_file_said_of_it(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    """An import with --emails verified by mistake is corrected with apply."""
    await a_strangers_account(service)
    for is_verified in ("true", "false"):
        await apply_document(service, f'users: [{{user_id: "4711", email_verified: {is_verified}}}]')
    page = await reset(service, browser_client)
    assert "Sign-in with vendor: <bdi>1</bdi>" in page
    assert await kept(service) == {"password"}


async def test_fp_07_address_that_was_proved_is_not_first_proved_again(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await a_strangers_account(service)
    await reset(service, browser_client)
    await new_messages(service)
    await service.services.storage.passkeys.add_passkey(
        a_passkey(user_id="4711"), [b"mine"], a_record(), (), host=PASSKEY_HOST
    )
    await apply_document(service, 'users: [{user_id: "4711", email_verified: false}]')
    assert "The passkey" not in await reset(service, browser_client)
    assert await kept(service) == {"password", "passkey", "recovery"}
    assert not (await service.services.storage.accounts.user("4711")).email_verified, "the passkey was not used"


async def test_fp_08_export_says_whose_address_no_one_proved(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await a_strangers_account(service)
    sections = await build_provisioning(service.services).export(secrets=True)
    (user,) = [one for one in sections["users"] if one["login"] == LOGIN]
    assert user["joined"] == "imported"
    stored = await service.services.storage.accounts.user("4711")
    await service.services.accounts.erasure.erase(stored, ORIGIN)
    await new_messages(service)
    moved = {name: value for name, value in user.items() if name not in ("password", "totp_secret", "user_id")}
    moved |= {"password": PASSWORD, "totp_secret": TOTP}
    await apply_document(service, json.dumps({"users": [moved]}))
    page = await reset(service, browser_client)
    assert "The authenticator app" in page
    owner = await service.services.storage.accounts.user_by_login(LOGIN)
    assert owner is not None
    assert (owner.email_verified, owner.sealed_totp) == (True, None)
    sections = await build_provisioning(service.services).export(secrets=False)
    assert ["joined" in one for one in sections["users"] if one["login"] == LOGIN] == [False]


async def test_second_proof_ends_nothing(service: RunningService, browser_client: HttpBrowser) -> None:
    await a_strangers_account(service, email_verified=True)
    before = await kept(service)
    assert "The passkey" not in await reset(service, browser_client)
    assert await kept(service) == before
