"""members: who has a rule or a role, by what path, until when (R6)."""

import csv
import io
from collections.abc import Mapping
from typing import Any

import pytest

from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.model.facts import Assignment
from gatehouse.permissions.model.rules import ROOT, End, application_scope
from tests.support.permission_builders import GROUP, a_person, a_project, a_user_record, holdings_with, publish
from tests.support.studio import (
    OTHER_USER,
    OWNER,
    PROJECT,
    REQUIRE,
    P,
    Studio,
    grant_roles_to_group,
    put_group,
    put_roles,
    question_body,
    role_granting,
    rule_leaf,
    set_user_holdings,
    set_user_roles,
    write_record,
)

ANN, BEN, CAT, DAN = "2000000001", "2000000002", "2000000003", "2000000004"
SAYS_NO = {"private_data": {"user": {"kick": {"value": False}}}}


async def people(studio: Studio) -> None:
    storage = studio.service.services.storage
    await a_person(storage, ANN, tags=frozenset({"staff"}))
    await a_person(storage, BEN, purchases=frozenset({"game"}))
    await a_person(storage, CAT, email_verified=True)
    await a_person(storage, DAN)


async def find_members(studio: Studio, **data: object) -> dict[str, Any]:
    ask = question_body(studio, **({"rule": "user.kick"} if "role" not in data else {}), **data)
    page = (await studio.expect_ok("members", ask, studio.owner.headers))["data"]
    assert page["after"] is None
    return {member["user_id"]: member for member in page["members"]}


def sources(members: Mapping[str, Any]) -> dict[str, list[str]]:
    return {user_id: [step["source"] for step in one["path"]] for user_id, one in members.items()}


async def test_members_finds_every_source_of_a_rule_at_the_root(studio: Studio) -> None:
    await people(studio)
    await put_roles(
        studio,
        role_granting("given"),
        role_granting("tagged", condition=parse_condition({"tag": "staff"})),
        role_granting("bought", condition=parse_condition({"purchase": "game"})),
        role_granting("local", condition=parse_condition({"domain": "studio.example"})),
        role_granting("chosen", condition=parse_condition({"uid": [OWNER]})),
        role_granting("from_here", condition=parse_condition({"ip": "127.0.0.0/8"})),
    )
    await set_user_roles(studio, OTHER_USER, {ROOT: ["given"]})
    await set_user_holdings(studio, DAN, {ROOT: holdings_with(private_data={"user": {"kick": {"value": True}}})})
    await set_user_holdings(studio, OWNER, {P: holdings_with("given")})
    assert sources(await find_members(studio)) == {
        OWNER: ["condition_of_role"],
        OTHER_USER: ["assigned_role"],
        ANN: ["condition_of_role"],
        BEN: ["condition_of_role"],
        CAT: ["condition_of_role"],
        DAN: ["direct_entry"],
    }


async def test_a_tag_that_the_service_keeps_is_found_too(studio: Studio) -> None:
    await people(studio)
    await put_roles(studio, role_granting("verified", condition=parse_condition({"tag": "email_verified"})))
    assert set(await find_members(studio)) == {CAT}


async def test_a_default_reaches_everyone_but_those_who_are_told_no(studio: Studio) -> None:
    await people(studio)
    await put_roles(
        studio, role_granting("never", meta=SAYS_NO), private_data={"user": {"kick": rule_leaf(value=True)}}
    )
    await set_user_roles(studio, BEN, {ROOT: ["never"]})
    assert set(await find_members(studio)) == {OWNER, OTHER_USER, ANN, CAT, DAN}
    assert set((await find_members(studio)).popitem()[1]["path"][0]) == {"source", "scope"}


async def test_members_of_a_project_come_from_grants_assignments_and_entries(studio: Studio) -> None:
    await people(studio)
    await put_roles(studio, role_granting("given"), role_granting("granted"))
    await put_group(studio, ANN, conditions=[{"purchase": "game"}])
    await grant_roles_to_group(studio, "granted")
    await set_user_roles(studio, OTHER_USER, {P: ["given"]})
    on_shop = application_scope(PROJECT, studio.shop.application_id)
    await set_user_roles(studio, CAT, {on_shop: ["given"]})
    await set_user_roles(studio, DAN, {ROOT: ["given"]})
    members = await find_members(studio, project_id=PROJECT)
    assert sources(members) == {OTHER_USER: ["assigned_role"], ANN: ["group_grant"], BEN: ["group_grant"]}
    assert members[ANN]["path"][0]["group"] == {"id": GROUP, "title": "Testers"}
    assert members[BEN]["path"][0]["group_condition"] == "rule"
    resource = {"kind": "applications", "id": studio.shop.application_id}
    assert set(await find_members(studio, project_id=PROJECT, resource=resource)) == {OTHER_USER, ANN, BEN, CAT}


async def test_members_of_a_role_are_listed_with_their_end(studio: Studio) -> None:
    await people(studio)
    now = studio.service.clock.now()
    await put_roles(
        studio,
        role_granting("Moderator", condition=parse_condition({"tag": "staff"})),
        role_granting("gated", condition=parse_condition({"tag": "staff"}), condition_mode=REQUIRE),
    )
    await set_user_roles(studio, OTHER_USER, {ROOT: [Assignment(role="moderator", end=End(expired=now + 60))]})
    await set_user_roles(studio, BEN, {ROOT: [Assignment(role="moderator", end=End(expired=now))]})
    members = await find_members(studio, role="moderator")
    assert {user_id: one["until"] for user_id, one in members.items()} == {OTHER_USER: now + 60, ANN: 0}
    await set_user_roles(studio, ANN, {ROOT: ["gated"]})
    await set_user_roles(studio, BEN, {ROOT: ["gated"]})
    assert set(await find_members(studio, role="GATED")) == {ANN}


async def test_pages_follow_the_ids_of_users(studio: Studio) -> None:
    await people(studio)
    await put_roles(studio, role_granting("all", default=True))
    seen: list[list[str]] = []
    after: str | None = ""
    while after is not None:
        ask = question_body(studio, role="all", limit=2, after=after)
        page = (await studio.expect_ok("members", ask, studio.owner.headers))["data"]
        seen.append([member["user_id"] for member in page["members"]])
        after = page["after"]
    assert seen == [[OWNER, OTHER_USER], [ANN, BEN], [CAT, DAN]]


async def test_members_are_returned_as_csv_on_request(studio: Studio) -> None:
    await put_roles(studio, role_granting("-sum"))
    await set_user_roles(studio, OTHER_USER, {ROOT: ["-sum"]})
    await set_user_roles(studio, OWNER, {ROOT: ["-sum"]})
    ask = question_body(studio, rule="user.kick", limit=1)
    accepting = {**studio.owner.headers, "Accept": "text/csv"}
    for response in (
        await studio.post("members", ask, accepting),
        await studio.post("members", {**ask, "options": {"format": "csv"}}, studio.owner.headers),
    ):
        assert response.headers["content-type"].startswith("text/csv")
        assert response.headers["next-after"] == OWNER
        [row] = csv.DictReader(io.StringIO(response.text))
        assert (row["user_id"], row["until"], row["source"], row["role"]) == (OWNER, "", "assigned_role", "'-sum")


async def test_client_that_also_accepts_json_gets_json(studio: Studio) -> None:
    await put_roles(studio)
    ask = question_body(studio, rule="user.kick")
    for accepted in ("application/json;q=0.9, text/csv;q=0.1", "text/csv, application/json", "*/*"):
        response = await studio.post("members", ask, {**studio.owner.headers, "Accept": accepted})
        assert response.json()["status"] == "OK"


async def test_members_requires_the_rights_to_read_everyone_and_to_list_roles(studio: Studio) -> None:
    await put_roles(studio, role_granting("given"))
    ask = question_body(studio, rule="user.kick")
    await studio.expect_error(403, "members", ask, studio.other_user.headers)
    reads = {part: {"canRead": {"value": "all"}} for part in ("roles", "private", "public")}
    await set_user_roles(studio, OTHER_USER, {}, secret_data={"meta": reads})
    await studio.expect_error(403, "members", ask, studio.other_user.headers)
    lists = {"canSeeRoleList": {"value": True}}
    await set_user_roles(studio, OTHER_USER, {}, secret_data={"meta": reads, "application": lists})
    await studio.expect_ok("members", ask, studio.other_user.headers)
    fewer = {part: reads[part] for part in ("roles", "public")}
    await set_user_roles(studio, OTHER_USER, {}, secret_data={"meta": fewer, "application": lists})
    await studio.expect_error(403, "members", ask, studio.other_user.headers)


async def test_pa_13_whether_a_foreign_project_exists_is_not_told(studio: Studio) -> None:
    await put_roles(studio, role_granting("given"))
    await publish(studio.service.services.storage, a_project("Far Away"))
    for project_id in ("far_away", "nowhere"):
        assert await find_members(studio, project_id=project_id) == {}
    await write_record(studio, a_user_record(OTHER_USER, {ROOT: ["administrator"]}))
    ask = question_body(studio, rule="user.kick", project_id="nowhere")
    assert "Project not found" in await studio.expect_error(404, "members", ask, studio.other_user.headers)


@pytest.mark.parametrize(
    ("data", "status", "message"),
    [
        ({}, 400, "either rule or role"),
        ({"rule": "a", "role": "b"}, 400, "either rule or role"),
        ({"rule": "a", "limit": 0}, 400, "data.limit"),
        ({"rule": "a", "limit": 1001}, 400, "data.limit"),
        ({"rule": "a", "after": "x"}, 400, "data.after"),
        ({"rule": "a b"}, 400, "data.rule"),
        ({"role": "ghost"}, 404, "Role not found"),
    ],
)
async def test_malformed_questions_are_refused(
    studio: Studio, data: dict[str, Any], status: int, message: str
) -> None:
    assert message in await studio.expect_error(
        status, "members", question_body(studio, **data), studio.owner.headers
    )


async def test_a_project_one_may_not_see_has_as_many_members_as_one_that_is_not_there(studio: Studio) -> None:
    await put_roles(studio, role_granting("moderator"))
    await publish(studio.service.services.storage, a_project("Secret Plan", aliases=("plan",)), owners=[OWNER])
    for data in ({"rule": "user.kick"}, {"role": "moderator"}):
        responses = [
            await studio.post("members", question_body(studio, **data, project_id=name), studio.owner.headers)
            for name in ("nowhere", "secret_plan", "plan")
        ]
        assert [(response.status_code, response.content) for response in responses] == [
            (200, responses[0].content)
        ] * 3
