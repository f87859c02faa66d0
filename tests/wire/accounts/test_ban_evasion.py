"""A ban follows its person: new accounts, identities, addresses and devices do not shed it (R14, BE-01 to BE-06)."""

import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from gatehouse.accounts.importing.files import open_import_file
from gatehouse.accounts.importing.importer import ImportJob
from gatehouse.accounts.importing.model import ImportFormat
from gatehouse.accounts.model import CENTRAL_APPLICATION, User
from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.times import DAY
from gatehouse.permissions.model.facts import UserRecord
from gatehouse.permissions.model.rules import application_scope
from gatehouse.provision.model import Unfit
from gatehouse.storage.tables.accounts import ban_digests
from gatehouse.storage.tables.accounts import bans as bans_table
from tests.support.browser import PASSWORD, AccountBrowser, HttpBrowser
from tests.support.builders import ORIGIN, a_record, a_user
from tests.support.database_contents import read_all_tables
from tests.support.guests import Device
from tests.support.mailbox import link_in_new_message, new_messages
from tests.support.permission_builders import holdings_with
from tests.support.service import RunningService, running_service
from tests.support.studio import (
    IN_PROJECT,
    PROJECT,
    Person,
    Studio,
    a_studio,
    audit_records,
    create_administrator,
    create_person_with,
    holdings_with_rules,
    write_record,
)
from tests.support.vendors import Vendor
from tests.wire.accounts.test_imported_passwords import import_lines
from tests.wire.accounts.test_providers import KIM, a_vendor, come_back, connect, find_user, sign_in_with
from tests.wire.oauth.authorize_responses import count_rows
from tests.wire.provision.test_permissions import apply_document

pytestmark = pytest.mark.both_databases

ANNA: Final = "anna@studio.example"
EVE: Final = "eve@studio.example"
NUMBER: Final = "+4915123456789"
TEXT: Final = "Cheating in ranked games"
YEAR: Final = 365 * DAY


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    environment = {"GATEHOUSE__GUESTS__ENABLED": "true", "GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}
    async with running_service(installed_url, tmp_path, environment=environment) as running:
        yield running


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


@pytest.fixture
async def moderator(studio: Studio) -> Person:
    shop = application_scope(PROJECT, studio.shop.application_id)
    return await create_person_with(studio, {shop: holdings_with_rules("app.can_ban")})


@pytest.fixture
async def vendor(service: RunningService) -> AsyncIterator[Vendor]:
    async with a_vendor(service) as running:
        yield running


async def create_person(service: RunningService, login: str, **fields: Any) -> User:
    hashed = await service.services.accounts.passwords.hash(PASSWORD)
    user = a_user(**{"login": login, "password_hash": hashed, "email_verified": True, **fields})
    await service.services.storage.accounts.create_user(user, replace(a_record(), at=service.clock.now()))
    return user


@pytest.fixture
async def anna(service: RunningService) -> User:
    return await create_person(service, ANNA)


async def ban(studio: Studio, by: Person, user_id: str, *, action: str = "save", **fields: Any) -> dict[str, Any]:
    scope = {name: fields.pop(name) for name in ("application_id", "project_id") if name in fields}
    data = {"data": {"public_text": TEXT, **fields}} if action == "save" else {}
    ask = {"action": action, "user_id": user_id, **scope, **data}
    answer: dict[str, Any] = (await studio.expect_ok("user/ban", ask, by.headers))["data"]
    return answer


async def active_bans(studio: Studio, user_id: str) -> list[tuple[int, str]]:
    user = await studio.service.services.storage.accounts.user(user_id)
    return [(one.application_id, one.public_text) for one in user.bans if one.is_active(studio.service.clock.now())]


async def erase(studio: Studio, user_id: str) -> None:
    services = studio.service.services
    await services.accounts.erasure.erase(await services.storage.accounts.user(user_id), ORIGIN)


async def log_in(studio: Studio, login: str, **fields: Any) -> dict[str, Any]:
    ask = {"login": login, "password": PASSWORD, "factor": "the device", **fields}
    body: dict[str, Any] = (await studio.service.client.post("/proxy/api/login", json=ask)).json()
    return body


async def kim_of(studio: Studio, vendor: Vendor) -> str:
    user = await find_user(studio.service, vendor)
    assert user is not None
    return user.user_id


# -- identities --------------------------------------------------------------------------------------------


async def test_be_01_disconnected_identity_brings_the_ban_to_another_account(
    studio: Studio, moderator: Person, anna: User, vendor: Vendor
) -> None:
    shop = studio.shop.application_id
    browser, other = AccountBrowser(studio.service), HttpBrowser(studio.service)
    await browser.sign_in_and_open_account(ANNA)
    await come_back(browser, vendor.sign_in(await connect(browser), **{**KIM, "email": "x@vendor.example"}))
    saved = await ban(studio, moderator, anna.user_id, application_id=shop, reason="ticket 4711")
    page = await browser.get("/account")
    assert "ban stays in force" in page.text
    assert await browser.submit_and_read_notice("/account/identities/remove") == "Sign-in disconnected"
    assert (await sign_in_with(other, vendor, **{**KIM, "email_verified": False})).status_code == 303
    evader = await kim_of(studio, vendor)
    assert evader != anna.user_id
    assert await active_bans(studio, evader) == [(shop, TEXT)]
    (_, copied) = await audit_records(studio, AuditEvent.USER_BANNED)
    assert (copied.subject, copied.actor, copied.details["source"]) == (evader, "service", saved["ban_id"])
    ask = {"action": "list", "application_id": shop, "user_id": evader}
    (entry,) = (await studio.expect_ok("user/ban", ask, moderator.headers))["data"]
    assert (entry["source"], entry["author"], entry["reason"]) == (
        saved["ban_id"],
        moderator.user_id,
        "ticket 4711",
    )
    for one in (browser, other):
        await one.client.aclose()


async def test_be_01_identity_connected_to_an_existing_account_brings_the_ban(
    studio: Studio, moderator: Person, vendor: Vendor
) -> None:
    shop, first, second = studio.shop.application_id, HttpBrowser(studio.service), AccountBrowser(studio.service)
    eve = await create_person(studio.service, EVE)
    await sign_in_with(first, vendor, **{**KIM, "email_verified": False})
    kim = await kim_of(studio, vendor)
    await ban(studio, moderator, kim, application_id=shop)
    await erase(studio, kim)
    await second.sign_in_and_open_account(EVE)
    assert (await log_in(studio, EVE, app_id=shop))["status"] == "OK"
    await come_back(second, vendor.sign_in(await connect(second), **KIM))
    assert await active_bans(studio, eve.user_id) == [(shop, TEXT)]
    assert (await log_in(studio, EVE, app_id=shop))["reason"] == "banned"
    for one in (first, second):
        await one.client.aclose()


async def test_be_01_identity_that_the_owner_of_an_address_ends_brings_the_ban(
    studio: Studio, moderator: Person, vendor: Vendor, browser_client: HttpBrowser
) -> None:
    """An imported stranger is banned; the first proof of the address ends the identity, and not the ban."""
    service, shop, stranger = studio.service, studio.shop.application_id, HttpBrowser(studio.service)
    row = f"{ANNA};vendor;person-1;4711;false"
    await import_lines(service, row, header="login;provider;subject;user_id;email_verified")
    await ban(studio, moderator, "4711", application_id=shop)
    await browser_client.get("/forgot")
    await browser_client.post("/forgot", login=ANNA)
    await browser_client.get(await link_in_new_message(service))
    assert (await browser_client.post("/reset", password=PASSWORD)).status_code == 303
    await sign_in_with(stranger, vendor, **{**KIM, "email_verified": False})
    evader = await kim_of(studio, vendor)
    assert evader != "4711"
    assert await active_bans(studio, evader) == [(shop, TEXT)]
    await stranger.client.aclose()


async def test_phone_that_the_owner_of_an_address_ends_brings_the_ban(
    studio: Studio, moderator: Person, browser_client: HttpBrowser
) -> None:
    """The same of the number of an imported stranger."""
    service, shop = studio.service, studio.shop.application_id
    await import_lines(
        service, f"{ANNA};{NUMBER};true;4711;false", header="login;phone;phone_verified;user_id;email_verified"
    )
    await ban(studio, moderator, "4711", application_id=shop)
    await browser_client.get("/forgot")
    await browser_client.post("/forgot", login=ANNA)
    await browser_client.get(await link_in_new_message(service))
    assert (await browser_client.post("/reset", password=PASSWORD)).status_code == 303
    assert not (await service.services.storage.accounts.user("4711")).phone
    eve = await create_person(service, EVE)
    proved = {"user_id": eve.user_id, "login": EVE, "nick": "E", "phone": NUMBER, "phone_verified": True}
    await apply_document(service, {"users": [proved]})
    assert await active_bans(studio, eve.user_id) == [(shop, TEXT)]


# -- erasure -----------------------------------------------------------------------------------------------


async def test_be_02_erased_account_leaves_its_bans_for_the_next_one(
    studio: Studio, moderator: Person, vendor: Vendor
) -> None:
    shop, browser = studio.shop.application_id, HttpBrowser(studio.service)
    await sign_in_with(browser, vendor, **KIM)
    kim = await kim_of(studio, vendor)
    await ban(studio, moderator, kim, application_id=shop, until=studio.service.clock.now() + 5 * DAY)
    await erase(studio, kim)
    rows = await read_all_tables(studio.service.services.storage)
    assert "kim@" not in str(rows["ban_digests"]) + str(rows["bans"])
    await sign_in_with(browser, vendor, **KIM)
    again = await kim_of(studio, vendor)
    assert again != kim
    assert await active_bans(studio, again) == [(shop, TEXT)]
    # And so on: the copy is no way out either.
    await erase(studio, again)
    await sign_in_with(browser, vendor, **KIM)
    assert await active_bans(studio, await kim_of(studio, vendor)) == [(shop, TEXT)]
    await browser.client.aclose()


async def test_be_02_ban_from_a_project_follows_its_person_until_it_ends(
    studio: Studio, vendor: Vendor, browser_client: HttpBrowser
) -> None:
    service = studio.service
    tomorrow = service.clock.now() + DAY
    await sign_in_with(browser_client, vendor, **KIM)
    kim = await kim_of(studio, vendor)
    await ban(studio, studio.owner, kim, project_id=PROJECT, until=tomorrow)
    await erase(studio, kim)
    await sign_in_with(browser_client, vendor, **KIM)
    services, again = service.services, await kim_of(studio, vendor)
    (copied,) = (await services.storage.accounts.user(again)).bans
    assert (copied.project_id, copied.application_id, copied.until) == (PROJECT, 0, tomorrow)
    await erase(studio, again)
    await service.clock.advance(DAY)
    await sign_in_with(browser_client, vendor, **KIM)
    assert (await services.storage.accounts.user(await kim_of(studio, vendor))).bans == ()


async def test_be_02_ban_from_the_installation_refuses_a_new_account(studio: Studio, vendor: Vendor) -> None:
    administrator, browser = await create_administrator(studio), HttpBrowser(studio.service)
    await sign_in_with(browser, vendor, **KIM)
    kim = await kim_of(studio, vendor)
    await ban(studio, administrator, kim)
    await erase(studio, kim)
    page = await sign_in_with(browser, vendor, **KIM)
    assert (page.status_code, TEXT in page.text) == (403, True)
    assert await find_user(studio.service, vendor) is None
    # An unverified address is no proof; it matches when it is verified.
    services = studio.service.services
    user = await services.accounts.administration.create(
        login=KIM["email"], nick="Kim", password=PASSWORD, origin=ORIGIN
    )
    assert await active_bans(studio, user.user_id) == []
    await services.accounts.editor.save(user, {"email_verified": True}, ORIGIN, version=user.version)
    assert await active_bans(studio, user.user_id) == [(0, TEXT)]
    await browser.client.aclose()


async def test_be_02_file_with_people_who_are_banned_from_the_installation_is_refused_by_name(
    studio: Studio, anna: User
) -> None:
    administrator, eve = await create_administrator(studio), await create_person(studio.service, EVE)
    for user in (anna, eve):
        await ban(studio, administrator, user.user_id)
        await erase(studio, user.user_id)
    people = [{"login": login, "nick": "A", "email_verified": True} for login in (ANNA, "new@a.example", EVE)]
    with pytest.raises(Unfit) as refused:
        await apply_document(studio.service, {"users": people})
    assert [problem.split(": ")[:2] for problem in refused.value.problems] == [["users", ANNA], ["users", EVE]]
    assert await studio.service.services.storage.accounts.user_by_login("new@a.example") is None


async def test_be_02_banned_guest_is_found_by_the_device_key(studio: Studio, moderator: Person) -> None:
    shop, device, administrator = studio.shop.application_id, Device(), await create_administrator(studio)
    guest = await device.log_in(studio.service, app_id=shop)
    await ban(studio, moderator, guest["user_id"], application_id=shop)
    await erase(studio, guest["user_id"])
    denied = {"status": "DENIED", "reason": "banned", "public_text": TEXT, "until": 0}
    assert await device.log_in(studio.service, app_id=shop) == denied
    assert (await device.log_in(studio.service))["status"] == "OK"
    other = Device()
    second = await other.log_in(studio.service)
    await ban(studio, administrator, second["user_id"])
    await erase(studio, second["user_id"])
    assert await other.log_in(studio.service) == denied


async def test_be_02_device_ban_outlives_its_account(studio: Studio, moderator: Person, anna: User) -> None:
    shop = studio.shop.application_id
    await create_person(studio.service, EVE)
    assert (await log_in(studio, ANNA, app_id=shop, factor="pc"))["status"] == "OK"
    await ban(studio, moderator, anna.user_id, application_id=shop, device=True)
    await erase(studio, anna.user_id)
    assert (await log_in(studio, EVE, app_id=shop, factor="pc"))["reason"] == "banned"
    assert (await log_in(studio, EVE, app_id=shop, factor="mac"))["status"] == "OK"
    await studio.service.clock.advance(YEAR)
    assert (await log_in(studio, EVE, app_id=shop, factor="pc"))["status"] == "OK"


async def test_be_02_digests_of_an_endless_ban_end_after_a_year_and_ended_bans_are_swept(
    studio: Studio, moderator: Person
) -> None:
    service, shop = studio.service, studio.shop.application_id
    endless, short = [
        await create_person(service, login, user_id=f"100000008{n}") for n, login in enumerate((ANNA, EVE))
    ]
    await ban(studio, moderator, endless.user_id, application_id=shop)
    await ban(studio, moderator, short.user_id, application_id=shop, until=service.clock.now() + DAY)
    for user in (endless, short):
        await erase(studio, user.user_id)
    assert await count_rows(service, ban_digests) == 2
    await service.clock.advance(DAY)
    await service.services.storage.sweep(service.clock.now())
    assert (await count_rows(service, ban_digests), await count_rows(service, bans_table)) == (1, 1)
    await service.clock.advance(YEAR - DAY)
    fresh = await create_person(service, ANNA, user_id="1000000089")
    assert await active_bans(studio, fresh.user_id) == []
    await service.services.storage.sweep(service.clock.now())
    assert (await count_rows(service, ban_digests), await count_rows(service, bans_table)) == (0, 0)


# -- addresses ---------------------------------------------------------------------------------------------


async def test_be_03_address_given_up_brings_the_ban_to_the_account_that_proves_it(
    studio: Studio, moderator: Person, anna: User
) -> None:
    service, shop = studio.service, studio.shop.application_id
    browser, other = AccountBrowser(service), HttpBrowser(service)
    await browser.sign_in_and_open_account(ANNA)
    await ban(studio, moderator, anna.user_id, application_id=shop)
    await browser.submit_and_read_notice("/account/email", login="anna@new.example")
    await browser.get(await link_in_new_message(service))
    assert (await browser.post("/verify-email")).status_code == 200
    await new_messages(service)
    assert (await service.services.storage.accounts.user(anna.user_id)).login == "anna@new.example"
    second = await service.services.accounts.administration.create(
        login=ANNA, nick="A", password=PASSWORD, origin=ORIGIN
    )
    assert await active_bans(studio, second.user_id) == []
    await other.get("/forgot")
    await other.post("/forgot", login=ANNA)
    await other.get(await link_in_new_message(service))
    await other.post("/reset", password=PASSWORD)
    assert (await service.services.storage.accounts.user(second.user_id)).email_verified
    assert await active_bans(studio, second.user_id) == [(shop, TEXT)]
    for one in (browser, other):
        await one.client.aclose()


async def test_be_03_account_that_takes_over_a_digested_address_gets_the_ban(
    studio: Studio, moderator: Person, anna: User
) -> None:
    service, shop = studio.service, studio.shop.application_id
    eve = await create_person(service, EVE)
    await ban(studio, moderator, anna.user_id, application_id=shop)
    await erase(studio, anna.user_id)
    browser = AccountBrowser(service)
    await browser.sign_in_and_open_account(EVE)
    await browser.submit_and_read_notice("/account/email", login=ANNA)
    await browser.get(await link_in_new_message(service))
    await browser.post("/verify-email")
    assert await active_bans(studio, eve.user_id) == [(shop, TEXT)]
    await browser.client.aclose()


async def test_be_04_imported_person_gets_the_ban_or_is_refused(studio: Studio, moderator: Person) -> None:
    service, shop, administrator = studio.service, studio.shop.application_id, await create_administrator(studio)
    anna, eve = [await create_person(service, login, user_id=f"100000008{n}") for n, login in enumerate((ANNA, EVE))]
    await ban(studio, moderator, anna.user_id, application_id=shop)
    saved = await ban(studio, administrator, eve.user_id)
    for user in (anna, eve):
        await erase(studio, user.user_id)
    refused: list[Any] = []
    text = f"login,nick,email_verified\n{ANNA},A,true\n{EVE},E,true\nzoe@studio.example,Z,true\n"
    for dry_run in (True, False):
        refused.clear()
        job = ImportJob(source=ImportFormat.CSV, import_id="one", origin=ORIGIN, dry_run=dry_run)
        rows = open_import_file(io.BytesIO(text.encode()), ImportFormat.CSV).rows
        totals = await service.services.accounts.importer.run(rows, job, report=refused.append)
        assert (totals.imported, [one.title for one in refused]) == (2, [EVE])
        assert saved["ban_id"] in refused[0].reason
    imported = await service.services.storage.accounts.user_by_login(ANNA)
    assert imported is not None
    assert await active_bans(studio, imported.user_id) == [(shop, TEXT)]


# -- lift and change ---------------------------------------------------------------------------------------


async def copy_ban(studio: Studio, moderator: Person, vendor: Vendor, browser: HttpBrowser) -> tuple[str, str]:
    """Ban a person who leaves and comes back; return the IDs of both accounts."""
    await sign_in_with(browser, vendor, **KIM)
    kim = await kim_of(studio, vendor)
    await ban(studio, moderator, kim, application_id=studio.shop.application_id)
    await erase(studio, kim)
    await sign_in_with(browser, vendor, **KIM)
    return kim, await kim_of(studio, vendor)


async def test_be_05_lifting_the_source_ends_copies_and_digests(
    studio: Studio, moderator: Person, vendor: Vendor
) -> None:
    shop, browser = studio.shop.application_id, HttpBrowser(studio.service)
    erased, copied = await copy_ban(studio, moderator, vendor, browser)
    await ban(studio, moderator, erased, action="lift", application_id=shop)
    assert await active_bans(studio, copied) == []
    assert await count_rows(studio.service, ban_digests) == 0
    lifted = await audit_records(studio, AuditEvent.USER_BAN_LIFTED)
    assert [one.subject for one in lifted] == [erased, copied]
    await erase(studio, copied)
    await sign_in_with(browser, vendor, **KIM)
    assert await active_bans(studio, await kim_of(studio, vendor)) == []
    await browser.client.aclose()


async def test_be_05_lifting_a_copy_exempts_that_account_only(
    studio: Studio, moderator: Person, vendor: Vendor
) -> None:
    shop, browser = studio.shop.application_id, HttpBrowser(studio.service)
    _, copied = await copy_ban(studio, moderator, vendor, browser)
    await ban(studio, moderator, copied, action="lift", application_id=shop)
    assert await active_bans(studio, copied) == []
    user = await studio.service.services.storage.accounts.user(copied)
    changes = {"login": "kim@new.example"}
    await studio.service.services.accounts.editor.save(user, changes, ORIGIN, version=user.version)
    assert await active_bans(studio, copied) == [], "the account is exempt"
    fresh = await create_person(studio.service, str(KIM["email"]), user_id="1000000089")
    assert await active_bans(studio, fresh.user_id) == [(shop, TEXT)]
    await browser.client.aclose()


async def test_be_05_change_of_the_source_changes_copies(studio: Studio, moderator: Person, vendor: Vendor) -> None:
    service, shop, browser = studio.service, studio.shop.application_id, AccountBrowser(studio.service)
    anna = await create_person(service, ANNA)
    await browser.sign_in_and_open_account(ANNA)
    await come_back(browser, vendor.sign_in(await connect(browser), **KIM))
    await ban(studio, moderator, anna.user_id, application_id=shop)
    await browser.submit_and_read_notice("/account/identities/remove")
    other = HttpBrowser(service)
    await sign_in_with(other, vendor, **KIM)
    copied = await kim_of(studio, vendor)
    await ban(
        studio, moderator, anna.user_id, application_id=shop, public_text="Longer", until=service.clock.now() + DAY
    )
    assert await active_bans(studio, copied) == [(shop, "Longer")]
    await ban(studio, moderator, copied, application_id=shop, public_text="Own")
    await ban(studio, moderator, anna.user_id, action="lift", application_id=shop)
    assert await active_bans(studio, copied) == [(shop, "Own")], "a ban of its own is not the copy"
    for one in (browser, other):
        await one.client.aclose()


async def test_be_05_export_and_apply_leave_copies_alone(studio: Studio, moderator: Person, vendor: Vendor) -> None:
    browser = HttpBrowser(studio.service)
    erased, copied = await copy_ban(studio, moderator, vendor, browser)
    export = await studio.service.services.personal_data.export.export_user(
        await studio.service.services.storage.accounts.user(copied), ORIGIN
    )
    assert [(one.text, one.copied) for one in export.bans] == [(TEXT, True)]
    rows = await read_all_tables(studio.service.services.storage)
    assert [row.user_id for row in rows["bans"] if row.erased_at] == [erased]
    await browser.client.aclose()


# -- rank --------------------------------------------------------------------------------------------------


async def test_be_06_ban_never_lands_on_someone_its_author_could_not_ban(
    studio: Studio, moderator: Person, anna: User
) -> None:
    service, shop = studio.service, studio.shop.application_id
    manager = await create_person(service, EVE)
    owner = await create_person(service, "owner@studio.example", user_id="1000000078")
    for user, role in ((manager, "project_administrator"), (owner, "project_owner")):
        held = UserRecord(
            application_id=CENTRAL_APPLICATION, user_id=user.user_id, scopes={IN_PROJECT: holdings_with(role)}
        )
        await write_record(studio, held)
    await ban(studio, moderator, anna.user_id, application_id=shop)
    await erase(studio, anna.user_id)
    services = service.services
    player = await create_person(service, "player@studio.example", user_id="1000000077")
    for user, expected in ((manager, []), (owner, []), (player, [(shop, TEXT)])):
        stored = await services.storage.accounts.user(user.user_id)
        moved = {"login": ANNA, "email_verified": True}
        await services.accounts.editor.save(stored, moved, ORIGIN, version=stored.version)
        assert await active_bans(studio, user.user_id) == expected
        after = await services.storage.accounts.user(user.user_id)
        back = {"login": f"x{user.user_id}@a.example"}
        await services.accounts.editor.save(after, back, ORIGIN, version=after.version)


async def test_be_06_change_of_the_source_by_someone_below_changes_no_copy_of_an_owner(
    studio: Studio, moderator: Person, anna: User, vendor: Vendor, browser_client: HttpBrowser
) -> None:
    service, shop, browser = studio.service, studio.shop.application_id, AccountBrowser(studio.service)
    administrator, tomorrow = await create_administrator(studio), service.clock.now() + DAY
    await browser.sign_in_and_open_account(ANNA)
    await come_back(browser, vendor.sign_in(await connect(browser), **KIM))
    await ban(studio, administrator, anna.user_id, application_id=shop, until=tomorrow)
    await browser.submit_and_read_notice("/account/identities/remove")
    await sign_in_with(browser_client, vendor, **KIM)
    owner = await kim_of(studio, vendor)
    held = {IN_PROJECT: holdings_with("project_owner")}
    await write_record(studio, UserRecord(application_id=CENTRAL_APPLICATION, user_id=owner, scopes=held))

    async def copied() -> list[tuple[int, str]]:
        return [(one.until, one.public_text) for one in (await service.services.storage.accounts.user(owner)).bans]

    assert await copied() == [(tomorrow, TEXT)]
    await ban(studio, moderator, anna.user_id, application_id=shop, until=0, public_text="For ever")
    assert await copied() == [(tomorrow, TEXT)]
    await ban(studio, administrator, anna.user_id, application_id=shop, public_text="By an administrator")
    assert await copied() == [(0, "By an administrator")]
    await ban(studio, moderator, anna.user_id, action="lift", application_id=shop)
    assert await copied() == [], "it ends with its source all the same"
    await browser.client.aclose()


async def test_be_06_device_ban_counts_for_no_one_above_its_author(
    studio: Studio, moderator: Person, anna: User
) -> None:
    service, shop = studio.service, studio.shop.application_id
    manager = await create_person(service, EVE)
    held = {IN_PROJECT: holdings_with("project_administrator")}
    await write_record(studio, UserRecord(application_id=CENTRAL_APPLICATION, user_id=manager.user_id, scopes=held))
    await create_person(service, "player@studio.example", user_id="1000000077")
    assert (await log_in(studio, ANNA, app_id=shop, factor="pc"))["status"] == "OK"
    await ban(studio, moderator, anna.user_id, application_id=shop, device=True)
    assert (await log_in(studio, "player@studio.example", app_id=shop, factor="pc"))["reason"] == "banned"
    answer = await log_in(studio, EVE, app_id=shop, factor="pc")
    assert answer["status"] == "OK", answer
    ask = {"action": "get", "application_id": shop, "data": {}}
    headers = {"Authorization": f"Bearer {answer['jwt']}", "Factor": "pc"}
    assert (await studio.post("meta/data", ask, headers)).status_code == 200


async def test_be_06_copy_for_an_owner_ends_with_its_source_that_someone_below_shortened(
    studio: Studio, moderator: Person, anna: User, vendor: Vendor, browser_client: HttpBrowser
) -> None:
    service, shop, browser = studio.service, studio.shop.application_id, AccountBrowser(studio.service)
    administrator, today = await create_administrator(studio), service.clock.now()
    await browser.sign_in_and_open_account(ANNA)
    await come_back(browser, vendor.sign_in(await connect(browser), **KIM))
    await ban(studio, administrator, anna.user_id, application_id=shop, until=today + 5 * DAY)
    await browser.submit_and_read_notice("/account/identities/remove")
    await sign_in_with(browser_client, vendor, **KIM)
    owner = await kim_of(studio, vendor)
    held = {IN_PROJECT: holdings_with("project_owner")}
    await write_record(studio, UserRecord(application_id=CENTRAL_APPLICATION, user_id=owner, scopes=held))
    await ban(studio, moderator, anna.user_id, application_id=shop, until=today + DAY, public_text="Shorter")
    assert await active_bans(studio, owner) == [(shop, TEXT)]
    await service.clock.advance(DAY)
    assert await active_bans(studio, anna.user_id) == []
    assert await active_bans(studio, owner) == []
    await browser.client.aclose()


async def test_be_06_ban_is_not_copied_to_an_administrator(studio: Studio, moderator: Person, anna: User) -> None:
    service, shop = studio.service, studio.shop.application_id
    await ban(studio, moderator, anna.user_id, application_id=shop)
    await erase(studio, anna.user_id)
    administrator = await create_administrator(studio)
    stored = await service.services.storage.accounts.user(administrator.user_id)
    moved = {"login": ANNA, "email_verified": True}
    await service.services.accounts.editor.save(stored, moved, ORIGIN, version=stored.version)
    assert await active_bans(studio, administrator.user_id) == []
    await create_administrator(studio)  # the last one could not be erased
    await erase(studio, administrator.user_id)
    second = a_user(login=ANNA, user_id="1000000089", email_verified=True)
    await service.services.storage.accounts.create_user(second, a_record(), administrator=True)
    assert await active_bans(studio, second.user_id) == []


async def test_be_06_ban_is_not_copied_to_those_whom_a_file_puts_above_its_author(
    studio: Studio, moderator: Person, anna: User
) -> None:
    shop, eve = studio.shop.application_id, await create_person(studio.service, EVE)
    for user in (anna, eve):
        await ban(studio, moderator, user.user_id, application_id=shop)
        await erase(studio, user.user_id)
    root = {"user_id": "1000000089", "login": ANNA, "nick": "A", "email_verified": True, "administrator": True}
    owner = {"user_id": "1000000088", "login": EVE, "nick": "E", "email_verified": True}
    owners = {"id": PROJECT, "users": {"1000000088": {"roles": ["project_owner"]}}}
    await apply_document(studio.service, {"users": [root, owner], "memberships": [owners]})
    assert await active_bans(studio, "1000000089") == []
    assert await active_bans(studio, "1000000088") == []


async def test_be_03_address_of_a_file_brings_the_ban(studio: Studio, moderator: Person, anna: User) -> None:
    shop, eve = studio.shop.application_id, await create_person(studio.service, EVE)
    await ban(studio, moderator, anna.user_id, application_id=shop)
    moved = {"user_id": anna.user_id, "login": "new@studio.example", "nick": "A", "email_verified": True}
    taken = {"user_id": eve.user_id, "login": ANNA, "nick": "E", "email_verified": True}
    await apply_document(studio.service, {"users": [moved]})
    await apply_document(studio.service, {"users": [taken]})
    assert await active_bans(studio, eve.user_id) == [(shop, TEXT)]
    await erase(studio, eve.user_id)
    fresh = {"user_id": "1000000089", "login": ANNA, "nick": "F", "email_verified": True}
    await apply_document(studio.service, {"users": [fresh]})
    assert await active_bans(studio, "1000000089") == [(shop, TEXT)]


@pytest.mark.parametrize("later", ["project_owner", None])
async def test_be_06_ban_counts_by_the_rank_that_its_author_had(
    studio: Studio, anna: User, later: str | None
) -> None:
    """A later role of the author neither extends a ban nor takes anything from it."""
    service, shop = studio.service, studio.shop.application_id
    moderator = await create_person_with(
        studio, {application_scope(PROJECT, shop): holdings_with_rules("app.can_ban")}
    )
    author = (
        await create_person_with(studio, {IN_PROJECT: holdings_with("project_owner")}) if later is None else moderator
    )
    manager = await create_person(service, EVE)
    held = {IN_PROJECT: holdings_with("project_administrator")}
    await write_record(studio, UserRecord(application_id=CENTRAL_APPLICATION, user_id=manager.user_id, scopes=held))
    await ban(studio, author, anna.user_id, application_id=shop)
    after = {IN_PROJECT: holdings_with(later)} if later else {}
    await write_record(studio, UserRecord(application_id=CENTRAL_APPLICATION, user_id=author.user_id, scopes=after))
    await erase(studio, anna.user_id)
    stored = await service.services.storage.accounts.user(manager.user_id)
    moved = {"login": ANNA, "email_verified": True}
    await service.services.accounts.editor.save(stored, moved, ORIGIN, version=stored.version)
    assert await active_bans(studio, manager.user_id) == ([] if later else [(shop, TEXT)])


# -- what people are told ----------------------------------------------------------------------------------


async def test_be_01_pages_say_that_the_ban_stays(studio: Studio, moderator: Person, anna: User) -> None:
    browser, pages = AccountBrowser(studio.service), ("/account", "/account/delete")
    await browser.sign_in_and_open_account(ANNA)
    for page in pages:
        assert "ban stays in force" not in (await browser.get(page)).text
    await ban(studio, moderator, anna.user_id, application_id=studio.shop.application_id)
    for page in pages:
        assert (
            "Your ban stays in force, also for other accounts of yours."
            in (await browser.get(f"{page}?lang=en")).text
        )
        assert "Ihre Sperre gilt weiter, auch für andere Konten" in (await browser.get(f"{page}?lang=de")).text
    await browser.client.aclose()
