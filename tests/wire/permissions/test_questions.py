"""check and explain (R5, R6)."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.explanation.failed_tests import MAX_USERS_SHOWN
from gatehouse.permissions.explanation.reasons import MAX_FAILED_TESTS
from gatehouse.permissions.model.facts import Assignment
from gatehouse.permissions.model.project import ProjectSettings
from gatehouse.permissions.model.rules import ROOT, End, application_scope
from tests.support.permission_builders import (
    GROUP,
    connect_application,
    create_application,
    holdings_with,
    set_fields,
    set_project_fields,
)
from tests.support.studio import (
    GUEST,
    IN_PROJECT,
    OTHER_USER,
    OWNER,
    PROJECT,
    REQUIRE,
    SPELLED_LIKE_NO_PROJECT,
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
    rule_leaf,
    secret_document,
    set_user_holdings,
    set_user_roles,
)

KICK = {"rule": "user.kick"}


async def check_rules(studio: Studio, *checks: Mapping[str, object], **more: object) -> Any:
    ask = question_body(studio, checks=list(checks), **more)
    return (await studio.expect_ok("check", ask, studio.other_user.headers))["data"]


async def explain(studio: Studio, **data: object) -> Any:
    ask = question_body(studio, **{"rule": "user.kick", **data})
    return (await studio.expect_ok("explain", ask, studio.other_user.headers))["data"]


async def explained_to_owner(studio: Studio, **data: object) -> Any:
    """The explanation about the other user, for a caller who may see everything there."""
    ask = question_body(studio, **{"rule": "user.kick", "user_id": OTHER_USER, **data})
    return (await studio.expect_ok("explain", ask, studio.owner.headers))["data"]


async def members(studio: Studio, **data: object) -> list[str]:
    ask = question_body(studio, **{"rule": "user.kick", **data})
    listed_members = (await studio.expect_ok("members", ask, studio.owner.headers))["data"]["members"]
    return [user["user_id"] for user in listed_members]


# -- check --------------------------------------------------------------------------------------------


async def test_answers_come_in_the_order_of_the_questions(studio: Studio) -> None:
    await put_roles(studio, role_granting("moderator"))
    on_shop = application_scope(PROJECT, studio.shop.application_id)
    await set_user_roles(studio, OTHER_USER, {ROOT: ["moderator"], P: ["moderator"]})
    resource = {"kind": on_shop.kind, "id": studio.shop.application_id}
    answers = await check_rules(
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
    await put_roles(studio, role_granting("moderator"))
    end = studio.service.clock.now() + 60
    await set_user_roles(studio, OTHER_USER, {ROOT: [Assignment(role="moderator", end=End(expired=end))]})
    ask = question_body(studio, checks=[KICK])
    response = await studio.post("check", ask, studio.other_user.headers)
    body = response.json()
    assert body == {"status": "OK", "data": [True], "user_id": OTHER_USER, "expired": end, "max_age": 2}
    again = {**studio.other_user.headers, "If-None-Match": response.headers["etag"]}
    assert (await studio.post("check", ask, again)).status_code == 304
    await studio.service.clock.advance(60)
    assert (await studio.post("check", ask, again)).json()["data"] == [False]


async def test_an_alias_of_a_project_is_as_good_as_its_id(studio: Studio) -> None:
    await put_roles(studio, role_granting("moderator"))
    await set_user_roles(studio, OTHER_USER, {P: ["moderator"]})
    renamed = {"action": "save", "data": {"id": PROJECT, "aliases": ["mg"]}}
    await studio.expect_ok("project", renamed, studio.owner.headers)
    assert await check_rules(studio, {**KICK, "project_id": "mg"}) == [True]
    assert (await explain(studio, project_id="mg"))["scope"] == {"project_id": PROJECT}


async def test_impossible_project_name_grants_nothing(studio: Studio) -> None:
    await put_roles(studio, role_granting("moderator"))
    await set_user_roles(studio, OTHER_USER, {ROOT: ["moderator"], P: ["moderator"]})
    resource = {"kind": "applications", "id": studio.shop.application_id}
    for name in SPELLED_LIKE_NO_PROJECT:
        there = {**KICK, "project_id": name}
        assert await check_rules(studio, there, {**there, "resource": resource}) == [False, False]
        explanation = await explain(studio, project_id=name)
        assert (explanation["allowed"], explanation["missing"][0]["kind"]) == (False, "project_unknown")
    assert len(explanation["scope"]["project_id"]) < len(name)  # long input is cut


async def test_project_rights_apply_only_to_resources_of_the_project(studio: Studio) -> None:
    """R5: on every resource of the project, known or not."""
    await put_roles(studio, role_granting("moderator"))
    await set_user_roles(studio, OTHER_USER, {P: ["moderator"]})
    shop, other = studio.shop.application_id, studio.other.application_id
    await put_group(studio)
    resources = [
        {"kind": "applications", "id": shop},
        {"kind": "applications", "id": other},
        {"kind": "applications", "id": 99},
        {"kind": "services", "id": other},
        {"kind": "groups", "id": GROUP},
        {"kind": "groups", "id": "0" * 24},
    ]
    checks = [{**KICK, "project_id": PROJECT, "resource": resource} for resource in resources]
    assert await check_rules(studio, *checks) == [True, False, False, False, True, False]
    for one, allowed in zip(resources, (True, False, False, False, True, False), strict=True):
        explanation = await explained_to_owner(studio, project_id=PROJECT, resource=one)
        kinds = [lack["kind"] for lack in explanation["missing"]]
        assert (explanation["allowed"], kinds[:1]) == (allowed, [] if allowed else ["resource_unknown"])
        user_ids = await members(studio, project_id=PROJECT, resource=one)
        assert user_ids == ([OTHER_USER] if allowed else [])


async def test_a_service_is_the_projects_while_it_may_be_connected(studio: Studio) -> None:
    admin, storage = await create_administrator(studio), studio.service.services.storage
    await put_roles(studio, role_granting("moderator"))
    await set_user_roles(studio, OTHER_USER, {P: ["moderator"]})
    other = studio.other.application_id
    await storage.projects.edit_project(PROJECT, connect_application(other))
    ask = {**KICK, "project_id": PROJECT, "resource": {"kind": "services", "id": other}}
    keeper = {"services": {str(other): {"roles": ["service_administrator"]}}}
    give = {"action": "save", "data": {"id": PROJECT, "users": {OTHER_USER: keeper}}}
    for named in ("", "Other", ""):
        await storage.applications.edit_application(other, set_fields(service_meta={"name": named}))
        assert await check_rules(studio, ask) == [bool(named)]
    await storage.applications.edit_application(other, set_fields(service_meta={"name": "Other"}))
    await studio.expect_ok("project/membership", give, studio.owner.headers)
    delete = {"action": "delete", "data": {"application_id": other}}
    await studio.expect_ok("application", delete, admin.headers)
    assert await check_rules(studio, ask) == [False]
    await studio.expect_error(400, "project/membership", give, studio.owner.headers)


async def test_an_application_is_the_projects_until_it_leaves(studio: Studio) -> None:
    admin = await create_administrator(studio)
    await put_roles(studio, role_granting("moderator"))
    await set_user_roles(studio, OTHER_USER, {P: ["moderator"]})
    response_body = await studio.expect_ok(
        "application", {"action": "save", "data": {"name": "Tools", "project_id": PROJECT}}, admin.headers
    )
    number = response_body["data"]["application_id"]
    ask = {**KICK, "project_id": PROJECT, "resource": {"kind": "applications", "id": number}}

    async def allowed_after(action: str, **fields: object) -> bool:
        body = {"action": action, "data": {"application_id": number, **fields}}
        await studio.expect_ok("application", body, admin.headers)
        return (await check_rules(studio, ask)) == [True]

    assert await allowed_after("get")
    assert not await allowed_after("save", project_id=None)
    assert await allowed_after("save", project_id=PROJECT)
    assert not await allowed_after("delete")


async def test_a_check_sees_no_address(studio: Studio) -> None:
    await put_roles(studio, role_granting("local", condition=parse_condition({"ip": "127.0.0.0/8"})))
    assert await check_rules(studio, KICK) == [False]


async def test_about_others_only_anyone_who_may_read_all_of_them(studio: Studio) -> None:
    await put_roles(studio, role_granting("moderator"))
    await set_user_roles(studio, OTHER_USER, {ROOT: ["moderator"]})
    for path, data in (("check", {"checks": [KICK]}), ("explain", KICK)):
        ask = question_body(studio, user_id=OTHER_USER, **data)
        assert (await studio.expect_ok(path, ask, studio.owner.headers))["user_id"] == OTHER_USER
        no_one = question_body(studio, user_id="1999999999", **data)
        assert await studio.expect_error(404, path, no_one, studio.owner.headers) == "user not found"
        for user_id in (OWNER, "1999999999"):
            await studio.expect_error(
                403, path, question_body(studio, user_id=user_id, **data), studio.other_user.headers
            )


async def test_a_service_account_asks_about_anyone_in_its_project(studio: Studio) -> None:
    await put_roles(studio, role_granting("moderator"))
    await set_user_roles(studio, OTHER_USER, {ROOT: ["moderator"]})
    make = {"action": "save", "data": {"project_id": PROJECT, "name": "ci"}}
    jwt = (await studio.expect_ok("serviceAccount", make, studio.owner.headers))["data"]["jwt"]
    bearer = {"Authorization": f"Bearer {jwt}"}
    ask = question_body(studio, user_id=OTHER_USER, checks=[KICK])
    assert (await studio.expect_ok("check", ask, bearer))["data"] == [True]
    await studio.expect_error(403, "check", {**ask, "application_id": studio.other.application_id}, bearer)


async def test_a_thousand_questions_are_answered_in_their_order(studio: Studio) -> None:
    await put_roles(studio, role_granting("moderator"))
    await set_user_roles(studio, OTHER_USER, {P: ["moderator"]})
    elsewhere = {**KICK, "project_id": "no_such"}
    ask = question_body(studio, checks=[{**KICK, "project_id": PROJECT}, elsewhere] * 500)
    answer = await studio.expect_ok("check", ask, studio.other_user.headers)
    assert answer["data"] == [True, False] * 500


async def test_a_service_jwt_or_key_asks_about_its_own_application_only(studio: Studio) -> None:
    await put_roles(studio, role_granting("moderator"))
    await set_user_roles(studio, OTHER_USER, {ROOT: ["moderator"]})
    service = {"Authorization": f"Bearer {studio.other_user.jwt}", "Service-Jwt": await studio.service_jwt()}
    ask = {"data": {"checks": [KICK]}}
    assert (await studio.expect_ok("check", ask, service))["data"] == [True]
    await studio.expect_error(403, "check", {**ask, "application_id": studio.other.application_id}, service)
    key = {"Authorization": f"Bearer {await studio.access_key()}"}
    assert (await studio.expect_ok("check", {**ask, "jwt": studio.other_user.jwt}, key))["data"] == [True]
    await studio.expect_error(401, "check", ask, key)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({"checks": []}, "data.checks"),
        ({"checks": [KICK] * 1_001}, "data.checks"),
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
    assert place in await studio.expect_error(400, "check", question_body(studio, **data), studio.other_user.headers)


async def test_an_unknown_application_is_not_found(studio: Studio) -> None:
    ask = {"application_id": 77, "data": {"checks": [KICK]}}
    await studio.expect_error(404, "check", ask, studio.other_user.headers)
    await studio.expect_error(400, "check", {"data": {"checks": [KICK]}}, studio.other_user.headers)


# -- explain ------------------------------------------------------------------------------------------


async def test_explanation_of_an_allowed_rule_names_the_deciding_source(studio: Studio) -> None:
    await put_roles(studio, role_granting("moderator"))
    await set_user_roles(studio, OTHER_USER, {ROOT: ["moderator"]})
    explanation = await explain(studio)
    assert (explanation["allowed"], explanation["rule"], explanation["in_schema"], explanation["missing"]) == (
        True,
        "private_data.user.kick",
        True,
        [],
    )
    assert explanation["path"] == [{"source": "assigned_role", "scope": {}, "value": True, "role": "moderator"}]
    assert [resource["source"] for resource in explanation["overridden"]] == ["schema_default"]
    assert explanation["sentences"][0] == "Allowed: private_data.user.kick at the root."


async def test_project_entry_overrides_a_denial_on_the_resource(studio: Studio) -> None:
    await put_roles(studio, role_granting("moderator"))
    on_shop = application_scope(PROJECT, studio.shop.application_id)
    yes, no = ({"user": {"kick": {"value": value}}} for value in (True, False))
    await set_user_holdings(
        studio, OTHER_USER, {P: holdings_with(private_data=yes), on_shop: holdings_with(private_data=no)}
    )
    explanation = await explain(
        studio, project_id=PROJECT, resource={"kind": "applications", "id": studio.shop.application_id}
    )
    [decides], [outvoted] = explanation["path"], explanation["overridden"]
    assert (explanation["allowed"], decides["value"], decides["scope"]) == (True, True, {"project_id": PROJECT})
    assert (outvoted["value"], outvoted["scope"]["kind"]) == (False, "applications")
    assert [sentence.endswith("says yes, which decides.") for sentence in explanation["sentences"]] == [
        False,
        True,
        False,
    ]


async def test_a_grant_through_a_group_names_the_group(studio: Studio) -> None:
    await put_roles(studio, role_granting("moderator"))
    await put_group(studio, OTHER_USER)
    await grant_roles_to_group(studio, "moderator")
    [step] = (await explained_to_owner(studio, project_id=PROJECT))["path"]
    assert (step["source"], step["group"]) == ("group_grant", {"id": GROUP, "title": "Testers"})


async def test_why_someone_is_no_member_of_a_group_is_told(studio: Studio) -> None:
    await put_roles(studio, role_granting("moderator"))
    await put_group(studio, conditions=[{"domain": "studio.example"}])
    await grant_roles_to_group(studio, "moderator")
    step = (await explained_to_owner(studio, project_id=PROJECT))["missing"][0]
    assert (step["kind"], step["groups"]) == ("not_a_member", [{"id": GROUP, "title": "Testers"}])
    assert step["failed"] == [{"member": "domain", "wanted": "studio.example", "actual": ""}]


async def test_a_denial_names_the_nearest_missing_facts(studio: Studio) -> None:
    now = studio.service.clock.now()
    await put_roles(
        studio,
        role_granting("expired"),
        role_granting("tagged", condition=parse_condition({"tag": "staff"})),
        role_granting("full", user_limit=1),
        role_granting("gated", condition=parse_condition({"ip": "10.0.0.0/8"}), condition_mode=REQUIRE),
    )
    await create_staff(studio)
    await set_user_roles(studio, "1000000003", {ROOT: ["full"]})
    await set_user_roles(studio, OTHER_USER, {ROOT: [Assignment(role="expired", end=End(expired=now - 5)), "gated"]})
    explanation = await explained_to_owner(studio, ip="127.0.0.1")
    missing_facts = {resource["kind"] + " " + resource["role"]: resource for resource in explanation["missing"]}
    assert explanation["allowed"] is False
    assert missing_facts["role_expired expired"]["since"] == now - 5
    assert missing_facts["role_full full"]["limit"] == 1
    assert missing_facts["condition_failed tagged"]["failed"] == [{"member": "tag", "wanted": "staff", "actual": ""}]
    assert missing_facts["condition_failed gated"]["failed"][0]["actual"] == "127.0.0.1"
    assert explanation["sentences"][0].startswith("Denied: ")


async def test_a_hypothetical_address_is_believed(studio: Studio) -> None:
    await put_roles(studio, role_granting("office", condition=parse_condition({"ip": "10.0.0.0/8"})))
    assert (await explain(studio))["allowed"] is False
    assert (await explain(studio, ip="10.1.2.3"))["allowed"] is True
    ask = question_body(studio, rule="user.kick", ip="here")
    assert "data.ip" in await studio.expect_error(400, "explain", ask, studio.other_user.headers)


async def test_a_rule_outside_the_schema_is_marked(studio: Studio) -> None:
    await put_roles(studio, role_granting("moderator"))
    await set_user_holdings(
        studio, OTHER_USER, {ROOT: holdings_with(public_data={"extra": {"rule": {"value": True}}})}
    )
    explanation = await explain(studio, rule="extra.rule")
    assert (explanation["allowed"], explanation["in_schema"], explanation["rule"]) == (
        True,
        False,
        "public_data.extra.rule",
    )


async def test_whom_a_condition_names_is_told_only_to_those_who_read_the_schema(studio: Studio) -> None:
    await put_roles(studio, role_granting("chosen", condition=parse_condition({"uid": [GUEST]})))
    assert GUEST not in str(await explain(studio))
    [step, _] = (await explained_to_owner(studio))["missing"]
    assert step["failed"] == [{"member": "uid", "wanted": GUEST, "actual": OTHER_USER}]


async def test_a_project_one_may_not_see_is_explained_as_if_there_were_none(studio: Studio) -> None:
    await put_roles(studio, role_granting("moderator"))
    other = {"application_id": studio.other.application_id, "data": {"rule": "x", "project_id": PROJECT}}
    hidden = (await studio.expect_ok("explain", other, studio.other_user.headers))["data"]["missing"]
    assert [resource["kind"] for resource in hidden] == ["project_unknown"]
    seen = (await studio.expect_ok("explain", other, studio.owner.headers))["data"]["missing"]
    assert [resource["kind"] for resource in seen] == ["not_given"]


async def test_check_and_explain_agree(studio: Studio) -> None:
    await put_roles(
        studio, role_granting("moderator"), private_data={"user": {"kick": rule_leaf(value=True), "ban": rule_leaf()}}
    )
    await set_user_roles(studio, OTHER_USER, {P: ["moderator"]})
    for rule in ("user.kick", "user.ban", "shown.name"):
        for place in ({}, {"project_id": PROJECT}, {"project_id": "nowhere"}):
            ask = {"rule": rule, **place}
            assert (await explain(studio, **ask))["allowed"] == (await check_rules(studio, ask))[0]


SECRETS = ("hidden", "vip_secret", "10.9.8.0", "partner.example", "owner.example", "Testers", GROUP)


async def a_guarded_project(studio: Studio) -> None:
    """A role with a condition, assigned to a group with a condition, in a project for certain domains."""
    condition = parse_condition({"and": [{"ip": "10.9.8.0/24"}, {"tag": "vip_secret"}]})
    await put_roles(studio, role_granting("hidden", condition=condition))
    await put_group(studio, conditions=[{"domain": "partner.example"}])
    await grant_roles_to_group(studio, "hidden")
    settings = (await studio.expect_ok("project", {"action": "get", "data": {"id": PROJECT}}, studio.owner.headers))[
        "data"
    ]
    change = {
        "id": PROJECT,
        "aliases": ["codename"],
        "settings": {**settings["settings"], "allowed_domains": ["owner.example"]},
    }
    await studio.expect_ok("project", {"action": "save", "data": change}, studio.owner.headers)


async def explain_as(studio: Studio, who: Person, application_id: int | None = None, **data: object) -> Any:
    ask = question_body(studio, **{"rule": "user.kick", **data})
    ask["application_id"] = application_id or studio.shop.application_id
    return (await studio.expect_ok("explain", ask, who.headers))["data"]


async def test_a_stranger_cannot_tell_a_project_from_one_that_is_not_there(studio: Studio) -> None:
    await a_guarded_project(studio)
    await explained_to_owner(studio, project_id=PROJECT)  # by now everything is cached
    central = {"rule": "project.can_view_project"}
    for application_id, scope in ((studio.shop.application_id, {}), (studio.other.application_id, {}), (1, central)):
        explanations = [
            str(await explain_as(studio, studio.other_user, application_id, project_id=name, **scope)).replace(
                name, "?"
            )
            for name in (PROJECT, "codename", "nosuch")
        ]
        assert explanations[0] == explanations[1] == explanations[2]
        assert "project_unknown" in explanations[0]
    on_group = {"project_id": PROJECT, "resource": {"kind": "groups", "id": GROUP}}
    explanation = await explain_as(studio, studio.other_user, **on_group)
    assert [resource["kind"] for resource in explanation["missing"]] == ["project_unknown"]


async def test_person_without_project_access_cannot_probe_its_resources(studio: Studio) -> None:
    """They develop one of its applications, and get the same response for existing and missing resources."""
    storage = studio.service.services.storage
    resource = await create_application(storage, name="Tools", project_id=PROJECT)
    on_shop = application_scope(PROJECT, studio.shop.application_id)
    developer = await create_person_with(studio, {on_shop: holdings_with("app_developer")})
    await put_group(studio)

    async def explain_resource(kind: str, resource_id: object) -> Any:
        question = {
            "rule": "group.can_manage_group",
            "project_id": PROJECT,
            "resource": {"kind": kind, "id": resource_id},
        }
        ask = {"application_id": 1, "data": question}
        answer = (await studio.expect_ok("explain", ask, developer.headers))["data"]
        return re.sub(rf"\b{resource_id}\b", "it", json.dumps({**answer, "scope": None}))

    await studio.expect_error(403, "project", {"action": "get", "data": {"id": PROJECT}}, developer.headers)
    for closed in (False, True):
        if closed:
            shut = ProjectSettings(allowed_domains=("nowhere.example",))
            await storage.projects.edit_project(PROJECT, set_project_fields(settings=shut))
        there, elsewhere = resource.application_id, studio.other.application_id
        assert await explain_resource("applications", there) == await explain_resource("applications", elsewhere)
        assert await explain_resource("applications", there) == await explain_resource("applications", 99)
        assert await explain_resource("groups", GROUP) == await explain_resource("groups", "0" * 24)


async def test_a_stranger_hears_of_no_role_group_or_condition(studio: Studio) -> None:
    await a_guarded_project(studio)
    at_root = await explain(studio)
    assert [resource["kind"] for resource in at_root["missing"]] == ["not_given"]
    assert at_root["sentences"][1:] == [
        "The default in the schema says no, which decides.",
        "No role or entry grants it at the root.",
    ]
    unknown = await explain(studio, rule="no.such.rule")
    assert unknown["missing"] == at_root["missing"]
    explanation = str([at_root, await explain(studio, project_id=PROJECT)])
    assert not [secret for secret in SECRETS if secret in explanation]


async def test_project_member_learns_that_a_project_is_closed_but_not_why(studio: Studio) -> None:
    await a_guarded_project(studio)
    await set_user_roles(studio, OTHER_USER, {P: ["hidden"]})
    explanation = await explain(studio, project_id="codename")
    assert explanation["scope"] == {"project_id": PROJECT}
    assert [resource["kind"] for resource in explanation["missing"]] == ["project_closed", "not_given"]
    assert not [secret for secret in SECRETS[1:] if secret in str(explanation)]


async def test_each_right_opens_what_it_would_show_anyway(studio: Studio) -> None:
    await a_guarded_project(studio)
    view = {IN_PROJECT: holdings_with_rules("project.can_view_project")}
    names = await create_person_with(studio, secret_data=secret_document("canSeeRoleList"))
    reader = await create_person_with(studio, secret_data=secret_document("canReadSchema"))
    viewer = await create_person_with(studio, view)
    explanations = {who.user_id: str(await explain_as(studio, who)) for who in (names, reader, viewer)}
    assert [secret for secret in SECRETS if secret in explanations[names.user_id]] == ["hidden"]
    assert [secret for secret in SECRETS if secret in explanations[reader.user_id]] == [
        "hidden",
        "vip_secret",
        "10.9.8.0",
    ]
    assert not [secret for secret in SECRETS if secret in explanations[viewer.user_id]]
    seen = str(await explain_as(studio, studio.owner, project_id=PROJECT))
    assert [secret for secret in SECRETS if secret not in seen] == ["vip_secret", "10.9.8.0", "owner.example"]
    boss = str(await explain_as(studio, await create_administrator(studio), project_id=PROJECT))
    assert [secret for secret in SECRETS if secret not in boss] == ["vip_secret", "10.9.8.0"]


async def test_a_right_in_a_project_that_lets_no_one_in_opens_nothing(studio: Studio) -> None:
    await a_guarded_project(studio)
    viewer = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_view_project")})
    explanation = await explain_as(studio, viewer, project_id=PROJECT)
    assert [resource["kind"] for resource in explanation["missing"]] == ["project_closed", "not_given"]
    assert not [secret for secret in SECRETS if secret in str(explanation)]


async def test_a_long_list_of_users_is_not_told_whole(studio: Studio) -> None:
    many = [str(2_000_000_000 + number) for number in range(500)]
    await put_roles(
        studio,
        role_granting("chosen", condition=parse_condition({"uid": many})),
        role_granting(
            "tagged", condition=parse_condition({"or": [{"tag": f"tag{number}"} for number in range(200)]})
        ),
    )
    missing_roles = {
        resource["role"]: resource for resource in reversed((await explained_to_owner(studio))["missing"])
    }
    assert missing_roles["chosen"]["failed"][0]["wanted"].endswith(f"and {500 - MAX_USERS_SHOWN} more")
    assert len(missing_roles["tagged"]["failed"]) == MAX_FAILED_TESTS


async def test_the_end_of_a_list_is_the_end_of_something_that_is_in_it(studio: Studio) -> None:
    now = studio.service.clock.now()
    await put_roles(studio, role_granting("moderator"), role_granting("quiet", meta={}))
    ending = {"value": True, "expired": now + 100}
    root = holdings_with(
        Assignment(role="quiet", end=End(expired=now + 50)),
        Assignment(role="moderator", end=End(expired=now + 300)),
        public_data={"shown": {"name": {**ending, "expired": now + 200}}},
        private_data={"user": {"ban": ending}},
    )
    below = holdings_with(private_data={"user": {"ban": {**ending, "expired": now + 10}}})
    await set_user_holdings(studio, OTHER_USER, {ROOT: root, P: below})
    ask = {"action": "get", "application_id": studio.shop.application_id}

    async def seconds_until_expiry(kind: str, **reads: tuple[str, str]) -> int:
        reader = await create_person_with(studio, secret_data=secret_document(**reads))
        body = {**ask, "data": {"user_id": OTHER_USER, "type": kind}}
        expired = (await studio.expect_ok("meta/data", body, reader.headers))["expired"]
        return int(expired) - now if expired else 0

    everyone = ("all", "none")
    assert await seconds_until_expiry("list", public=everyone) == 200
    assert await seconds_until_expiry("list", private=everyone) == 10
    assert await seconds_until_expiry("roles", roles=everyone) == 50
    assert await seconds_until_expiry("tree", public=everyone) == 200
    assert await seconds_until_expiry("tree", roles=everyone) == 50
    assert await seconds_until_expiry("tree", secret=everyone, public=("none", "none")) == 0
    assert await seconds_until_expiry("list", roles=everyone, public=everyone, private=everyone) == 10
