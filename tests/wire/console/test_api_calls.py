"""Every object of the console shows its API call and its JSON: the call, run in a shell, returns the same."""

import asyncio
import json
import re
import shutil
from collections.abc import Sequence
from html import unescape
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from gatehouse.permissions.model.rules import Scope
from gatehouse.web.console.applications import clients
from gatehouse.web.console.projects import groups, members
from gatehouse.web.console.settings import SETTINGS_TABS
from tests.support.browser import HttpBrowser
from tests.support.builders import NOW
from tests.support.console import ADA, DEV, MAX, OLGA, PIA, PROJECT, SHOP, ConsoleBrowsers, apply_document
from tests.support.game import RESULT
from tests.support.permission_builders import set_fields
from tests.support.service import RunningService
from tests.support.studio import FACTOR, holdings_with_rules
from tests.wire.console.test_files import APPLICATION, MIND_GAMES, MORE, fill_lists

CALL = re.compile(r'<pre id="(?:[a-z]+-)?api-call"[^>]*><code>(.*?)</code></pre>', re.DOTALL)
RECORD = re.compile(r'<pre id="(?:[a-z]+-)?api-record"[^>]*><code>(.*?)</code></pre>', re.DOTALL)
OBJECTS = (
    MIND_GAMES,
    f"{MIND_GAMES}/settings",
    f"{MIND_GAMES}/members",
    f"{MIND_GAMES}/groups",
    f"{MIND_GAMES}/members/{DEV}",
    *(f"{MIND_GAMES}/services", f"{MIND_GAMES}/services/{SHOP}"),
    f"{MIND_GAMES}/service_accounts",
    APPLICATION,
    f"{APPLICATION}/settings",
    *(f"{APPLICATION}/{tab}" for tab in ("rules", "rules/login", "rules/private_data.user.kick", "versions")),
    f"{APPLICATION}/versions/compare?old=1&new=2",
    *(f"{APPLICATION}/api", f"{APPLICATION}/sites"),
    *(f"{APPLICATION}/bans", f"{MIND_GAMES}/bans"),
    f"{APPLICATION}/access_keys",
    f"{APPLICATION}/public_keys",
    f"{APPLICATION}/service_tokens",
    *(f"{APPLICATION}/{clients}" for clients in ("clients", "clients/web")),
    f"/console/roles/{SHOP}/moderator",
    f"/console/roles/{SHOP}/moderator/settings",
    f"/console/roles/{SHOP}/moderator/members",
    f"/console/people/{PIA}",
    f"/console/people/{PIA}/permissions?application_id={SHOP}",
    *(f"/console/people/{one}/{tab}" for one in (ADA, PIA) for tab in ("access", "sessions", "methods", "bans")),
    f"/console/access/check?user_id={PIA}&application_id={SHOP}&rule=user.kick",
    f"/console/access/simulate?change=give_role&user_id={PIA}&application_id={SHOP}&role=cashier",
    "/console/settings",
    *(
        f"/console/settings/{tab}"
        for tab in ("branding", "configuration", "email", "health", "keys", "languages", "sessions", "sign-in")
    ),
    *("/console/settings/email?page=2", "/console/settings/webhooks"),
)
SCREENS = Path(str(files("gatehouse.web").joinpath("console")))
TEMPLATE = re.compile(r'template = "console/([a-z_/]+)\.html"')
SHOWN_PARTS = frozenset({"risks", "policies", "configuration"})  # that tabs with another name show
# Pages without an object.
WITHOUT = {
    "an act on an object, which says what breaks": (
        *("applications/client_act", "confirm", "people/data", "people/selected", "settings/rotate"),
    ),
    "the form of something that is not there yet": (
        *("applications/new", "people/new", "projects/new", "projects/new_account", "roles/new"),
        *("projects/find_member", "applications/import", "people/import", "people/import_result"),
        *("people/invited", "projects/invite"),
    ),
    "a secret, which no call shows again": ("secret",),
    "a summary before or after it is saved": ("review", "staged_result", "staged_review"),
    "a list of objects, which have their pages": (
        *("activity/list", "activity/refusals", "applications/list", "games/list", "games/recent"),
        *(
            "people/activity",
            "people/bans",
            "people/list",
            "people/timeline",
            "projects/applications",
            "projects/list",
        ),
        *("roles/list", "applications/roles", "groups/who"),
    ),
    "a form that is a part of its tab, which has the call": (
        *("people/edit", "people/email", "projects/lists", "settings/change", "settings/providers", "settings/terms"),
    ),
    "people, each of whom has a page": ("assignments/table",),
    "no object at all": (
        *("gallery", "home", "owner_home", "refused", "search", "applications/kinds", "applications/connect"),
    ),
}


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl, which the console shows")
async def test_every_object_shows_its_api_call_and_the_matching_json(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    paths = [*OBJECTS, *await fill_studio(studio, await console_browsers(ADA))]
    await studio.services.audit.sealer.seal_all()
    for user_id in (ADA, OLGA, DEV, MAX):
        browser_client, jwt = await console_browsers(user_id), await jwt_of(studio, user_id)
        pages = {path: await browser_client.get(path) for path in paths}
        opened = {path: page.text for path, page in pages.items() if page.status_code == 200}
        assert user_id != ADA or len(opened) == len(paths)
        assert user_id == ADA or not any(path.startswith("/console/settings") for path in opened)
        assert user_id != OLGA or any(path.startswith("/console/activity/") for path in opened)
        for path, text in opened.items():
            for call, record in shown_in(text):
                assert without_size(await call_with_curl(studio, jwt, call)) == without_size(record), (user_id, path)
                assert "part" not in record or record["part"] in SHOWN_PARTS or path.startswith(tab_of(record))


async def test_a_list_shows_no_call_that_would_be_refused_and_no_json_longer_than_its_page(
    studio: RunningService, console_browsers: ConsoleBrowsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = set_fields(scopes={Scope(PROJECT): holdings_with_rules("project.can_view_project")})
    await studio.services.storage.user_records.edit_record(1, PIA, view, NOW)
    pia, olga = await console_browsers(PIA), await console_browsers(OLGA)
    assert CALL.search((await pia.get(f"{MIND_GAMES}/groups")).text) is None
    ask = {"action": "get", "data": {"project_id": PROJECT}}
    headers = {"Authorization": f"Bearer {await jwt_of(studio, PIA)}", "Factor": FACTOR}
    assert (await studio.client.post("/api/permissions/group", json=ask, headers=headers)).status_code == 403
    for screens, path in (
        (groups, f"{MIND_GAMES}/groups"),
        (members, f"{MIND_GAMES}/members"),
        (clients, f"{APPLICATION}/clients"),
    ):
        for size, is_shown in ((25, True), (-1, False)):
            monkeypatch.setattr(screens, "PAGE_SIZE", size)
            page = (await olga.get(path)).text
            assert (CALL.search(page) is None, RECORD.search(page) is None) == (False, not is_shown), path


async def test_holder_matrix_shows_its_api_call_without_the_response(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    page = (
        await (await console_browsers(ADA)).get(f"/console/access/who?application_id={SHOP}&rules=user.kick")
    ).text
    assert RECORD.search(page) is None
    response = await call_with_curl(studio, await jwt_of(studio, ADA), unescape(CALL.findall(page)[0]))
    assert [member["user_id"] for member in response["members"]] == [PIA]


async def fill_studio(studio: RunningService, ada: HttpBrowser) -> Sequence[str]:
    """Create everything that a document cannot; return the pages of it."""
    await apply_document(studio, MORE)
    webhook, group, _ = await fill_lists(studio, ada)
    await ada.get(f"{APPLICATION}/service_tokens")
    await ada.post(f"{APPLICATION}/service_tokens/email_secret")
    (session, *_) = re.findall(
        r'href="(/console/games/[0-9a-f]{8}-[0-9a-f]{4})"', (await ada.get("/console/games")).text
    )
    log = (await ada.get("/console/activity?group=project")).text  # an owner sees these too
    (record, *_) = re.findall(r'href="(/console/activity/[0-9a-f]{32})"', log)
    refusal = await studio.client.post(RESULT, json={"gsid": "00000000-0000-4000-8000-000000000000"})
    return [
        webhook,
        group,
        f"{group}/conditions/new",
        session,
        record,
        f"/console/games/record?id={refusal.json()['error']}",
    ]


async def jwt_of(studio: RunningService, user_id: str) -> str:
    user = await studio.services.storage.accounts.user(user_id)
    return await studio.services.accounts.user_tokens.issue(user, auth="login", factor=FACTOR)


def shown_in(page: str) -> Sequence[tuple[str, Any]]:
    calls, records = CALL.findall(page), RECORD.findall(page)
    assert calls
    return [(unescape(call), json.loads(unescape(record))) for call, record in zip(calls, records, strict=True)]


def without_size(record: Any) -> Any:
    """A database may grow between two requests."""
    return {**record, "megabytes": 0} if "megabytes" in record else record


async def call_with_curl(studio: RunningService, jwt: str, curl: str) -> Any:
    environment = {"PATH": "/usr/bin:/bin", "GATEHOUSE": studio.base_url, "JWT": jwt, "FACTOR": FACTOR}
    process = await asyncio.create_subprocess_exec(
        "bash", "-euc", curl.replace("curl ", "curl -s ", 1), env=environment, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    answer = json.loads(output)
    return answer.get("data", answer)


def test_whatever_page_has_no_api_call_is_known_to_be_no_object() -> None:
    folder = Path(str(files("gatehouse.web").joinpath("templates/console")))
    texts = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.html")}
    pages = {name.removesuffix(".html") for name, text in texts.items() if "{% block main %}" in text}
    classes = (part for path in SCREENS.rglob("*.py") for part in path.read_text().split("\nclass "))
    calling = {found[1] for one in classes if (found := TEMPLATE.search(one)) and "call: ApiCall" in one}
    calling |= {"access/check", "projects/bans"}  # the call of what they show, of what they inherit
    assert pages - calling - {"base"} == {name for names in WITHOUT.values() for name in names}


def tab_of(record: dict[str, Any]) -> str:
    return dict(SETTINGS_TABS)[record["part"]]
