"""Phone numbers: verified by a code in a text message on the account page (R11)."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from gatehouse.accounts.model import User
from gatehouse.accounts.phones.numbers import check_phone
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD, AccountBrowser, form_to, hidden_fields
from tests.support.mailbox import new_messages
from tests.support.service import RunningService, running_service
from tests.support.stub_server import run_stub_server
from tests.support.text_messages import NUMBER, PHONE, FakeSender, phone_settings
from tests.wire.accounts.test_proof_of_work import DIFFICULTY, solve

BOB = "bob@studio.example"
WRONG = "000000"


@pytest.fixture
async def sender() -> AsyncIterator[FakeSender]:
    fake = FakeSender()
    async with run_stub_server(fake.server):
        yield fake


@pytest.fixture
async def service(database_url: str, tmp_path: Path, sender: FakeSender) -> AsyncIterator[RunningService]:
    async with running_service(database_url, tmp_path, environment=phone_settings(sender)) as running:
        yield running


@pytest.fixture
async def second_browser(service: RunningService) -> AsyncIterator[AccountBrowser]:
    someone = AccountBrowser(service)
    yield someone
    await someone.client.aclose()


async def sign_in_bob(service: RunningService, browser: AccountBrowser) -> User:
    bob = await service.services.accounts.administration.create(
        login=BOB, nick="Bob", password=PASSWORD, origin=AuditOrigin(actor="test")
    )
    await browser.sign_in_and_open_account(BOB)
    return bob


async def read_user(service: RunningService, user: User) -> User:
    return await service.services.storage.accounts.user(user.user_id)


async def request_code(service: RunningService, browser: AccountBrowser, phone: str = PHONE) -> str:
    notice = await browser.submit_and_read_notice("/account/phone", phone=phone)
    await service.services.mail.text_outbox.run_once()
    return notice


async def verify(service: RunningService, browser: AccountBrowser, sender: FakeSender, phone: str = PHONE) -> None:
    await request_code(service, browser, phone)
    assert await browser.submit_and_read_notice("/account/phone/code", otp=sender.code()) == "Phone number verified"


@pytest.mark.both_databases
async def test_number_is_verified_by_the_code_of_a_text_message(
    service: RunningService, account_browser: AccountBrowser, anna: User, sender: FakeSender
) -> None:
    assert await request_code(service, account_browser) == "Code sent. It is valid for 5 minutes."
    assert sender.texts[-1][0] == NUMBER
    assert sender.texts[-1][1].endswith(f"\n\n@localhost #{sender.code()}")
    assert not (await read_user(service, anna)).phone
    shown, spaced = sender.code(), f"{sender.code()[:3]} {sender.code()[3:]}"
    assert await account_browser.submit_and_read_notice("/account/phone/code", otp=spaced) == "Phone number verified"
    verified = await read_user(service, anna)
    assert (verified.phone, verified.phone_verified) == (NUMBER, True)
    assert "phone_verified" in verified.all_tags
    assert [mail.subject for mail in await new_messages(service)] == ["Your phone number was verified"]
    again = await account_browser.post_with_csrf("/account/phone/code", otp=shown)
    assert again.status_code == 403  # the code works once
    assert await account_browser.submit_and_read_notice("/account/phone/remove") == "Phone number removed"
    removed = await read_user(service, anna)
    assert (removed.phone, removed.phone_verified) == ("", False)


async def test_pn_01_five_wrong_codes_end_a_code_and_it_lives_five_minutes(
    service: RunningService, account_browser: AccountBrowser, anna: User, sender: FakeSender
) -> None:
    await request_code(service, account_browser)
    right = sender.code()
    wrong = WRONG if right != WRONG else "111111"
    for _ in range(5):
        assert (await account_browser.submit("/account/phone/code", otp=wrong)).status_code == 403
    assert (await account_browser.post_with_csrf("/account/phone/code", otp=right)).status_code == 403
    await request_code(service, account_browser)
    first = sender.code()
    await request_code(service, account_browser)
    if sender.code() != first:  # a newer code ends the older one
        assert (await account_browser.submit("/account/phone/code", otp=first)).status_code == 403
    await service.clock.advance(300)
    assert (await account_browser.post_with_csrf("/account/phone/code", otp=sender.code())).status_code == 403
    assert not (await read_user(service, anna)).phone


async def test_pn_01_code_works_in_the_browser_that_asked_only(
    service: RunningService,
    account_browser: AccountBrowser,
    second_browser: AccountBrowser,
    anna: User,
    sender: FakeSender,
) -> None:
    await request_code(service, account_browser)
    await second_browser.sign_in_and_open_account()
    assert (await second_browser.submit("/account/phone/code", otp=sender.code())).status_code == 403
    assert not (await read_user(service, anna)).phone_verified


@pytest.mark.both_databases
async def test_pn_02_three_messages_an_hour_go_to_a_number_whoever_asks(
    service: RunningService, account_browser: AccountBrowser, second_browser: AccountBrowser, sender: FakeSender
) -> None:
    """Exactly, in any hour: each message counts until it is an hour old."""
    for _ in range(2):
        await request_code(service, account_browser)
    await service.clock.advance(3_000)
    await sign_in_bob(service, second_browser)
    await request_code(service, second_browser)
    refused = await second_browser.submit("/account/phone", phone=PHONE)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "600")
    await service.clock.advance(600)
    await account_browser.sign_in_and_open_account()
    for _ in range(2):
        await request_code(service, account_browser)
    assert (await account_browser.submit("/account/phone", phone=PHONE)).status_code == 429
    assert (await account_browser.submit("/account/phone", phone="+49 (0)151 23456789")).status_code == 429
    assert len(sender.texts) == 5


async def test_pn_02_ten_messages_an_hour_go_to_an_account_and_an_address(
    service: RunningService, account_browser: AccountBrowser, second_browser: AccountBrowser, sender: FakeSender
) -> None:
    for number in range(10):
        await request_code(service, account_browser, f"+4915123456{number:02}")
    assert (await account_browser.submit("/account/phone", phone="+4915198765432")).status_code == 429
    await sign_in_bob(service, second_browser)  # another account, from the same address
    assert (await second_browser.submit("/account/phone", phone="+4915198765433")).status_code == 429
    assert len(sender.texts) == 10


async def test_pn_02_ceiling_of_a_day_stops_all_messages(
    service: RunningService, account_browser: AccountBrowser, sender: FakeSender
) -> None:
    """20 messages cost 200 cents."""
    for hour in range(2):
        for number in range(10):
            await request_code(service, account_browser, f"+49151{hour}23456{number:02}")
        await service.clock.advance(3_600)
        await account_browser.sign_in_and_open_account()
    refused = await account_browser.submit("/account/phone", phone=PHONE)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, str(86_400 - 7_200))
    assert len(sender.texts) == 20


async def test_pn_02_limits_count_messages_of_all_nodes(
    installed_postgres_url: str, tmp_path: Path, sender: FakeSender
) -> None:
    settings = phone_settings(sender)
    async with (
        running_service(installed_postgres_url, tmp_path, environment=settings) as one,
        running_service(installed_postgres_url, tmp_path, clock=one.clock, environment=settings) as two,
    ):
        first, second = AccountBrowser(one), AccountBrowser(two)
        await sign_in_bob(one, first)
        await second.sign_in_and_open_account(BOB)
        await request_code(one, first)
        await request_code(two, second)
        await request_code(one, first)
        refused = await asyncio.gather(
            *(browser.post_with_csrf("/account/phone", phone=PHONE) for browser in (first, second))
        )
        assert [answer.status_code for answer in refused] == [429, 429]
        for browser in (first, second):
            await browser.client.aclose()
    assert len(sender.texts) == 3


async def test_pn_02_puzzle_is_required_where_proof_of_work_is_on(
    service: RunningService, account_browser: AccountBrowser, sender: FakeSender
) -> None:
    protection = {"protection.proof_of_work": "on", "protection.difficulty": DIFFICULTY}
    await service.services.settings_editor.save(protection, AuditOrigin(actor="test"))
    puzzle = unescape(
        hidden_fields(form_to("/account/phone", (await account_browser.get("/account")).text))["puzzle"]
    )
    wrong = await account_browser.submit("/account/phone", phone=PHONE, solution="0.0")
    assert (wrong.status_code, "Submit the form again" in wrong.text) == (400, True)
    await service.services.mail.text_outbox.run_once()
    assert sender.texts == []
    await account_browser.get("/account")
    sent = await account_browser.submit("/account/phone", phone=PHONE, puzzle=puzzle, solution=solve(puzzle))
    assert sent.status_code == 303
    await service.services.mail.text_outbox.run_once()
    assert len(sender.texts) == 1


@pytest.mark.both_databases
async def test_no_message_is_sent_where_one_costs_more_than_a_day(
    database_url: str, tmp_path: Path, sender: FakeSender
) -> None:
    settings = {**phone_settings(sender), "GATEHOUSE__PHONE__MESSAGE_CENTS": "201"}
    async with running_service(database_url, tmp_path, environment=settings) as running:
        browser = AccountBrowser(running)
        await sign_in_bob(running, browser)
        refused = await browser.post_with_csrf("/account/phone", phone=PHONE)
        assert refused.status_code == 403
        await running.services.mail.text_outbox.run_once()
        await browser.client.aclose()
    assert sender.texts == []


@pytest.mark.parametrize(
    ("phone", "words"),
    [
        ("0151 23456789", "Enter a number with its country code"),
        ("+33 6 12345678", "Numbers of this country are not accepted here."),
        ("+1 876 5551234", "Numbers of this country are not accepted here."),  # Jamaica, not the United States
        ("+1 900 5551234", "Numbers of this country are not accepted here."),  # premium
        ("+88213123456", "Numbers of this country are not accepted here."),  # satellite
    ],
)
async def test_pn_03_only_numbers_of_listed_countries_get_messages(
    service: RunningService, account_browser: AccountBrowser, sender: FakeSender, phone: str, words: str
) -> None:
    page = await account_browser.submit("/account/phone", phone=phone)
    assert page.status_code == 400
    assert words in page.text
    await service.services.mail.text_outbox.run_once()
    assert sender.texts == []


@pytest.mark.both_databases
async def test_pn_04_number_of_another_account_is_told_after_the_right_code_only(
    service: RunningService,
    account_browser: AccountBrowser,
    second_browser: AccountBrowser,
    anna: User,
    sender: FakeSender,
) -> None:
    await verify(service, account_browser, sender)
    await new_messages(service)
    await service.clock.advance(3_600)
    bob, other = await sign_in_bob(service, second_browser), second_browser
    assert await request_code(service, other) == "Code sent. It is valid for 5 minutes."
    right = sender.code()
    wrong = await other.submit("/account/phone/code", otp=WRONG if right != WRONG else "111111")
    assert "Another account" not in wrong.text
    taken = await other.submit("/account/phone/code", otp=right)
    assert taken.status_code == 409
    assert "Another account has verified this number. It stays there." in taken.text
    assert not (await read_user(service, bob)).phone
    (mail,) = [mail for mail in await new_messages(service) if "phone" in mail.subject]
    assert mail.to == anna.login
    assert BOB not in mail.text
    assert "Bob" not in mail.text
    assert "127.0.0.1" not in mail.text
    # An administrator releases it.
    await service.services.accounts.editor.save(
        await read_user(service, anna),
        {"phone": ""},
        AuditOrigin(actor="test"),
        version=(await read_user(service, anna)).version,
    )
    (told,) = await new_messages(service)
    assert (told.to, told.subject) == (anna.login, "Your phone number was removed")
    await verify(service, other, sender)
    assert (await read_user(service, bob)).phone_verified


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        ("+49 (0)151 23456789", NUMBER),
        ("0049 0151 23456789", NUMBER),
        ("+27 10 5551234", "+27105551234"),  # 27 is the code, and not 271
        ("+39 06 69812345", "+390669812345"),  # numbers of Italy begin with it
        ("+225 01 02030405", "+2250102030405"),
        ("+44 7781 012345", "+447781012345"),  # Guernsey shares the code of Great Britain
    ],
)
def test_number_has_one_spelling(typed: str, number: str) -> None:
    assert check_phone(typed) == number


async def test_text_is_printed_in_development_without_a_sender(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_service(database_url, tmp_path, environment={"GATEHOUSE__PHONE__COUNTRIES": "DE"}) as running:
        browser = AccountBrowser(running)
        bob = await sign_in_bob(running, browser)
        await request_code(running, browser)
        printed = re.search(r"Text message \(phone_code\) to \+4915123456789\n\n(\d{6}) is", capsys.readouterr().err)
        assert printed is not None
        await browser.submit_and_read_notice("/account/phone/code", otp=printed[1])
        assert (await read_user(running, bob)).phone_verified
        await browser.client.aclose()


async def test_message_that_failed_is_sent_again_while_its_code_lives(
    service: RunningService, account_browser: AccountBrowser, sender: FakeSender
) -> None:
    sender.status = "503 Service Unavailable"
    await account_browser.submit_and_read_notice("/account/phone", phone=PHONE)
    outbox = service.services.mail.text_outbox
    await outbox.run_once()
    assert sender.texts == []
    sender.status = "200 OK"
    await service.clock.advance(10)
    await outbox.run_once()
    assert len(sender.texts) == 1


async def test_pn_05_form_of_a_sender_encodes_number_and_text() -> None:
    from gatehouse.accounts.phones.message_call import SENDERS, SenderAccount, message_request  # noqa: PLC0415

    account = SenderAccount(account="AC1", secret="t0ken", sender_id="+1 555&Body=x")
    request = message_request(SENDERS["twilio"], account, to=NUMBER, text='a "b" & c=d\n#1')
    assert request.url == "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json"
    assert request.body is not None
    assert parse_qs(request.body.decode()) == {
        "To": [NUMBER],
        "From": ["+1 555&Body=x"],
        "Body": ['a "b" & c=d\n#1'],
    }
    assert request.headers["Authorization"] == "Basic QUMxOnQwa2Vu"
    vonage = message_request(SENDERS["vonage"], account, to=NUMBER, text='a "b"\n')
    assert json.loads(vonage.body or b"")["text"] == 'a "b"\n'
    assert json.loads(vonage.body or b"")["to"] == NUMBER[1:]
