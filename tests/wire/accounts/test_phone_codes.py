"""Codes by text message as a second factor, where settings allow them (R11)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION, User
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.permissions.model.rules import ROOT
from tests.support.browser import LOGIN, PASSWORD, RECOVERY_CODE, AccountBrowser, HttpBrowser
from tests.support.guests import Device, open_upgrade, register_upgrade, turn_guests_on
from tests.support.mailbox import new_messages
from tests.support.permission_builders import holdings_with, set_fields
from tests.support.second_factors import wrong_code
from tests.support.service import RunningService, running_service
from tests.support.stub_server import run_stub_server
from tests.support.text_messages import NUMBER, PHONE, FakeSender, phone_settings

ORIGIN = AuditOrigin(actor="test")
FACTOR, METHOD = "/sign-in/factor", "/sign-in/factor/method"


@pytest.fixture
async def sender() -> AsyncIterator[FakeSender]:
    fake = FakeSender()
    async with run_stub_server(fake.server):
        yield fake


@pytest.fixture
async def service(database_url: str, tmp_path: Path, sender: FakeSender) -> AsyncIterator[RunningService]:
    allowed = {**phone_settings(sender), "GATEHOUSE__PHONE__CONFIRM_SIGN_IN": "true"}
    async with running_service(database_url, tmp_path, environment=allowed) as running:
        yield running


@pytest.fixture
async def recovery(service: RunningService, account_browser: AccountBrowser, sender: FakeSender) -> list[str]:
    """The recovery codes of Anna, who has just turned codes by text message on."""
    await account_browser.submit_and_read_notice("/account/phone", phone=PHONE)
    await service.services.mail.text_outbox.run_once()
    await account_browser.submit_and_read_notice("/account/phone/code", otp=sender.code())
    await account_browser.get("/account")
    page = await account_browser.submit("/account/phone-code", on="1")
    return RECOVERY_CODE.findall(page.text)


async def read_anna(service: RunningService) -> User:
    found = await service.services.storage.accounts.user_by_login(LOGIN)
    assert found is not None
    return found


async def open_second_step(browser: HttpBrowser) -> None:
    await browser.sign_in(LOGIN)
    assert (await browser.follow()).url.path == FACTOR


async def request_code(service: RunningService, browser: HttpBrowser) -> None:
    """Ask for a code at the second step, and see that it was sent."""
    assert (await browser.post(METHOD, method="phone")).status_code == 303
    await browser.follow()
    await service.services.mail.text_outbox.run_once()


async def sign_in_by_phone(service: RunningService, browser: HttpBrowser, sender: FakeSender) -> None:
    await open_second_step(browser)
    await request_code(service, browser)
    assert (await browser.post(FACTOR, otp=sender.code())).headers["location"] == "/account"


async def close_phone(service: RunningService, browser: HttpBrowser, sender: FakeSender) -> None:
    """Enter ten wrong codes; each fifth one ends its code."""
    for _ in range(2):
        await open_second_step(browser)
        await request_code(service, browser)
        for _ in range(5):
            assert (await browser.post(FACTOR, otp=wrong_code(sender.code()))).status_code == 403


@pytest.mark.both_databases
async def test_pn_07_code_by_text_message_confirms_a_sign_in_and_is_no_recent_proof(
    service: RunningService,
    browser_client: HttpBrowser,
    sender: FakeSender,
    recovery: list[str],
) -> None:
    assert len(recovery) == 10
    assert (await read_anna(service)).system_tags >= {"2step", "2step_phone"}
    await open_second_step(browser_client)
    assert browser_client.page is not None
    assert "Get a code at <bdi>… 789</bdi>." in browser_client.page.text
    await request_code(service, browser_client)
    assert "It expires in 5 minutes." in browser_client.page.text
    assert NUMBER not in browser_client.page.text
    assert sender.texts[-1][0] == NUMBER
    await browser_client.post(FACTOR, otp=f"{sender.code()[:3]} {sender.code()[3:]}")
    assert (await browser_client.follow()).url.path == "/account"
    # A recovery code, not another text message, confirms that it is still Anna.
    assert (await browser_client.get("/account/totp")).headers["location"] == "/confirm?next=%2Faccount%2Ftotp"
    await browser_client.follow()
    assert (await browser_client.post("/confirm", password=PASSWORD)).status_code == 403
    assert (await browser_client.post("/confirm", password=PASSWORD, otp=sender.code())).status_code == 403
    assert (await browser_client.post("/confirm", password=PASSWORD, otp=recovery[0])).status_code == 303
    assert (await browser_client.get("/account/totp")).status_code == 200


async def test_pn_06_code_of_a_sign_in_works_once_and_in_its_browser_only(
    service: RunningService,
    browser_client: HttpBrowser,
    other: HttpBrowser,
    sender: FakeSender,
    recovery: list[str],  # noqa: ARG001 - codes are on
) -> None:
    await open_second_step(browser_client)
    await request_code(service, browser_client)
    await open_second_step(other)
    assert (await other.post(FACTOR, otp=sender.code(), method="phone")).status_code == 403
    assert (await browser_client.post(FACTOR, otp=sender.code())).status_code == 303
    assert (await other.post(FACTOR, otp=sender.code(), method="phone")).status_code == 403


@pytest.mark.both_databases
async def test_pn_06_ten_wrong_codes_close_the_phone_until_another_factor_opens_it(
    service: RunningService,
    browser_client: HttpBrowser,
    other: HttpBrowser,
    sender: FakeSender,
    recovery: list[str],
) -> None:
    await new_messages(service)
    await close_phone(service, other, sender)
    assert other.page is not None
    assert "Too many wrong codes." in other.page.text
    assert (await read_anna(service)).phone_closed
    assert "Too many wrong text message codes" in [mail.subject for mail in await new_messages(service)]
    await service.clock.advance(3_600)
    await open_second_step(browser_client)  # the password alone does not open the account
    assert browser_client.page is not None
    assert 'name="method" value="phone"' not in browser_client.page.text
    sent = len(sender.texts)
    assert (await browser_client.post(METHOD, method="phone")).status_code == 303
    await service.services.mail.text_outbox.run_once()
    assert len(sender.texts) == sent
    await browser_client.follow()
    assert (await browser_client.post(FACTOR, otp=recovery[0])).status_code == 303
    assert "Closed after too many wrong codes." in (await browser_client.follow()).text
    assert (await browser_client.post("/account/phone-code/open")).status_code == 303
    assert "Text message codes are accepted again" in (await browser_client.follow()).text
    assert not (await read_anna(service)).phone_closed
    await service.clock.advance(3_600)
    await sign_in_by_phone(service, other, sender)


async def test_pn_06_administrator_opens_the_phone(
    service: RunningService,
    other: HttpBrowser,
    sender: FakeSender,
    recovery: list[str],  # noqa: ARG001 - codes are on
) -> None:
    await close_phone(service, other, sender)
    await service.services.factors.phone_codes.open(
        await read_anna(service), origin=AuditOrigin(actor="1000000099"), reason="mistyped"
    )
    await service.clock.advance(3_600)
    await sign_in_by_phone(service, other, sender)


async def test_pn_07_phone_is_no_factor_with_a_protected_role(
    service: RunningService,
    browser_client: HttpBrowser,
    account_browser: AccountBrowser,
    anna: User,
    recovery: list[str],
) -> None:
    edit = set_fields(scopes={ROOT: holdings_with(ADMINISTRATOR_ROLE)})
    records = service.services.storage.user_records
    await records.edit_record(CENTRAL_APPLICATION, anna.user_id, edit, service.clock.now())
    await open_second_step(browser_client)
    assert browser_client.page is not None
    assert "Text me a code" not in browser_client.page.text
    assert (await browser_client.post(FACTOR, otp=recovery[0])).status_code == 303
    await account_browser.submit_and_read_notice("/account/phone-code", on="0")
    refused = await account_browser.post_with_csrf("/account/phone-code", on="1")
    assert refused.status_code == 403


async def test_pn_07_code_by_text_message_merges_no_guest(
    service: RunningService, browser_client: HttpBrowser, sender: FakeSender, recovery: list[str]
) -> None:
    await turn_guests_on(service)
    device = Device()
    await device.log_in(service)
    page = await open_upgrade(browser_client, await register_upgrade(service, device), LOGIN)
    assert (page.url.path, "Text me a code" in page.text) == (FACTOR, False)
    sent = len(sender.texts)
    await browser_client.post(METHOD, method="phone")
    await service.services.mail.text_outbox.run_once()
    assert len(sender.texts) == sent
    await browser_client.follow()
    await browser_client.post(FACTOR, otp=recovery[0])
    assert (await browser_client.follow()).url.path == "/sign-in/confirm"


async def test_pn_07_setting_that_ends_codes_leaves_the_second_factor_required(
    database_url: str, tmp_path: Path, sender: FakeSender
) -> None:
    async with running_service(database_url, tmp_path, environment=phone_settings(sender)) as running:
        browser = AccountBrowser(running)
        anna = await running.services.accounts.administration.create(
            login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN
        )
        await browser.sign_in_and_open_account()
        await browser.submit_and_read_notice("/account/phone", phone=PHONE)
        await running.services.mail.text_outbox.run_once()
        await browser.submit_and_read_notice("/account/phone/code", otp=sender.code())
        assert "/account/phone-code" not in (await browser.get("/account")).text  # off by default
        assert (await browser.post_with_csrf("/account/phone-code", on="1")).status_code == 403
        # As if it was on before.
        made = running.services.core.recorder.record
        await running.services.storage.phones.enable_phone_codes(
            anna.user_id, NUMBER, (), made(AuditEvent.FACTOR_ADDED, ORIGIN, subject=anna.user_id), ()
        )
        await open_second_step(browser)
        assert browser.page is not None
        assert "Codes by text message are not accepted for this account now." in browser.page.text
        assert "Ask an administrator" in browser.page.text
        await browser.client.aclose()


async def test_pn_02_code_after_a_right_password_is_not_counted_for_the_address(
    service: RunningService,
    browser_client: HttpBrowser,
    other: HttpBrowser,
    sender: FakeSender,
    recovery: list[str],  # noqa: ARG001 - codes are on
) -> None:
    await service.services.accounts.administration.create(
        login="bob@studio.example", nick="Bob", password=PASSWORD, origin=ORIGIN
    )
    bob = AccountBrowser(service)
    await bob.sign_in_and_open_account("bob@studio.example")
    for number in range(9):  # and the one of Anna
        await bob.submit_and_read_notice("/account/phone", phone=f"+4915123456{number:02}")
    assert (await bob.post_with_csrf("/account/phone", phone="+4915198765432")).status_code == 429
    await service.services.mail.text_outbox.run_once()
    await sign_in_by_phone(service, browser_client, sender)
    await open_second_step(other)
    await request_code(service, other)
    await open_second_step(other)  # the limit of a number counts
    assert (await other.post(METHOD, method="phone")).status_code == 429
    await bob.client.aclose()


async def test_another_number_ends_codes_at_sign_ins(
    service: RunningService, account_browser: AccountBrowser, anna: User, sender: FakeSender, recovery: list[str]
) -> None:
    assert recovery
    await new_messages(service)
    await account_browser.submit_and_read_notice("/account/phone", phone="+4915198765432")
    await service.services.mail.text_outbox.run_once()
    await account_browser.submit_and_read_notice("/account/phone/code", otp=sender.code())
    changed = await read_anna(service)
    assert (changed.phone, changed.phone_code, changed.has_second_factor) == ("+4915198765432", False, False)
    assert "A second factor was removed" in [mail.subject for mail in await new_messages(service)]
    overview = await service.services.storage.second_factors.factor_overview(anna.user_id)
    assert overview.recovery_left == 0


async def test_login_without_a_browser_takes_a_code_for_its_request(
    service: RunningService, anna: User, sender: FakeSender, recovery: list[str]
) -> None:
    assert recovery
    path, login = "/proxy/api/login", {"login": anna.login, "password": PASSWORD}
    first = (await service.client.post(path, json=login)).json()
    assert first["methods"] == ["phone", "recovery"]
    asked = {"request_id": first["request_id"], "method": "phone"}
    assert (await service.client.post(path, json=asked)).json()["status"] == "2STEP"
    await service.services.mail.text_outbox.run_once()
    second = (await service.client.post(path, json=login)).json()
    for refused in ({**login, "otp": sender.code()}, {"request_id": second["request_id"], "otp": sender.code()}):
        assert (await service.client.post(path, json=refused)).json() == {"status": "2STEPERROR"}
    answer = (await service.client.post(path, json={**asked, "otp": sender.code()})).json()
    assert (answer["status"], answer["auth"]) == ("OK", "2step")
    assert "2step_phone" in answer["tags"]


async def test_reset_of_all_factors_ends_codes_by_text_message(
    service: RunningService, browser_client: HttpBrowser, recovery: list[str]
) -> None:
    assert recovery
    await service.services.factors.second_factors.reset(await read_anna(service), origin=ORIGIN)
    assert not (await read_anna(service)).has_second_factor
    assert (await browser_client.sign_in(LOGIN)).headers["location"] == "/account"
