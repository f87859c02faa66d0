"""Groups (interface §4.7, R5, R6; checklist section 10)."""

import asyncio
import json
from typing import Any

from gatehouse.audit.events import AuditEvent
from gatehouse.permissions.model.rules import ROOT, group_scope
from tests.support.builders import a_record
from tests.support.permission_builders import GROUP, a_group, a_person, a_project, publish
from tests.support.studio import (
    IN_PROJECT,
    PROJECT,
    Person,
    Studio,
    audit_records,
    create_administrator,
    create_person_with,
    holdings_with_rules,
)

MANAGES = "group.can_manage_group"
MANAGES_ALL = "project.can_manage_groups"
EVERYONE = {"title": "All", "condition": {"everyone": True}}


def save_request(group_id: str | None = None, **data: object) -> dict[str, object]:
    named = {} if group_id is None else {"group_id": group_id}
    return {"action": "save", **named, "data": data}


def access(group_id: str = GROUP, **data: object) -> dict[str, object]:
    return {"group_id": group_id, "data": data}


async def get(studio: Studio, who: Person) -> Any:
    ask = {"action": "get", "data": {"project_id": PROJECT}}
    return (await studio.expect_ok("group", ask, who.headers))["data"]


async def make(studio: Studio, title: str = "Testers") -> Any:
    body = await studio.expect_ok("group", save_request(project_id=PROJECT, title=title), studio.owner.headers)
    return body["data"]


async def a_manager(studio: Studio, group_id: str) -> Person:
    return await create_person_with(studio, {group_scope(PROJECT, group_id): holdings_with_rules(MANAGES)})


async def people(studio: Studio, count: int) -> list[str]:
    """Accounts, created before they are listed."""
    ids = [str(3_000_000_000 + n) for n in range(count)]
    for user_id in ids:
        await a_person(studio.service.services.storage, user_id)
    return ids


async def test_a_group_is_made_read_changed_and_deleted(studio: Studio) -> None:
    group = await make(studio)
    assert len(group["id"]) == 24
    assert group == {
        "id": group["id"],
        "project_id": PROJECT,
        "title": "Testers",
        "description": "",
        "tags": ["project"],
        "conditions": [],
        "users": [],
        "version": 1,
    }
    assert await get(studio, studio.owner) == {"groups": [group], "max_users_cnt": 100}
    changed = await studio.expect_ok(
        "group", save_request(group["id"], title="Players", description="x"), studio.owner.headers
    )
    assert changed["data"] == {**group, "title": "Players", "description": "x", "version": 2}
    body = await studio.expect_ok("group", save_request(group["id"], project_id=PROJECT), studio.owner.headers)
    assert (body["data"]["title"], body["data"]["description"]) == ("Players", "x")
    cleared = await studio.expect_ok("group", save_request(group["id"], description=None), studio.owner.headers)
    assert cleared["data"]["description"] == ""
    response_body = await studio.expect_ok(
        "group", {"action": "delete", "group_id": group["id"]}, studio.owner.headers
    )
    assert response_body == {"status": "OK"}
    assert (await get(studio, studio.owner))["groups"] == []


async def test_gr_01_anyone_who_manages_one_of_five_groups_sees_exactly_that_one(studio: Studio) -> None:
    groups = [await make(studio, f"Group {n}") for n in range(5)]
    manager = await a_manager(studio, groups[2]["id"])
    assert [group["id"] for group in (await get(studio, manager))["groups"]] == [groups[2]["id"]]
    ask = {"action": "get", "data": {"project_id": PROJECT}}
    await studio.expect_error(403, "group", ask, studio.other_user.headers)
    all_of_them = await create_person_with(studio, {IN_PROJECT: holdings_with_rules(MANAGES)})
    assert len((await get(studio, all_of_them))["groups"]) == 5
    at_root = await create_person_with(studio, {ROOT: holdings_with_rules(MANAGES)})
    await studio.expect_error(403, "group", ask, at_root.headers)
    keeper = await create_person_with(studio, {IN_PROJECT: holdings_with_rules(MANAGES_ALL)})
    assert (await get(studio, keeper))["groups"] == []


async def test_each_act_needs_its_own_right(studio: Studio) -> None:
    group = await make(studio)
    manager, keeper = (
        await a_manager(studio, group["id"]),
        await create_person_with(studio, {IN_PROJECT: holdings_with_rules(MANAGES_ALL)}),
    )
    for who, status in ((manager, 403), (keeper, 200)):
        for body in (
            save_request(project_id=PROJECT, title=f"New {status}"),
            save_request(group["id"], title=f"Old {status}"),
        ):
            assert (await studio.post("group", body, who.headers)).status_code == status
    await studio.expect_error(403, "group/access", access(group["id"], users=[]), keeper.headers)
    await studio.expect_ok("group/access", access(group["id"], users=[]), manager.headers)
    tags = {"group_id": group["id"], "data": {"tags": ["project", "x"]}}
    await studio.expect_error(403, "group/tags", tags, manager.headers)
    assert (await studio.expect_ok("group/tags", tags, keeper.headers))["data"]["tags"] == ["project", "x"]
    old = {"group_id": group["id"], "data": {"tags": None, "version": 1}}
    await studio.expect_error(409, "group/tags", old, keeper.headers)
    delete = {"action": "delete", "group_id": group["id"]}
    await studio.expect_error(403, "group", delete, manager.headers)
    await studio.expect_ok("group", delete, keeper.headers)


async def test_gr_03_a_group_lists_at_most_a_hundred_users(studio: Studio) -> None:
    await studio.service.services.storage.groups.create_group(a_group(), [a_record()])
    ids = await people(studio, 101)
    saved = await studio.expect_ok("group/access", access(users=ids[:100]), studio.owner.headers)
    assert saved["data"]["users"] == ids[:100]
    await studio.expect_error(400, "group/access", access(users=ids), studio.owner.headers)
    assert (await get(studio, studio.owner))["groups"][0]["users"] == ids[:100]
    twice = await studio.expect_ok("group/access", access(users=[ids[0], ids[1], ids[0]]), studio.owner.headers)
    assert twice["data"]["users"] == ids[:2]


async def test_gr_03_two_parallel_saves_never_make_more_than_a_hundred(studio: Studio) -> None:
    await studio.service.services.storage.groups.create_group(a_group(), [a_record()])
    ids = await people(studio, 120)
    responses = await asyncio.gather(
        *(studio.post("group/access", access(users=part), studio.owner.headers) for part in (ids[:60], ids[60:]))
    )
    assert [response.status_code for response in responses] == [200, 200]
    assert (await get(studio, studio.owner))["groups"][0]["users"] in (ids[:60], ids[60:])


def nest_condition(leaf: dict[str, object], depth: int) -> dict[str, object]:
    for level in range(depth):
        leaf = {("and" if level % 2 else "or"): [leaf, {"tag": "x"}]}
    return leaf


async def test_gr_04_a_group_looks_at_no_address(studio: Studio) -> None:
    await studio.service.services.storage.groups.create_group(a_group(), [a_record()])
    for condition in (
        {"ip": "10.0.0.0/8"},
        {"ip": "10.0.0.0/8", "tag": "x"},
        nest_condition({"ip": "10.0.0.0/8"}, 5),
    ):
        body = access(conditions=[{"title": "Inside", "condition": condition}])
        await studio.expect_error(400, "group/access", body, studio.owner.headers)
    fine = [{"title": "Deep", "condition": nest_condition({"domain": "studio.example"}, 5)}]
    saved = await studio.expect_ok("group/access", access(conditions=fine), studio.owner.headers)
    assert saved["data"]["conditions"] == fine


async def test_gr_05_each_endpoint_changes_only_what_is_its_own(studio: Studio) -> None:
    group = await make(studio)
    alien = {"tags": ["x"], "users": [studio.other_user.user_id], "conditions": [EVERYONE], "id": "x", "created": 1}
    saved = await studio.expect_ok("group", save_request(group["id"], **alien), studio.owner.headers)
    assert saved["data"] == {**group, "version": 2}
    alien = {"title": "Else", "project_id": "elsewhere", "tags": ["x"], "description": "x"}
    saved = await studio.expect_ok("group/access", access(group["id"], users=[], **alien), studio.owner.headers)
    assert saved["data"] == {**group, "version": 3}
    for path, body in (
        ("group", save_request(group["id"], colour=1)),
        ("group/access", access(group["id"], colour=1)),
    ):
        assert "colour" in await studio.expect_error(400, path, body, studio.owner.headers)


async def test_a_group_stays_in_its_project(studio: Studio) -> None:
    group = await make(studio)
    await publish(studio.service.services.storage, a_project("Elsewhere"), owners=[studio.owner.user_id])
    body = save_request(group["id"], project_id="elsewhere")
    await studio.expect_error(400, "group", body, studio.owner.headers)


async def test_gr_06_a_manager_reaches_their_group_alone_and_opening_it_is_audited_as_high(studio: Studio) -> None:
    mine, theirs = await make(studio, "Mine"), await make(studio, "Theirs")
    manager = await a_manager(studio, mine["id"])
    await studio.expect_error(403, "group/access", access(theirs["id"], users=[]), manager.headers)
    await studio.expect_ok("group/access", access(mine["id"], users=[studio.other_user.user_id]), manager.headers)
    assert await audit_records(studio, AuditEvent.GROUP_OPENED) == []
    both = [studio.other_user.user_id, manager.user_id]
    await studio.expect_ok("group/access", access(mine["id"], users=both), manager.headers)
    assert len(await audit_records(studio, AuditEvent.GROUP_OPENED)) == 1
    await studio.expect_ok("group/access", access(mine["id"], conditions=[EVERYONE]), manager.headers)
    records = await audit_records(studio, AuditEvent.GROUP_OPENED)
    assert [row.actor for row in records] == [manager.user_id] * 2
    await studio.expect_ok("group/access", access(mine["id"], users=[]), manager.headers)
    assert len(await audit_records(studio, AuditEvent.GROUP_OPENED)) == 2
    await studio.expect_error(400, "group/access", access(mine["id"], users=[theirs["id"]]), manager.headers)


async def test_gr_07_titles_follow_the_rules_of_projects_and_are_unique_in_theirs(studio: Studio) -> None:
    group = await make(studio)
    for title in ("abc\n", "a\tb", "a\u00a0b", "\u212aings", "caf\u00e9", "a" * 33, "", " a", "a ", "a  b", "a-b", 5):
        await studio.expect_error(400, "group", save_request(project_id=PROJECT, title=title), studio.owner.headers)
        await studio.expect_error(400, "group", save_request(group["id"], title=title), studio.owner.headers)
    await studio.expect_error(400, "group", save_request(project_id=PROJECT), studio.owner.headers)
    await studio.expect_error(400, "group", save_request(title="No project"), studio.owner.headers)
    await studio.expect_error(409, "group", save_request(project_id=PROJECT, title="testers"), studio.owner.headers)
    await make(studio, "A" * 32)
    second = await make(studio, "Second")
    await studio.expect_error(409, "group", save_request(second["id"], title="Testers"), studio.owner.headers)


async def test_gr_07_a_condition_has_a_title_and_says_something(studio: Studio) -> None:
    await studio.service.services.storage.groups.create_group(a_group(), [a_record()])
    for one in (
        {"condition": {"tag": "x"}},
        {"title": "", "condition": {"tag": "x"}},
        {"title": 5, "condition": {"tag": "x"}},
        {"title": "x"},
        {"title": "x", "condition": {}},
        {"title": "x", "condition": {"colour": 1}},
        {"title": "x", "condition": {"or": []}},
        {"title": "x", "condition": {"everyone": "true"}},
        {"title": "x", "condition": {"tag": "x"}, "colour": 1},
        "everyone",
    ):
        await studio.expect_error(400, "group/access", access(conditions=[one]), studio.owner.headers)


async def test_gr_08_rights_end_with_the_group_and_with_belonging_to_it(studio: Studio) -> None:
    group, view = await make(studio), {"action": "get", "data": {"id": PROJECT}}
    member = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_view_project")})
    allow = {"action": "save", "data": {"id": PROJECT, "allow": [group["id"]]}}
    await studio.expect_ok("group/access", access(group["id"], users=[member.user_id]), studio.owner.headers)
    await studio.expect_ok("project/membership", allow, studio.owner.headers)
    await studio.expect_ok("project", view, member.headers)
    await studio.expect_ok("group/access", access(group["id"], users=[]), studio.owner.headers)
    await studio.expect_error(403, "project", view, member.headers)
    manager = await a_manager(studio, group["id"])
    await studio.expect_ok(
        "project/membership", {**allow, "data": {"id": PROJECT, "allow": []}}, studio.owner.headers
    )
    await studio.expect_ok("group/access", access(group["id"], users=[]), manager.headers)
    await studio.expect_ok("group", {"action": "delete", "group_id": group["id"]}, studio.owner.headers)
    await studio.expect_error(403, "group/access", access(group["id"], users=[]), manager.headers)


async def test_gr_09_users_are_known_ids_and_not_too_many(studio: Studio) -> None:
    await studio.service.services.storage.groups.create_group(a_group(), [a_record()])
    for users in ([5], [None], [["1"]], ["x"], [""], ["1\n"], "1000000001", {"1000000001": True}):
        await studio.expect_error(400, "group/access", access(users=users), studio.owner.headers)
    unknown = access(users=[studio.other_user.user_id, "4444444444"])
    error = await studio.expect_error(400, "group/access", unknown, studio.owner.headers)
    assert error == "data.users: no user 4444444444"
    many = json.dumps(access(users=["1"] * 60_000)).encode()
    million = b'{"group_id":"' + GROUP.encode() + b'","data":{"users":[' + b'"1",' * 1_000_000 + b'"1"]}}'
    headers = {**studio.owner.headers, "Content-Type": "application/json"}
    for raw in (many, million):
        response = await studio.service.client.post("/api/permissions/group/access", content=raw, headers=headers)
        assert response.status_code in (400, 413)
    assert (await get(studio, studio.owner))["groups"][0]["users"] == []


async def test_a_save_of_an_old_version_is_refused(studio: Studio) -> None:
    group = await make(studio)
    await studio.expect_ok("group", save_request(group["id"], title="One", version=1), studio.owner.headers)
    await studio.expect_error(409, "group", save_request(group["id"], title="Two", version=1), studio.owner.headers)
    await studio.expect_error(409, "group/access", access(group["id"], users=[], version=1), studio.owner.headers)
    saved = await studio.expect_ok("group/access", access(group["id"], users=[], version=2), studio.owner.headers)
    assert saved["data"]["version"] == 3


async def test_absent_users_and_conditions_stay_and_null_clears(studio: Studio) -> None:
    group, users = await make(studio), [studio.other_user.user_id]
    await studio.expect_ok(
        "group/access", access(group["id"], users=users, conditions=[EVERYONE]), studio.owner.headers
    )
    body = await studio.expect_ok("group/access", access(group["id"]), studio.owner.headers)
    assert (body["data"]["users"], body["data"]["conditions"]) == (users, [EVERYONE])
    cleared = await studio.expect_ok(
        "group/access", access(group["id"], users=None, conditions=None), studio.owner.headers
    )
    assert (cleared["data"]["users"], cleared["data"]["conditions"]) == ([], [])


async def test_pa_13_an_unknown_group_is_no_different_from_a_foreign_one(studio: Studio) -> None:
    group = await make(studio)
    for path, body in (
        ("group", lambda one: save_request(one, title="x")),
        ("group", lambda one: {"action": "delete", "group_id": one}),
        ("group/access", lambda one: access(one, users=[])),
        ("group/tags", lambda one: {"group_id": one, "data": {"tags": []}}),
    ):
        foreign, unknown = [
            await studio.post(path, body(one), studio.other_user.headers) for one in (group["id"], "0" * 24)
        ]
        assert (foreign.status_code, foreign.content) == (unknown.status_code, unknown.content)
        assert foreign.status_code == 403
    boss = await create_administrator(studio)
    await studio.expect_error(404, "group/access", access("0" * 24, users=[]), boss.headers)
    for strange in ("x", "", "0" * 23, "0" * 25, "G" * 24, GROUP.upper(), GROUP + "\n"):
        await studio.expect_error(400, "group/access", access(strange, users=[]), boss.headers)


async def test_a_service_vouches_for_groups_of_its_own_project_alone(studio: Studio) -> None:
    storage = studio.service.services.storage
    await publish(storage, a_project("Elsewhere"), owners=[studio.owner.user_id])
    headers = {"Authorization": f"Bearer {studio.owner.jwt}", "Service-Jwt": await studio.service_jwt()}
    await studio.expect_ok("group", {"action": "get", "data": {"project_id": PROJECT}}, headers)
    await studio.expect_error(403, "group", {"action": "get", "data": {"project_id": "elsewhere"}}, headers)
    await studio.expect_error(403, "group", save_request(project_id="elsewhere", title="New"), headers)


async def test_a_group_that_decides_who_belongs_is_not_deleted(studio: Studio) -> None:
    """Without it a closed project would be open (R5, membership)."""
    group = await make(studio)
    manager = await create_person_with(studio, {IN_PROJECT: holdings_with_rules(MANAGES_ALL)})
    await studio.expect_ok("group/access", access(group["id"], users=[manager.user_id]), studio.owner.headers)
    outsider = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_view_project")})
    delete, view = {"action": "delete", "group_id": group["id"]}, {"action": "get", "data": {"id": PROJECT}}
    for lists, who in (({"allow": [group["id"]]}, manager), ({"allow": [], "disallow": [group["id"]]}, studio.owner)):
        listed = {"action": "save", "data": {"id": PROJECT, **lists}}
        await studio.expect_ok("project/membership", listed, studio.owner.headers)
        assert "allow" in await studio.expect_error(409, "group", delete, who.headers)
    await studio.expect_ok(
        "project/membership", {"action": "save", "data": {"id": PROJECT, "disallow": []}}, studio.owner.headers
    )
    await studio.expect_ok("project", view, outsider.headers)
    await studio.expect_ok("group", delete, manager.headers)


async def test_a_group_that_decides_who_belongs_keeps_the_tag_it_needs_for_that(studio: Studio) -> None:
    group = await make(studio)
    tags = {"group_id": group["id"], "data": {"tags": ["x"]}}
    for listed in ("allow", "disallow"):
        lists = {"action": "save", "data": {"id": PROJECT, "allow": [], "disallow": [], listed: [group["id"]]}}
        await studio.expect_ok("project/membership", lists, studio.owner.headers)
        assert "allow" in await studio.expect_error(409, "group/tags", tags, studio.owner.headers)
    await studio.expect_ok("group/tags", {**tags, "data": {"tags": ["project", "x"]}}, studio.owner.headers)
    lists = {"action": "save", "data": {"id": PROJECT, "allow": None, "disallow": None}}
    await studio.expect_ok("project/membership", lists, studio.owner.headers)
    await studio.expect_ok("group/tags", tags, studio.owner.headers)


async def test_a_project_one_may_not_see_is_no_other_place_than_none(studio: Studio) -> None:
    await publish(studio.service.services.storage, a_project("Elsewhere"), owners=[])
    group, manager = (
        await make(studio),
        await create_person_with(studio, {IN_PROJECT: holdings_with_rules(MANAGES_ALL)}),
    )
    responses = [
        await studio.post("group", save_request(group["id"], project_id=name), manager.headers)
        for name in ("elsewhere", "nowhere")
    ]
    assert [response.status_code for response in responses] == [400, 400]
    assert responses[0].content == responses[1].content


async def test_group_manager_matching_their_own_new_condition_is_audited(studio: Studio) -> None:
    group = await make(studio)
    manager = await a_manager(studio, group["id"])
    for others in ([{"uid": [studio.other_user.user_id]}], [{"domain": "studio.example"}]):
        named = [{"title": "t", "condition": one} for one in others]
        await studio.expect_ok("group/access", access(group["id"], conditions=named), manager.headers)
    assert await audit_records(studio, AuditEvent.GROUP_OPENED) == []
    own = [{"title": "t", "condition": {"or": [{"tag": "x"}, {"uid": [manager.user_id]}]}}]
    await studio.expect_ok("group/access", access(group["id"], conditions=own), manager.headers)
    assert len(await audit_records(studio, AuditEvent.GROUP_OPENED)) == 1
    again = [*own, {"title": "u", "condition": {"uid": [manager.user_id]}}]
    await studio.expect_ok("group/access", access(group["id"], conditions=again), manager.headers)
    assert len(await audit_records(studio, AuditEvent.GROUP_OPENED)) == 1  # they were members already


async def test_the_users_that_the_conditions_of_a_project_name_are_limited(studio: Studio) -> None:
    def groups_of_users(count: int, of: int = 1_000) -> list[dict[str, object]]:
        ids = [str(1_000_000 + n) for n in range(of)]
        return [{"title": f"t{n}", "condition": {"uid": ids}} for n in range(count)]

    one, two = await make(studio, "One"), await make(studio, "Two")
    await studio.expect_ok("group/access", access(one["id"], conditions=groups_of_users(6)), studio.owner.headers)
    await studio.expect_ok("group/access", access(two["id"], conditions=groups_of_users(4)), studio.owner.headers)
    more = access(two["id"], conditions=[*groups_of_users(4), *groups_of_users(1, 1)])
    assert "at most 10000 users" in await studio.expect_error(400, "group/access", more, studio.owner.headers)
    await studio.expect_ok("group/access", access(one["id"], conditions=groups_of_users(5)), studio.owner.headers)
    await studio.expect_ok("group/access", more, studio.owner.headers)


async def test_a_project_has_at_most_five_hundred_groups(studio: Studio) -> None:
    groups = studio.service.services.storage.groups
    for number in range(500):
        await groups.create_group(a_group(f"{number:024x}", f"G{number}"), ())
    new = save_request(project_id=PROJECT, title="One more")
    assert (
        await studio.expect_error(409, "group", new, studio.owner.headers) == "A project can have at most 500 groups."
    )
    await studio.expect_ok("group", {"action": "delete", "group_id": "0" * 24}, studio.owner.headers)
    await studio.expect_ok("group", new, studio.owner.headers)
