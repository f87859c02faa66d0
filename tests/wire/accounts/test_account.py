"""The account page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.oauth.model import Consent
from gatehouse.storage.sqlite.runner import SQLiteRunner
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, HttpBrowser
from tests.support.builders import NOW, PASSKEY_HOST, a_client, a_passkey, a_record
from tests.support.geoip import write_geoip
from tests.support.service import RunningService, running_service

HERE = {
    "city": {"names": {"en": "Vienna", "de": "Wien"}},
    "country": {"names": {"en": "Austria", "de": "Österreich"}},
}


async def read_user(service: RunningService, user: User) -> User:
    return await service.services.storage.accounts.user(user.user_id)


async def test_a_stranger_is_sent_to_the_sign_in_whatever_they_ask_for(browser_client: HttpBrowser) -> None:
    for path in ("/account", "/account/totp", "/account/passkey", "/account/delete", "/confirm"):
        response = await browser_client.get(path)
        assert (response.status_code, response.headers["location"].partition("?")[0]) == (303, "/sign-in")
    response = await browser_client.post("/account/profile", nick="Mallory")
    assert (response.status_code, response.headers["location"]) == (303, "/sign-in")


@pytest.mark.usefixtures("anna")
async def test_a_limited_session_is_asked_for_a_whole_sign_in(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    body = {"login": LOGIN, "password": PASSWORD, "short_token": "1"}
    stoken = (await service.client.post("/proxy/api/login", json=body)).json()["stoken"]
    await browser_client.get(f"/?stoken={stoken}")
    await browser_client.post("/sign-in/stoken")
    assert "gh_session" in browser_client.cookies
    for path in ("/account", "/confirm", "/account/totp"):
        response = await browser_client.get(path)
        assert (response.status_code, response.headers["location"].partition("?")[0]) == (303, "/sign-in")


async def test_account_page_shows_everything_to_its_owner(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await service.services.storage.passkeys.add_passkey(
        a_passkey(user_id=anna.user_id, name="Blue key"), [bytes(32)], a_record(), (), host=PASSKEY_HOST
    )
    page = (await account_browser.get("/account")).text
    for text in ("Anna", LOGIN, "not verified", "A password is set", "Blue key", "never used", "1 code left"):
        assert text in page
    for text in ("Firefox, Linux", "this device", "127.0.0.1", "Account created", "Signed in", anna.user_id):
        assert text in page
    assert "/console" not in page
    assert anna.password_hash is not None
    assert anna.password_hash not in page


@pytest.mark.both_databases
async def test_the_page_costs_a_fixed_number_of_reads_however_much_there_is_to_show(
    service: RunningService, account_browser: AccountBrowser, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = service.services.storage
    for _ in range(5):
        someone = HttpBrowser(service)
        await someone.sign_in(LOGIN)
        await someone.client.aclose()
    for number in range(5):
        key = a_passkey(user_id=anna.user_id, credential_id=bytes([number]))
        await store.passkeys.add_passkey(key, [bytes(32)], a_record(), (), host=PASSKEY_HOST)
        await store.clients.create_client(a_client(f"client{number}"), a_record())
        consent = Consent(user_id=anna.user_id, client_id=f"client{number}", scopes=("openid",), given_at=NOW)
        await store.consents.add_consent(consent, a_record())
    reads: list[str] = []

    def count_calls(kind: str) -> Callable[..., Any]:
        run = getattr(store.runner, kind)

        async def count_and_run(make: Callable[[], Any]) -> Any:
            reads.append(kind)
            return await run(make)

        return count_and_run

    for kind in ("read", "write", "snapshot_read"):
        monkeypatch.setattr(store.runner, kind, count_calls(kind))
    page = await account_browser.get("/account")
    assert page.text.count("last seen") == 6
    assert page.text.count("Web shop</strong>") == 5
    assert set(reads) <= {"read", "snapshot_read"}  # nothing is written
    # PostgreSQL reads her facts three times: for the console, her applications and permissions; SQLite keeps them
    assert len(reads) <= (14 if isinstance(store.runner, SQLiteRunner) else 16)


async def test_activity_is_the_newest_fifty_and_names_no_administrators_address(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    async def add_record(event: AuditEvent, origin: AuditOrigin) -> None:
        await service.clock.advance(1)
        record = service.services.core.recorder.record(event, origin, subject=anna.user_id)
        await service.services.storage.accounts.add_record(record)

    await add_record(AuditEvent.USER_CHANGED, AuditOrigin(actor="1234567890", address="203.0.113.9"))
    await add_record(AuditEvent.RESET_ASKED, AuditOrigin(actor="visitor", address="192.0.2.44"))
    page = (await account_browser.get("/account")).text
    assert "Account changed by an administrator" in page
    assert "203.0.113.9" not in page
    assert "192.0.2.44" in page
    for _ in range(49):
        await add_record(AuditEvent.PASSKEY_RENAMED, AuditOrigin(actor=anna.user_id))
    page = (await account_browser.get("/account")).text
    assert page.count("Passkey renamed") == 49
    assert "Password reset requested" in page
    assert "Account changed by an administrator" not in page


async def test_notice_appears_in_the_section_the_page_opens_at(account_browser: AccountBrowser) -> None:
    response = await account_browser.submit("/account/look", lang="en", theme="dark")
    assert response.headers["location"] == "/account#look"
    page = (await account_browser.follow()).text
    assert page.count('class="notice"') == 1
    assert 'class="notice"' in page.partition('<section id="look"')[2].partition("</section>")[0]


async def test_a_new_name_is_kept_told_once_and_on_record(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    assert await account_browser.submit_and_read_notice("/account/profile", nick="  Änne ") == "Profile saved"
    assert (await read_user(service, anna)).nick == "Änne"
    again = await account_browser.get("/account")
    assert "Profile saved" not in again.text
    assert "Profile changed" in again.text
    (entry,) = await service.services.storage.audit.newest_records(1, anna.user_id, "user.profile_changed")
    assert (entry.actor, entry.details, entry.personal) == (
        anna.user_id,
        {"field": "nick"},
        {"address": "127.0.0.1", "nick": "Änne"},
    )


@pytest.mark.parametrize("nick", ["", " ", "x" * 65, "Anna\u202e", "two\nlines"])
async def test_a_name_that_cannot_be_is_refused_beside_its_field(
    service: RunningService, account_browser: AccountBrowser, anna: User, nick: str
) -> None:
    response = await account_browser.submit("/account/profile", nick=nick)
    assert response.status_code == 400
    assert "1 to 64 visible characters" in account_browser.problem_in(response)
    assert (await read_user(service, anna)).nick == "Anna"


async def test_language_and_theme_are_saved_with_the_account_and_in_this_browser(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    notice = await account_browser.submit_and_read_notice("/account/look", lang="de", theme="dark")
    assert notice == "Sprache und Darstellung gespeichert"
    assert account_browser.page is not None
    assert '<html lang="de" data-theme="dark">' in account_browser.page.text
    assert (await read_user(service, anna)).lang == "de"
    elsewhere = AccountBrowser(service)
    assert '<html lang="de">' in (await elsewhere.sign_in_and_open_account()).text
    await elsewhere.client.aclose()
    for wrong in ({"lang": "xx", "theme": "dark"}, {"lang": "de", "theme": "pink"}):
        assert (await account_browser.post_with_csrf("/account/look", **wrong)).status_code == 400


async def test_a_page_about_someone_elses_words_shows_no_notice(account_browser: AccountBrowser) -> None:
    """The notice is in a cookie of the service, so no link can make the page show one."""
    page = await account_browser.get("/account?notice=password_changed&done=password_changed")
    assert "Password changed" not in page.text
    account_browser.client.cookies.set("gh_notice", "<script>", domain="127.0.0.1", path="/")
    assert 'role="status" class="notice"' not in (await account_browser.get("/account")).text


async def test_password_managers_find_the_form(account_browser: AccountBrowser) -> None:
    response = await account_browser.get("/.well-known/change-password")
    assert (response.status_code, response.headers["location"]) == (303, "/account#password")


async def test_places_come_from_the_operators_file_in_the_readers_language(migrated_url: str, tmp_path: Path) -> None:
    file = write_geoip(tmp_path / "city.mmdb", {"127.0.0.0/8": HERE})
    environment = {"GATEHOUSE__ACCOUNTS__GEOIP_FILE": str(file)}
    async with running_service(migrated_url, tmp_path / "data", environment=environment) as service:
        await service.services.accounts.administration.create(
            login=LOGIN, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
        )
        account_browser = AccountBrowser(service)
        assert "Vienna, Austria" in (await account_browser.sign_in_and_open_account()).text
        assert "Wien, Österreich" in (await account_browser.get("/account?lang=de")).text
        await account_browser.client.aclose()


async def test_a_blocked_account_is_signed_out_at_its_next_request(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await service.services.accounts.administration.block(anna.user_id, AuditOrigin(actor="test"))
    assert (await account_browser.get("/account")).headers["location"] == "/sign-in"
