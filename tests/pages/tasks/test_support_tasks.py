"""What administrators do for the people of their installation, each task within its ceiling."""

import re

import pytest
from msgspec.structs import replace
from playwright.async_api import expect

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.statements import Verb
from tests.pages.tasks.conftest import go
from tests.pages.tasks.counting import Person
from tests.support.console import PIA, SHOP, login_of
from tests.support.images import png
from tests.support.oauth import an_oidc_client

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.ceiling(taps=6, fields=2)
async def test_google_sign_in_is_connected_and_seen_on_the_sign_in_page(admin: Person) -> None:
    await go(admin, "nav.settings")
    await admin.tap(admin.link("settings.tab_providers"))
    await admin.tap(admin.page.get_by_role("button", name="Google"))
    await admin.fill(admin.field("settings.label_provider__client_id"), "id.apps.example")
    await admin.fill(admin.field("settings.label_provider__client_secret"), "a secret of the vendor")
    await admin.tap(admin.button("settings.provider_enable"))
    await admin.sees("note.provider_enabled")
    visitor = await admin.on_another_device()
    await visitor.open("/sign-in")
    name = visitor.words("sign_in.with", provider="Google")
    await expect(visitor.page.get_by_role("button", name=name)).to_be_visible()


@pytest.mark.ceiling(taps=2, fields=0)
async def test_game_sign_ins_of_the_last_hour_are_seen_with_their_results(admin: Person) -> None:
    services, now = admin.service.services, admin.service.clock.now()
    details = {"gsid": "a" * 36, "app_id": SHOP}
    origin = AuditOrigin(actor=PIA)
    signed_in = services.core.recorder.record(AuditEvent.GAME_CONFIRMED, origin, subject=PIA, details=details)

    def verb() -> Verb[None]:
        yield from add_audit_record(replace(signed_in, at=now - 60))

    await services.storage.runner.write(verb)
    await admin.tap(admin.page.locator('.tiles a[href="/console/games/recent"]'))
    await admin.tap(admin.link("games.period_1h"))
    row = admin.page.get_by_role("row").filter(has_text="Pia")
    await expect(row).to_contain_text(admin.words("games.result_confirmed"))


@pytest.mark.ceiling(taps=5, fields=0)
async def test_secret_of_a_client_is_rotated_without_downtime(admin: Person) -> None:
    hub = await an_oidc_client(admin.service, "hub", name="Hub", application_id=SHOP)
    await go(admin, "nav.applications")
    await admin.tap(admin.page.get_by_role("link", name="Shop", exact=True))
    await admin.tap(admin.link("applications.tab_credentials"))
    await admin.tap(admin.link("applications.client_rotate"))
    await admin.tap(admin.button("applications.client_rotate"))
    await admin.sees("applications.secret_old_works")
    file = await admin.page.locator("#environment").input_value()
    assert file.startswith("OIDC_CLIENT_SECRET=")
    assert file.count("\n") == 1  # nothing else changes
    assert (await hub.tokens(await hub.sign_in(login_of(PIA))))["id_token"]  # with the old secret


@pytest.mark.ceiling(taps=4, fields=2)
async def test_new_application_and_client_give_the_environment_of_a_web_app(admin: Person) -> None:
    await go(admin, "nav.applications")
    await admin.tap(admin.button("applications.new"))
    await admin.tap(admin.page.get_by_role("link", name=admin.words("applications.kind_web")))
    await admin.fill(admin.field("field.name"), "Hub")
    await admin.fill(admin.field("field.redirect_uris"), "https://hub.example/callback")
    await admin.tap(admin.button("applications.create"))
    file = await admin.page.locator("#environment").input_value()
    assert all(f"{name}=" in file for name in ("OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET"))


@pytest.mark.ceiling(taps=3, fields=3)
async def test_name_logo_and_color_are_changed_and_seen_on_the_sign_in_page(admin: Person) -> None:
    await go(admin, "nav.settings")
    await admin.tap(admin.link("settings.tab_branding"))
    await admin.attach(admin.page.locator("input[type=file]").first, "logo.png", png("navy", (240, 64)))
    await admin.sees("note.logo_saved")
    await admin.fill(admin.field("settings.label_branding__name"), "Sky Studio")
    await admin.fill(admin.page.locator("#branding__accent"), "#8a1f6a")
    await admin.tap(admin.button("form.save"))
    await admin.sees("note.settings_saved")
    visitor = await admin.on_another_device()
    await visitor.open("/sign-in")
    await expect(visitor.page).to_have_title(re.compile("Sky Studio$"))
    await expect(visitor.page.locator(".brand img[src^='/images/']")).to_be_visible()
    button = visitor.button("sign_in.submit")
    assert await button.evaluate("(one) => getComputedStyle(one).backgroundColor") == "rgb(138, 31, 106)"
