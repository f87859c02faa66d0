"""Tasks of people, each with a ceiling: `@pytest.mark.ceiling(taps=3, fields=2)` and the fixture `person`.

Each runs once, in English: on a desktop, or on a phone with the marker `on_phone`. `make browser-all` runs all of
them in every language, on both devices and on both databases.
"""

from collections.abc import AsyncIterator, Iterable

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from gatehouse.languages import FALLBACK_LANG, LANGUAGES
from tests.conftest import CALL_FAILED
from tests.pages.tasks.counting import VIEWPORTS, Person
from tests.support.browser import PASSWORD
from tests.support.chromium import save_screenshot
from tests.support.console import ADA, STUDIO, apply_document, login_of
from tests.support.service import RunningService


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "person" not in metafunc.fixturenames:
        return
    usual = "phone" if metafunc.definition.get_closest_marker("on_phone") else "desktop"
    screens: Iterable[tuple[str, str]] = [(FALLBACK_LANG, usual)]
    if metafunc.config.getoption("--everywhere"):
        screens = [(lang, device) for lang in LANGUAGES for device in VIEWPORTS]
    metafunc.parametrize("screen", screens, ids="-".join)


@pytest_asyncio.fixture(loop_scope="session")
async def person(
    service: RunningService, browser: Browser, screen: tuple[str, str], request: pytest.FixtureRequest
) -> AsyncIterator[Person]:
    lang, device = screen
    someone = await Person.arrive(service, browser, lang=lang, device=device)
    yield someone
    if request.node.stash.get(CALL_FAILED, False):
        await save_screenshot(someone.page, request.node.nodeid)
    await someone.leave()
    ceiling = request.node.get_closest_marker("ceiling")
    assert ceiling is not None, "a task needs a ceiling"
    wanted = (ceiling.kwargs["taps"], ceiling.kwargs["fields"])
    done = (someone.count.taps, someone.count.fields)
    assert all(one <= most for one, most in zip(done, wanted, strict=True)), (done, someone.count.done)


@pytest_asyncio.fixture(loop_scope="session")
async def admin(person: Person) -> AsyncIterator[Person]:
    await begin_as_administrator(person)
    yield person


async def begin_as_administrator(person: Person, document: str = STUDIO) -> None:
    """Open the console's home page as an administrator; signing in is no part of their task."""
    await apply_document(person.service, document)
    await person.open("/console")
    await person.field("sign_in.login").fill(login_of(ADA))
    await person.field("field.password").fill(PASSWORD)
    await person.button("sign_in.submit").click()
    await person.page.wait_for_url("**/console")
    await person.open(f"/console?lang={person.lang}")  # kept in a cookie; the account's language is English


async def find_by(admin: Person, text: str, result: str) -> None:
    """Type into the field on Home and open what it suggests first."""
    field = admin.page.locator("#find-here")
    await admin.fill(field, text)
    await expect(admin.page.locator(".finder a.chosen")).to_contain_text(result)
    await admin.press_enter(field)


async def find_person(admin: Person, name: str) -> None:
    await find_by(admin, name, name)
    await expect(admin.page.get_by_role("heading", level=1, name=name)).to_be_visible()


async def go(admin: Person, entry: str) -> None:
    """Choose an entry of the menu, which a phone shows as a sheet."""
    if admin.device == "phone":
        await admin.page.locator("button[popovertarget=menu]").first.click()
    await admin.tap(admin.link(entry))
