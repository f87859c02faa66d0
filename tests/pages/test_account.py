"""The account page in a real browser."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

import pytest
import pytest_asyncio
from playwright.async_api import Browser, CDPSession, Page, expect

from gatehouse.accounts.model import SignInMethod, User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import LOGIN, PASSWORD, totp_code
from tests.support.mailbox import link_in_new_message, new_messages
from tests.support.service import RunningService

pytestmark = pytest.mark.asyncio(loop_scope="session")

NEW = "a quite different phrase"
STALE = 601
SIGNAL_SECONDS = 10
NO_AUTOFILL = "PublicKeyCredential.isConditionalMediationAvailable = async () => false;"
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest_asyncio.fixture(loop_scope="session")
async def anna(service: RunningService) -> User:
    return await service.services.accounts.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
    )


@pytest_asyncio.fixture(params=["script", "no script"], loop_scope="session")
async def page_with_or_without_script(browser: Browser, request: pytest.FixtureRequest) -> AsyncIterator[Page]:
    """A page with JavaScript, and one without."""
    context = await browser.new_context(locale="en-GB", java_script_enabled=request.param == "script")
    yield await context.new_page()
    await context.close()


async def read_user(service: RunningService, user: User) -> User:
    return await service.services.storage.accounts.user(user.user_id)


def browser_errors(page: Page) -> list[str]:
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    return errors


async def sign_in(service: RunningService, page: Page, login: str = LOGIN, password: str = PASSWORD) -> None:
    await page.goto(f"{service.base_url}/sign-in")
    await page.get_by_label("Email").fill(login)
    await page.get_by_label("Password").fill(password)
    await page.get_by_role("button", name="Sign in", exact=True).click()


async def open_account_page(page: Page, nick: str = "Anna") -> None:
    await expect(page.get_by_role("heading", level=1, name=nick)).to_be_visible()


async def sign_out(page: Page) -> None:
    await page.locator("header").get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", name="You're signed out")).to_be_visible()


async def expect_notice(page: Page, words: str) -> None:
    await expect(page.locator("p.notice[role=status]")).to_have_text(words)


async def set_up_totp(service: RunningService, page: Page) -> tuple[str, list[str]]:
    await page.get_by_role("button", name="Set up: Authenticator app").click()
    await page.get_by_text("Enter the key manually").click()
    secret = (await page.locator("#secret").inner_text()).replace(" ", "")
    await page.get_by_role("textbox", name="Code").fill(totp_code(secret, service))
    await page.get_by_role("button", name="Turn on").click()
    await expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    codes = await page.locator("#codes li").all_inner_texts()
    await page.get_by_role("button", name="Done, I saved them").click()
    await open_account_page(page)
    await service.clock.advance(30)
    return secret, codes


@pytest.mark.usefixtures("anna")
async def test_an_authenticator_app_is_set_up_by_its_secret_and_used_at_the_next_sign_in(
    service: RunningService, page_with_or_without_script: Page
) -> None:
    page, errors = page_with_or_without_script, browser_errors(page_with_or_without_script)
    await sign_in(service, page)
    secret, codes = await set_up_totp(service, page)
    assert len(codes) == 10
    await expect(page.get_by_text("10 codes left")).to_be_visible()
    await sign_out(page)
    await sign_in(service, page)
    await page.get_by_role("textbox", name="Code").fill(totp_code(secret, service))
    await page.get_by_role("button", name="Continue").click()
    await open_account_page(page)
    assert errors == []


@pytest.mark.usefixtures("anna")
async def test_a_recovery_code_lets_in_anyone_who_lost_the_device_once(
    service: RunningService, page_with_or_without_script: Page
) -> None:
    page = page_with_or_without_script
    await sign_in(service, page)
    _, codes = await set_up_totp(service, page)
    for code, lets_in in ((codes[0], True), (codes[0], False), (codes[1], True)):
        await page.context.clear_cookies()
        await sign_in(service, page)
        await page.get_by_role("button", name="Use a recovery code").click()
        await page.get_by_label("Recovery code").fill(code.upper())
        await page.get_by_role("button", name="Continue").click()
        if lets_in:
            await open_account_page(page)
        else:
            await expect(page.get_by_role("alert")).to_have_text("Wrong code. Check it and try again.")
    await expect(page.get_by_text("8 codes left")).to_be_visible()


class VirtualKey:
    """A virtual authenticator in Chromium that is touched only on request.

    If it were always touched, the sign-in page's autofill would be answered before the test can type.
    """

    def __init__(self, devtools: CDPSession, authenticator_id: str) -> None:
        self._devtools = devtools
        self._id = authenticator_id
        self._changed = asyncio.Event()
        for event in ("Added", "Updated", "Deleted"):
            devtools.on(f"WebAuthn.credential{event}", lambda _: self._changed.set())

    @classmethod
    async def plugged_into(cls, page: Page) -> Self:
        devtools = await page.context.new_cdp_session(page)
        await devtools.send("WebAuthn.enable")
        created = await devtools.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
        return cls(devtools, created["authenticatorId"])

    async def touch(self, *, is_touched: bool = True) -> None:
        await self._devtools.send(
            "WebAuthn.setAutomaticPresenceSimulation", {"authenticatorId": self._id, "enabled": is_touched}
        )

    async def release(self) -> None:
        await self.touch(is_touched=False)

    async def names(self) -> list[tuple[str, str]]:
        """The names of the account in each passkey that the authenticator still has."""
        held = await self._devtools.send("WebAuthn.getCredentials", {"authenticatorId": self._id})
        return [(one["userName"], one["userDisplayName"]) for one in held["credentials"]]

    async def expect_names(self, *names: tuple[str, str]) -> None:
        """Wait for what pages tell it in the background."""
        async with asyncio.timeout(SIGNAL_SECONDS):
            while await self.names() != list(names):
                await self._changed.wait()
                self._changed.clear()


async def add_passkey(page: Page, name: str) -> None:
    await page.get_by_role("button", name="Add a passkey").click()
    await page.get_by_label("Passkey name").fill(name)
    await page.get_by_role("button", name="Create passkey").click()


@pytest.mark.both_databases
async def test_a_passkey_is_made_and_used_as_second_step_and_instead_of_a_password(
    service: RunningService, page: Page, anna: User
) -> None:
    errors = browser_errors(page)
    key = await VirtualKey.plugged_into(page)
    await sign_in(service, page)
    await add_passkey(page, "Work laptop")
    await expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    await page.get_by_role("button", name="Done, I saved them").click()
    await expect(page.get_by_text("Work laptop")).to_be_visible()
    await key.release()
    await sign_out(page)

    await sign_in(service, page)
    await key.touch()
    await page.get_by_role("button", name="Use passkey").click()
    await open_account_page(page)
    assert await last_method(service, anna) == SignInMethod.TWO_STEP
    await sign_out(page)

    await page.goto(f"{service.base_url}/sign-in")  # the browser's autofill is enough
    await open_account_page(page)
    assert await last_method(service, anna) == SignInMethod.PASSKEY
    await sign_out(page)

    await page.add_init_script(NO_AUTOFILL)
    await page.goto(f"{service.base_url}/sign-in")
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await open_account_page(page)
    assert await last_method(service, anna) == SignInMethod.PASSKEY
    assert errors == []


async def test_browser_forgets_removed_passkeys_and_follows_the_names_of_the_account(
    service: RunningService, page: Page, anna: User
) -> None:
    errors = browser_errors(page)
    key = await VirtualKey.plugged_into(page)
    await sign_in(service, page)
    await add_passkey(page, "Work laptop")
    await page.get_by_role("button", name="Done, I saved them").click()
    await key.expect_names((LOGIN, "Anna"))
    await page.get_by_label("Display name").fill("Annabel")
    await page.locator("#profile").get_by_role("button", name="Save", exact=True).click()
    await key.expect_names((LOGIN, "Annabel"))
    await page.get_by_role("button", name="Remove Work laptop").click()
    await expect_notice(page, "Passkey removed")
    await key.expect_names()

    await add_passkey(page, "Phone")
    await page.get_by_role("button", name="Done, I saved them").click()
    await key.expect_names((LOGIN, "Annabel"))
    await key.release()
    await sign_out(page)
    passkeys, removed_by = service.services.factors.passkeys, AuditOrigin(actor="test")
    for passkey in await passkeys.of_user(anna.user_id):
        await passkeys.remove(anna, passkey.passkey_id, origin=removed_by)
    await key.expect_names((LOGIN, "Annabel"))
    await page.add_init_script(NO_AUTOFILL)
    await page.goto(f"{service.base_url}/sign-in")
    await key.touch()
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    await key.expect_names()
    assert [error for error in errors if "403" not in error] == []


async def test_pf_04_person_registers_with_a_passkey_and_signs_in_by_autofill(
    service: RunningService, page: Page
) -> None:
    errors = browser_errors(page)
    names = ("email_sign_in", "password_optional", "registration")
    await service.services.settings_editor.save(
        {f"accounts.{name}": True for name in names}, AuditOrigin(actor="test")
    )
    key = await VirtualKey.plugged_into(page)
    await page.goto(f"{service.base_url}/register")
    await page.get_by_label("Email").fill(LOGIN)
    await page.get_by_label("Display name").fill("Anna")
    await page.get_by_role("button", name="Create account").click()
    (message,) = await new_messages(service)
    code = re.search(r"\d{4} \d{4}", message.text)
    assert code is not None
    await page.get_by_label("Code").fill(code.group())
    await page.get_by_role("button", name="Continue").click()
    await page.get_by_label("Passkey name").fill("Phone")
    await page.get_by_role("button", name="Create passkey").click()
    await page.get_by_role("button", name="Done, I saved them").click()
    await expect(page.get_by_text("This account has no password.")).to_be_visible()
    await key.release()
    await sign_out(page)

    await key.touch()
    await page.goto(f"{service.base_url}/sign-in")
    await open_account_page(page)
    user = await service.services.storage.accounts.user_by_login(LOGIN)
    assert user is not None
    assert user.password_hash is None
    assert await last_method(service, user) == SignInMethod.PASSKEY
    assert errors == []


async def last_method(service: RunningService, user: User) -> SignInMethod:
    (session,) = await service.services.storage.sessions.sessions_of_user(user.user_id, service.clock.now())
    return session.auth


@pytest.mark.usefixtures("anna")
async def test_a_passkey_proves_that_it_is_still_its_owner(service: RunningService, page: Page) -> None:
    await VirtualKey.plugged_into(page)
    await sign_in(service, page)
    await add_passkey(page, "Work laptop")
    await page.get_by_role("button", name="Done, I saved them").click()
    await service.clock.advance(STALE)
    await page.goto(f"{service.base_url}/account")
    await page.get_by_role("button", name="Remove Work laptop").click()
    await expect(page.get_by_role("heading", name="Confirm it's you")).to_be_visible()
    await page.get_by_role("button", name="Use a passkey").click()
    await open_account_page(page)
    await page.get_by_role("button", name="Remove Work laptop").click()
    await expect_notice(page, "Passkey removed")


@pytest.mark.both_databases
async def test_every_form_of_the_page_works_without_javascript(
    service: RunningService, browser: Browser, anna: User
) -> None:
    context = await browser.new_context(java_script_enabled=False, viewport={"width": 360, "height": 740})
    page = await context.new_page()
    await sign_in(service, page)
    await open_account_page(page)

    await page.get_by_label("Display name").fill("Änne")
    await page.locator("#profile").get_by_role("button", name="Save", exact=True).click()
    await expect_notice(page, "Profile saved")
    await open_account_page(page, "Änne")

    await page.get_by_role("combobox", name="Language").select_option("Deutsch")
    await page.get_by_role("combobox", name="Appearance").select_option("Dark")
    await page.locator("#look").get_by_role("button", name="Save").click()
    await expect_notice(page, "Sprache und Darstellung gespeichert")
    await page.get_by_role("combobox", name="Sprache").select_option("English")
    await page.locator("#look").get_by_role("button", name="Speichern").click()
    await expect_notice(page, "Language and appearance saved")

    await page.get_by_text("Change email").click()
    await page.get_by_role("textbox", name="New email").fill("anne@new.example")
    await page.get_by_role("button", name="Send link").click()
    await expect_notice(page, "We sent a link to the new address. Open it to complete the change.")
    await page.goto(service.base_url + await link_in_new_message(service))
    await page.get_by_role("button", name="Confirm email").click()
    await page.get_by_role("button", name="Go to account").click()
    await expect(page.locator("#email").get_by_text("verified", exact=True)).to_be_visible()
    assert (await read_user(service, anna)).login == "anne@new.example"

    await page.get_by_text("Change password").click()
    await page.get_by_label("Current password").fill(PASSWORD)
    await page.get_by_label("New password").fill(NEW)
    await page.get_by_role("button", name="Save password").click()
    await expect_notice(page, "Password changed. All other devices are signed out.")

    await page.get_by_role("button", name="Turn on: Email codes").click()
    await page.get_by_role("button", name="Done, I saved them").click()
    await page.get_by_text("Create new codes").click()
    await page.get_by_role("button", name="Create codes").click()
    await expect(page.locator("#codes li")).to_have_count(10)
    await page.get_by_role("button", name="Done, I saved them").click()

    await service.clock.advance(STALE)
    await page.get_by_role("button", name="Turn off: Email codes").click()
    await new_messages(service)
    await page.get_by_role("button", name="Email me a code").click()
    await expect_notice(page, "New code sent")
    (message,) = await new_messages(service)
    await page.get_by_label("Password").fill(NEW)
    await page.get_by_role("textbox", name="Code").fill(
        next(word for word in message.text.split() if word.isdecimal())
    )
    await page.get_by_role("button", name="Confirm", exact=True).click()
    await page.get_by_role("button", name="Turn off: Email codes").click()
    await expect_notice(page, "Email codes turned off")
    await context.close()


@pytest.mark.usefixtures("anna")
async def test_another_device_is_signed_out_by_mouse(
    service: RunningService, browser: Browser, page_with_or_without_script: Page
) -> None:
    phone = await browser.new_context(user_agent="Mozilla/5.0 (iPhone) Safari/605.1", java_script_enabled=False)
    elsewhere = await phone.new_page()
    await sign_in(service, elsewhere)
    await sign_in(service, page_with_or_without_script)
    await page_with_or_without_script.get_by_role("button", name="Sign out: Safari, iPhone").click()
    await expect_notice(page_with_or_without_script, "Device signed out")
    await elsewhere.goto(f"{service.base_url}/account")
    await expect(elsewhere).to_have_url(f"{service.base_url}/sign-in")
    await sign_in(service, elsewhere)
    await page_with_or_without_script.goto(f"{service.base_url}/account")
    await page_with_or_without_script.get_by_role("button", name="Sign out everywhere else").click()
    await expect_notice(page_with_or_without_script, "All other devices signed out")
    await elsewhere.goto(f"{service.base_url}/account")
    await expect(elsewhere).to_have_url(f"{service.base_url}/sign-in")
    await phone.close()


async def test_op_14_a_copy_is_downloaded_and_the_account_deleted(
    service: RunningService, page_with_or_without_script: Page, anna: User, tmp_path: Path
) -> None:
    await sign_in(service, page_with_or_without_script)
    async with page_with_or_without_script.expect_download() as downloading:
        await page_with_or_without_script.locator("#data").get_by_role("button", name="Download").click()
    download = await downloading.value
    assert download.suggested_filename == f"gatehouse-{anna.user_id}.json"
    await download.save_as(tmp_path / "copy.json")
    assert json.loads((tmp_path / "copy.json").read_text())["account"]["login"] == LOGIN
    await page_with_or_without_script.get_by_role("button", name="Delete").click()
    await page_with_or_without_script.get_by_label(f"To confirm, type {LOGIN}").fill(LOGIN)
    await page_with_or_without_script.get_by_role("button", name="Delete account").click()
    await expect_notice(page_with_or_without_script, "Account deleted")
    await sign_in(service, page_with_or_without_script)
    await expect(page_with_or_without_script.get_by_role("alert")).to_have_text("Wrong email or password.")


@pytest.mark.usefixtures("anna")
async def test_lg_24_after_sign_out_the_back_button_shows_nothing(service: RunningService, page: Page) -> None:
    await sign_in(service, page)
    await open_account_page(page)
    await sign_out(page)
    await page.go_back()
    await expect(page).to_have_url(f"{service.base_url}/sign-in")
    await expect(page.get_by_text(LOGIN)).to_have_count(0)
