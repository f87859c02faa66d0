"""Signing in and out with a password (checklist LG-01 to LG-10)."""

import re

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD, AccountBrowser, HttpBrowser
from tests.support.service import RunningService

LOGIN = "anna@studio.example"


def comparable_text(response: httpx2.Response) -> str:
    """The page without what differs on every load, and without the person's input."""
    text = re.sub(r"[\w-]+@[\w.]+", "", response.text)
    return re.sub(r'value="[^"]*"|login=[^"&]*|data-[\w-]+="[^"]*"|<code>\w+</code>', "", text)


async def test_the_right_password_opens_a_session(browser_client: HttpBrowser, anna: User) -> None:
    response = await browser_client.sign_in(LOGIN)
    assert (response.status_code, response.headers["location"]) == (303, "/account")
    assert "gh_session" in browser_client.cookies
    home = await browser_client.get("/")
    assert (home.status_code, home.headers["location"]) == (303, "/account")
    assert anna.login == LOGIN


async def test_administrator_lands_in_the_console(service: RunningService, browser_client: HttpBrowser) -> None:
    await service.services.accounts.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test"), administrator=True
    )
    assert (await browser_client.sign_in(LOGIN)).headers["location"] == "/console"
    assert (await browser_client.get("/")).headers["location"] == "/console"
    await browser_client.get("/account")
    assert (await browser_client.post("/sign-out")).status_code == 200


@pytest.mark.usefixtures("anna")
async def test_all_spellings_of_the_login_are_the_login(browser_client: HttpBrowser) -> None:
    assert (await browser_client.sign_in(" Anna@STUDIO.example ")).status_code == 303


async def test_lg_05_wrong_unknown_and_blocked_accounts_get_one_identical_answer(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    wrong = await browser_client.sign_in(LOGIN, "not the password")
    unknown = await browser_client.sign_in("no_one@studio.example", "not the password")
    await service.services.accounts.administration.block(anna.user_id, AuditOrigin(actor="test"))
    blocked = await browser_client.sign_in(LOGIN)
    responses = [wrong, unknown, blocked]
    assert [response.status_code for response in responses] == [403, 403, 403]
    assert len({comparable_text(response) for response in responses}) == 1
    assert len({tuple(sorted(response.headers)) for response in responses}) == 1


@pytest.mark.usefixtures("anna")
async def test_lg_01_the_session_id_is_new_after_every_sign_in_and_the_old_one_is_dead(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    browser_client.client.cookies.set("gh_session", "chosen-by-an-attacker", domain="127.0.0.1", path="/")
    await browser_client.sign_in(LOGIN)
    first = browser_client.client.cookies["gh_session"]
    assert first != "chosen-by-an-attacker"
    await browser_client.sign_in(LOGIN)
    second = browser_client.client.cookies["gh_session"]
    assert second != first
    for stale in (first, "chosen-by-an-attacker", ""):
        response = await service.client.get("/", headers={"Cookie": f"gh_session={stale}"})
        assert response.status_code == 200
        assert "gh_session" not in response.cookies


@pytest.mark.usefixtures("anna")
async def test_signing_out_kills_the_session_and_shows_nothing_from_the_cache(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await browser_client.sign_in(LOGIN)
    stolen = browser_client.client.cookies["gh_session"]
    await browser_client.get("/sign-in")
    response = await browser_client.post("/sign-out")
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    assert "gh_session" not in browser_client.cookies
    assert (await service.client.get("/", headers={"Cookie": f"gh_session={stolen}"})).status_code == 200


@pytest.mark.usefixtures("anna")
async def test_lg_02_cookies_are_for_this_host_only_and_out_of_scripts_reach(browser_client: HttpBrowser) -> None:
    await browser_client.get("/sign-in")
    response = await browser_client.post("/sign-in", login=LOGIN, password=PASSWORD)
    for cookie in response.headers.get_list("set-cookie"):
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert "Path=/" in cookie
        assert "Domain" not in cookie


@pytest.mark.usefixtures("anna")
async def test_lg_03_a_form_without_this_browsers_token_is_refused(
    browser_client: HttpBrowser, other: HttpBrowser
) -> None:
    await other.get("/sign-in")
    await browser_client.get("/sign-in")
    page, browser_client.page = browser_client.page, None
    assert (await browser_client.post("/sign-in", login=LOGIN, password=PASSWORD)).status_code == 403
    browser_client.page = other.page
    assert (await browser_client.post("/sign-in", login=LOGIN, password=PASSWORD)).status_code == 403
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        browser_client.page = page
        browser_client.client.headers.update(headers)
        assert (await browser_client.post("/sign-in", login=LOGIN, password=PASSWORD)).status_code == 403
        for name in headers:
            del browser_client.client.headers[name]
    plain = await browser_client.client.post("/sign-in", content=b"login=x", headers={"Content-Type": "text/plain"})
    assert plain.status_code == 415
    assert "gh_session" not in browser_client.cookies


@pytest.mark.parametrize("login", [LOGIN, "no_one@studio.example"])
@pytest.mark.usefixtures("anna")
async def test_lg_06_after_ten_failures_even_the_right_password_waits_alike_for_known_and_unknown(
    service: RunningService, browser_client: HttpBrowser, login: str
) -> None:
    for _ in range(10):
        assert (await browser_client.sign_in(login, "not the password")).status_code == 403
    closed = await browser_client.sign_in(login)
    assert closed.status_code == 429
    await service.clock.advance(int(closed.headers["retry-after"]))
    assert (await browser_client.sign_in(login)).status_code == (303 if login == LOGIN else 403)


@pytest.mark.usefixtures("anna")
async def test_lg_06_the_count_survives_a_restart_because_it_is_in_the_database(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    for _ in range(10):
        await browser_client.sign_in(LOGIN, "not the password")
    revision = await service.services.storage.runner.revision()  # the database that a restarted process would open
    assert revision
    assert (await browser_client.sign_in(LOGIN.upper())).status_code == 429


@pytest.mark.usefixtures("anna")
async def test_lg_09_anyone_who_keeps_failing_does_not_lock_the_owner_out_of_their_known_browser(
    browser_client: HttpBrowser, other: HttpBrowser
) -> None:
    await browser_client.sign_in(LOGIN)
    await browser_client.get("/sign-in")
    await browser_client.post("/sign-out")
    for _ in range(12):
        await other.sign_in(LOGIN, "a guess")
    assert (await other.sign_in(LOGIN)).status_code == 429
    assert (await browser_client.sign_in(LOGIN)).status_code == 303


@pytest.mark.usefixtures("anna")
async def test_lg_10_one_password_against_many_accounts_is_throttled_by_source(browser_client: HttpBrowser) -> None:
    await browser_client.get("/sign-in")
    page = browser_client.page
    statuses = []
    for number in range(102):
        browser_client.page = page
        response = await browser_client.post("/sign-in", login=f"user{number}@studio.example", password="Summer2026!")
        statuses.append(response.status_code)
    assert statuses[:100] == [403] * 100
    assert statuses[-1] == 429


@pytest.mark.usefixtures("anna")
async def test_a_session_ends_when_idle_and_in_any_case_at_its_last_day(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await browser_client.sign_in(LOGIN, stays=True)
    for _ in range(15):
        await service.clock.advance(48 * 3_600)
        assert (await browser_client.get("/")).status_code == (
            303 if service.clock.now() < 1_800_000_000 + 30 * 86_400 else 200
        )
    await browser_client.sign_in(LOGIN, stays=True)
    await service.clock.advance(72 * 3_600)
    assert (await browser_client.get("/")).status_code == 200


def session_cookie(response: httpx2.Response) -> str:
    return next(cookie for cookie in response.headers.get_list("set-cookie") if cookie.startswith("gh_session="))


@pytest.mark.usefixtures("anna")
async def test_staying_signed_in_is_a_choice(service: RunningService, browser_client: HttpBrowser) -> None:
    brief = await browser_client.sign_in(LOGIN)
    assert "Max-Age" not in session_cookie(brief)  # it ends with the browser
    await service.clock.advance(12 * 3_600)
    assert (await browser_client.get("/")).status_code == 200  # and on the server
    lasting = await browser_client.sign_in(LOGIN, stays=True)
    assert "Max-Age=31536000" in session_cookie(lasting)
    await service.clock.advance(12 * 3_600)
    assert (await browser_client.get("/")).status_code == 303
    # The browser remembers the choice, and asking for the password again keeps it.
    fresh = await browser_client.get("/confirm?next=/account/totp")
    assert fresh.status_code == 200
    assert "Max-Age=31536000" in session_cookie(await browser_client.post("/confirm", password=PASSWORD))
    assert 'name="stay" value="1" data-stay="gh_stay" checked' in (await browser_client.get("/sign-in")).text
    assert "Max-Age" not in session_cookie(await browser_client.sign_in(LOGIN))
    assert "gh_stay" not in browser_client.cookies


async def test_a_sign_in_from_a_new_browser_is_told_to_the_owner_and_from_a_known_one_is_not(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await browser_client.sign_in(LOGIN)
    assert (await service.services.storage.mail.outbox_status()).waiting == 0
    await service.clock.advance(3_600)
    await browser_client.sign_in(LOGIN)
    assert (await service.services.storage.mail.outbox_status()).waiting == 0
    other_browser = HttpBrowser(service, agent="curl/8")
    await other_browser.sign_in(LOGIN)
    await other_browser.client.aclose()
    assert (await service.services.storage.mail.outbox_status()).waiting == 1
    assert anna.login == LOGIN


@pytest.mark.usefixtures("anna")
async def test_lg_25_the_redirect_after_the_credentials_is_a_303(browser_client: HttpBrowser) -> None:
    assert (await browser_client.sign_in(LOGIN)).status_code == 303


async def test_lg_17_a_password_too_long_to_be_one_is_refused_like_any_wrong_one(
    browser_client: HttpBrowser, anna: User
) -> None:
    assert (await browser_client.sign_in(LOGIN, "x" * 5_000)).status_code == 403
    assert anna.password_hash is not None


async def test_error_pages_speak_the_readers_language(service: RunningService) -> None:
    response = await service.client.get("/nowhere", headers={"Accept-Language": "de-AT,de;q=0.9"})
    assert response.status_code == 404
    assert 'lang="de"' in response.text


async def test_user_names_are_a_setting(
    service: RunningService, browser_client: HttpBrowser, anna: User, account_browser: AccountBrowser
) -> None:
    origin = AuditOrigin(actor="test")
    await account_browser.submit_and_read_notice("/account/username", username="anna.k")
    assert (await browser_client.sign_in("anna.k")).status_code == 303
    await service.services.settings_editor.save({"accounts.username_sign_in": False}, origin)
    page = (await browser_client.get("/sign-in")).text
    assert "Email or user name" not in page
    assert (await browser_client.sign_in("anna.k")).status_code == 403
    assert (await browser_client.sign_in(anna.login or "")).status_code == 303
    assert "/account/username" not in (await account_browser.get("/account")).text
    assert (await account_browser.post_with_csrf("/account/username", username="anna.x")).status_code == 404
