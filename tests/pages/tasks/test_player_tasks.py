"""What players and employees do, on a phone, each within its ceiling: a path ends where the person wanted to go."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from msgspec.structs import replace
from playwright.async_api import expect

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.times import DAY
from tests.pages.tasks.counting import Person
from tests.pages.test_account import VirtualKey
from tests.pages.test_oauth import Shop
from tests.support.browser import LOGIN, PASSWORD, totp_code
from tests.support.builders import a_record
from tests.support.game import Game, register_game, register_game_elsewhere
from tests.support.guest_racers import INSTALLATION, a_ban
from tests.support.guests import Device, register_upgrade, turn_guests_on
from tests.support.mailbox import link_in_new_message
from tests.support.oauth import RelyingPartyClient, a_public_client, an_oidc_client, success_body
from tests.support.permission_builders import create_application
from tests.support.service import RunningService

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.on_phone]

ORIGIN = AuditOrigin(actor="test")
NEW = "kim@studio.example"
NEW_PASSWORD = "an entirely different phrase"
SHOWN_CODE = re.compile(r"\d{4} \d{4}")
NO_AUTOFILL = "PublicKeyCredential.isConditionalMediationAvailable = async () => false"


@pytest_asyncio.fixture(loop_scope="session")
async def anna(service: RunningService, screen: tuple[str, str]) -> User:
    return await service.services.accounts.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN, more={"lang": screen[0]}
    )


@pytest_asyncio.fixture(loop_scope="session")
async def shop() -> AsyncIterator[Shop]:
    shop, server = await Shop.open()
    async with server:
        yield shop


async def open_application(person: Person, shop: Shop, **fields: bool) -> RelyingPartyClient:
    client = await an_oidc_client(person.service, "shop", name="Web shop", redirect_uris=(shop.uri,), **fields)
    party = RelyingPartyClient(
        service=person.service, client=client.client, secret=client.secret, redirect_uri=shop.uri
    )
    await person.open(party.authorize_path())
    return party


async def sign_in(person: Person) -> None:
    await person.fill(person.field("sign_in.login"), LOGIN)
    await person.fill(person.field("field.password"), PASSWORD)
    await person.press_enter(person.field("field.password"))


async def create_account(person: Person, *, as_guest: bool = False) -> None:
    await person.tap(person.button("sign_in.create_account") if as_guest else person.link("sign_in.register"))
    await person.fill(person.field("field.login"), NEW)
    await person.fill(person.field("field.nick"), "Kim")
    await person.fill(person.field("field.password"), PASSWORD)
    await person.press_enter(person.field("field.password"))
    await person.sees_heading("check_mail.title")


async def open_link(person: Person) -> None:
    await person.open(await link_in_new_message(person.service))


async def signed_in_at_account(person: Person) -> None:
    """Sign in before the task begins."""
    await person.open("/account")
    await person.field("sign_in.login").fill(LOGIN)
    await person.field("field.password").fill(PASSWORD)
    await person.field("field.password").press("Enter")
    await sees_own_account(person)


async def sees_own_account(person: Person) -> None:
    await expect(person.page.get_by_role("heading", level=1, name="Anna")).to_be_visible()


async def set_up_totp(person: Person) -> tuple[str, list[str]]:
    """Set up an app before the task begins; return its secret and the recovery codes."""
    page = person.page
    await person.open("/account/totp")
    secret = "".join((await page.locator("#secret").text_content() or "").split())
    await page.locator("[name=otp]").fill(totp_code(secret, person.service))
    await page.locator("[name=otp]").press("Enter")
    await person.sees_heading("codes.title")
    codes = await page.locator("#codes li").all_inner_texts()
    await person.service.clock.advance(60)
    return secret, codes


async def is_in(game: Game) -> str:
    answer = (await game.poll()).json()
    assert answer["status"] == "OK", answer
    return str(answer["user_id"])


@pytest.mark.ceiling(taps=1, fields=2)
@pytest.mark.usefixtures("anna")
async def test_person_signs_in_and_sees_their_account(person: Person) -> None:
    await person.open("/account")
    await sign_in(person)
    await sees_own_account(person)


@pytest.mark.ceiling(taps=4, fields=3)
async def test_person_registers_from_an_application_and_arrives_in_it(person: Person, shop: Shop) -> None:
    await open_application(person, shop)
    await create_account(person)
    waiting = person.page
    person.page = await person.page.context.new_page()  # the mail program opens another window
    await open_link(person)
    await person.tap(person.button("verify.continue_to", application="Web shop"))
    await person.arrives_at(shop.uri)
    await expect(waiting).to_have_url(re.compile(re.escape(shop.uri)))  # the first window goes on too


@pytest.mark.ceiling(taps=5, fields=4)
async def test_player_registers_from_a_game_confirms_on_another_device_and_plays(person: Person) -> None:
    application = await create_application(person.service.services.storage, name="Sky Raiders")
    game = await register_game(person.service, app_id=application.application_id)
    await person.open(f"/?gsid={game.gsid}")
    await create_account(person)
    phone = await person.on_another_device("phone")
    await open_link(phone)
    code = SHOWN_CODE.search(await phone.page.inner_text("main"))
    assert code is not None
    await person.fill(person.field("registration_sent.code"), code[0])
    await person.press_enter(person.field("registration_sent.code"))
    await person.tap(person.button("confirm_sign_in.confirm"))
    await person.sees_heading("game_end.confirmed_title")
    assert await is_in(game)
    await phone.open("/account")
    await phone.sees_heading("sign_in.title")  # the other device is not signed in


@pytest.mark.ceiling(taps=3, fields=3)
async def test_person_continues_on_the_other_device_with_a_new_password(person: Person, shop: Shop) -> None:
    """From the link on; what came before is counted above."""
    await open_application(person, shop)
    await create_account(person)
    person.count.done.clear()
    other = await person.on_another_device()
    await open_link(other)
    await other.tap(other.page.get_by_text(other.words("verify_elsewhere.here")))
    await other.fill(other.field("field.new_password"), NEW_PASSWORD)
    await other.press_enter(other.field("field.new_password"))
    await other.arrives_at(shop.uri)
    await expect(person.page).to_have_url(re.compile("/register/continue$"))
    await person.sees_heading("registered_elsewhere.title")


@pytest.mark.ceiling(taps=3, fields=2)
@pytest.mark.usefixtures("anna")
async def test_person_signs_in_to_an_application_for_the_first_time(person: Person, shop: Shop) -> None:
    await open_application(person, shop, first_party=False)
    await sign_in(person)
    await person.tap(person.button("consent.allow"))
    await person.arrives_at(shop.uri)


@pytest.mark.ceiling(taps=3, fields=2)
@pytest.mark.usefixtures("anna")
async def test_person_who_forgot_the_password_arrives_where_they_began(person: Person, shop: Shop) -> None:
    await open_application(person, shop)
    await person.fill(person.field("sign_in.login"), LOGIN)
    await person.tap(person.link("sign_in.forgot"))
    await expect(person.field("field.login")).to_have_value(LOGIN)
    await person.tap(person.button("forgot.submit"))
    await person.sees_heading("check_mail.title")
    await open_link(person)
    await person.fill(person.field("field.new_password"), NEW_PASSWORD)
    await person.press_enter(person.field("field.new_password"))
    await person.arrives_at(shop.uri)


@pytest.mark.ceiling(taps=2, fields=2)
async def test_player_signs_in_to_a_game_on_the_same_network(person: Person, anna: User) -> None:
    game = await register_game(person.service)
    await person.open(f"/?gsid={game.gsid}")
    await sign_in(person)
    await person.tap(person.button("confirm_sign_in.confirm"))
    assert await is_in(game) == anna.user_id


@pytest.mark.ceiling(taps=2, fields=3)
async def test_player_signs_in_to_a_game_on_another_network_by_its_number(person: Person, anna: User) -> None:
    game = await register_game_elsewhere(person.service, code="1")
    await person.open(f"/?gsid={game.gsid}")  # the QR code
    await sign_in(person)
    await person.pick(person.page.locator("label", has=person.page.locator(f'[value="{game.answer["code"]}"]')))
    await person.tap(person.button("confirm_sign_in.confirm"))
    await person.sees_heading("game_end.confirmed_title")
    assert await is_in(game) == anna.user_id


@pytest.mark.ceiling(taps=1, fields=2)
async def test_banned_player_sees_why_and_until_when_in_local_time(person: Person, anna: User) -> None:
    now = person.service.clock.now()
    ban = replace(a_ban(anna.user_id), public_text="You cheated.", until=now + 3 * DAY)
    await person.service.services.storage.bans.save_ban(
        anna.user_id, INSTALLATION, lambda _: (ban, a_record()), by="1", now=now
    )
    await person.open("/account")
    await sign_in(person)
    await expect(person.page.get_by_text("You cheated.")).to_be_visible()
    await expect(person.page.locator("time")).not_to_contain_text("UTC")


@pytest.mark.ceiling(taps=3, fields=0)
@pytest.mark.usefixtures("anna")
async def test_person_adds_a_passkey_and_signs_in_with_it(person: Person) -> None:
    """Two taps to add it, and one to sign in."""
    await VirtualKey.plugged_into(person.page)
    await signed_in_at_account(person)
    await person.tap(person.page.get_by_role("button", name=person.words("account.add_passkey")))
    await person.tap(person.button("passkey.submit"))
    await person.sees_heading("codes.title")
    await person.page.context.clear_cookies()
    await person.page.add_init_script(NO_AUTOFILL)
    await person.open("/sign-in")
    await person.tap(person.button("sign_in.passkey"))
    await sees_own_account(person)


@pytest.mark.ceiling(taps=2, fields=3)
@pytest.mark.usefixtures("anna")
async def test_person_signs_in_with_a_code_on_a_second_device(person: Person) -> None:
    await signed_in_at_account(person)
    secret, _ = await set_up_totp(person)
    other = await person.on_another_device()
    await other.open("/account")
    await sign_in(other)
    await other.fill(other.field("field.code"), totp_code(secret, person.service))
    await other.press_enter(other.field("field.code"))
    await sees_own_account(other)


@pytest.mark.ceiling(taps=3, fields=3)
@pytest.mark.usefixtures("anna")
async def test_person_who_lost_the_device_signs_in_with_a_recovery_code(person: Person) -> None:
    await signed_in_at_account(person)
    _, codes = await set_up_totp(person)
    other = await person.on_another_device()
    await other.open("/account")
    await sign_in(other)
    await other.tap(other.button("factor.use_recovery"))
    await other.fill(other.field("field.recovery_code"), codes[0])
    await other.press_enter(other.field("field.recovery_code"))
    await sees_own_account(other)


@pytest.mark.ceiling(taps=3, fields=2)
@pytest.mark.usefixtures("anna")
async def test_person_signs_a_device_in_by_its_code(person: Person) -> None:
    await a_public_client(person.service, "tv", name="Sofa TV", redirect_uris=(), device_grant=True)
    asked = await person.service.client.post(
        "/proxy/oauth/device_authorization", data={"client_id": "tv", "scope": "openid"}
    )
    await person.open(success_body(asked)["verification_uri_complete"])
    await person.tap(person.button("device.submit"))
    await sign_in(person)
    await person.tap(person.button("confirm_sign_in.confirm"))
    await person.sees_heading("device_done.title")


@pytest.mark.ceiling(taps=1, fields=1)
@pytest.mark.usefixtures("anna")
async def test_player_accepts_terms_and_age_with_enter(person: Person) -> None:
    document = {"title": "Rules", "url": "https://studio.example/rules", "version": "1", "minimum_age": 16}
    wanted = {f"terms.rules.{name}": value for name, value in document.items()}
    await person.service.services.settings_editor.save(wanted, ORIGIN)
    game = await register_game(person.service, factor="device")
    await signed_in_at_account(person)
    await person.open(f"/?gsid={game.gsid}")
    await person.sees_heading("terms.title")
    await person.fill(person.field("terms.birth"), "2001-05-31")
    await person.press_enter(person.field("terms.birth"))
    await expect(person.button("confirm_sign_in.confirm")).to_be_visible()


@pytest.mark.ceiling(taps=4, fields=4)
async def test_guest_keeps_their_progress_in_a_new_account(person: Person) -> None:
    await turn_guests_on(person.service)
    device = Device()
    guest = await device.log_in(person.service)
    game = await register_upgrade(person.service, device, code="1")
    await person.service.clock.advance(1)
    await person.open(f"/?gsid={game.gsid}")
    await person.sees_heading("sign_in.save_progress")
    await create_account(person, as_guest=True)
    await open_link(person)
    await person.tap(person.page.get_by_role("button", name=person.words("verify.continue")))
    await person.pick(person.page.locator("label", has=person.page.locator(f'[value="{game.answer["code"]}"]')))
    await person.tap(person.button("confirm_sign_in.confirm"))
    assert await is_in(game) == guest["user_id"]


@pytest.mark.ceiling(taps=1, fields=0)
@pytest.mark.usefixtures("anna")
async def test_person_sees_and_ends_a_session(person: Person) -> None:
    other = await person.on_another_device("desktop")
    await signed_in_at_account(other)
    await signed_in_at_account(person)
    await person.tap(person.page.get_by_role("button", name=person.words("account.end_others")))
    await person.sees("notice.others_ended")
    await other.open("/account")
    await other.sees_heading("sign_in.title")


@pytest.mark.ceiling(taps=2, fields=1)
async def test_person_deletes_their_account(person: Person, anna: User) -> None:
    await signed_in_at_account(person)
    await person.tap(person.page.get_by_role("button", name=person.words("account.delete_go")))
    await person.fill(person.page.locator("[name=login]"), anna.login or "")
    await person.press_enter(person.page.locator("[name=login]"))
    await person.sees("notice.account_deleted")
    assert await person.service.services.storage.accounts.user_by_login(LOGIN) is None
