"""The API and the protected sites of an application in the console."""

import pytest

from gatehouse.permissions.model.application import Application
from tests.support.builders import ORIGIN
from tests.support.console import ADA, DEV, OLGA, SHOP, WIKI, ConsoleBrowsers
from tests.support.service import RunningService

PAGE = f"/console/applications/{SHOP}"
API = f"{PAGE}/api"
SITES = f"{PAGE}/sites"
RESOURCE = "https://api.studio.example/orders"


async def application_of(studio: RunningService, application_id: int = SHOP) -> Application:
    models = await studio.services.storage.permissions.application_models([application_id])
    return models[application_id].application


def scopes(*rows: tuple[str, str, str]) -> dict[str, list[str]]:
    """Rows of the form: name, title, description."""
    names, titles, descriptions = (list(column) for column in zip(*rows, strict=True))
    return {"scope_name": names, "scope_title": titles, "scope_description": descriptions}


async def test_an_api_is_declared_changed_and_removed(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga = await console_browsers(OLGA)
    await olga.get(API)
    rows = scopes(("order.read", "Read orders", ""), ("", "", ""), ("order.pay", "Pay orders", "One\r\nTwo"))
    fields = {"api_access": "listed", "api_clients": "till\r\nkiosk", "api_token_seconds": "600"}
    await olga.post(API, resource=RESOURCE, **rows, **fields)
    assert "Saved" in (await olga.follow()).text
    stored = (await application_of(studio)).api
    assert stored == {
        "resource": RESOURCE,
        "scopes": {
            "order.read": {"title": "Read orders"},
            "order.pay": {"title": "Pay orders", "description": "One\nTwo"},
        },
        "access": "listed",
        "clients": ["till", "kiosk"],
        "token_seconds": 600,
    }
    page = await olga.get(API)
    assert ('value="order.pay"' in page.text, page.text.count('name="scope_name"')) == (True, 5)
    await olga.post(API, resource=RESOURCE, **rows, **fields)
    assert (await application_of(studio)).api == stored, "a form that is saved unchanged changes nothing"

    await olga.get(f"{API}/remove")
    await olga.post(f"{API}/remove")
    assert (await application_of(studio)).api is None


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ({"resource": "orders"}, "Resource: must be an absolute URI"),
        (scopes(("Order", "Orders", "")), "Scopes: Order: a scope is at most 64"),
        (scopes(("order", "", "")), "Scopes: order.title: "),
        (scopes(("", "Orders", "")), "Scopes: Each scope needs a name"),
        (scopes(("order", "Orders", ""), ("order", "More", "")), "Scopes: order is listed twice"),
        ({"scope_name": ["order"]}, "Scopes: Each scope needs a name, a title"),
        ({"api_access": "all"}, "Access: must be own, listed or any"),
        ({"api_clients": "till"}, "Listed clients: Only with access listed"),
        ({"api_token_seconds": "30"}, "Token lifetime: Must be an integer from 60"),
    ],
)
async def test_a_wrong_api_is_refused_at_its_field_and_stays_in_the_form(
    studio: RunningService, console_browsers: ConsoleBrowsers, typed: dict[str, str | list[str]], problem: str
) -> None:
    olga = await console_browsers(OLGA)
    await olga.get(API)
    response = await olga.post(API, **{"resource": RESOURCE, **typed})
    assert (response.status_code, problem in response.text) == (400, True), response.text
    assert f'value="{typed.get("resource", RESOURCE)}"' in response.text
    assert (await application_of(studio)).api is None


async def test_an_api_that_someone_else_changed_meanwhile_is_shown_beside_the_form(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga, ada = await console_browsers(OLGA), await console_browsers(ADA)
    await olga.get(API)
    await ada.get(API)
    await ada.post(API, resource=RESOURCE, **scopes(("order.read", "Read orders", "")))
    response = await olga.post(API, resource=f"{RESOURCE}/2")
    assert response.status_code == 409
    assert "Someone else" in response.text
    assert "order.read" in response.text
    assert (await olga.post(API, resource=f"{RESOURCE}/2")).status_code == 303
    assert (await application_of(studio)).api_resource == f"{RESOURCE}/2"


async def test_sites_are_protected_and_removed_by_administrators_only(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, olga = await console_browsers(ADA), await console_browsers(OLGA)
    await ada.get(SITES)
    await ada.post(SITES, site_origin="https://wiki.example/", rule="user.kick")
    assert "Site protected" in (await ada.follow()).text
    await ada.post(SITES, site_origin="http://localhost:3000", rule="page.read")
    page = (await ada.follow()).text
    assert (await application_of(studio)).protected_sites == {
        "http://localhost:3000": "page.read",
        "https://wiki.example": "user.kick",
    }
    assert (page.count("not in the schema"), "No proxy is trusted yet" in page) == (1, True)
    for path in (SITES, f"{SITES}/remove?site_origin=https%3A%2F%2Fwiki.example"):
        assert (await olga.get(path)).status_code == 403
    assert (await olga.get(API)).status_code == 200
    assert (await (await console_browsers(DEV)).get(API)).status_code == 403

    removal = f"{SITES}/remove?site_origin=https%3A%2F%2Fwiki.example"
    assert "https://wiki.example" in (await ada.get(removal)).text
    await ada.post(removal)
    assert "Site removed" in (await ada.follow()).text
    assert list((await application_of(studio)).protected_sites) == ["http://localhost:3000"]
    assert (await ada.get(removal)).status_code == 404


async def test_a_wrong_or_taken_site_is_refused_at_its_field(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    await ada.get(SITES)
    await ada.post(SITES, site_origin="https://wiki.example", rule="user.kick")
    wiki = f"/console/applications/{WIKI}/sites"
    for path, origin, rule, status, problem in (
        (SITES, "http://wiki.example", "user.kick", 400, "Origin: Enter an origin"),
        (SITES, "https://other.example/path", "user.kick", 400, "Origin: Enter an origin"),
        (SITES, "https://wiki.example", "user.mute", 400, "Origin: This site is in the list"),
        (SITES, "https://other.example", "user kick", 400, "Permission: user kick is not a valid permission name"),
        (wiki, "https://wiki.example", "user.kick", 409, "already protected by another application"),
    ):
        await ada.get(path)
        response = await ada.post(path, site_origin=origin, rule=rule)
        assert (response.status_code, problem in response.text) == (status, True), response.text
        assert f'value="{origin}"' in response.text
    await ada.get(f"{SITES}?lang=de")
    response = await ada.post(SITES, site_origin="https://other.example", rule="user kick")
    assert "Berechtigung: user kick ist kein gültiger Name einer Berechtigung." in response.text
    response = await ada.post(wiki, site_origin="https://wiki.example", rule="user.kick")
    assert "Die Website wird schon von einer anderen Anwendung geschützt." in response.text
    assert (await application_of(studio)).protected_sites == {"https://wiki.example": "user.kick"}


async def test_fa_13_first_site_of_a_second_application_warns_and_home_tells_a_setting_that_is_off(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    notes = []
    for application_id, origin in ((SHOP, "https://shop.example"), (WIKI, "https://wiki.example")):
        path = f"/console/applications/{application_id}/sites"
        await ada.get(path)
        await ada.post(path, site_origin=origin, rule="user.kick")
        notes.append("name application_id in the configuration of every proxy" in (await ada.follow()).text)
    assert notes == [False, True]
    risk = "Proxies need not name the application"
    assert risk not in (await ada.get("/console")).text
    await studio.services.settings_editor.save({"forward_auth.require_application": False}, ORIGIN)
    assert risk in (await ada.get("/console")).text
