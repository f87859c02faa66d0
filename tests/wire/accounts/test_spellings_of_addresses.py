"""An address in other letters of the same meaning (full width, ligatures) is the same address (LG-34)."""

import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatehouse.accounts.importing.files import open_import_file
from gatehouse.accounts.importing.importer import ImportJob
from gatehouse.accounts.importing.model import ImportFormat, RefusedRow
from gatehouse.accounts.model import JOINED_KEY, SELF_REGISTERED, User
from gatehouse.accounts.sign_in import ACCOUNT_LIMIT
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.provision.model import Unfit
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, HttpBrowser
from tests.support.builders import a_record, a_user
from tests.support.mailbox import link_in_new_message, new_messages
from tests.support.service import RunningService, running_service
from tests.support.spellings import share_login, wide
from tests.support.studio import a_studio, create_administrator, create_person_with
from tests.wire.accounts.test_email_sign_in import ask_here, code_in
from tests.wire.accounts.test_providers import EMAIL, KIM, a_vendor, sign_in_with
from tests.wire.provision.test_every_account import apply, export

ORIGIN = AuditOrigin(actor="test")
WIDE = f"{wide('anna')}@studio.example"
SPELLINGS = [WIDE, f"an{wide('NA')}@Studio.example", "\u24d0nna@studio.example"]


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    environment = {"GATEHOUSE__ACCOUNTS__REGISTRATION": "true", "GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}
    async with running_service(installed_url, tmp_path, environment=environment) as running:
        yield running


async def all_logins(service: RunningService) -> list[str | None]:
    return [user.login for user in await service.services.storage.accounts.all_users()]


@pytest.mark.parametrize("login", SPELLINGS)
async def test_account_is_found_at_the_sign_in(browser_client: HttpBrowser, anna: User, login: str) -> None:
    del anna
    assert (await browser_client.sign_in(login)).status_code == 303


async def test_wrong_passwords_of_all_spellings_are_counted_together(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    """Otherwise every spelling would give an attacker ten more guesses."""
    del anna
    for number in range(ACCOUNT_LIMIT.free_attempts):
        login = SPELLINGS[number % len(SPELLINGS)]
        ask = {"login": login, "password": "wrong"}
        assert (await service.client.post("/proxy/api/login", json=ask)).json()["status"] == "LOGINERROR"
    assert (await browser_client.sign_in(LOGIN)).status_code == 429


async def test_registration_of_another_spelling_writes_to_the_owner_only(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await browser_client.get("/register")
    new = {
        "login": WIDE,
        "nick": "Ann",
        "password": "a quite different phrase",
    }
    assert (await browser_client.post("/register", **new)).status_code == 200
    (message,) = await new_messages(service)
    assert (message.to, "token=" in message.text) == (anna.login, False)
    assert await all_logins(service) == [anna.login]


async def test_reset_link_is_never_sent_to_another_spelling(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    """A mail server may take the other spelling for another mailbox."""
    await browser_client.get("/forgot")
    await browser_client.post("/forgot", login=WIDE)
    (message,) = await new_messages(service)
    assert (message.to, "/reset?token=" in message.text) == (anna.login, True)


async def test_sign_in_by_email_is_never_sent_to_another_spelling(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await service.services.settings_editor.save({"accounts.email_sign_in": True}, ORIGIN)
    await browser_client.get("/sign-in")
    await ask_here(browser_client, WIDE)
    (message,) = await new_messages(service)
    assert message.to == anna.login
    assert (await browser_client.post("/sign-in/email/code", otp=code_in(message))).status_code == 303


async def test_lg_34_proof_of_another_spelling_opens_no_account_that_came_meanwhile(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    """A stranger with the mailbox of the other spelling asks first; then the owner of this one registers."""
    wanted = {"accounts.email_sign_in": True, "accounts.password_optional": True}
    await service.services.settings_editor.save(wanted, ORIGIN)
    await browser_client.get("/register")
    await browser_client.post("/register", login=WIDE, nick="Stranger")
    (message,) = await new_messages(service)
    assert message.to == WIDE
    await service.services.accounts.administration.create(login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN)
    response = await browser_client.post("/sign-in/email/code", otp=code_in(message))
    assert response.status_code != 303
    assert (await browser_client.get("/account")).status_code == 303, "no one is signed in"
    assert await all_logins(service) == [LOGIN]


async def test_new_email_in_another_spelling_of_an_account_writes_to_its_owner(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    bob = await service.services.accounts.administration.create(
        login="bob@studio.example", nick="Bob", password=PASSWORD, origin=ORIGIN
    )
    await account_browser.submit_and_read_notice("/account/email", login=f"{wide('bob')}@studio.example")
    (message,) = await new_messages(service)
    assert (message.to, "token=" in message.text) == (bob.login, False)
    await account_browser.get("/account")
    response = await account_browser.submit("/account/email", login=WIDE)
    assert (response.status_code, "already" in account_browser.problem_in(response)) == (400, True)
    assert set(await all_logins(service)) == {anna.login, bob.login}


async def test_link_to_a_new_email_ends_when_another_spelling_is_taken(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await account_browser.submit_and_read_notice("/account/email", login="new@studio.example")
    link = await link_in_new_message(service)
    await service.services.accounts.administration.create(
        login=f"{wide('new')}@studio.example", nick="N", password=PASSWORD, origin=ORIGIN
    )
    await account_browser.get(link)
    assert (await account_browser.post("/verify-email")).status_code == 403
    assert (await service.services.storage.accounts.user(anna.user_id)).login == anna.login


async def test_administrator_creates_and_saves_no_second_account(service: RunningService, anna: User) -> None:
    studio = await a_studio(service)
    admin = await create_administrator(studio)
    other = await create_person_with(studio)
    create = {"action": "create", "data": {"login": WIDE, "nick": "Ann"}}
    save = {"action": "save", "data": {"user_id": other.user_id, "login": WIDE}}
    invite = {"action": "invite", "data": {"login": WIDE}}
    for ask in (create, save, invite):
        await studio.expect_error(409, "user", ask, admin.headers)
    search = {"action": "search", "data": {"query": WIDE}}
    found = (await studio.expect_ok("user", search, admin.headers))["data"]
    assert [one["user_id"] for one in found] == [anna.user_id]


async def test_configuration_file_finds_the_account_and_makes_no_second_one(
    service: RunningService, anna: User
) -> None:
    await apply(service, {"users": [{"login": WIDE, "nick": "Ann"}]})
    stored = await service.services.storage.accounts.user(anna.user_id)
    assert (stored.nick, stored.login) == ("Ann", WIDE)
    with pytest.raises(Unfit, match=f"belongs to user {anna.user_id}"):
        await apply(service, {"users": [{"user_id": "1001", "login": LOGIN, "nick": "N"}]})
    logins = ("x@a.example", f"{wide('x')}@a.example")
    two = [{"user_id": f"100{n}", "login": login, "nick": "N"} for n, login in enumerate(logins)]
    with pytest.raises(Unfit, match="belongs to user 1000"):
        await apply(service, {"users": two})


async def test_import_refuses_another_spelling(service: RunningService, anna: User) -> None:
    lines = [
        "login;email_verified",
        *(f"{login};true" for login in (WIDE, f"{wide('ben')}@x.example", "ben@x.example")),
    ]
    opened = open_import_file(io.BytesIO("\n".join(lines).encode()), ImportFormat.CSV)
    job = ImportJob(source=ImportFormat.CSV, import_id=opened.import_id, origin=ORIGIN)
    refused: list[RefusedRow] = []
    await service.services.accounts.importer.run(opened.rows, job, report=refused.append)
    assert {(one.number, one.reason) for one in refused} == {
        (2, f"the login belongs to user {anna.user_id}"),
        (4, "has the same login as row 3"),
    }


async def test_provider_takes_no_address_from_an_account_with_another_spelling(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    squatter = a_user(login=f"{wide('kim')}@studio.example", password_hash="$x", meta={JOINED_KEY: SELF_REGISTERED})
    registered = a_record(AuditEvent.USER_REGISTERED, subject=squatter.user_id)
    await service.services.storage.accounts.create_user(squatter, registered)
    async with a_vendor(service, create_accounts=True) as vendor:
        assert (await sign_in_with(browser_client, vendor, **KIM)).status_code == 409
    kept = await service.services.storage.accounts.user(squatter.user_id)
    assert (kept.login, kept.blocked) == (squatter.login, False)
    assert EMAIL not in await all_logins(service)


async def test_export_with_accounts_that_share_an_address_is_applied_unchanged(
    service: RunningService, anna: User
) -> None:
    twin = await service.services.accounts.administration.create(
        login="twin@studio.example", nick="Twin", password=PASSWORD, origin=ORIGIN
    )
    await share_login(service.services.storage.runner, twin.user_id, WIDE)
    document = await export(service)
    assert {one["login"] for one in document["users"]} == {LOGIN, WIDE}
    plan = await apply(service, document)
    assert not plan.changes
    by_login = [{"login": WIDE, "nick": "Wide"}, {"login": LOGIN, "nick": "Exact"}]
    await apply(service, {"users": by_login})
    accounts = service.services.storage.accounts
    assert [(await accounts.user(one.user_id)).nick for one in (twin, anna)] == ["Wide", "Exact"]
