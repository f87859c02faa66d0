"""Schemas of applications (interface §2.8, §4.10, R5, R6; checklist section 12)."""

import asyncio
import json
from typing import Any

import pytest

from gatehouse.audit.events import AuditEvent
from gatehouse.permissions.model.rules import RESERVED_SEGMENTS, ROOT, RuleSection, application_scope
from gatehouse.permissions.model.schema import LOGIN_DEFAULT, SECRET_DEFAULT
from tests.support.permission_builders import holdings_with
from tests.support.studio import (
    IN_PROJECT,
    PROJECT,
    Person,
    Studio,
    audit_records,
    create_administrator,
    create_person_with,
    holdings_with_rules,
    own_record,
    put_roles,
    role_granting,
    secret_document,
    set_user_roles,
)


def leaf(*, value: bool = False, protected: bool = False, description: str = "") -> dict[str, object]:
    return {"value": value, "protected": protected, "description": description}


def save_request(studio: Studio, **data: object) -> dict[str, object]:
    return {"action": "save", "application_id": studio.shop.application_id, "data": data}


def get_request(studio: Studio) -> dict[str, object]:
    return {"action": "get", "application_id": studio.shop.application_id}


async def save(studio: Studio, who: Person, **data: object) -> Any:
    return (await studio.expect_ok("meta/schema", save_request(studio, **data), who.headers))["data"]


async def get(studio: Studio, who: Person) -> Any:
    return (await studio.expect_ok("meta/schema", get_request(studio), who.headers))["data"]


async def expect_refusal(studio: Studio, status: int, **data: object) -> str:
    return await studio.expect_error(status, "meta/schema", save_request(studio, **data), studio.owner.headers)


async def test_sc_03_a_new_application_starts_with_the_defaults(studio: Studio) -> None:
    body = await studio.expect_ok(
        "application", {"action": "save", "data": {"name": "New", "project_id": PROJECT}}, studio.owner.headers
    )
    number = body["data"]["application_id"]
    ask = {"action": "get", "application_id": str(number)}
    schema = (await studio.expect_ok("meta/schema", ask, studio.owner.headers))["data"]
    assert schema == {
        "application_id": number,
        "login": {
            "can": {"value": True, "protected": False, "description": ""},
            "cannot": {"value": False, "protected": False, "description": ""},
        },
        "private_data": {},
        "public_data": {},
        "roles": {},
        "secret_data": {
            "application": {
                "canCreateJwt": {"value": False},
                "canModifySchema": {"value": False},
                "canRead": {"value": False},
                "canReadSchema": {"value": False},
                "canSave": {"value": False},
                "canSeeRoleList": {"value": False},
            },
            "meta": {
                "roles": {"canRead": {"value": "self"}, "canWrite": {"value": "none"}},
                "private": {"canRead": {"value": "self"}, "canWrite": {"value": "none"}},
                "public": {"canRead": {"value": "all"}, "canWrite": {"value": "none"}},
                "secret": {"canRead": {"value": "none"}, "canWrite": {"value": "none"}},
            },
        },
        "objects": {},
        "version": 1,
        "updated_at": studio.service.clock.now(),
    }
    assert (schema["login"], schema["secret_data"]) == (LOGIN_DEFAULT, SECRET_DEFAULT)


MAP_RULES = {"map": {"edit": leaf(), "view": leaf()}}
WORLD = {"title": "World", "parents": [], "rules": ["map.edit", "map.view"], "unknown": "deny"}
MAP = {"title": "Map", "parents": ["map", "world"], "rules": ["map.edit"], "unknown": "root"}


async def test_object_types_are_saved_whole_and_a_version_restores_them(studio: Studio) -> None:
    saved = await save(studio, studio.owner, private_data=MAP_RULES, objects={"world": WORLD, "map": MAP})
    assert saved["objects"] == {"map": MAP, "world": WORLD}
    short = await save(studio, studio.owner, objects={"world": {"rules": ["private_data.map.view"]}})
    assert short["objects"] == {"world": {"title": "", "parents": [], "rules": ["map.view"], "unknown": "deny"}}
    assert (await save(studio, studio.owner, private_data=MAP_RULES))["objects"] == short["objects"]
    assert (await save(studio, studio.owner, objects=None))["objects"] == {}
    past = {**get_request(studio), "options": {"version": saved["version"], "section": "objects"}}
    body = await studio.expect_ok("meta/schema", past, studio.owner.headers)
    assert body["data"]["objects"] == saved["objects"]


@pytest.mark.parametrize(
    ("objects", "error"),
    [
        ({"user": WORLD}, "data.objects.user: this name is reserved"),
        ({"a b": WORLD}, "data.objects.a b: must be 1 to 64 of A-Z a-z 0-9 _ -"),
        ({"map": {"rules": ["map.paint"]}}, "data.objects.map.rules: map.paint is not a rule of private_data"),
        ({"map": {"parents": ["world"]}}, "data.objects.map.parents: world is not an object type of this schema"),
        ({"map": {"unknown": "allow"}}, "data.objects.map.unknown: must be one of deny, root"),
        ({"map": {"rules": ["map.edit", "map.edit"]}}, "data.objects.map.rules[1]: map.edit is listed twice"),
        ({"map": {"owner": "me"}}, "data.objects.map.owner: unknown field"),
        ({f"t{number}": {} for number in range(51)}, "data.objects: at most 50 object types"),
    ],
)
async def test_ob_01_object_types_that_cannot_be_decided_by_are_refused(
    studio: Studio, objects: dict[str, object], error: str
) -> None:
    assert await expect_refusal(studio, 400, private_data=MAP_RULES, objects=objects) == error
    assert (await get(studio, studio.owner))["objects"] == {}


async def test_ob_01_rule_of_an_object_type_cannot_be_removed_from_the_schema(studio: Studio) -> None:
    await save(studio, studio.owner, private_data=MAP_RULES, objects={"world": WORLD})
    assert "map.edit is not a rule" in await expect_refusal(studio, 400, private_data={"map": {"view": leaf()}})


async def test_reading_needs_can_read_schema_and_saving_can_modify_schema(studio: Studio) -> None:
    shop = application_scope(PROJECT, studio.shop.application_id)
    for who, reads, writes in (
        (await create_person_with(studio, secret_data=secret_document("canReadSchema")), True, False),
        (await create_person_with(studio, secret_data=secret_document("canModifySchema")), False, True),
        (await create_person_with(studio, {shop: holdings_with("app_developer")}), True, True),
        (
            await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_manage_applications")}),
            False,
            False,
        ),
        (
            await create_person_with(studio, secret_data=secret_document("canRead", "canSave", "canSeeRoleList")),
            False,
            False,
        ),
        (await create_person_with(studio, {ROOT: holdings_with_rules("app.can_modify_schema")}), False, False),
        (studio.other_user, False, False),
        (await create_administrator(studio), True, True),
    ):
        for body, allowed in ((get_request(studio), reads), (save_request(studio), writes)):
            response = await studio.post("meta/schema", body, who.headers)
            assert response.status_code == (200 if allowed else 403), response.text


async def test_sections_that_are_given_are_replaced_absent_ones_stay_and_null_empties(studio: Studio) -> None:
    private = {"user": {"kick": leaf(description="Kick someone")}}
    saved = await save(studio, studio.owner, private_data=private, public_data={"badge": {"value": True}})
    assert saved["private_data"] == private
    assert saved["public_data"] == {"badge": leaf(value=True)}
    saved = await save(studio, studio.owner, public_data={"crown": leaf()})
    assert (saved["private_data"], saved["public_data"]) == (private, {"crown": leaf()})
    saved = await save(studio, studio.owner, private_data=None)
    assert (saved["private_data"], saved["public_data"]) == ({}, {"crown": leaf()})
    login = {"cannot": leaf(value=True)}
    saved = await save(studio, studio.owner, login=login)
    assert saved["login"] == {**LOGIN_DEFAULT, **login}
    assert (await save(studio, studio.owner, login=None))["login"] == LOGIN_DEFAULT
    assert await get(studio, studio.owner) == {**saved, "login": LOGIN_DEFAULT, "version": 6}
    assert await audit_records(studio, AuditEvent.SCHEMA_SAVED)


async def test_sc_01_secret_data_is_ignored_from_all_but_administrators(studio: Studio) -> None:
    wanted = {"application": {"canSave": {"value": True}}, "meta": {"secret": {"canWrite": {"value": "all"}}}}
    answer = await studio.expect_ok("meta/schema", save_request(studio, secret_data=wanted), studio.owner.headers)
    assert answer["data"]["secret_data"] == SECRET_DEFAULT
    assert any("secret_data" in warning for warning in answer["warnings"])
    assert (await get(studio, studio.owner))["secret_data"] == SECRET_DEFAULT
    boss = await create_administrator(studio)
    answer = await studio.expect_ok("meta/schema", save_request(studio, secret_data=wanted), boss.headers)
    assert "warnings" not in answer
    secret_data = answer["data"]["secret_data"]
    assert secret_data["application"]["canSave"] == {"value": True}
    assert secret_data["meta"]["secret"] == {"canRead": {"value": "none"}, "canWrite": {"value": "all"}}
    for bad in ({"application": {"canFly": {"value": True}}}, {"meta": {"roles": {"canRead": {"value": "some"}}}}, 5):
        body = save_request(studio, secret_data=bad)
        await studio.expect_error(400, "meta/schema", body, boss.headers)


async def test_sc_02_versions_count_saves_and_an_old_one_is_refused(studio: Studio) -> None:
    """Between nodes: tests/conformance/test_permission_races.py, save_schema."""
    bodies = [save_request(studio, public_data={f"r{n}": {"value": True}}, updated_at=5) for n in range(20)]
    responses = await asyncio.gather(*(studio.post("meta/schema", body, studio.owner.headers) for body in bodies))
    assert [response.status_code for response in responses] == [200] * 20
    assert sorted(response.json()["data"]["version"] for response in responses) == list(range(2, 22))
    assert {response.json()["data"]["updated_at"] for response in responses} == {studio.service.clock.now()}
    bodies = [save_request(studio, public_data={f"r{n}": {"value": True}}, version=21) for n in range(10)]
    responses = await asyncio.gather(*(studio.post("meta/schema", body, studio.owner.headers) for body in bodies))
    assert sorted(response.status_code for response in responses) == [200] + [409] * 9
    assert (await get(studio, studio.owner))["version"] == 22
    for strange in ("22", True, 1.5, None):
        await expect_refusal(studio, 400, version=strange)


async def test_sc_04_what_stands_outside_the_sections_is_ignored_with_a_warning(studio: Studio) -> None:
    body = save_request(studio, can_fly={"value": True}, user={"kick": {"value": True}}, application_id=1)
    answer = await studio.expect_ok("meta/schema", body, studio.owner.headers)
    assert [warning.split(":")[0] for warning in answer["warnings"]] == ["can_fly", "user"]
    stored = await get(studio, studio.owner)
    assert "can_fly" not in stored
    assert (stored["private_data"], stored["application_id"]) == ({}, studio.shop.application_id)


async def test_roles_in_a_schema_are_all_of_them(studio: Studio) -> None:
    kick = {"private_data": {"user": {"kick": {"value": True}}}}
    roles = {"Moderator": {"meta": kick, "description": "Kicks"}, "Helper": {}}
    saved = await save(studio, studio.owner, roles=roles)
    assert saved["roles"].keys() == roles.keys()
    assert saved["roles"]["Moderator"] == {
        "name": "Moderator",
        "description": "Kicks",
        "protected": False,
        "default": False,
        "condition": None,
        "condition_mode": "grant",
        "user_limit": 0,
        "params": "",
        "meta": kick,
        "version": 1,
    }
    second_save = await save(studio, studio.owner, public_data={})
    assert second_save["roles"] == saved["roles"]
    same = await save(studio, studio.owner, **second_save)
    assert same["roles"] == saved["roles"]
    fewer = await save(studio, studio.owner, roles={"Helper": saved["roles"]["Helper"]})
    assert fewer["roles"].keys() == {"Helper"}
    for bad in (
        {"Helper": {"name": "Else"}},
        {"Helper": {"colour": 1}},
        {"a/b": {}},
        {"Helper": {}, "helper": {}},
        {"Helper": 5},
        [],
        {"Helper": {"user_limit": -1}},
    ):
        await expect_refusal(studio, 400, roles=bad)
    assert (await save(studio, studio.owner, roles=None))["roles"] == {}


async def test_a_rule_that_public_roles_hold_is_not_made_protected(studio: Studio) -> None:
    kick = {"private_data": {"user": {"kick": {"value": True}}}}
    await save(studio, studio.owner, private_data={"user": {"kick": leaf()}}, roles={"Mod": {"meta": kick}})
    error = await expect_refusal(studio, 409, private_data={"user": {"kick": leaf(protected=True)}})
    assert "Mod" in error
    both = {"private_data": {"user": {"kick": leaf(protected=True)}}, "roles": {"Mod": {"protected": True}}}
    assert (await save(studio, studio.owner, **both))["roles"]["Mod"]["protected"] is True
    await expect_refusal(studio, 409, roles={"Mod": {"protected": False}})


async def test_sc_13_segments_are_plain_and_case_counts(studio: Studio) -> None:
    for private in (
        {"a.b": leaf(), "a": {"b": leaf()}},
        {"a.b": leaf()},
        {"caf\u00e9": leaf()},
        {"cafe\u0301": leaf()},
        {"": leaf()},
        {"s" * 65: leaf()},
        {"a b": leaf()},
        {"projectAccess": {"x": leaf()}},
        {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": leaf()}}}}}}}}},
    ):
        await expect_refusal(studio, 400, private_data=private)
    twins = {"Kick": leaf(), "kick": leaf(value=True), "s" * 64: leaf()}
    assert (await save(studio, studio.owner, private_data=twins))["private_data"] == twins
    await expect_refusal(studio, 400, public_data={"kick": leaf()})
    await expect_refusal(studio, 400, public_data={"kick": {"hard": leaf()}})


@pytest.mark.parametrize("name", sorted(RESERVED_SEGMENTS))
async def test_ro_22_no_rule_begins_with_a_reserved_name(studio: Studio, name: str) -> None:
    shop, owner = studio.shop.application_id, studio.owner
    for section, tree in ((one, tree) for one in RuleSection for tree in ({name: leaf()}, {name: {"x": leaf()}})):
        meta = {section.value: tree}
        refusals = [
            await expect_refusal(studio, 400, **meta),
            await expect_refusal(studio, 400, roles={"Mod": {"meta": meta}}),
        ]
        role = {"action": "save", "application_id": shop, "data": {"name": "Mod", "meta": meta}}
        refusals.append(await studio.expect_error(400, "roles", role, owner.headers))
        if (section, name) != (RuleSection.PRIVATE, "projectAccess"):  # there it is what people have in projects
            refusals.append(await refused_record(studio, **meta))
        refusals.append(await refused_record(studio, private_data={"projectAccess": {PROJECT: meta}}))
        assert all(f"{section}.{name}" in refusal for refusal in refusals), refusals
    for flat in (f"private_data.{name}.x", f"public_data.{name}"):
        permissions = [{"name": flat, "value": True}]
        role = {"action": "save", "application_id": shop, "data": {"name": "Mod", "permissions": permissions}}
        assert name in await studio.expect_error(400, "roles", role, owner.headers)


async def test_ro_22_a_stored_rule_with_a_reserved_name_works_until_it_is_changed(studio: Studio) -> None:
    shop, owner = studio.shop.application_id, studio.owner
    tree = {"secret_data": {"x": {"value": True}}}
    await put_roles(
        studio, role_granting("mod", meta={"private_data": tree}), private_data={"secret_data": {"x": leaf()}}
    )
    await set_user_roles(studio, studio.other_user.user_id, {ROOT: ["mod"]})
    listed = {"action": "get", "application_id": shop, "data": {"type": "list_short"}}
    assert (await studio.expect_ok("meta/data", listed, studio.other_user.headers))["data"] == ["secret_data.x"]
    request = {"action": "save", "application_id": shop, "data": {"name": "mod", "description": "New"}}
    assert (await studio.expect_ok("roles", request, owner.headers))["data"]["meta"] == {"private_data": tree}
    assert (await save(studio, owner, public_data={"shown": leaf()}))["private_data"] == {
        "secret_data": {"x": leaf()}
    }
    whole = {"action": "save", "application_id": shop, "data": {"name": "mod", "meta": {"private_data": tree}}}
    assert "secret_data" in await studio.expect_error(400, "roles", whole, owner.headers)
    assert (await studio.expect_ok("meta/data", listed, studio.other_user.headers))["data"] == ["secret_data.x"]


async def refused_record(studio: Studio, **data: object) -> str:
    body = save_request(studio, user_id=studio.other_user.user_id, **data)
    return await studio.expect_error(400, "meta/data", body, studio.owner.headers)


async def test_sc_14_types_are_strict(studio: Studio) -> None:
    for bad in (
        {"value": "true"},
        {"value": 1},
        {"value": None},
        {"value": True, "child": leaf()},
        {"value": True, "protected": "no"},
        {"value": True, "description": 5},
        {"value": True, "colour": 1},
        5,
        [],
        "x",
    ):
        for section in ("private_data", "public_data"):
            await expect_refusal(studio, 400, **{section: {"rule": bad}})
        await expect_refusal(studio, 400, login={"can": bad})
    for bad in (5, [], "x", False, 0, ""):
        for root in ("private_data", "public_data", "login", "roles"):
            await expect_refusal(studio, 400, **{root: bad})
    await expect_refusal(studio, 400, login={"may": leaf()})
    assert (await get(studio, studio.owner))["version"] == 1


async def test_save_needs_data(studio: Studio) -> None:
    body = {"action": "save", "application_id": studio.shop.application_id}
    assert "data" in await studio.expect_error(400, "meta/schema", body, studio.owner.headers)
    await studio.expect_error(
        400, "meta/schema", {"action": "delete", **get_request(studio), "x": 1}, studio.owner.headers
    )
    await studio.expect_error(400, "meta/schema", {**get_request(studio), "action": "delete"}, studio.owner.headers)


async def test_sc_16_a_large_schema_is_kept_whole_or_refused(studio: Studio) -> None:
    many = {f"rule-{n}": {"value": True} for n in range(3_000)}
    saved = await save(studio, studio.owner, public_data=many)
    assert saved["public_data"].keys() == many.keys()
    assert (await get(studio, studio.owner))["public_data"] == saved["public_data"]
    lengthy = {f"r{n}": {"value": True, "description": "d" * 1_000} for n in range(1_000)}
    saved = await save(studio, studio.owner, public_data=lengthy)
    assert (await get(studio, studio.owner))["public_data"] == saved["public_data"]
    headers = {**studio.owner.headers, "Content-Type": "application/json"}
    number = studio.shop.application_id
    for count, size in ((100_000, 1), (1_000, 10_000)):
        rules_of = {f"r{n}": {"value": True, "description": "d" * min(size, 1_024)} for n in range(count)}
        padding = {"padding": "x" * 60_000}
        document = {"action": "save", "application_id": number, "data": {"public_data": rules_of, **padding}}
        raw = json.dumps(document).encode() if size == 1 else json.dumps(document).encode() + b" " * 10_000_000
        response = await studio.service.client.post("/api/permissions/meta/schema", content=raw, headers=headers)
        assert response.status_code == 413, response.text[:200]
    assert (await get(studio, studio.owner))["public_data"] == saved["public_data"]


async def test_a_schema_can_be_kept_and_asked_for_again_by_its_etag(studio: Studio) -> None:
    first = await studio.post("meta/schema", get_request(studio), studio.owner.headers)
    assert first.headers["cache-control"] == "private, no-cache"
    again = {**studio.owner.headers, "If-None-Match": first.headers["etag"]}
    same = await studio.post("meta/schema", get_request(studio), again)
    assert (same.status_code, same.content) == (304, b"")
    await studio.expect_error(
        403, "meta/schema", get_request(studio), {**studio.other_user.headers, "If-None-Match": "*"}
    )
    await save(studio, studio.owner, public_data={"badge": leaf()})
    assert (await studio.post("meta/schema", get_request(studio), again)).status_code == 200


async def test_pa_13_an_unknown_application_is_no_different_from_a_foreign_one(studio: Studio) -> None:
    for path in ("meta/schema", "roles"):
        foreign, unknown = [
            await studio.post(path, {"action": "get", "application_id": number}, studio.other_user.headers)
            for number in (studio.other.application_id, 999_999)
        ]
        assert (foreign.status_code, foreign.content) == (unknown.status_code, unknown.content)
        assert foreign.status_code == 403
    boss = await create_administrator(studio)
    await studio.expect_error(404, "meta/schema", {"action": "get", "application_id": 999_999}, boss.headers)


async def test_which_application_has_to_be_said_unless_a_service_says_it(studio: Studio) -> None:
    boss = await create_administrator(studio)
    requests = [
        ("meta/schema", "get", {}),
        ("meta/schema", "save", {"data": {}}),
        ("meta/schema/versions", "get", {}),
        ("roles", "get", {}),
        ("roles", "get", {"data": {"name": "Moderator"}}),
        ("roles", "save", {"data": {"name": "Moderator"}}),
        ("roles", "delete", {"data": {"name": "Moderator"}}),
    ]
    for path, action, more in requests:
        for missing in ({}, {"application_id": None}):
            body = {"action": action, **missing, **more}
            for who in (boss, studio.other_user):
                assert "application_id" in await studio.expect_error(400, path, body, who.headers)
    beside = {"Authorization": f"Bearer {studio.owner.jwt}", "Service-Jwt": await studio.service_jwt()}
    reply = await studio.expect_ok("meta/schema", {"action": "get"}, beside)
    assert reply["data"]["application_id"] == studio.shop.application_id


async def test_the_rules_of_application_1_are_fixed(studio: Studio) -> None:
    boss = await create_administrator(studio)
    now = (await studio.expect_ok("meta/schema", {"action": "get", "application_id": 1}, boss.headers))["data"]
    for private in (
        {},
        {**now["private_data"], "mine": leaf()},
        {**now["private_data"], "can_administer": leaf(value=True, protected=True)},
        {**now["private_data"], "can_administer": leaf()},
    ):
        body = {"action": "save", "application_id": 1, "data": {"private_data": private}}
        await studio.expect_error(400, "meta/schema", body, boss.headers)
    words = {**now["private_data"], "can_administer": leaf(protected=True, description="All of it")}
    body = {"action": "save", "application_id": 1, "data": {"private_data": words}}
    await studio.expect_ok("meta/schema", body, boss.headers)


async def test_a_rule_that_leaves_the_schema_stays_where_it_is_held(studio: Studio) -> None:
    await save(studio, studio.owner, private_data={"user": {"kick": leaf()}})
    data = {"user_id": studio.other_user.user_id, "private_data": {"user": {"kick": {"value": True}}}}
    record = {"action": "save", "application_id": studio.shop.application_id, "data": data}
    await studio.expect_ok("meta/data", record, studio.owner.headers)
    await save(studio, studio.owner, private_data={})
    body = own_record(studio.shop, data={"type": "list_short"})
    assert (await studio.expect_ok("meta/data", body, studio.other_user.headers))["data"] == ["user.kick"]


# -- every endpoint -----------------------------------------------------------------------------------

ENDPOINTS = (
    *("application", "application/tags", "application/keys", "user/info", "user/tags", "user/purchases", "meta/data"),
    *("meta/schema", "roles", "publish", "project", "project/tags", "project/membership", "group", "group/access"),
    *("group/tags", "accessKey", "exchangeJwt"),
)
BROKEN = {
    "doubled": b'{"action":"get","action":"get"}',
    "doubled inside": b'{"action":"get","data":{"a":1,"a":2}}',
    "NaN": b'{"action":"get","data":{"version":NaN}}',
    "Infinity": b'{"action":"get","data":{"version":Infinity}}',
    "1e999": b'{"action":"get","data":{"version":1e999}}',
    "long integer": b'{"action":"get","data":{"version":' + b"9" * 5_000 + b"}}",
    "surrogate": b'{"action":"get","data":{"id":"\\ud800"}}',
    "NUL": b'{"action":"get","data":{"id":"a\\u0000"}}',
    "UTF-16": '{"action":"get"}'.encode("utf-16"),
    "BOM": b'\xef\xbb\xbf{"action":"get"}',
    "deep": b'{"action":"get","data":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001,
    "no object": b'["get"]',
    "cut": b'{"action":"get"',
    "nothing": b"",
}


async def test_sc_15_broken_json_is_refused_at_every_endpoint(studio: Studio) -> None:
    headers = {**studio.owner.headers, "Content-Type": "application/json"}
    for path in ENDPOINTS:
        for name, raw in BROKEN.items():
            if (path, name) == ("user/info", "nothing"):  # it needs none: the headers identify the caller
                continue
            response = await studio.service.client.post(f"/api/permissions/{path}", content=raw, headers=headers)
            assert (response.status_code, response.json()["status"]) == (400, "ERROR"), (path, name, response.text)


async def test_pa_10_other_methods_and_kinds_of_body_are_refused_at_every_endpoint(studio: Studio) -> None:
    client, headers = studio.service.client, studio.owner.headers
    for path in ENDPOINTS:
        address = f"/api/permissions/{path}"
        for method in ("GET", "PUT", "DELETE", "PATCH"):
            assert (await client.request(method, address, headers=headers)).status_code == 405, (method, path)
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1"):
            response = await client.post(address, content=b"{}", headers={**headers, "Content-Type": kind})
            assert (response.status_code, response.json()["status"]) == (415, "ERROR"), (path, kind)


async def test_pa_11_an_action_is_one_of_those_there_are(studio: Studio) -> None:
    number = studio.shop.application_id
    for path, body in (
        ("application", {"data": {"application_id": number}}),
        ("application/keys", {"application_id": number}),
        ("meta/data", {"application_id": number, "data": {}}),
        ("meta/schema", {"application_id": number, "data": {}}),
        ("roles", {"application_id": number, "data": {}}),
        ("project", {"data": {"id": PROJECT}}),
        ("project/membership", {"data": {"id": PROJECT}}),
        ("group", {"data": {"project_id": PROJECT}}),
        ("accessKey", {"application_id": number}),
    ):
        for action in ("GET", "get ", "", "drop", "__init__", ["get"], None, 1, True):
            await studio.expect_error(400, path, {**body, "action": action}, studio.owner.headers)
        await studio.expect_error(400, path, body, studio.owner.headers)
    for path in ("meta/data", "meta/schema", "project/membership"):
        body = {"action": "delete", "application_id": number, "data": {"id": PROJECT}}
        await studio.expect_error(400, path, body, studio.owner.headers)


async def test_read_only_fields_are_ignored_by_every_save(studio: Studio) -> None:
    boss, number = await create_administrator(studio), studio.shop.application_id
    group = {"action": "save", "data": {"project_id": PROJECT, "title": "Testers"}}
    group_id = (await studio.expect_ok("group", group, boss.headers))["data"]["id"]
    of_shop = {"action": "save", "application_id": number}
    saves = {
        "application": {"action": "save", "data": {"application_id": number, "name": "Shop"}},
        "project": {"action": "save", "data": {"id": PROJECT}},
        "roles": {**of_shop, "data": {"name": "Moderator"}},
        "meta/data": {**of_shop, "data": {"user_id": boss.user_id, "public_data": {}}},
        "group": {"action": "save", "group_id": group_id, "data": {"project_id": PROJECT, "title": "Testers"}},
        "group/access": {"group_id": group_id, "data": {"users": []}},
    }
    alien = {"tags": ["x"], "removed": True, "author": boss.user_id, "application_id": 1, "created": 5}
    for path, body in saves.items():
        before = (await studio.expect_ok(path, body, boss.headers))["data"]
        after = (await studio.expect_ok(path, {**body, "data": {**alien, **body["data"]}}, boss.headers))["data"]
        assert {**after, "version": 0} == {**before, "version": 0}, path
        strange = {**body, "data": {**body["data"], "colour": "red"}}
        assert "colour" in await studio.expect_error(400, path, strange, boss.headers)
