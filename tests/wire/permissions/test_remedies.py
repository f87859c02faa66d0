"""The remedies of `explain`: each can be made through the API by a caller who may, and reverses the answer (R6)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.model.rules import ROOT
from tests.support.studio import (
    IN_PROJECT,
    OTHER_USER,
    PROJECT,
    REQUIRE,
    P,
    Person,
    Studio,
    create_administrator,
    create_person_with,
    create_staff,
    grant_roles_to_group,
    holdings_with_rules,
    put_group,
    put_roles,
    question_body,
    role_granting,
    role_meta,
    secret_document,
    set_user_holdings,
    set_user_roles,
)

Step = Mapping[str, Any]


async def explain(studio: Studio, who: Person, **data: object) -> Any:
    body = question_body(studio, **{"rule": "user.kick", "user_id": OTHER_USER, **data})
    return (await studio.expect_ok("explain", body, who.headers))["data"]


async def make_step(studio: Studio, who: Person, step: Step) -> None:
    """Make one step of a remedy with the request that its fields name."""
    await STEPS[step["kind"]](studio, who, step)


async def save_record(studio: Studio, who: Person, step: Step) -> None:
    shop = studio.shop.application_id
    read = {"action": "get", "application_id": shop, "data": {"user_id": OTHER_USER, "type": "tree"}}
    record = (await studio.expect_ok("meta/data", read, who.headers))["data"]
    project = step["scope"].get("project_id", "")
    data: dict[str, Any] = {"user_id": OTHER_USER}
    if step["kind"] == "remove_entry":
        data["private_data"] = None
    elif project:
        access = record.get("private_data", {}).get("projectAccess", {})
        held = [one for one in access.get(project, {}).get("roles", []) if name_of(one) != step["role"]]
        roles = [*held, step["role"]] if step["kind"] == "assign_role" else held
        data["private_data"] = {"projectAccess": {**access, project: {"roles": roles}}}
    else:
        held = [one for one in record.get("roles", []) if name_of(one) != step["role"]]
        data["roles"] = [*held, step["role"]] if step["kind"] == "assign_role" else held
    await studio.expect_ok("meta/data", {"action": "save", "application_id": shop, "data": data}, who.headers)


def name_of(role: Any) -> str:
    return role if isinstance(role, str) else role["name"]


async def save_group(studio: Studio, who: Person, step: Step) -> None:
    users = [OTHER_USER] if step["kind"] == "add_to_group" else []
    body = {"group_id": step["group"]["id"], "data": {"users": users}}
    await studio.expect_ok("group/access", body, who.headers)


async def save_role(studio: Studio, who: Person, step: Step) -> None:
    fields: dict[str, Any] = {"user_limit": step["limit"]} if step["kind"] == "raise_limit" else {}
    if step["kind"] == "allow_in_role":
        fields["meta"] = role_meta(user_kick=True)
    if step["kind"] == "unset_in_role":
        fields["meta"] = {}
    body = {
        "action": "save",
        "application_id": studio.shop.application_id,
        "data": {"name": step["role"], **fields},
    }
    await studio.expect_ok("roles", body, who.headers)


async def lift_ban(studio: Studio, who: Person, step: Step) -> None:
    scope = {name: step[name] for name in ("application_id", "project_id") if name in step}
    await studio.expect_ok("user/ban", {"action": "lift", "user_id": OTHER_USER, **scope}, who.headers)


async def save_tags(studio: Studio, who: Person, step: Step) -> None:
    body = {"data": {"user_id": OTHER_USER, "tags": [need["wanted"] for need in step["needs"]]}}
    await studio.expect_ok("user/tags", body, who.headers)


STEPS: Mapping[str, Callable[[Studio, Person, Step], Awaitable[None]]] = {
    **dict.fromkeys(("assign_role", "remove_role", "remove_entry"), save_record),
    **dict.fromkeys(("add_to_group", "remove_from_group"), save_group),
    **dict.fromkeys(("allow_in_role", "unset_in_role", "raise_limit"), save_role),
    "lift_ban": lift_ban,
    "meet_condition": save_tags,
}


async def prepare_condition(studio: Studio, boss: Person) -> None:  # noqa: ARG001
    gated = role_granting("moderator", condition=parse_condition({"tag": "staff"}), condition_mode=REQUIRE)
    await put_roles(studio, gated)


async def prepare_full_role(studio: Studio, boss: Person) -> None:  # noqa: ARG001
    await put_roles(studio, role_granting("moderator", user_limit=1))
    await create_staff(studio)
    await set_user_roles(studio, "1000000003", {ROOT: ["moderator"]})


async def prepare_bans(studio: Studio, boss: Person) -> None:
    await put_roles(studio, role_granting("moderator"))
    for scope in ({"application_id": studio.shop.application_id}, {"project_id": PROJECT}, {}):
        body = {"action": "save", "user_id": OTHER_USER, **scope, "data": {"public_text": "Cheating."}}
        await studio.expect_ok("user/ban", body, boss.headers)


async def prepare_denial(studio: Studio, boss: Person) -> None:  # noqa: ARG001
    muted = role_granting("muted", meta=role_meta(user_kick=False))
    await put_roles(studio, role_granting("moderator"), muted)
    await set_user_roles(studio, OTHER_USER, {ROOT: ["moderator", "muted"]})


async def prepare_entry(studio: Studio, boss: Person) -> None:  # noqa: ARG001
    await put_roles(studio)
    await set_user_holdings(studio, OTHER_USER, {ROOT: holdings_with_rules("user.kick")})


async def prepare_group(studio: Studio, boss: Person) -> None:  # noqa: ARG001
    await put_roles(studio, role_granting("moderator"))
    await put_group(studio)
    await grant_roles_to_group(studio, "moderator")


async def prepare_listed(studio: Studio, boss: Person) -> None:  # noqa: ARG001
    await put_roles(studio, role_granting("moderator"), role_granting("base", default=True))
    await put_group(studio, OTHER_USER)
    await grant_roles_to_group(studio, "moderator")


@pytest.mark.parametrize(
    ("prepare", "question", "kinds"),
    [
        (prepare_condition, {}, ["assign_role", "meet_condition"]),
        (prepare_full_role, {}, ["raise_limit", "assign_role"]),
        (prepare_bans, {}, ["lift_ban", "lift_ban", "lift_ban", "assign_role"]),
        (prepare_denial, {}, ["remove_role"]),
        (prepare_denial, {}, ["allow_in_role"]),
        (prepare_entry, {}, ["remove_entry"]),
        (prepare_group, {"project_id": PROJECT}, ["add_to_group"]),
        (prepare_group, {"project_id": PROJECT}, ["assign_role"]),
        (prepare_listed, {"project_id": PROJECT}, ["remove_from_group"]),
        (prepare_listed, {}, ["unset_in_role"]),
    ],
)
async def test_a_remedy_made_through_the_api_reverses_the_answer(
    studio: Studio,
    prepare: Callable[[Studio, Person], Awaitable[None]],
    question: Mapping[str, object],
    kinds: list[str],
) -> None:
    boss = await create_administrator(studio)
    await prepare(studio, boss)
    before = await explain(studio, boss, **question)
    remedy = next(one for one in before["remedies"] if [step["kind"] for step in one["steps"]] == kinds)
    assert remedy["may"] is True
    for number, step in enumerate(remedy["steps"], start=1):
        await make_step(studio, boss, step)
        is_done = number == len(kinds)
        assert (await explain(studio, boss, **question))["allowed"] is (before["allowed"] is not is_done), step


async def test_who_may_make_a_step_is_told_to_those_who_may_not(studio: Studio) -> None:
    protected = role_granting("chief", protected=True)
    await put_roles(studio, role_granting("moderator"), protected, role_granting("player", meta={}))
    await set_user_roles(studio, OTHER_USER, {ROOT: ["player"]})
    reads = dict.fromkeys(("roles", "private", "public"), ("all", "none"))
    readers = {
        "reader": secret_document("canReadSchema", **reads),
        "assigner": secret_document("canReadSchema", **{**reads, "roles": ("all", "all")}),
        "editor": secret_document("canReadSchema", "canModifySchema", **reads),
    }
    found = {}
    for name, document in readers.items():
        who = await create_person_with(studio, secret_data=document)
        remedies = (await explain(studio, who))["remedies"]
        found[name] = {(step["kind"], step["role"]): step for one in remedies for step in one["steps"]}
        assert [one["may"] for one in remedies] == [one["steps"][0].get("may", False) for one in remedies]
    assert {key: step["by"] for key, step in found["reader"].items()} == {
        ("assign_role", "moderator"): "user_managers",
        ("assign_role", "chief"): "schema_editors",
        ("allow_in_role", "player"): "role_editors",
    }
    assert [key for key, step in found["reader"].items() if step.get("may")] == []
    assert [key for key, step in found["assigner"].items() if step.get("may")] == [("assign_role", "moderator")]
    assert [key for key, step in found["editor"].items() if step.get("may")] == [("allow_in_role", "player")]


async def test_a_remedy_names_no_role_group_or_condition_that_the_caller_may_not_see(studio: Studio) -> None:
    hidden = role_granting("hidden", condition=parse_condition({"tag": "vip_secret"}), condition_mode=REQUIRE)
    await put_roles(studio, hidden)
    await put_group(studio)
    await grant_roles_to_group(studio, "hidden")
    for question in ({}, {"project_id": PROJECT}):
        assert (await explain(studio, studio.other_user, **question))["remedies"] == []
    names = await create_person_with(
        studio,
        secret_data=secret_document(
            "canSeeRoleList", **dict.fromkeys(("roles", "private", "public"), ("all", "none"))
        ),
    )
    assert (await explain(studio, names))["remedies"] == []  # the role alone would not help
    await set_user_roles(studio, OTHER_USER, {P: ["hidden"]})
    viewer = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_view_project")})
    own = question_body(studio, rule="user.kick", project_id=PROJECT)
    assert (await studio.expect_ok("explain", own, viewer.headers))["data"]["remedies"] == []
