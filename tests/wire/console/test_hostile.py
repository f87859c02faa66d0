"""Attacks on the console that worked once, and no longer do."""

from urllib.parse import urlencode

import pytest

from tests.support.console import ADA, MAX, OLGA, PIA, PROJECT, SHOP, ConsoleBrowsers, apply_document
from tests.support.service import RunningService

STALE = 601  # seconds after which a proof is no longer fresh
VIEWER = """
applications:
  - application_id: 1
    roles: {viewer: {meta: {private_data: {project: {can_view_project: {value: true}}}}}}
memberships:
  - {id: $project, users: {"$pia": {roles: [viewer]}}}
projects:
  - {title: Secret Plan, owners: ["$ada"]}
"""


async def test_rights_are_given_and_entrances_changed_only_after_a_fresh_proof(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    await studio.clock.advance(STALE)
    shop, central = f"/console/applications/{SHOP}", "/console/applications/1"
    for path, back in (
        (f"{central}/users/apply", f"{central}/users"),
        (f"{central}/matrix/apply", f"{central}/matrix"),
        (f"{shop}/public_keys", f"{shop}/public_keys"),
        (f"{shop}/settings/service", f"{shop}/settings"),
    ):
        await ada.get(back)
        response = await ada.client.post(path, data={"csrf": csrf_of(ada.page.text if ada.page else "")})
        assert (path, response.status_code, response.headers.get("location")) == (
            path,
            303,
            f"/confirm?next={back.replace('/', '%2F')}",
        )


async def test_form_post_without_the_right_is_forbidden(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(studio, VIEWER)
    pia = await console_browsers(PIA)
    page = await pia.get(f"/console/projects/{PROJECT}")
    assert page.status_code == 200
    csrf = csrf_of(page.text)
    for path, fields in (
        ("members/lists", {"do": "edit"}),
        ("service_accounts/new", {"do": "add"}),
        (f"services/{SHOP}", {"do": "add"}),
    ):
        response = await pia.client.post(f"/console/projects/{PROJECT}/{path}", data={"csrf": csrf, **fields})
        assert (path, response.status_code) == (path, 403)
        assert "Testers" not in response.text


async def test_pa_13_a_foreign_project_cannot_be_told_from_none(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(studio, VIEWER)
    olga = await console_browsers(OLGA)
    page = f"/console/roles/{SHOP}/moderator/members"
    answers = [(await olga.get(f"{page}?project={name}")).status_code for name in ("secret_plan", "no_such_plan")]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("version", ["99999999999999999999999", "7"])
async def test_a_version_that_never_was_is_not_found(console_browsers: ConsoleBrowsers, version: str) -> None:
    ada = await console_browsers(ADA)
    assert (await ada.get(f"/console/applications/{SHOP}/versions/{version}/restore")).status_code == 404


async def test_a_user_manager_does_not_come_to_the_rules(console_browsers: ConsoleBrowsers) -> None:
    maximilian = await console_browsers(MAX)
    for tab in ("rules", "matrix", "versions", "access_keys", "public_keys", "clients"):
        assert (await maximilian.get(f"/console/applications/{SHOP}/{tab}")).status_code == 403


PROBES = ("' OR 1=1 --", "%", "_", '{"$where": "1"}')
LISTS = ("people", "applications", "projects", "games", "activity", f"applications/{SHOP}/users")
FIELDS = ("q", "tag", "among", "state", "actor", "subject", "application_id", "group")
PLACES = ("page", "after", "since", "format", "sort")


async def test_ht_26_sql_and_nosql_probes_find_what_holds_their_letters_and_nothing_else(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    for screen in LISTS:
        assert (await ada.get(f"/console/{screen}")).status_code == 200
        for probe in PROBES:
            page = await ada.get(f"/console/{screen}?{urlencode({'q': probe})}")
            assert page.status_code == 200, (screen, probe)
            assert "pia@players.example" not in page.text, (screen, probe)
        for field in (*FIELDS, *PLACES):
            response = await ada.get(f"/console/{screen}?{urlencode({field: PROBES[0]})}")
            assert response.status_code in {200, 400}, (screen, field)
    for probe in PROBES:
        refusal = await ada.client.post("/proxy/api/login", json={"login": probe, "password": probe})
        assert refusal.json() == {"status": "LOGINERROR"}
    assert (await studio.services.storage.accounts.user(PIA)).nick == "Pia"


def csrf_of(page: str) -> str:
    return page.partition('name="csrf" value="')[2].partition('"')[0]
