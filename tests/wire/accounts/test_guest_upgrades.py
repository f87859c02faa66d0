"""A guest gets an account, or is merged into one: in the game, in the browser, with a code (R10, GU-06 to GU-12)."""

import asyncio
import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.field_checks import MAX_TAG_LENGTH
from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.times import DAY
from gatehouse.permissions.model.facts import ScopeHoldings
from gatehouse.permissions.model.rules import ROOT
from gatehouse.permissions.model.schema import Tree
from tests.support.browser import PASSWORD, AccountBrowser, HttpBrowser
from tests.support.builders import a_record, an_identity
from tests.support.database_contents import read_all_tables
from tests.support.game import GET_GSID, Game, poll_ended_session, register_game
from tests.support.guests import (
    NEW,
    Device,
    ask_challenge,
    confirm_upgrade,
    open_upgrade,
    post_guest,
    register_account,
    register_upgrade,
)
from tests.support.mailbox import link_in_message, new_messages
from tests.support.permission_builders import a_role, set_fields
from tests.support.processes import free_port
from tests.support.service import RunningService, running_service
from tests.support.studio import (
    Person,
    Studio,
    a_studio,
    audit_records,
    bearer_headers,
    create_administrator,
    create_person_with,
    own_record,
    put_roles,
    question_body,
    role_meta,
    secret_document,
    set_user_roles,
)
from tests.wire.accounts.test_providers import KIM, a_vendor, come_back, connect, find_user, leave

ORIGIN = AuditOrigin(actor="test")
ANNA = "anna@studio.example"


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    environment = {"GATEHOUSE__GUESTS__ENABLED": "true", "GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}
    async with running_service(installed_url, tmp_path, environment=environment) as running:
        yield running


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


async def user_of(service: RunningService, user_id: str) -> User:
    return await service.services.storage.accounts.user(user_id)


async def result_of(game: Game) -> dict[str, Any]:
    answer: dict[str, Any] = (await game.poll()).json()
    return answer


async def test_person_who_registers_keeps_the_id_of_the_guest(studio: Studio, browser_client: HttpBrowser) -> None:
    service, device = studio.service, Device()
    guest = await device.log_in(service, factor="pc")
    await put_roles(studio, a_role("player"))
    await set_user_roles(studio, guest["user_id"], {ROOT: ["player"]})
    game = await register_upgrade(service, device)
    await register_account(service, browser_client)
    page = await open_upgrade(browser_client, game, NEW)
    assert guest["nick"] in page.text
    assert "saved to this account" in page.text
    await browser_client.post("/sign-in/confirm", decision="confirm", code=game.answer["code"])
    assert (await browser_client.follow()).url.path == "/game/done"
    answer = await result_of(game)
    assert (answer["status"], answer["auth"], answer["user_id"]) == ("OK", "login", guest["user_id"])
    assert (answer["nick"], answer["tags"]) == ("Kim", "")
    user = await user_of(service, guest["user_id"])
    assert (user.login, user.may_add_factors) == (NEW, False)
    assert await status_of_token(studio, answer["jwt"]) == 200
    messages = {one.subject: one for one in await new_messages(service)}
    assert guest["nick"] in messages["Your guest was saved to your account"].text
    await browser_client.get(link_in_message(service, messages["Confirm your email"]))
    await browser_client.post("/verify-email")
    assert (await user_of(service, guest["user_id"])).email_verified, "the link that was mailed before works"
    assert (await browser_client.get("/account")).status_code == 200, "the browser is signed in to the same account"
    assert await device.log_in(service) == {"status": "LOGINERROR"}
    assert await status_of_token(studio, guest["jwt"]) == 401, "tokens of the guest ended"
    assert await status_of_token(studio, answer["jwt"]) == 401, "so did those from before the address was proved"
    (record,) = await audit_records(studio, AuditEvent.ACCOUNT_UPGRADED)
    assert (record.subject, record.details["to"]) == (guest["user_id"], guest["user_id"])
    login = {"login": NEW, "password": PASSWORD}
    assert (await service.client.post("/proxy/api/login", json=login)).json()["user_id"] == guest["user_id"]


@pytest.mark.both_databases
async def test_invitation_to_the_new_account_is_one_of_the_upgraded_guest(
    studio: Studio, browser_client: HttpBrowser
) -> None:
    """It came between the registration in the browser and the confirmation of the game."""
    service, device = studio.service, Device()
    guest = await device.log_in(service)
    await put_roles(studio, a_role("player"))
    game = await register_upgrade(service, device)
    await register_account(service, browser_client)
    administrator = await create_administrator(studio)
    role = {"application_id": studio.shop.application_id, "name": "player"}
    invite = {"action": "invite", "data": {"login": NEW, "role": role}}
    await studio.expect_ok("user", invite, administrator.headers)
    await open_upgrade(browser_client, game, NEW)
    await browser_client.post("/sign-in/confirm", decision="confirm", code=game.answer["code"])
    assert (await result_of(game))["user_id"] == guest["user_id"]
    messages = {one.subject: one for one in await new_messages(service)}
    await browser_client.get(link_in_message(service, messages["Confirm your email"]))
    await browser_client.post("/verify-email")
    await browser_client.get("/account/invitations")
    await browser_client.post("/account/invitations", decision="accept")
    question = question_body(studio, role="player")
    listed = await studio.expect_ok("members", question, administrator.headers)
    assert [one["user_id"] for one in listed["data"]["members"]] == [guest["user_id"]]


async def status_of_token(studio: Studio, jwt: str) -> int:
    headers = {**bearer_headers(jwt), "Factor": "pc"}
    return (await studio.post("meta/data", own_record(studio.shop), headers)).status_code


async def test_page_of_an_upgrade_names_the_guest_and_offers_a_new_account_first(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    device = Device()
    guest = await device.log_in(service)
    game = await register_upgrade(service, device)
    await service.services.settings_editor.save({"accounts.registration": False}, ORIGIN)
    closed = (await open_sign_in(browser_client, game)).text
    assert "Save your progress" in closed
    assert f"You play as <strong><bdi>{guest['nick']}</bdi></strong>." in closed
    assert "Create account" not in closed, "there is no registration"
    await service.services.settings_editor.save({"accounts.registration": True}, ORIGIN)
    page = (await open_sign_in(browser_client, game)).text
    (register,) = re.findall(r'<a href="(/register\?interaction=[^"]+)" role="button">Create account</a>', page)
    assert page.index(register) < page.index('name="password"')
    assert (await browser_client.get(unescape(register))).status_code == 200
    plain = await register_game(service)
    assert "Save your progress" not in (await open_sign_in(browser_client, plain)).text
    page = (await open_upgrade(browser_client, game, anna.login or "")).text
    assert "merged into this account" in page, "an existing account is the other way"


async def test_gu_09_guest_that_was_upgraded_is_not_merged_by_an_older_game_session(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser, anna: User
) -> None:
    """Otherwise an account with a password would end in someone else's."""
    device = Device()
    guest = await device.log_in(service)
    older, newer = [await register_upgrade(service, device) for _ in range(2)]
    await open_upgrade(other, older, ANNA)
    await register_account(service, browser_client)
    assert (await confirm_upgrade(browser_client, newer, NEW)).url.path == "/game/done"
    page = await other.post("/sign-in/confirm", decision="confirm", code=older.answer["code"])
    assert page.status_code == 404
    assert (await user_of(service, guest["user_id"])).login == NEW
    assert (await user_of(service, anna.user_id)).login == ANNA
    assert (await poll_ended_session(older)).json()["status"] == "ERROR"


async def open_sign_in(browser: HttpBrowser, game: Game) -> httpx2.Response:
    await browser.get(f"/?gsid={game.gsid}")
    return await browser.follow()


def provider_link(page: str) -> str:
    link = re.search(r'href="(/sign-in/with/vendor[^"]+)"', page)
    assert link is not None
    return unescape(link[1])


async def test_first_sign_in_with_a_provider_keeps_the_id_of_the_guest(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    device = Device()
    guest = await device.log_in(service)
    game = await register_upgrade(service, device)
    await service.clock.advance(1)
    async with a_vendor(service, create_accounts=True) as vendor:
        page = await open_sign_in(browser_client, game)
        address = await leave(browser_client, provider_link(page.text))
        await come_back(browser_client, vendor.sign_in(address, **KIM))
        await browser_client.follow()
        await browser_client.post("/sign-in/confirm", decision="confirm", code=game.answer["code"])
        answer = await result_of(game)
        assert (answer["auth"], answer["user_id"], answer["tags"]) == (
            "provider",
            guest["user_id"],
            "email_verified,linked_vendor",
        )
        found = await find_user(service, vendor)
    assert found is not None
    assert found.user_id == guest["user_id"]


async def test_gu_06_upgrade_needs_the_device_key_a_fresh_sign_in_and_the_code(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    device = Device()
    guest = await device.log_in(service)
    for proof in (
        device.sign(await ask_challenge(service)),
        {**Device().sign(await ask_challenge(service, intent="upgrade")), "device_key": device.public_key},
        Device().sign(await ask_challenge(service, intent="upgrade")),
    ):
        refused = await service.client.post(GET_GSID, json={"intent": "upgrade", **proof})
        assert (refused.status_code, refused.json()["status"]) == (403, "ERROR")
    once = {"intent": "upgrade", **device.sign(await ask_challenge(service, intent="upgrade"))}
    assert (await service.client.post(GET_GSID, json=once)).json()["code"]
    assert (await service.client.post(GET_GSID, json=once)).status_code == 403
    assert (await service.client.post(GET_GSID, json={"intent": "other"})).status_code == 400
    assert (await service.client.post(GET_GSID, json={"intent": "upgrade"})).status_code == 400
    game = await register_upgrade(service, device)
    page = await open_upgrade(account_browser, game, ANNA)  # signed in already, and asked again
    assert "merged into this account" in page.text
    assert page.text.count('name="code"') == 3
    page = await account_browser.post("/sign-in/confirm", decision="confirm")
    assert page.headers["location"].startswith("/sign-in/confirm"), "no code was picked"
    await account_browser.follow()
    wrong = "11" if game.answer["code"] != "11" else "12"
    page = await account_browser.post("/sign-in/confirm", decision="confirm", code=wrong)
    assert page.headers["location"].startswith("/game/wrong-code")
    assert (await poll_ended_session(game)).json()["status"] == "ERROR"
    assert (await device.log_in(service))["user_id"] == guest["user_id"]
    assert (await user_of(service, anna.user_id)).purchases == frozenset()


async def test_gu_07_another_site_confirms_no_merge(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser, anna: User
) -> None:
    """The form needs its token, the browser that signed in, and the same session."""
    del anna
    device = Device()
    guest = await device.log_in(service)
    game = await register_upgrade(service, device)
    page = await open_upgrade(browser_client, game, ANNA)
    handle = str(page.url.params["interaction"])
    fields = {"interaction": handle, "decision": "confirm", "code": game.answer["code"]}
    forged = await browser_client.client.post("/sign-in/confirm", data={**fields, "csrf": "x"})
    await other.sign_in(ANNA)
    elsewhere = await other.client.get("/sign-in/confirm", params={"interaction": handle})
    assert (forged.status_code, "expired" in elsewhere.text) == (403, True)
    assert (await device.log_in(service))["user_id"] == guest["user_id"]


async def test_merge_unites_purchases_and_unprotected_roles(
    studio: Studio, browser_client: HttpBrowser, anna: User
) -> None:
    service, device = studio.service, Device()
    guest = await device.log_in(service, factor="pc")
    accounts = service.services.storage.accounts
    own_tags = {letter * MAX_TAG_LENGTH for letter in "abcdefghijklm"}  # leave room for a short one
    long_tag = "x" * MAX_TAG_LENGTH
    await accounts.set_labels(
        guest["user_id"], a_record(), tags=frozenset({long_tag, "vip"}), purchases=frozenset({"dlc", "skin"})
    )
    await accounts.set_labels(
        anna.user_id, a_record(), tags=frozenset(own_tags), purchases=frozenset({"dlc", "base"})
    )
    await put_roles(studio, a_role("player"), a_role("tester", user_limit=1), a_role("full", user_limit=1))
    await set_user_roles(studio, guest["user_id"], {ROOT: ["player", "tester", "full"]})
    await put_roles(studio, a_role("player"), a_role("tester", user_limit=1), a_role("full", protected=True))
    game = await register_upgrade(service, device)
    page = await confirm_upgrade(browser_client, game, ANNA)
    assert page.url.path == "/game/done", page.text
    answer = await result_of(game)
    assert (answer["status"], answer["user_id"]) == ("OK", anna.user_id)
    merged = await user_of(service, anna.user_id)
    assert (merged.purchases, merged.tags) == ({"dlc", "skin", "base"}, {*own_tags, "vip"})
    roles = await roles_of(studio, anna.user_id)
    assert roles == ["player", "tester"]
    assert await status_of_token(studio, guest["jwt"]) == 401
    assert await device.log_in(service) == {"status": "LOGINERROR"}
    with pytest.raises(UserNotFound):
        await user_of(service, guest["user_id"])
    (record,) = await audit_records(studio, AuditEvent.ACCOUNT_MERGED)
    lost = f"tag {long_tag}; {studio.shop.application_id}: role full"
    assert record.details == {"from": guest["user_id"], "to": anna.user_id, "dropped": lost}
    assert [(one.to, one.subject) for one in await new_messages(service)] == [
        (ANNA, "A guest was merged into your account")
    ]


async def set_phone(service: RunningService, user_id: str, phone: str) -> None:
    user = await user_of(service, user_id)
    fields = {"phone": phone, "phone_verified": True}
    await service.services.accounts.editor.save(user, fields, ORIGIN, version=user.version)


@pytest.mark.both_databases
@pytest.mark.parametrize("own", ["", "+4915198765432"])
async def test_verified_number_of_the_guest_goes_over_to_an_account_without_one(
    studio: Studio, browser_client: HttpBrowser, anna: User, own: str
) -> None:
    service, device, number = studio.service, Device(), "+4915123456789"
    guest = await device.log_in(service)
    await set_phone(service, guest["user_id"], number)
    if own:
        await set_phone(service, anna.user_id, own)
    game = await register_upgrade(service, device)
    assert (await confirm_upgrade(browser_client, game, ANNA)).url.path == "/game/done"
    merged = await user_of(service, anna.user_id)
    assert (merged.phone, merged.phone_verified) == (own or number, True)
    (record,) = await audit_records(studio, AuditEvent.ACCOUNT_MERGED)
    assert record.details.get("dropped", "") == ("phone number" if own else "")


@pytest.mark.both_databases
async def test_number_that_a_banned_guest_gives_up_with_an_upgrade_brings_the_ban(
    studio: Studio, browser_client: HttpBrowser
) -> None:
    service, device, number = studio.service, Device(), "+4915123456789"
    administrator, shop = await create_administrator(studio), studio.shop.application_id
    guest = await device.log_in(service)
    await set_phone(service, guest["user_id"], number)
    await ban_account(studio, administrator, guest["user_id"], application_id=studio.other.application_id)
    game = await register_upgrade(service, device, app_id=shop)
    await register_account(service, browser_client)
    account = await service.services.storage.accounts.user_by_login(NEW)
    assert account is not None
    await set_phone(service, account.user_id, "+4915198765432")
    await open_upgrade(browser_client, game, NEW)
    await browser_client.post("/sign-in/confirm", decision="confirm", code=game.answer["code"])
    assert (await browser_client.follow()).url.path == "/game/done"
    assert (await user_of(service, guest["user_id"])).phone == "+4915198765432"
    evader = await create_person_with(studio, {})
    await set_phone(service, evader.user_id, number)
    assert [one.public_text for one in (await user_of(service, evader.user_id)).bans] == ["Cheating"]


@pytest.mark.both_databases
async def test_gu_08_restrictions_of_the_guest_go_over_with_a_merge(
    studio: Studio, browser_client: HttpBrowser, anna: User
) -> None:
    service, device, shop = studio.service, Device(), studio.shop.application_id
    guest = await device.log_in(service)
    records, now = service.services.storage.user_records, service.clock.now()

    async def write(user_id: str, login: Tree, private_data: Tree) -> None:
        fields = set_fields(login=login, scopes={ROOT: ScopeHoldings(private_data=private_data)})
        await records.edit_record(shop, user_id, fields, now)

    no, yes = {"value": False}, {"value": True}
    await write(guest["user_id"], {"cannot": yes}, {"user": {"kick": no, "promote": yes}})
    await write(anna.user_id, {"cannot": no}, {"user": {"kick": yes}, "chat": {"write": yes}})
    game = await register_upgrade(service, device)
    assert (await confirm_upgrade(browser_client, game, ANNA)).url.path == "/game/done"
    facts = await service.services.permissions.loader.load_facts(anna.user_id, (shop,))
    assert facts is not None
    stored = facts.records[shop]
    assert stored.login["cannot"] == yes
    assert stored.root.private_data == {"user": {"kick": no}, "chat": {"write": yes}}
    (record,) = await audit_records(studio, AuditEvent.ACCOUNT_MERGED)
    assert record.details["dropped"] == f"{shop}: entry user.promote; {shop}: own entry user.kick"


async def roles_of(studio: Studio, user_id: str) -> list[str]:
    record = (await studio.service.services.storage.profile.personal_records(user_id, 0)).roles
    return sorted(one.role for one in record)


async def ban_account(studio: Studio, by: Person, user_id: str, *, action: str = "save", **scope: object) -> None:
    data = {"data": {"public_text": "Cheating"}} if action == "save" else {}
    await studio.expect_ok("user/ban", {"action": action, "user_id": user_id, **scope, **data}, by.headers)


async def test_gu_08_guest_with_any_ban_is_not_merged(
    studio: Studio, browser_client: HttpBrowser, anna: User
) -> None:
    service, device = studio.service, Device()
    guest = await device.log_in(service)
    administrator = await create_administrator(studio)
    shop, other = studio.shop.application_id, studio.other.application_id

    async def ban(action: str, **scope: object) -> None:
        await ban_account(studio, administrator, guest["user_id"], action=action, **scope)

    await ban("save", application_id=shop)
    await ban("save", application_id=other)
    game = await register_upgrade(service, device, app_id=shop)
    page = await confirm_upgrade(browser_client, game, ANNA)
    assert "Cheating" in page.text
    answer = (await poll_ended_session(game)).json()
    assert (answer["status"], answer["reason"]) == ("ERROR", "banned")
    await ban("lift", application_id=shop)
    for named in ({"app_id": shop}, {}):  # the ban counts whatever application the session names
        await service.clock.advance(60)
        game = await register_upgrade(service, device, **named)
        assert (await confirm_upgrade(browser_client, game, ANNA)).url.path == "/game/not-merged"
        assert (await poll_ended_session(game)).json()["status"] == "ERROR"
    assert (await device.log_in(service))["user_id"] == guest["user_id"]
    assert (await user_of(service, anna.user_id)).bans == ()
    await ban("lift", application_id=other)
    await service.clock.advance(60)
    await ban_account(studio, administrator, anna.user_id, application_id=other)
    game = await register_upgrade(service, device)
    assert (await confirm_upgrade(browser_client, game, ANNA)).url.path == "/game/not-merged"
    await service.clock.advance(60)
    await ban_account(studio, administrator, anna.user_id, action="lift", application_id=other)
    game = await register_upgrade(service, device)
    assert (await confirm_upgrade(browser_client, game, ANNA)).url.path == "/game/done"


@pytest.mark.both_databases
async def test_gu_14_guest_with_an_address_is_not_replaced(studio: Studio, browser_client: HttpBrowser) -> None:
    """An administrator gave the guest an address: the person who reads that mailbox keeps the account."""
    service, device = studio.service, Device()
    guest = await device.log_in(service)
    administrator = await create_administrator(studio)
    data = {"user_id": guest["user_id"], "login": "lee@studio.example", "email_verified": True}
    await studio.expect_ok("user", {"action": "save", "data": data}, administrator.headers)
    game = await register_upgrade(service, device)
    await register_account(service, browser_client)
    assert (await confirm_upgrade(browser_client, game, NEW)).url.path == "/game/not-merged"
    assert (await poll_ended_session(game)).json()["status"] == "ERROR"
    assert (await user_of(service, guest["user_id"])).login == "lee@studio.example"
    assert (await device.log_in(service))["user_id"] == guest["user_id"]


@pytest.mark.both_databases
async def test_gu_14_guest_with_a_provider_is_not_merged(
    studio: Studio, browser_client: HttpBrowser, anna: User
) -> None:
    del anna
    service, device = studio.service, Device()
    guest = await device.log_in(service)
    identity, record = an_identity(guest["user_id"]), a_record(AuditEvent.IDENTITY_LINKED)
    await service.services.storage.profile.link_identity(identity, record, (), rev=0)
    game = await register_upgrade(service, device)
    assert (await confirm_upgrade(browser_client, game, ANNA)).url.path == "/game/not-merged"
    assert (await poll_ended_session(game)).json()["status"] == "ERROR"
    found = await service.services.storage.profile.user_by_identity(identity.issuer, identity.subject)
    assert found is not None
    assert found.user_id == guest["user_id"]


@pytest.mark.both_databases
async def test_gu_08_guest_on_a_banned_device_is_not_merged(
    studio: Studio, browser_client: HttpBrowser, anna: User
) -> None:
    """Whatever application the session names, and whether or not the guest signed in with the factor before."""
    del anna
    service, device, shop = studio.service, Device(), studio.shop.application_id
    administrator, cheater = await create_administrator(studio), await create_person_with(studio)
    guest = await device.log_in(service)
    await service.services.permissions.devices.record_sign_in(cheater.user_id, "pc")
    ban = {"action": "save", "user_id": cheater.user_id, "application_id": shop, "data": {"device": True}}
    await studio.expect_ok("user/ban", ban, administrator.headers)
    for named in ({"app_id": shop}, {"app_id": studio.other.application_id}, {}):
        game = await register_upgrade(service, device, **named)
        assert (await confirm_upgrade(browser_client, game, ANNA)).url.path == "/game/not-merged"
        assert (await poll_ended_session(game)).json()["status"] == "ERROR"
        await service.clock.advance(60)
    assert (await device.log_in(service))["user_id"] == guest["user_id"]
    await studio.expect_ok("user/ban", {**ban, "action": "lift"}, administrator.headers)
    game = await register_upgrade(service, device)
    assert (await confirm_upgrade(browser_client, game, ANNA)).url.path == "/game/done"


async def test_gu_04_role_that_became_protected_does_not_begin_to_count_with_an_upgrade(
    studio: Studio, browser_client: HttpBrowser
) -> None:
    service, device = studio.service, Device()
    guest = await device.log_in(service)
    await put_roles(studio, a_role("player"), a_role("moderator"))
    await set_user_roles(studio, guest["user_id"], {ROOT: ["player", "moderator"]})
    await put_roles(studio, a_role("player"), a_role("moderator", protected=True))
    game = await register_upgrade(service, device)
    await register_account(service, browser_client)
    assert (await confirm_upgrade(browser_client, game, NEW)).url.path == "/game/done"
    assert await roles_of(studio, guest["user_id"]) == ["player"]


async def test_gu_06_silent_answer_of_a_provider_merges_nothing(
    service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser, anna: User
) -> None:
    """An account with a password confirms with that: its provider may have answered without asking."""
    device = Device()
    await device.log_in(service)
    game = await register_upgrade(service, device)
    async with a_vendor(service) as vendor:
        await come_back(account_browser, vendor.sign_in(await connect(account_browser), **KIM))
        page = await open_sign_in(browser_client, game)
        address = await leave(browser_client, provider_link(page.text))
        assert "prompt=login" in address
        await come_back(browser_client, vendor.sign_in(address, **KIM))
    page = await browser_client.follow()
    assert page.url.path == "/sign-in"
    assert "password or passkey of this account" in page.text
    await browser_client.post("/sign-in", login=ANNA, password=PASSWORD)
    await browser_client.follow()
    await browser_client.post("/sign-in/confirm", decision="confirm", code=game.answer["code"])
    assert (await result_of(game))["user_id"] == anna.user_id


async def test_merge_that_is_refused_ends_the_game_session_and_changes_nothing(
    studio: Studio, browser_client: HttpBrowser, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, device = studio.service, Device()
    guest = await device.log_in(service)
    administrator = await create_administrator(studio)
    for user_id, application in ((guest["user_id"], studio.other), (anna.user_id, studio.shop)):
        scope = {"user_id": user_id, "application_id": application.application_id}
        await studio.expect_ok("user/ban", {"action": "save", **scope, "data": {}}, administrator.headers)
    monkeypatch.setattr("gatehouse.storage.accounts.bans.MAX_ACTIVE_BANS", 1)
    game = await register_upgrade(service, device)
    page = await confirm_upgrade(browser_client, game, ANNA)
    assert "Guest not merged" in page.text
    assert (await poll_ended_session(game)).json()["status"] == "ERROR"
    assert (await device.log_in(service))["user_id"] == guest["user_id"]


async def test_game_is_told_when_the_guest_is_gone_before_the_person_confirms(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    del anna
    device = Device()
    guest = await device.log_in(service)
    game = await register_upgrade(service, device)
    page = await open_upgrade(browser_client, game, ANNA)
    await service.services.accounts.erasure.erase(await user_of(service, guest["user_id"]), ORIGIN)
    assert (await browser_client.get(page.url.raw_path.decode())).status_code == 404
    assert (await poll_ended_session(game)).json()["status"] == "ERROR"


async def test_gu_09_two_merges_of_one_guest_end_in_one(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser, anna: User
) -> None:
    """Two people confirm at the same time, and the guest signs in meanwhile."""
    bob = await service.services.accounts.administration.create(
        login="bob@studio.example", nick="Bob", password=PASSWORD, origin=ORIGIN
    )
    await race_merges((service, service), (browser_client, other), (anna, bob))


async def race_merges(
    nodes: tuple[RunningService, RunningService], browsers: tuple[HttpBrowser, HttpBrowser], people: tuple[User, User]
) -> None:
    device = Device()
    guest = await device.log_in(nodes[0])
    labels = nodes[0].services.storage.accounts.set_labels
    await labels(guest["user_id"], a_record(), purchases=frozenset({"dlc"}))
    games = [await register_upgrade(node, device) for node in nodes]
    for browser, game, person in zip(browsers, games, people, strict=True):
        await open_upgrade(browser, game, person.login or "")
    sent = device.sign(await ask_challenge(nodes[1]))
    *pages, login = await asyncio.gather(
        *(
            browser.post("/sign-in/confirm", decision="confirm", code=game.answer["code"])
            for browser, game in zip(browsers, games, strict=True)
        ),
        post_guest(nodes[1], **sent),
    )
    done = [page.headers.get("location", "").startswith("/game/done") for page in pages]
    assert sorted(done) == [False, True], [page.status_code for page in pages]
    assert login["status"] in {"OK", "LOGINERROR", "DENIED"}
    if login["status"] == "OK":
        assert login["user_id"] == guest["user_id"], "before the merge; no second guest"
    owners = [await user_of(nodes[0], person.user_id) for person in people]
    assert sorted(sorted(owner.purchases) for owner in owners) == [[], ["dlc"]]
    assert await device.log_in(nodes[0]) == {"status": "LOGINERROR"}
    with pytest.raises(UserNotFound):
        await user_of(nodes[0], guest["user_id"])


async def test_gu_09_merges_of_one_guest_at_two_nodes_end_in_one(installed_postgres_url: str, tmp_path: Path) -> None:
    environment = {
        "GATEHOUSE__SERVER__BASE_URL": f"http://localhost:{free_port()}",
        "GATEHOUSE__GUESTS__ENABLED": "true",
    }
    async with (
        running_service(installed_postgres_url, tmp_path, environment=environment) as first,
        running_service(installed_postgres_url, tmp_path, environment=environment, clock=first.clock) as second,
    ):
        people = [
            await first.services.accounts.administration.create(
                login=f"{name}@studio.example", nick=name, password=PASSWORD, origin=ORIGIN
            )
            for name in ("anna", "bob")
        ]
        browsers = HttpBrowser(first), HttpBrowser(second)
        await race_merges((first, second), browsers, (people[0], people[1]))
        for browser in browsers:
            await browser.client.aclose()


async def merge_into_anna(studio: Studio, browser: HttpBrowser) -> tuple[dict[str, Any], Device]:
    """A guest with the role player, who is merged into Anna's account."""
    device = Device()
    guest = await device.log_in(studio.service)
    await put_roles(studio, a_role("player", meta=role_meta(user_kick=True)))
    await set_user_roles(studio, guest["user_id"], {ROOT: ["player"]})
    game = await register_upgrade(studio.service, device)
    assert (await confirm_upgrade(browser, game, ANNA)).url.path == "/game/done"
    return guest, device


async def test_gu_10_former_id_answers_services_and_administrators_for_ninety_days(
    studio: Studio, browser_client: HttpBrowser, anna: User
) -> None:
    service = studio.service
    guest, _ = await merge_into_anna(studio, browser_client)
    vouched = {"Service-Jwt": await studio.service_jwt()}
    get = {
        "action": "get",
        "application_id": studio.shop.application_id,
        "data": {"user_id": guest["user_id"], "type": "roles"},
    }
    found = await studio.expect_ok("meta/data", get, vouched)
    assert (found["user_id"], found["data"]) == (anna.user_id, ["player"])
    administrator = await create_administrator(studio)
    check = question_body(studio, user_id=guest["user_id"], checks=[{"rule": "user.kick"}])
    answer = await studio.expect_ok("check", check, administrator.headers)
    assert (answer["user_id"], answer["data"]) == (anna.user_id, [True])
    await studio.expect_error(403, "check", check, studio.other_user.headers)
    reads = dict.fromkeys(("roles", "public", "private"), ("all", "none"))
    reader = await create_person_with(studio, secret_data=secret_document(**reads))
    about_anna = question_body(studio, user_id=anna.user_id, checks=[{"rule": "user.kick"}])
    await studio.expect_ok("check", about_anna, reader.headers)
    await studio.expect_error(404, "check", check, reader.headers)
    person = {"action": "get", "data": {"user_id": guest["user_id"]}}
    assert (await studio.expect_ok("user", person, administrator.headers))["data"]["user_id"] == anna.user_id
    save = {**get, "action": "save", "data": {"user_id": guest["user_id"], "roles": ["player"]}}
    await studio.expect_error(404, "meta/data", save, administrator.headers)
    await service.clock.advance(90 * DAY)
    await studio.expect_error(404, "meta/data", get, {"Service-Jwt": await studio.service_jwt()})


async def test_gu_11_erasing_the_account_erases_what_is_left_of_its_guests(
    studio: Studio, browser_client: HttpBrowser, anna: User
) -> None:
    service = studio.service
    guest, device = await merge_into_anna(studio, browser_client)
    export = await service.services.personal_data.export.export_user(anna, ORIGIN)
    assert export.account.former_ids == [guest["user_id"]]
    await service.services.accounts.erasure.erase(anna, ORIGIN)
    tables = await read_all_tables(service.services.storage)
    about = [row for row in tables["audit_events"] if row.subject == guest["user_id"]]
    assert about
    assert not any(row.personal for row in about)
    assert not tables["user_aliases"]
    assert not tables["retired_device_keys"]
    assert (await device.log_in(service))["created"], "nothing knows the key any more"
