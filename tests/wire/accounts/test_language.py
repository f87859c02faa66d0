"""The language of every page: the person's choice, the account's, the client's request, then the browser's."""

import pytest

from gatehouse.audit.model import AuditOrigin
from gatehouse.web.pages.paths import Path
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.service import RunningService

LOGIN = "greta@studio.example"
PAGES = (
    Path.ACCOUNT,
    Path.DELETE,
    Path.DEVICE,
    Path.DEVICE_DONE,
    Path.DEVICE_CANCELLED,
    f"{Path.DEVICE_DENIED}?client_id=no_one",
    Path.FORGOT,
    f"{Path.GAME_DONE}?gsid=nothing",
    Path.GAME_CANCELLED,
    Path.GAME_WRONG_CODE,
    f"{Path.GAME_DENIED}?gsid=nothing",
    f"{Path.CONSENT}?interaction=nothing",
    f"{Path.CONFIRM_SIGN_IN}?interaction=nothing",
    f"{Path.RESET}?token=nothing",
    f"{Path.VERIFY_EMAIL}?token=nothing",
    f"{Path.AUTHORIZE}?client_id=no_one",
    Path.LOGOUT,
    "/nowhere",
)


@pytest.fixture
async def german(service: RunningService, browser_client: HttpBrowser) -> HttpBrowser:
    """The browser of Greta, whose account is in German; the browser asks for English."""
    await service.services.accounts.administration.create(
        login=LOGIN, nick="Greta", password=PASSWORD, lang="de", origin=AuditOrigin(actor="test")
    )
    browser_client.client.headers["Accept-Language"] = "en"
    await browser_client.sign_in(LOGIN)
    return browser_client


async def languages_of(browser_client: HttpBrowser, *paths: str) -> dict[str, str]:
    pages = {path: await browser_client.client.get(path) for path in paths}
    return {path: page.text.partition('<html lang="')[2][:2] for path, page in pages.items()}


async def test_every_page_uses_the_language_of_the_signed_in_account(german: HttpBrowser) -> None:
    assert await languages_of(german, *PAGES) == dict.fromkeys(PAGES, "de")


async def test_a_language_chosen_in_this_browser_is_that_of_every_page_from_then_on(german: HttpBrowser) -> None:
    await german.get(f"{Path.DEVICE}?lang=en")
    assert await languages_of(german, *PAGES) == dict.fromkeys(PAGES, "en")


async def test_form_responses_use_the_language_of_the_account(german: HttpBrowser) -> None:
    await german.get(Path.DEVICE)
    assert '<html lang="de"' in (await german.post(Path.DEVICE, user_code="BBBB-BBBB")).text
    assert '<html lang="de"' in (await german.client.post(Path.DEVICE, data={"user_code": "x", "csrf": "y"})).text
    await german.get(Path.LOGOUT)
    assert '<html lang="de"' in (await german.post(Path.LOGOUT_CONFIRM, decision="confirm")).text


async def test_a_client_may_wish_for_a_language_where_no_account_is_signed_in(browser_client: HttpBrowser) -> None:
    browser_client.client.headers["Accept-Language"] = "en"
    paths = (f"{Path.AUTHORIZE}?client_id=no_one&ui_locales=fr+de", f"{Path.LOGOUT}?ui_locales=de")
    assert await languages_of(browser_client, *paths) == dict.fromkeys(paths, "de")


async def test_the_console_is_wholly_in_a_language_it_has_words_for(german: HttpBrowser) -> None:
    """This includes its frame: a page in two languages is read out wrongly, whatever its `lang` says."""
    for path in ("/console/access", "/console/people", "/console/nowhere"):
        page = await german.get(path)
        assert '<html lang="de"' in page.text
        assert page.headers["content-language"] == "de"
        assert "Abmelden" in page.text
        assert "Sign out" not in page.text
