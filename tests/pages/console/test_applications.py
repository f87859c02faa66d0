"""Applications in a real browser: import from a file, accessibility and width of every screen."""

from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser, Page, expect

from gatehouse.kernel.errors import NotFound
from tests.pages.test_look import NARROW, listen
from tests.support.axe import LOOK_RULES, axe_violations, load_axe_with_every_page
from tests.support.browser import PASSWORD
from tests.support.console import ADA, OLGA, SHOP, apply_document, sign_in_to_console
from tests.support.guide_pictures import Camera
from tests.support.service import RunningService

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE: Final = f"/console/applications/{SHOP}"
# What the tests of every screen and of the phone do not open: forms, confirmations, single objects.
SCREENS: Final = (
    "/console/applications/new/web",
    *(
        f"{PAGE}{rest}"
        for rest in (
            *("/remove", "/rules/new", "/rules/login", "/rules/import"),
            *("/rules/private_data.user.kick", "/rules/private_data.user.kick/remove"),
            *("/versions/compare?old=1&new=2", "/versions/1/restore"),
            *("/new_client", "/clients/wiki", "/connect?client=wiki", "/clients/wiki/remove"),
        )
    ),
)


async def make_a_client(page: Page, service: RunningService) -> None:
    await page.goto(f"{service.base_url}{PAGE}/new_client")
    for name, typed in (("client_name", "Wiki"), ("client_id", "wiki"), ("redirect_uris", "https://wiki.example/cb")):
        await page.locator(f"[name={name}]").fill(typed)
    await page.get_by_role("button", name="Create client").click()
    await expect(page.get_by_text("Copy it now")).to_be_visible()


def content(file: Path) -> str:
    return file.read_text(encoding="utf-8")


async def import_a_file(page: Page, service: RunningService) -> None:
    """A file longer than a form field may be."""
    await page.goto(f"{service.base_url}{PAGE}/rules")
    async with page.expect_download() as exported:
        await page.get_by_role("button", name="Export").click()
    text = content(await (await exported.value).path())
    long = text.replace("Handles money", "ä" * 1_000).replace("{", "{" + " " * 1_500)
    assert len(long.encode()) > 65_536
    await page.goto(f"{service.base_url}{PAGE}/rules/import")
    await page.get_by_label("File", exact=True).set_input_files(
        {"name": "schema.json", "mimeType": "application/json", "buffer": long.encode()}
    )
    await expect(page.locator("#document")).to_have_value(long)
    await page.get_by_role("button", name="Review changes").click()
    await expect(page.get_by_text("role changed")).to_be_visible()
    assert await axe_violations(page) == []
    await page.get_by_role("button", name="Import", exact=True).click()
    await expect(page.get_by_text("Document imported")).to_be_visible()


@pytest.mark.pictures("connect")
async def test_a_file_is_imported_and_every_screen_is_for_everybody(
    service: RunningService, browser: Browser, picture: Camera
) -> None:
    await apply_document(service)
    context = await browser.new_context(reduced_motion="reduce", locale="en-GB")
    page = await context.new_page()
    errors = listen(page)
    await sign_in_to_console(service, page, ADA, "/console/applications")
    await make_a_client(page, service)
    await import_a_file(page, service)
    await load_axe_with_every_page(page)
    violations: dict[str, list[str]] = {}
    for screen in SCREENS:
        await page.set_viewport_size({"width": 1280, "height": 800})
        await page.emulate_media(color_scheme="light")
        await page.goto(f"{service.base_url}{screen}")
        if screen.endswith("/connect?client=wiki"):
            await picture(page, "connect", until=page.locator(".code-file figcaption").first)
        violations[screen] = await axe_violations(page)
        await page.emulate_media(color_scheme="dark")
        await page.set_viewport_size(NARROW)
        width = await page.evaluate("document.documentElement.scrollWidth")
        violations[screen] += await axe_violations(page, LOOK_RULES) + (
            [f"{width} wide"] if width > NARROW["width"] else []
        )
    assert {screen: problems for screen, problems in violations.items() if problems} == {}
    assert errors == []
    await context.close()


async def test_a_box_to_tick_looks_like_one_and_its_hint_stands_under_its_words(
    service: RunningService, page: Page
) -> None:
    await apply_document(service)
    await sign_in_to_console(service, page, ADA, f"/console/applications/{SHOP}/new_client")
    box = page.locator("main label > [type=checkbox]").first
    assert await box.evaluate("one => getComputedStyle(one).borderRadius") == "4px"
    hint = page.locator("label:has(> [type=checkbox]) > small").first
    assert await hint.evaluate("one => getComputedStyle(one).marginLeft") == "0px"  # its column begins at the text


async def test_a_machine_that_asks_as_the_application_gets_its_scope_and_its_command(
    service: RunningService, page: Page
) -> None:
    await apply_document(service)
    await sign_in_to_console(service, page, OLGA, f"{PAGE}/new_client")
    authzen = page.locator("[name=scopes][value=authzen]")
    for kind, is_offered in (("page", False), ("native", False), ("web", True), ("machine", True)):
        await page.locator(f"[name=kind][value={kind}]").check()
        assert await authzen.is_visible() is is_offered, kind
    for name, typed in (("client_name", "Gateway"), ("client_id", "gateway")):
        await page.locator(f"[name={name}]").fill(typed)
    await authzen.check()
    await page.set_viewport_size({"width": 360, "height": 740})
    await page.get_by_role("button", name="Create client").click()
    await expect(page.get_by_text("scope=authzen")).to_be_visible()
    await page.goto(f"{service.base_url}{PAGE}/clients/gateway")
    await expect(authzen).to_be_checked()
    await expect(page.locator("[name=scopes][value=openid]")).to_be_hidden()
    await page.locator("[name=client_name]").fill("Gateway 2")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    stored = await service.services.storage.clients.client("gateway")
    assert (stored.name, stored.scopes) == ("Gateway 2", ("authzen",))


NEVER_KEPT: Final = '{"keys": [{"kty": "OKP", "d": "no_one-keeps-this"}]}'


async def prove(page: Page) -> None:
    await expect(page.get_by_role("heading", name="Confirm it's you")).to_be_visible()
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Confirm", exact=True).click()


async def test_form_values_are_restored_after_a_confirmation(service: RunningService, page: Page) -> None:
    await apply_document(service)
    errors = listen(page)
    await sign_in_to_console(service, page, ADA, f"{PAGE}/new_client")
    for name, typed in (("client_name", "Wiki"), ("client_id", "wiki"), ("redirect_uris", "https://wiki.example/cb")):
        await page.locator(f"[name={name}]").fill(typed)
    await page.locator("[name=scopes][value=email]").set_checked(True)
    await page.get_by_text("Tokens and claims").click()
    await page.locator("[name=jwks]").fill(NEVER_KEPT)
    await page.locator("[name=access_seconds]").fill("120")
    await service.clock.advance(601)
    await page.get_by_role("button", name="Create client").click()
    await expect(page.get_by_role("heading", name="Confirm it's you")).to_be_visible()
    assert "no_one-keeps-this" not in await page.evaluate("JSON.stringify(sessionStorage)")
    await prove(page)
    await expect(page.get_by_text("Your changes are still here")).to_be_visible()
    for name, typed in (("client_name", "Wiki"), ("client_id", "wiki"), ("jwks", ""), ("access_seconds", "120")):
        await expect(page.locator(f"[name={name}]")).to_have_value(typed)
    await expect(page.locator("[name=scopes][value=email]")).to_be_checked()
    await expect(page.locator("[name=access_seconds]")).to_be_visible()  # the collapsed section is opened
    assert await page.evaluate("sessionStorage.getItem('typed')") is None
    with pytest.raises(NotFound):
        await service.services.storage.clients.client("wiki")  # the browser does not submit the form
    await page.get_by_role("button", name="Create client").click()
    await expect(page.get_by_text("Copy it now")).to_be_visible()
    assert (await service.services.storage.clients.client("wiki")).name == "Wiki"
    await page.goto(f"{service.base_url}/console/people/{OLGA}/bans")
    await page.get_by_label("An application").check()
    chosen = page.get_by_role("combobox", name="Application", exact=True)
    await chosen.fill("sho")
    await page.get_by_role("option", name="Shop").click()
    await service.clock.advance(601)
    await page.get_by_role("button", name="1 day", exact=True).click()
    await prove(page)
    await expect(page.get_by_label("An application")).to_be_checked()
    await expect(chosen).to_have_value("Shop")
    sent = await page.evaluate("new FormData(document.querySelector('form[data-typed]')).get('application_id')")
    assert sent == str(SHOP)  # two applications may have this name
    assert errors == []


async def test_a_form_is_not_filled_in_again_over_what_someone_has_saved_meanwhile(
    service: RunningService, page: Page, browser: Browser
) -> None:
    await apply_document(service)
    await sign_in_to_console(service, page, ADA, PAGE)
    await make_a_client(page, service)
    await page.goto(f"{service.base_url}{PAGE}/clients/wiki")
    await service.clock.advance(601)
    await page.locator("[name=client_name]").fill("Mine")
    await page.get_by_role("button", name="Save").click()
    olgas = await browser.new_context()
    other = await olgas.new_page()
    await sign_in_to_console(service, other, OLGA, f"{PAGE}/clients/wiki")
    await other.locator("[name=client_name]").fill("Theirs")
    await other.get_by_role("button", name="Save").click()
    await expect(other.get_by_text("Saved", exact=True)).to_be_visible()
    await olgas.close()
    await prove(page)
    await expect(page.get_by_text("Submit the form again")).to_be_visible()
    await expect(page.locator("[name=client_name]")).to_have_value("Theirs")
