"""check and explain (R5, R6)."""

from collections.abc import Mapping
from typing import Any

import pytest

from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.model.rule import End
from gatehouse.permissions.model.scope import ROOT, application_scope
from gatehouse.permissions.model.user_record import Assignment
from tests.support.permission_builders import GROUP, holding
from tests.support.questioned import (
    GUEST,
    REQUIRE,
    P,
    about,
    giving,
    grant,
    hold,
    hold_directly,
    leaf,
    put_group,
    put_roles,
    staff,
)
from tests.support.studio import OWNER, PROJECT, VISITOR, Studio

KICK = {"rule": "user.kick"}


async def checked(studio: Studio, *checks: Mapping[str, object], **more: object) -> Any:
    ask = about(studio, checks=list(checks), **more)
    return (await studio.ok("check", ask, studio.visitor.headers))["data"]


async def explained(studio: Studio, **data: object) -> Any:
    ask = about(studio, **{"rule": "user.kick", **data})
    return (await studio.ok("explain", ask, studio.visitor.headers))["data"]


# -- check --------------------------------------------------------------------------------------------


async def test_answers_come_in_the_order_of_the_questions(studio: Studio) -> None:
    await put_roles(studio, giving("moderator"))
    on_shop = application_scope(PROJECT, studio.shop.application_id)
    await hold(studio, VISITOR, {ROOT: ["moderator"], P: ["moderator"]})
    resource = {"kind": on_shop.kind, "id": studio.shop.application_id}
    answers = await checked(
        studio,
        {"rule": "user.ban"},
        KICK,
        {"rule": "private_data.user.kick"},
        {"rule": "public_data.user.kick"},
        {**KICK, "project_id": PROJECT},
        {**KICK, "project_id": PROJECT, "resource": resource},
        {**KICK, "project_id": "elsewhere"},
        {"rule": "never.heard.of"},
    )
    assert answers == [False, True, True, False, True, True, False, False]


async def test_the_answer_tells_how_long_it_is_good(studio: Studio) -> None:
    await put_roles(studio, giving("moderator"))
    end = studio.service.clock.now() + 60
    await hold(studio, VISITOR, {ROOT: [Assignment(role="moderator", end=End(expired=end))]})
    ask = about(studio, checks=[KICK])
    answer = await studio.post("check", ask, studio.visitor.headers)
    told = answer.json()
    assert told == {"status": "OK", "data": [True], "user_id": VISITOR, "expired": end, "max_age": 2}
    again = {**studio.visitor.headers, "If-None-Match": answer.headers["etag"]}
    assert (await studio.post("check", ask, again)).status_code == 304
    await studio.service.clock.advance(60)
    assert (await studio.post("check", ask, again)).json()["data"] == [False]


async def test_an_alias_of_a_project_is_as_good_as_its_id(studio: Studio) -> None:
    await put_roles(studio, giving("moderator"))
    await hold(studio, VISITOR, {P: ["moderator"]})
    renamed = {"action": "save", "data": {"id": PROJECT, "aliases": ["mg"]}}
    await studio.ok("project", renamed, studio.owner.headers)
    assert await checked(studio, {**KICK, "project_id": "mg"}) == [True]
    assert (await explained(studio, project_id="mg"))["scope"] == {"project_id": PROJECT}


async def test_a_check_sees_no_address(studio: Studio) -> None:
    await put_roles(studio, giving("local", condition=parse_condition({"ip": "127.0.0.0/8"})))
    assert await checked(studio, KICK) == [False]


async def test_about_others_only_whoever_may_read_all_of_them(studio: Studio) -> None:
    await put_roles(studio, giving("moderator"))
    await hold(studio, VISITOR, {ROOT: ["moderator"]})
    for path, data in (("check", {"checks": [KICK]}), ("explain", KICK)):
        ask = about(studio, user_id=VISITOR, **data)
        assert (await studio.ok(path, ask, studio.owner.headers))["user_id"] == VISITOR
        nobody = about(studio, user_id="1999999999", **data)
        assert await studio.refused(404, path, nobody, studio.owner.headers) == "user not found"
        for user_id in (OWNER, "1999999999"):
            await studio.refused(403, path, about(studio, user_id=user_id, **data), studio.visitor.headers)


async def test_a_service_account_asks_about_anyone_in_its_project(studio: Studio) -> None:
    await put_roles(studio, giving("moderator"))
    await hold(studio, VISITOR, {ROOT: ["moderator"]})
    make = {"action": "save", "data": {"project_id": PROJECT, "name": "ci"}}
    jwt = (await studio.ok("serviceAccount", make, studio.owner.headers))["data"]["jwt"]
    bearer = {"Authorization": f"Bearer {jwt}"}
    ask = about(studio, user_id=VISITOR, checks=[KICK])
    assert (await studio.ok("check", ask, bearer))["data"] == [True]
    await studio.refused(403, "check", {**ask, "application_id": studio.other.application_id}, bearer)


async def test_a_service_jwt_or_key_asks_about_its_own_application_only(studio: Studio) -> None:
    await put_roles(studio, giving("moderator"))
    await hold(studio, VISITOR, {ROOT: ["moderator"]})
    service = {"Authorization": f"Bearer {studio.visitor.jwt}", "Service-Jwt": await studio.service_jwt()}
    ask = {"data": {"checks": [KICK]}}
    assert (await studio.ok("check", ask, service))["data"] == [True]
    await studio.refused(403, "check", {**ask, "application_id": studio.other.application_id}, service)
    key = {"Authorization": f"Bearer {await studio.access_key()}"}
    assert (await studio.ok("check", {**ask, "jwt": studio.visitor.jwt}, key))["data"] == [True]
    await studio.refused(401, "check", ask, key)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({"checks": []}, "data.checks"),
        ({"checks": [KICK] * 101}, "data.checks"),
        ({"checks": [{"rule": ""}]}, "data.checks[0].rule"),
        ({"checks": [{"rule": "a..b"}]}, "data.checks[0].rule"),
        ({"checks": [{"rule": "P/user.kick"}]}, "data.checks[0].rule"),
        ({"checks": [{"rule": "projectAccess.x"}]}, "data.checks[0].rule"),
        ({"checks": [KICK, {**KICK, "resource": {"kind": "groups", "id": "x"}}]}, "data.checks[1].project_id"),
        ({"checks": [{**KICK, "project_id": "p", "resource": {"kind": "cars", "id": 1}}]}, "resource.kind"),
        ({"checks": [{**KICK, "project_id": "p", "resource": {"kind": "groups", "id": 1}}]}, "resource.id"),
        ({"checks": [{**KICK, "more": 1}]}, "more"),
        ({"user_id": "x", "checks": [KICK]}, "data.user_id"),
    ],
)
async def test_malformed_questions_are_refused_by_name(studio: Studio, data: dict[str, Any], place: str) -> None:
    assert place in await studio.refused(400, "check", about(studio, **data), studio.visitor.headers)


async def test_an_unknown_application_is_not_found(studio: Studio) -> None:
    ask = {"application_id": 77, "data": {"checks": [KICK]}}
    await studio.refused(404, "check", ask, studio.visitor.headers)
    await studio.refused(400, "check", {"data": {"checks": [KICK]}}, studio.visitor.headers)


# -- explain ------------------------------------------------------------------------------------------


async def test_what_is_allowed_is_explained_by_what_decides(studio: Studio) -> None:
    await put_roles(studio, giving("moderator"))
    await hold(studio, VISITOR, {ROOT: ["moderator"]})
    told = await explained(studio)
    assert (told["allowed"], told["rule"], told["in_schema"], told["missing"]) == (
        True,
        "private_data.user.kick",
        True,
        [],
    )
    assert told["path"] == [{"source": "assigned_role", "scope": {}, "value": True, "role": "moderator"}]
    assert [one["source"] for one in told["overridden"]] == ["schema_default"]
    assert told["sentences"][0] == "Allowed: private_data.user.kick at the root."


async def test_a_grant_through_a_group_names_the_group(studio: Studio) -> None:
    await put_roles(studio, giving("moderator"))
    await put_group(studio, VISITOR)
    await grant(studio, "moderator")
    told = await explained(studio, project_id=PROJECT)
    [step] = told["path"]
    assert (step["source"], step["group"]) == ("group_grant", {"id": GROUP, "title": "Testers"})


async def test_who_is_no_member_of_the_group_hears_why(studio: Studio) -> None:
    await put_roles(studio, giving("moderator"))
    await put_group(studio, conditions=[{"domain": "studio.example"}])
    await grant(studio, "moderator")
    step = (await explained(studio, project_id=PROJECT))["missing"][0]
    assert (step["kind"], step["groups"]) == ("not_a_member", [{"id": GROUP, "title": "Testers"}])
    assert step["failed"] == [{"member": "domain", "wanted": "studio.example", "actual": ""}]


async def test_a_denial_names_the_nearest_missing_facts(studio: Studio) -> None:
    now = studio.service.clock.now()
    await put_roles(
        studio,
        giving("expired"),
        giving("tagged", condition=parse_condition({"tag": "staff"})),
        giving("full", user_limit=1),
        giving("gated", condition=parse_condition({"ip": "10.0.0.0/8"}), condition_mode=REQUIRE),
    )
    await staff(studio)
    await hold(studio, "1000000003", {ROOT: ["full"]})
    await hold(studio, VISITOR, {ROOT: [Assignment(role="expired", end=End(expired=now - 5)), "gated"]})
    told = await explained(studio)
    found = {one["kind"] + " " + one["role"]: one for one in told["missing"]}
    assert told["allowed"] is False
    assert found["role_expired expired"]["since"] == now - 5
    assert found["role_full full"]["limit"] == 1
    assert found["condition_failed tagged"]["failed"] == [{"member": "tag", "wanted": "staff", "actual": ""}]
    assert found["condition_failed gated"]["failed"][0]["actual"] == "127.0.0.1"
    assert told["sentences"][0].startswith("Denied: ")


async def test_a_hypothetical_address_is_believed(studio: Studio) -> None:
    await put_roles(studio, giving("office", condition=parse_condition({"ip": "10.0.0.0/8"})))
    assert (await explained(studio))["allowed"] is False
    assert (await explained(studio, ip="10.1.2.3"))["allowed"] is True
    ask = about(studio, rule="user.kick", ip="here")
    assert "data.ip" in await studio.refused(400, "explain", ask, studio.visitor.headers)


async def test_a_rule_outside_the_schema_is_marked(studio: Studio) -> None:
    await put_roles(studio, giving("moderator"))
    await hold_directly(studio, VISITOR, {ROOT: holding(public_data={"extra": {"rule": {"value": True}}})})
    told = await explained(studio, rule="extra.rule")
    assert (told["allowed"], told["in_schema"], told["rule"]) == (True, False, "public_data.extra.rule")


async def test_whom_a_condition_names_is_told_only_to_those_who_see_the_roles(studio: Studio) -> None:
    await put_roles(studio, giving("chosen", condition=parse_condition({"uid": [GUEST]})))
    own = await explained(studio)
    assert GUEST not in str(own)
    assert own["missing"][0]["failed"][0]["actual"] == VISITOR
    ask = about(studio, rule="user.kick", user_id=VISITOR)
    told = (await studio.ok("explain", ask, studio.owner.headers))["data"]
    assert told["missing"][0]["failed"][0]["wanted"] == GUEST


async def test_a_project_one_may_not_see_is_explained_as_if_there_were_none(studio: Studio) -> None:
    await put_roles(studio, giving("moderator"))
    other = {"application_id": studio.other.application_id, "data": {"rule": "x", "project_id": PROJECT}}
    hidden = (await studio.ok("explain", other, studio.visitor.headers))["data"]["missing"]
    assert [one["kind"] for one in hidden] == ["project_unknown"]
    seen = (await studio.ok("explain", other, studio.owner.headers))["data"]["missing"]
    assert seen == []


async def test_check_and_explain_agree(studio: Studio) -> None:
    await put_roles(studio, giving("moderator"), private_data={"user": {"kick": leaf(value=True), "ban": leaf()}})
    await hold(studio, VISITOR, {P: ["moderator"]})
    for rule in ("user.kick", "user.ban", "shown.name"):
        for place in ({}, {"project_id": PROJECT}, {"project_id": "nowhere"}):
            ask = {"rule": rule, **place}
            assert (await explained(studio, **ask))["allowed"] == (await checked(studio, ask))[0]
