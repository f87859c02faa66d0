"""Every list of the console has a download: the link is below it, and the rows are the same."""

import csv
import io
import re
from html import unescape
from importlib.resources import files
from pathlib import Path

from tests.support.browser import HttpBrowser
from tests.support.console import ADA, PIA, PROJECT, SHOP, ConsoleBrowsers, apply_document
from tests.support.game import RESULT, register_game
from tests.support.service import RunningService
from tests.wire.console.test_applications import public_pem

MORE = """
clients:
  - {client_id: web, name: Web shop, application_id: $shop, profile: oidc, public: true,
     redirect_uris: ["https://shop.example/back"]}
projects:
  - {title: Mind Games, settings: {services: {"$shop": {groups: [{group_id: Testers, roles: [moderator]}]}}}}
applications:
  - application_id: $shop
    name: Shop
    project_id: $project
    access_keys: [{comment: ci}]
    schema: {public_data: {badge: {gold: {value: false, protected: false, description: Wears gold}}}}
    service_meta: {name: Shop, description: "", tags: []}
service_accounts: [{project_id: $project, name: builder}]
"""
LINK = re.compile(r'<a href="[^"?]*(\?[^"]*format=csv)" download>')
APPLICATION = f"/console/applications/{SHOP}"
MIND_GAMES = f"/console/projects/{PROJECT}"
LISTS = (
    "/console/people",
    f"/console/people/{PIA}/permissions?application_id={SHOP}",
    f"/console/people/{PIA}/access",
    f"/console/people/{ADA}/sessions",
    f"/console/people/{ADA}/activity",
    "/console/projects",
    *(f"{MIND_GAMES}/{tab}" for tab in ("members", "services", "groups", "service_accounts", "applications")),
    "/console/applications",
    *(f"{APPLICATION}/{tab}" for tab in ("matrix", "users", "rules", "versions", "access_keys", "clients")),
    *(f"{APPLICATION}/{tab}" for tab in ("service_tokens", "public_keys", "roles")),
    "/console/roles",
    f"/console/roles/{SHOP}/moderator/members",
    f"/console/access/who?application_id={SHOP}",
    "/console/games",
    "/console/activity",
    "/console/activity/refusals",
    "/console/settings/keys",
    "/console/settings/email",
    "/console/settings/configuration",
    "/console/settings/webhooks",
)
# Tables that are not lists: parts of one record, previews, and those with a download elsewhere.
NO_LISTS = {
    "activity/record.html": "before and after of one record",
    "applications/api.html": "the scopes of one API, in its form",
    "applications/macros.html": "the differences of two versions",
    "effects.html": "who gains and loses before it is saved",
    "gallery.html": "components, for developers",
    "games/session.html": "the time line of one session",
    "home.html": "the numbers of the chart",
    "matrix/parts.html": "a summary before it is saved",
    "people/invited_list.html": "whom one form invited, with a download of their links, and the refused",
    "people/import_result.html": "refused rows of one file; the command line writes them into a file",
    "people/person_bans.html": "the bans of one person; the list of bans has the file",
    "roles/table.html": "the rows of two lists, which have the file",
    "roles/permissions.html": "what one role says; its application's matrix has the file",
    "settings/health.html": "what is checked now",
    "settings/lines.html": "stands in the configuration, which has the file",
    "settings/terms.html": "parts of the configuration, which has the file",
    "settings/providers.html": "parts of the configuration, which has the file",
}


async def test_every_list_can_be_downloaded_as_a_file(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(studio, MORE)
    ada = await console_browsers(ADA)
    paths = [*LISTS, *await fill_lists(studio, ada), *await ban_from_places(ada)]
    assert [path for path in paths if not await is_a_file_as_well(ada, path)] == []


async def fill_lists(studio: RunningService, ada: HttpBrowser) -> list[str]:
    """Fill every list that a document cannot; return the pages of what was created."""
    game = await register_game(studio, app_id=SHOP)
    await studio.client.post(RESULT, json={"gsid": game.gsid}, params={"location": "wrong"})
    await ada.get("/forgot")
    await ada.post("/forgot", login="pia@players.example")
    await ada.get(f"{APPLICATION}/service_tokens")
    await ada.post(f"{APPLICATION}/service_tokens", comment="nightly", days="0")
    await ada.get(f"{APPLICATION}/public_keys")
    await ada.post(f"{APPLICATION}/public_keys", public_key=public_pem())
    await ada.get("/console/settings/webhooks/new")
    await ada.post("/console/settings/webhooks/new", url="https://receiver.example/", events="account")
    (webhook,) = await studio.services.storage.webhooks.webhooks()
    webhook_path = f"/console/settings/webhooks/{webhook.webhook_id}"
    await ada.get(webhook_path)
    await ada.post(f"{webhook_path}/test")
    (group,) = re.findall(
        rf'href="({MIND_GAMES}/groups/[0-9a-f]+)"', (await ada.get(f"{MIND_GAMES}/groups?q=Test")).text
    )
    return [webhook_path, group, f"{group}/who"]


async def ban_from_places(ada: HttpBrowser) -> list[str]:
    """Ban someone from the project and the application; return the pages of these bans."""
    pages = [f"{place}/bans" for place in (MIND_GAMES, APPLICATION)]
    for page in pages:
        await ada.get(page)
        await ada.post(page, user_id="Dev", end="day", do="apply")
    return pages


async def is_a_file_as_well(browser_client: HttpBrowser, path: str) -> bool:
    """Check that each download link of the page has a header and at least one row."""
    page = await browser_client.get(path)
    links = [unescape(link) for link in LINK.findall(page.text)]
    responses = [await browser_client.get(f"{path.partition('?')[0]}{link}") for link in links]
    return bool(responses) and all(
        file.headers["content-type"].startswith("text/csv")
        and file.headers["content-disposition"].startswith("attachment")
        and len({len(row) for row in csv.reader(io.StringIO(file.text))}) == 1
        and len(file.text.splitlines()) > 1
        for file in responses
    )


def test_whatever_else_is_a_table_is_known_to_be_no_list() -> None:
    folder = Path(str(files("gatehouse.web").joinpath("templates/console")))
    texts = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.html")}
    tables = {name for name, text in texts.items() if re.search(r"<table|call table\(", text)}
    without = {name for name in tables if not re.search(r"csv_link\(|pager\(found|format=csv", texts[name])}
    assert without == set(NO_LISTS)
