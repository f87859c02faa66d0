"""Activity in the console: filters, before and after, verification, export."""

import csv
import io
import json
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace
from sqlalchemy import bindparam, delete, update

from gatehouse.admin import visible_audit_log
from gatehouse.admin.activity import PAGE as ONE_PAGE
from gatehouse.audit.continuous_verification import VERIFY_AGAIN_SECONDS
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.permissions.model.rules import Scope, application_scope
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.audit import audit_events, audit_seals
from tests.support.builders import NOW, ORIGIN
from tests.support.console import ADA, DEV, MAX, OLGA, PIA, PROJECT, SHOP, WIKI, ConsoleBrowsers, post_form
from tests.support.game import RESULT
from tests.support.permission_builders import holdings_with, set_fields
from tests.support.service import RunningService
from tests.support.studio import FACTOR, holdings_with_rules
from tests.wire.console.test_api_calls import jwt_of, shown_in

LOG = "/console/activity"
PAGE = f"/console/projects/{PROJECT}/settings"
CHANGE_ACTOR = Statement(
    lambda: update(audit_events).where(audit_events.c.record_id == bindparam("one")).values(actor=bindparam("by"))
)


async def change_project(console_browsers: ConsoleBrowsers, user_id: str, description: str) -> None:
    browser_client = await console_browsers(user_id)
    await browser_client.get(PAGE)
    await browser_client.post(PAGE, title="Mind Games", description=description, aliases="mg")


async def test_a_change_is_told_with_what_stood_there_before(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await change_project(console_browsers, OLGA, "New words")
    ada = await console_browsers(ADA)
    page = (await ada.get(f"{LOG}?group=project&actor={OLGA}")).text
    assert re.search(r'<td [^>]*class="was">\s*<span class="piece">Puzzles and more</span>', page)
    assert re.search(r'<td [^>]*class="is">\s*<span class="piece">New words</span>', page)
    assert "It will be sealed shortly." in page
    await studio.services.audit.sealer.seal_all()
    sealed = (await ada.get(f"{LOG}?group=project&actor={OLGA}")).text
    assert "Verified (entry " in sealed
    record_id = re.findall(rf'href="{LOG}/([0-9a-f]{{32}})"', sealed)[0]
    assert "New words" in (await ada.get(f"{LOG}/{record_id}")).text
    roles = (await ada.get(f"{LOG}?group=user_schema&subject={PIA}")).text
    assert '<span class="piece">moderator</span>' in roles
    assert "{&#39;" not in roles  # words, not a program's values
    # A record changed in the database is detected.
    await damage_record(studio, record_id)
    assert "modified" in (await ada.get(f"{LOG}/{record_id}")).text


async def test_each_row_names_what_was_changed(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    await ada.get("/console/roles/new")
    await post_form(ada, "/console/roles/new", application=str(SHOP), name="referee")
    page = (await ada.get(f"{LOG}?group=role")).text
    assert "<bdi>Ada</bdi> saved role <bdi>referee</bdi> of <bdi>" in page
    assert '<option value="webhook">Webhooks</option>' in page


async def damage_record(studio: RunningService, record_id: str) -> None:
    """Change a record as an attacker with access to the database could."""

    def verb() -> Verb[None]:
        yield CHANGE_ACTOR(one=record_id, by=PIA)

    await studio.services.storage.runner.write(verb)


async def test_activity_is_filtered_and_paged(studio: RunningService, console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    await fill(studio, 130)
    pages = {
        f"q={SHOP}": "created application",
        f"subject=application+{SHOP}": "created application",
        f"application_id={SHOP}": "assigned the role <bdi>moderator</bdi> to",
        "group=key": "created a signing key",
        "q=mind_games": "created project",
        "since=2001-01-01&until=2999-01-01&group=project": "created project",
    }
    for query, words in pages.items():
        page = await ada.get(f"{LOG}?{query}")
        assert words in page.text, query
        assert "saved a role" not in page.text
    assert "No results" in (await ada.get(f"{LOG}?until=1999-12-31")).text
    seen, address = [], f"{LOG}?group=role"
    while address:
        text = (await ada.get(address)).text
        seen += re.findall(rf'href="{LOG}/([0-9a-f]{{32}})"', text)
        older = re.search(r'href="(\?[^"]*)" rel="next"', text)
        address = f"{LOG}{older[1].replace('&amp;', '&')}" if older else ""
    assert len(seen) == len(set(seen)) == 130
    lines = (await ada.get(f"{LOG}?group=role&format=jsonl")).text.splitlines()
    assert [json.loads(line)["record_id"] for line in lines] == seen
    assert len((await ada.get(f"{LOG}?group=role&format=csv")).text.splitlines()) == 131


async def test_a_run_of_imports_is_one_line_and_a_rare_match_is_found_behind_it(
    studio: RunningService, console_browsers: ConsoleBrowsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatehouse.admin.activity.MAX_EXAMINED", 1_100)
    ada = await console_browsers(ADA)
    recorder = studio.services.core.recorder

    def verb() -> Verb[None]:
        for n in range(1_500):
            made = recorder.record(AuditEvent.USER_IMPORTED, AuditOrigin(actor=ADA), subject=PIA)
            yield from add_audit_record(replace(made, at=made.at + 1 + n // 50))

    await studio.services.storage.runner.write(verb)
    page = (await ada.get(LOG)).text
    assert "<bdi>Ada</bdi> imported 1,500 accounts" in page
    assert page.count("imported the account of") == 0
    assert "created a signing key" in page  # the page is full behind the run
    each = re.search(r'href="(/console/activity\?each=1[^"]*)"', page)
    assert each is not None
    assert (await ada.get(each[1].replace("&amp;", "&"))).text.count("imported the account of") >= 50
    assert "<bdi>moderator</bdi>" in (await ada.get(f"{LOG}?q=moderator")).text  # the second scan finds it
    now = studio.clock.now()
    day = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d}"
    assert "imported 1,500 accounts" in (await ada.get(f"{LOG}?since={day}T00:00&until={day}T23:59")).text
    assert "No results" in (await ada.get(f"{LOG}?since={day}T00:00&until={day}T00:00&q=nothing")).text


async def fill(studio: RunningService, number: int) -> None:
    """Save a role this often, several times in each second."""

    def verb() -> Verb[None]:
        for n in range(number):
            saved = studio.services.core.recorder.record(
                AuditEvent.ROLE_SAVED, AuditOrigin(actor="test"), subject="nothing"
            )
            yield from add_audit_record(replace(saved, at=saved.at - n // 7))

    await studio.services.storage.runner.write(verb)


async def test_an_owner_sees_what_happened_to_their_project_and_no_one_else_anything(
    studio: RunningService, console_browsers: ConsoleBrowsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await change_project(console_browsers, ADA, "By Ada")
    olga, pia = await console_browsers(OLGA), await console_browsers(PIA)
    page = (await olga.get(LOG)).text
    assert "only the first" not in page
    assert "By Ada" in page
    assert "created application" in page
    assert "signed in" not in page
    assert "127.0.0.1" not in page  # other people's addresses are not shown to her
    assert "No results" in (await olga.get(f"{LOG}?subject={PIA}")).text
    signed_in = (await studio.services.storage.audit.newest_records(1, PIA, "session.opened"))[0]
    assert (await olga.get(f"{LOG}/{signed_in.record_id}")).status_code == 404
    assert (await pia.get(LOG)).status_code == 403
    monkeypatch.setattr(visible_audit_log, "MAX_SUBJECTS", 2)
    assert "only the first 2" in (await olga.get(LOG)).text


async def test_project_viewer_sees_project_activity_only(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await change_project(console_browsers, ADA, "By Ada")
    view = set_fields(scopes={Scope(PROJECT): holdings_with_rules("project.can_view_project")})
    await studio.services.storage.user_records.edit_record(1, PIA, view, NOW)
    pia, olga = await console_browsers(PIA), await console_browsers(OLGA)
    kinds = {"project": True, "application": False, "group": False}
    for query in ("format=jsonl", f"format=jsonl&application_id={SHOP}", f"format=jsonl&subject=application+{SHOP}"):
        lines = (await pia.get(f"{LOG}?{query}")).text.splitlines()
        assert {json.loads(line)["subject"] for line in lines} <= {f"project {PROJECT}"}, query
    everything = [json.loads(line) for line in (await olga.get(f"{LOG}?format=jsonl")).text.splitlines()]
    texts = [(await pia.get(f"{LOG}?{query}")).text for query in ("", "format=csv", "format=jsonl")]
    for kind, is_seen in kinds.items():
        ids = [one["record_id"] for one in everything if one["subject"].startswith(f"{kind} ")]
        assert ids, kind
        for record_id in ids:
            assert [record_id in text for text in texts] == [is_seen] * 3, kind
            assert (await pia.get(f"{LOG}/{record_id}")).status_code == (200 if is_seen else 404), kind
            assert (await olga.get(f"{LOG}/{record_id}")).status_code == 200
    assert "By Ada" in texts[0]
    # A permission on one application shows its records, and no other's.
    secret = set_fields(secret_data={"application": {"canReadSchema": {"value": True}}})
    await studio.services.storage.user_records.edit_record(SHOP, PIA, secret, NOW)
    lines = (await pia.get(f"{LOG}?format=jsonl")).text.splitlines()
    assert {json.loads(line)["subject"] for line in lines} == {f"project {PROJECT}", f"application {SHOP}"}


async def test_over_the_api_the_log_answers_everybody_what_the_console_shows_them_and_nothing_else(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await change_project(console_browsers, ADA, "By Ada")
    refusal = await studio.client.post(RESULT, json={"gsid": "00000000-0000-4000-8000-000000000000"})
    records = {"refusal": refusal.json()["error"], "none": "0" * 32}
    for name, about, event in (
        ("project", f"project {PROJECT}", "project.changed"),
        ("shop", f"application {SHOP}", ""),
        ("wiki", f"application {WIKI}", ""),
        ("group", "", "group.created"),
        ("person", ADA, "session.opened"),
        ("key", "", "key.made"),
    ):
        records[name] = (await studio.services.storage.audit.newest_records(1, about, event))[0].record_id
    inside_the_project = {"project", "shop", "wiki", "group"}
    await each_record(studio, console_browsers, records, ADA, records.keys() - {"none"})
    await each_record(studio, console_browsers, records, OLGA, inside_the_project)
    for nothing in (DEV, MAX, PIA):
        await each_record(studio, console_browsers, records, nothing, None)
    for user_id, role, seen in (
        (DEV, "app_developer", {"project", "shop"}),
        (MAX, "app_users_manager", {"project"}),
    ):
        visible = {
            Scope(PROJECT): holdings_with_rules("project.can_view_project"),
            application_scope(PROJECT, SHOP): holdings_with(role),
        }
        await studio.services.storage.user_records.edit_record(1, user_id, set_fields(scopes=visible), NOW)
        await each_record(studio, console_browsers, records, user_id, seen)


async def each_record(
    studio: RunningService,
    console_browsers: ConsoleBrowsers,
    records: Mapping[str, str],
    user_id: str,
    seen: Collection[str] | None,
) -> None:
    """Check each record; `seen` names the visible ones, or is None for a person without a log."""
    browser_client, jwt = await console_browsers(user_id), await jwt_of(studio, user_id)
    for name, record_id in records.items():
        ask = {"action": "get", "data": {"record_id": record_id}}
        headers = {"Authorization": f"Bearer {jwt}", "Factor": FACTOR}
        response = await studio.client.post("/api/permissions/activity", json=ask, headers=headers)
        page = await browser_client.get(f"{LOG}/{record_id}")
        expected = 403 if seen is None else 200 if name in seen else 404
        assert response.status_code == expected, (user_id, name)
        assert page.status_code == (404 if name == "refusal" and expected == 200 else expected), (user_id, name)
        if page.status_code == 200:
            assert shown_in(page.text)[0][1] == response.json()["data"]
            is_told = user_id == ADA and name != "key"  # which the service generated
            assert ("address" in response.json()["data"]) == is_told, (user_id, name)
        elif expected == 404:
            assert "Record not found" in response.json()["error"]


async def test_refused_requests_are_listed_with_their_reason_for_administrators(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    address = f"{LOG}/refusals"
    assert f'href="{address}"' in (await ada.get(LOG)).text
    assert "No refused requests." in (await ada.get(address)).text
    recorder = studio.services.core.recorder
    refusals = [
        recorder.refusal("client.refused", ORIGIN, reason=f"wrong secret {number}", subject="shop-web")
        for number in range(ONE_PAGE + 1)
    ]
    for one in refusals:
        await studio.services.storage.audit.add_refusal(one, 1_000)
    first = (await ada.get(address)).text
    assert f"<small>wrong secret {ONE_PAGE} · <code" in first
    assert first.count("/console/games/record?id=") == ONE_PAGE
    assert f"/console/games/record?id={refusals[-1].record_id}" in first
    following = re.search(r'href="(\?after=[0-9]+)" rel="next"', first)
    assert following is not None
    second = (await ada.get(f"{address}{following[1]}")).text
    assert second.count("/console/games/record?id=") == 1
    assert refusals[0].record_id in second
    assert 'rel="next"' not in second
    rows = list(csv.DictReader(io.StringIO((await ada.get(f"{address}?format=csv")).text)))
    assert [row["record_id"] for row in rows] == [refusal.record_id for refusal in reversed(refusals)]
    assert (await (await console_browsers(OLGA)).get(address)).status_code == 403
    known = recorder.refusal("client.refused", ORIGIN, reason="wrong credentials", subject="shop-web")
    await studio.services.storage.audit.add_refusal(known, 1_000)
    german = (await ada.get(f"{address}?lang=de")).text
    assert "<small>Falsche Zugangsdaten. · <code" in german
    assert f'<small><span lang="en">wrong secret {ONE_PAGE}</span> · <code' in german  # of another version
    log = "".join((await ada.get("/console/activity")).text.split("\n"))
    assert '<dt>Anmeldeart</dt><dd><span class="piece">Passwort</span></dd>' in log
    assert '<dt>Anmeldung</dt><dd><span class="piece">vollständig</span></dd>' in log


async def test_a_log_whose_end_was_cut_off_is_shown_as_broken_to_administrators(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await studio.services.audit.sealer.seal_all()
    ada, olga = await console_browsers(ADA), await console_browsers(OLGA)
    pages = (LOG, "/console/settings/health")
    for page in pages:
        assert "the log was sealed up to record" not in (await ada.get(page)).text
    await studio.services.storage.runner.write(cut_seals)
    for page in pages:
        assert "the seals end at record 0; the log was sealed up to record" in (await ada.get(page)).text
    assert "the log was sealed up to record" not in (await olga.get(LOG)).text


def cut_seals() -> Verb[None]:
    yield Statement(lambda: delete(audit_seals))()


@pytest.mark.both_databases
async def test_the_page_says_how_far_the_log_is_verified_and_is_loud_about_a_changed_record(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    await studio.services.audit.sealer.seal_all()
    whole = await studio.services.audit.make_verifier().verify()
    page = (await ada.get(LOG)).text
    assert f"{whole.records} records verified" in page
    assert "changed outside Gatehouse" not in page
    # An old record that no page of the list shows is found in the next round.
    await fill(studio, 2)
    await studio.services.audit.sealer.seal_all()
    (first,) = await studio.services.storage.audit.records_from(1, 1)
    await damage_record(studio, first.record_id)
    assert f"{whole.records + 2} records verified" in (await ada.get(LOG)).text
    studio.clock.set_back(-VERIFY_AGAIN_SECONDS)
    await studio.services.audit.continuous_verifier.run_once()
    ada = await console_browsers(ADA)
    for page in (LOG, "/console"):
        text = (await ada.get(page)).text
        assert "The audit log was changed outside Gatehouse" in text
        assert f"record 1 ({first.record_id}) was changed" in text


async def test_times_are_in_the_time_zone_of_the_reader(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    page = (await ada.get(LOG)).text
    assert 'data-days data-today="Today"' in page
    assert "data-exact-title" in page
    assert "data-zone" not in page
    await ada.get("/account")
    saved = await ada.post("/account/profile", nick="Ada", zoneinfo="Asia/Tokyo")
    assert saved.status_code == 303
    at = studio.clock.now()
    page = (await ada.get(LOG)).text
    tokyo = datetime.fromtimestamp(at, ZoneInfo("Asia/Tokyo"))
    assert f', {tokyo:%-I:%M}\u202f{tokyo:%p}" data-exact-title>' in page
    assert 'data-zone="Asia/Tokyo"' in page
