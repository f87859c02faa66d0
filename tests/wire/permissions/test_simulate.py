"""simulate: what a save would change for whom; the save then changes exactly that (R6)."""

from collections.abc import Mapping
from typing import Any

import pytest

from gatehouse.permissions.model.rules import ROOT, group_scope
from tests.support.database_contents import read_all_tables
from tests.support.permission_builders import GROUP, a_person, a_user_record
from tests.support.studio import (
    OTHER_USER,
    OWNER,
    PROJECT,
    P,
    Studio,
    grant_roles_to_group,
    put_group,
    put_roles,
    question_body,
    role_granting,
    rule_leaf,
    set_user_roles,
    write_record,
)

ANN, BEN, CAT = "2000000001", "2000000002", "2000000003"
EVERYBODY = (OWNER, OTHER_USER, ANN, BEN, CAT)
KICK, BAN = "private_data.user.kick", "private_data.user.ban"
IN_PROJECT = f"private_data.projectAccess.{PROJECT}."
Lists = Mapping[str, frozenset[str]]


@pytest.fixture
async def busy(studio: Studio) -> Studio:
    """Roles, a group with a condition, grants, and people with permissions."""
    storage = studio.service.services.storage
    await a_person(storage, ANN, tags=frozenset({"staff"}))
    await a_person(storage, BEN)
    await a_person(storage, CAT, email_verified=True)
    await put_roles(studio, role_granting("given"), role_granting("granted"), role_granting("other"))
    await put_group(studio, BEN, conditions=[{"tag": "staff"}])
    await grant_roles_to_group(studio, "granted")
    await set_user_roles(studio, OTHER_USER, {ROOT: ["given"], P: ["given"]})
    await set_user_roles(studio, CAT, {P: ["other"], group_scope(PROJECT, GROUP): ["other"]})
    return studio


async def lists(studio: Studio) -> Lists:
    """What everyone has in the shop, as read by an administrator of the project."""
    listed = {}
    for user_id in EVERYBODY:
        body = await studio.expect_ok(
            "meta/data", {"action": "get", **question_body(studio, user_id=user_id)}, studio.owner.headers
        )
        listed[user_id] = frozenset(body["data"])
    return listed


async def simulate(studio: Studio, **change: object) -> Any:
    return (await studio.expect_ok("simulate", question_body(studio, change=change), studio.owner.headers))["data"]


async def save_record(studio: Studio, path: str, body: dict[str, object]) -> None:
    await studio.expect_ok(path, body, studio.owner.headers)


SHOP = "the shop"  # a placeholder for its id, which a parameter cannot know
CHANGES: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    (
        "a role gets a condition",
        {"kind": "role", "data": {"name": "given", "condition": {"tag": "email_verified"}}},
        "roles",
        {"action": "save", "application_id": SHOP},
    ),
    (
        "a role says something else",
        {"kind": "role", "data": {"name": "granted", "meta": {"private_data": {"user": {"ban": {"value": True}}}}}},
        "roles",
        {"action": "save", "application_id": SHOP},
    ),
    (
        "a role becomes protected",
        {"kind": "role", "data": {"name": "given", "protected": True}},
        "roles",
        {"action": "save", "application_id": SHOP},
    ),
    (
        "a role becomes default",
        {"kind": "role", "data": {"name": "other", "default": True}},
        "roles",
        {"action": "save", "application_id": SHOP},
    ),
    (
        "a role is deleted",
        {"kind": "role", "action": "delete", "data": {"name": "granted"}},
        "roles",
        {"action": "delete", "application_id": SHOP},
    ),
    (
        "a rule is true by default",
        {"kind": "schema", "data": {"private_data": {"user": {"ban": {"value": True}}}}},
        "meta/schema",
        {"action": "save", "application_id": SHOP},
    ),
    (
        "a group gets other members",
        {"kind": "group_access", "group_id": GROUP, "data": {"users": [CAT], "conditions": []}},
        "group/access",
        {"group_id": GROUP},
    ),
    (
        "a group is open to everyone",
        {
            "kind": "group_access",
            "group_id": GROUP,
            "data": {"conditions": [{"title": "all", "condition": {"everyone": True}}]},
        },
        "group/access",
        {"group_id": GROUP},
    ),
    (
        "a group is renamed",
        {"kind": "group", "group_id": GROUP, "data": {"title": "Others"}},
        "group",
        {"action": "save", "group_id": GROUP},
    ),
    (
        "a group is deleted",
        {"kind": "group", "action": "delete", "group_id": GROUP},
        "group",
        {"action": "delete", "group_id": GROUP},
    ),
    (
        "a project takes one domain only",
        {"kind": "project", "data": {"id": PROJECT, "settings": {"allowed_domains": ["studio.example"]}}},
        "project",
        {"action": "save"},
    ),
    (
        "a project grants nothing any more",
        {"kind": "project", "data": {"id": PROJECT, "settings": {}}},
        "project",
        {"action": "save"},
    ),
    (
        "only a group is allowed",
        {"kind": "membership", "data": {"id": PROJECT, "allow": [GROUP]}},
        "project/membership",
        {"action": "save"},
    ),
    (
        "someone becomes an owner of a shut project",
        {
            "kind": "membership",
            "data": {"id": PROJECT, "users": {OTHER_USER: {"roles": ["project_owner"]}}, "disallow": [GROUP]},
        },
        "project/membership",
        {"action": "save"},
    ),
    (
        "someone's record is saved",
        {
            "kind": "record",
            "data": {
                "user_id": BEN,
                "roles": ["given"],
                "private_data": {"projectAccess": {PROJECT: {"roles": ["other"]}}},
            },
        },
        "meta/data",
        {"action": "save", "application_id": SHOP},
    ),
]


@pytest.mark.parametrize(
    ("change", "path", "envelope"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES]
)
async def test_the_save_changes_exactly_what_was_foretold(
    busy: Studio, change: dict[str, Any], path: str, envelope: dict[str, Any]
) -> None:
    before = await lists(busy)
    foretold = await simulate(busy, **change)
    assert await lists(busy) == before
    body = {**envelope, "data": change.get("data", {})}
    if "application_id" in body:
        body["application_id"] = busy.shop.application_id
    await save_record(busy, path, body)
    after = await lists(busy)
    changed = [person for person in foretold["people"] if person["gains"] or person["loses"]]
    assert {user["user_id"]: (user["gains"], user["loses"]) for user in changed} == {
        user_id: (sorted(after[user_id] - before[user_id]), sorted(before[user_id] - after[user_id]))
        for user_id in EVERYBODY
        if after[user_id] != before[user_id]
    }


async def test_gains_and_losses_are_named_for_each_person(busy: Studio) -> None:
    change = {"kind": "group_access", "group_id": GROUP, "data": {"users": [CAT]}}
    result = await simulate(busy, **change)
    assert result["people"] == [
        {
            "user_id": BEN,
            "gains": [],
            "loses": [f"{IN_PROJECT}{KICK}"],
            "gains_roles": [],
            "loses_roles": [f"{PROJECT}/granted"],
        },
        {"user_id": CAT, "gains": [], "loses": [], "gains_roles": [f"{PROJECT}/granted"], "loses_roles": []},
    ]
    assert (result["truncated"], result["after"]) == (False, None)


async def test_simulation_writes_nothing(busy: Studio) -> None:
    storage = busy.service.services.storage
    before = await read_all_tables(storage)
    for row in CHANGES:
        await simulate(busy, **row[1])
    assert await read_all_tables(storage) == before


async def test_simulation_refuses_what_the_save_refuses(busy: Studio) -> None:
    for status, message, change in (
        (400, "everyone", {"kind": "role", "data": {"name": "given", "condition": {"everyone": 1}}}),
        (409, "changed in the meantime", {"kind": "role", "data": {"name": "given", "version": 77}}),
        (404, "Role not found", {"kind": "role", "action": "delete", "data": {"name": "ghost"}}),
        (409, "needs at least one owner", {"kind": "membership", "data": {"id": PROJECT, "users": {OWNER: None}}}),
        (400, "kind", {"kind": "weather", "data": {}}),
        (400, "data.change.group_id: required", {"kind": "group", "action": "delete"}),
    ):
        assert message in await busy.expect_error(
            status, "simulate", question_body(busy, change=change), busy.owner.headers
        )
    limited = {"name": "one", "user_limit": 1}
    await save_record(busy, "roles", {"action": "save", "application_id": busy.shop.application_id, "data": limited})
    await set_user_roles(busy, ANN, {ROOT: ["one"]})
    full = {"kind": "record", "data": {"user_id": BEN, "roles": ["one"]}}
    await busy.expect_error(409, "simulate", question_body(busy, change=full), busy.owner.headers)


async def test_simulation_requires_the_rights_of_members_and_of_the_save(busy: Studio) -> None:
    change = {"kind": "role", "data": {"name": "given", "protected": True}}
    await busy.expect_error(403, "simulate", question_body(busy, change=change), busy.other_user.headers)
    reads = {part: {"canRead": {"value": "all"}} for part in ("roles", "private", "public")}
    lists_roles = {"canSeeRoleList": {"value": True}}
    await set_user_roles(busy, OTHER_USER, {}, secret_data={"meta": reads, "application": lists_roles})
    for proposal in (change, CHANGES[6][1], CHANGES[10][1], CHANGES[12][1], CHANGES[14][1]):
        await busy.expect_error(403, "simulate", question_body(busy, change=proposal), busy.other_user.headers)
    may_save = {**lists_roles, "canModifySchema": {"value": True}}
    await set_user_roles(busy, OTHER_USER, {}, secret_data={"meta": reads, "application": may_save})
    await busy.expect_ok("simulate", question_body(busy, change=change), busy.other_user.headers)


async def test_an_administrator_sees_the_effect_in_application_1(busy: Studio) -> None:
    await write_record(busy, a_user_record(OWNER, {ROOT: ["administrator"], P: ["project_owner"]}))
    users = {ANN: {"roles": ["project_administrator"]}}
    ask = {"application_id": 1, "data": {"change": {"kind": "membership", "data": {"id": PROJECT, "users": users}}}}
    [effect] = (await busy.expect_ok("simulate", ask, busy.owner.headers))["data"]["people"]
    assert (effect["user_id"], effect["gains_roles"]) == (ANN, [f"{PROJECT}/project_administrator"])
    assert f"{IN_PROJECT}private_data.project.can_manage_project" in effect["gains"]


async def test_long_answers_are_given_in_pages(busy: Studio) -> None:
    change = {
        "kind": "schema",
        "data": {"private_data": {"user": {"kick": rule_leaf(value=True), "ban": rule_leaf()}}},
    }
    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        ask = question_body(busy, change=change, limit=2, after=after)
        page = (await busy.expect_ok("simulate", ask, busy.owner.headers))["data"]
        assert page["truncated"] is (page["after"] is not None)
        seen += [person["user_id"] for person in page["people"]]
        after = page["after"]
    assert seen == [OWNER, ANN, BEN, CAT]
