"""Objects of an application and decisions about them (interface §4.19, R12; checklist section 34)."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from gatehouse.permissions.model.rules import ROOT, application_scope
from tests.support.permission_builders import GROUP, holdings_with
from tests.support.studio import (
    OTHER_USER,
    PROJECT,
    Person,
    Studio,
    create_administrator,
    create_person_with,
    put_group,
    put_roles,
    question_body,
    role_granting,
    rule_leaf,
    set_user_roles,
)

pytestmark = pytest.mark.both_databases

TYPES = {
    "world": {"rules": ["map.view"]},
    "map": {"parents": ["map", "world"], "rules": ["map.edit", "map.view"]},
    "page": {"rules": ["map.view"], "unknown": "root"},
}
RULES = {"map": {"edit": rule_leaf(), "view": rule_leaf()}}


@pytest.fixture
async def studio(studio: Studio) -> Studio:
    """A studio whose shop has worlds and maps, and the roles editor and viewer."""
    await put_roles(
        studio,
        role_granting("editor", meta={"private_data": {"map": {"edit": {"value": True}, "view": {"value": True}}}}),
        role_granting("viewer", meta={"private_data": {"map": {"view": {"value": True}}}}),
    )
    await studio.expect_ok(
        "meta/schema",
        {
            "action": "save",
            "application_id": studio.shop.application_id,
            "data": {"private_data": RULES, "objects": TYPES},
        },
        studio.owner.headers,
    )
    return studio


async def ask(studio: Studio, path: str, action: str, who: Person | None = None, **data: object) -> Any:
    body = {"action": action, "application_id": studio.shop.application_id, "data": data}
    return (await studio.expect_ok(path, body, (who or studio.owner).headers))["data"]


async def expect(
    status: int, studio: Studio, path: str, action: str, who: Person | None = None, **data: object
) -> str:
    body = {"action": action, "application_id": studio.shop.application_id, "data": data}
    return await studio.expect_error(status, path, body, (who or studio.owner).headers)


def an_object(key: str, parent: str | None = None, **more: object) -> dict[str, object]:
    return {"object": key, "parent": parent, **more}


async def save(studio: Studio, *drafts: Mapping[str, object], who: Person | None = None) -> Any:
    return (await ask(studio, "object", "save", who, objects=list(drafts)))["objects"]


async def hold(studio: Studio, *drafts: Mapping[str, object], who: Person | None = None) -> Any:
    return await ask(studio, "object/holders", "save", who, holders=list(drafts))


async def check(studio: Studio, rule: str, *keys: str, **more: object) -> Any:
    body = question_body(studio, checks=[{"rule": rule, "object": key, **more} for key in keys])
    answer = await studio.expect_ok("check", body, studio.other_user.headers)
    return list(zip(answer["data"], answer["known"], strict=True))


YES, NO, UNKNOWN = (True, True), (False, True), (False, False)


async def test_what_is_held_on_an_object_counts_there_and_below(studio: Studio) -> None:
    saved = await save(studio, an_object("world:1", title="Old world"), an_object("map:1", "world:1"))
    assert saved[1] == {
        "object": "map:1",
        "type": "map",
        "id": "1",
        "title": "",
        "parent": "world:1",
        "project_id": None,
        "version": 1,
    }
    await save(studio, an_object("map:2"))
    assert await check(studio, "map.edit", "map:1", "map:2", "map:9") == [NO, NO, UNKNOWN]
    await hold(studio, {"object": "world:1", "user_id": OTHER_USER, "roles": ["editor"]})
    assert await check(studio, "map.edit", "map:1", "map:2") == [YES, NO]
    assert await check(studio, "map.edit", "world:1") == [NO]  # worlds have only map.view
    denial = {"map": {"edit": {"value": False}}}
    await hold(studio, {"object": "map:1", "user_id": OTHER_USER, "private_data": denial})
    assert await check(studio, "map.edit", "map:1") == [NO]
    assert await check(studio, "map.view", "map:1") == [YES]  # the map does not speak about it
    await hold(studio, {"object": "map:1", "user_id": OTHER_USER, "private_data": None})
    assert await check(studio, "map.edit", "map:1") == [YES]


async def test_group_of_the_project_holds_and_revokes_on_its_objects(studio: Studio) -> None:
    await put_group(studio, OTHER_USER)
    await save(studio, an_object("world:1", project_id=PROJECT), an_object("map:1", "world:1"))
    await hold(studio, {"object": "world:1", "group_id": GROUP, "roles": ["editor"]})
    assert await check(studio, "map.edit", "map:1") == [YES]
    assert await check(studio, "map.edit", "map:1", project_id=PROJECT) == [YES]
    await hold(
        studio,
        {"object": "world:1", "user_id": OTHER_USER, "roles": ["viewer"]},
        {"object": "world:1", "group_id": GROUP, "roles": None, "revoked": ["viewer", "editor"]},
    )
    assert await check(studio, "map.view", "map:1") == [NO]
    await expect(
        404,
        studio,
        "object/holders",
        "save",
        holders=[{"object": "world:1", "group_id": "0" * 24, "roles": ["editor"]}],
    )


async def test_object_at_the_root_asks_the_root_when_nothing_speaks(studio: Studio) -> None:
    await set_user_roles(studio, OTHER_USER, {ROOT: ("viewer",)})
    await save(studio, an_object("map:1"), an_object("map:2", project_id=PROJECT))
    assert await check(studio, "map.view", "map:1", "map:2") == [YES, NO]
    assert await check(studio, "map.view", "page:1", "map:3") == [(True, False), UNKNOWN]
    assert await check(studio, "map.view", "map:1", project_id=PROJECT) == [UNKNOWN]


async def test_ends_of_assignments_and_deleted_roles_count_at_once(studio: Studio) -> None:
    end = studio.service.clock.now() + 60
    await save(studio, an_object("map:1"), an_object("map:2"))
    await hold(
        studio,
        {"object": "map:1", "user_id": OTHER_USER, "roles": [{"name": "editor", "expired": end}]},
        {"object": "map:2", "user_id": OTHER_USER, "roles": ["editor"]},
    )
    body = question_body(studio, checks=[{"rule": "map.edit", "object": "map:1"}])
    answer = await studio.expect_ok("check", body, studio.other_user.headers)
    assert (answer["data"], answer["expired"]) == ([True], end)
    await studio.service.clock.advance(60)
    assert await check(studio, "map.edit", "map:1", "map:2") == [NO, YES]
    role = {"application_id": studio.shop.application_id, "data": {"name": "editor"}}
    await studio.expect_ok("roles", {"action": "delete", **role}, studio.owner.headers)
    assert await check(studio, "map.edit", "map:2") == [NO]
    again = {"name": "editor", "meta": {"private_data": {"map": {"edit": {"value": True}}}}}
    await studio.expect_ok("roles", {"action": "save", **role, "data": again}, studio.owner.headers)
    assert await check(studio, "map.edit", "map:2") == [NO]


async def test_move_takes_everything_below_along(studio: Studio) -> None:
    await save(
        studio,
        *(an_object("world:1"), an_object("world:2"), an_object("map:1", "world:1"), an_object("map:2", "map:1")),
    )
    await hold(
        studio,
        {"object": "world:2", "user_id": OTHER_USER, "roles": ["editor"]},
        {"object": "map:2", "user_id": OTHER_USER, "private_data": {"map": {"view": {"value": False}}}},
    )
    assert await check(studio, "map.edit", "map:1", "map:2") == [NO, NO]
    moved = await save(studio, an_object("map:1", "world:2"))
    assert (moved[0]["parent"], moved[0]["version"]) == ("world:2", 2)
    assert await check(studio, "map.edit", "map:1", "map:2") == [YES, YES]
    assert await check(studio, "map.view", "map:1", "map:2") == [YES, NO]
    listed = await ask(studio, "object", "list", parent="world:2")
    assert [each["object"] for each in listed["objects"]] == ["map:1", "map:2"]


async def test_ob_02_loops_foreign_parents_and_other_places_are_refused_whole(studio: Studio) -> None:
    await save(studio, an_object("world:1"), an_object("map:1", "world:1"), an_object("map:2", "map:1"))
    await save(studio, an_object("world:2", project_id=PROJECT))
    for status, draft in (
        (409, an_object("map:1", "map:2")),
        (409, an_object("map:1", "map:1")),
        (409, an_object("map:1", "world:2")),
        (409, {"object": "map:1", "project_id": PROJECT}),
        (409, an_object("world:1", "map:2")),
        (400, an_object("world:3", "map:2")),
        (400, an_object("city:1")),
        (400, an_object("map:a b")),
        (400, an_object("map:" + "x" * 129)),
        (404, an_object("map:1", "world:9")),
        (409, {"object": "map:1", "title": "x", "version": 7}),
    ):
        await expect(status, studio, "object", "save", objects=[an_object("map:new"), draft])
    await expect(400, studio, "object", "save", objects=[an_object(f"map:{number}") for number in range(1_001)])
    assert await check(studio, "map.view", "map:new") == [UNKNOWN]
    deep = [an_object("map:d0")] + [an_object(f"map:d{number}", f"map:d{number - 1}") for number in range(1, 9)]
    await expect(409, studio, "object", "save", objects=deep)
    await save(studio, *deep[:8])
    await expect(409, studio, "object", "save", objects=[an_object("map:d0", "world:1")])


async def test_delete_ends_what_is_held_and_takes_children_only_when_told(studio: Studio) -> None:
    await save(studio, an_object("world:1"), an_object("map:1", "world:1"))
    await hold(studio, {"object": "map:1", "user_id": OTHER_USER, "roles": ["editor"]})
    await expect(409, studio, "object", "delete", objects=[{"object": "world:1"}])
    gone = await ask(studio, "object", "delete", objects=[{"object": "world:1"}], recursive=True)
    assert gone == {"objects": 2, "holders": 1}
    assert await check(studio, "map.edit", "map:1") == [UNKNOWN]
    await save(studio, an_object("world:1"), an_object("map:1", "world:1"))
    assert await check(studio, "map.edit", "map:1") == [NO]


async def test_ob_03_each_change_takes_its_own_right(studio: Studio) -> None:
    await save(studio, an_object("world:1", project_id=PROJECT), an_object("world:2", project_id=PROJECT))
    shop = application_scope(PROJECT, studio.shop.application_id)
    manager = await create_person_with(studio, {shop: holdings_with("object_manager")})
    assigner = await create_person_with(studio, {shop: holdings_with("app_users_manager")})
    await save(studio, an_object("map:1", project_id=PROJECT), who=manager)
    holder = {"object": "map:1", "user_id": OTHER_USER, "roles": ["editor"]}
    await expect(403, studio, "object", "save", manager, objects=[an_object("map:2", "world:1")])
    await expect(403, studio, "object/holders", "save", manager, holders=[holder])
    await expect(403, studio, "object", "save", assigner, objects=[an_object("map:2", project_id=PROJECT)])
    await expect(403, studio, "object", "delete", assigner, objects=[{"object": "map:1"}])
    await hold(studio, holder, who=assigner)
    assert await check(studio, "map.edit", "map:1") == [YES]
    for path, data in (("object", {}), ("object/holders", {"object": "map:1"})):
        await expect(403, studio, path, "list", studio.other_user, **data)
        await ask(studio, path, "list", assigner, **data)


async def test_application_manages_its_objects_with_its_own_credentials(studio: Studio) -> None:
    number = studio.shop.application_id
    service = {"Service-Jwt": await studio.service_jwt()}
    key = {"Authorization": f"Bearer {await studio.access_key()}"}
    body = {"action": "save", "application_id": number, "data": {"objects": [an_object("map:1")]}}
    await studio.expect_ok("object", body, service)
    await studio.expect_error(403, "object", body, key)
    holders = {"holders": [{"object": "map:1", "user_id": OTHER_USER, "roles": ["editor"]}]}
    await studio.expect_ok("object/holders", {"action": "save", "data": holders}, service)
    listed = await studio.expect_ok("object/holders", {"action": "list", "data": {"object": "map:1"}}, key)
    assert listed["data"] == {"holders": [{"user_id": OTHER_USER, "roles": ["editor"]}], "after": None}
    other = {"Service-Jwt": await studio.service_jwt(studio.other)}
    await studio.expect_error(403, "object", body, other)


async def test_object_type_with_objects_cannot_be_deleted(studio: Studio) -> None:
    await save(studio, an_object("map:1"))
    body = {"action": "save", "application_id": studio.shop.application_id, "data": {"objects": {}}}
    error = await studio.expect_error(409, "meta/schema", body, studio.owner.headers)
    assert error == "The object type has objects. Delete them first."
    await ask(studio, "object", "delete", objects=[{"object": "map:1"}])
    await studio.expect_ok("meta/schema", body, studio.owner.headers)


async def test_explain_names_the_scope_that_decides(studio: Studio) -> None:
    await save(studio, an_object("world:1", project_id=PROJECT), an_object("map:1", "world:1"))
    await hold(studio, {"object": "world:1", "user_id": OTHER_USER, "roles": ["editor"]})
    body = question_body(studio, rule="map.edit", object="map:1")
    explained = (await studio.expect_ok("explain", body, studio.other_user.headers))["data"]
    assert (explained["allowed"], explained["sentences"]) == (True, ["Allowed by what is held on world:1."])
    assert explained["object"] == {
        "object": "map:1",
        "known": True,
        "scopes": [
            {"object": "map:1", "value": None, "path": []},
            {
                "object": "world:1",
                "value": True,
                "path": [{"source": "assigned_role", "scope": {}, "value": True, "role": "editor"}],
            },
        ],
    }
    body = question_body(studio, rule="map.edit", object="map:2")
    unknown = (await studio.expect_ok("explain", body, studio.other_user.headers))["data"]
    assert (unknown["allowed"], unknown["object"]["known"]) == (False, False)


async def test_list_of_allowed_objects_is_complete_in_the_order_of_paths(studio: Studio) -> None:
    await save(
        studio,
        *(an_object("world:b"), an_object("world:a"), an_object("map:a.b", "world:a"), an_object("map:a", "world:a")),
        *(an_object("map:a-b", "map:a"), an_object("map:z", project_id=PROJECT), an_object("map:0", "world:b")),
    )
    await hold(
        studio,
        *({"object": key, "user_id": OTHER_USER, "roles": ["editor"]} for key in ("world:a", "map:z", "map:0")),
        {"object": "map:a", "user_id": OTHER_USER, "private_data": {"map": {"edit": {"value": False}}}},
    )
    for limit in (1, 2, 100):
        assert await list_allowed(studio, "map.edit", "map", limit=limit) == ["map:a.b", "map:0", "map:z"]
        assert await list_allowed(studio, "map.view", "map", limit=limit) == [
            *("map:a", "map:a-b", "map:a.b", "map:0", "map:z")
        ]
    assert await list_allowed(studio, "map.view", "map", parent="world:a") == ["map:a", "map:a-b", "map:a.b"]
    assert await list_allowed(studio, "map.view", "map", project_id=PROJECT) == ["map:z"]
    assert await list_allowed(studio, "map.edit", "world") == []


async def list_allowed(studio: Studio, rule: str, kind: str, **more: object) -> list[str]:
    found: list[str] = []
    after = None
    while True:
        data = {"type": kind, "rule": rule, "after": after, **more}
        body = {"application_id": studio.shop.application_id, "data": data}
        page = (await studio.expect_ok("object/allowed", body, studio.other_user.headers))["data"]
        found += [each["object"] for each in page["objects"]]
        after = page["after"]
        if after is None:
            return found


async def test_ob_05_answers_about_others_and_cursors_of_others_are_refused(studio: Studio) -> None:
    await save(studio, an_object("map:1"), an_object("map:2"))
    await hold(studio, *({"object": key, "user_id": OTHER_USER, "roles": ["editor"]} for key in ("map:1", "map:2")))
    data = {"type": "map", "rule": "map.edit", "user_id": OTHER_USER, "limit": 1}
    body = {"application_id": studio.shop.application_id, "data": data}
    stranger = await create_person_with(studio)
    await studio.expect_error(403, "object/allowed", body, stranger.headers)
    page = (await studio.expect_ok("object/allowed", body, studio.owner.headers))["data"]
    key = {"Authorization": f"Bearer {await studio.access_key()}"}
    assert (await studio.expect_ok("object/allowed", body, key))["data"]["objects"] == page["objects"]
    other = {**body, "data": {**data, "rule": "map.view", "after": page["after"]}}
    await studio.expect_error(400, "object/allowed", other, studio.owner.headers)
    same = {**body, "data": {**data, "after": page["after"]}}
    await studio.expect_error(400, "object/allowed", same, studio.other_user.headers)
    last = (await studio.expect_ok("object/allowed", same, studio.owner.headers))["data"]
    assert [each["object"] for each in last["objects"]] == ["map:2"]


async def test_erased_people_and_deleted_groups_leave_nothing_on_objects(studio: Studio) -> None:
    await put_group(studio, OTHER_USER)
    await save(studio, an_object("map:1", project_id=PROJECT))
    await hold(
        studio,
        {"object": "map:1", "user_id": OTHER_USER, "roles": ["viewer"]},
        {"object": "map:1", "group_id": GROUP, "roles": ["editor"]},
    )
    await studio.expect_ok("group", {"action": "delete", "group_id": GROUP}, studio.owner.headers)
    assert await check(studio, "map.edit", "map:1") == [NO]
    administrator = await create_administrator(studio)
    await studio.expect_ok("user", {"action": "erase", "data": {"user_id": OTHER_USER}}, administrator.headers)
    assert (await ask(studio, "object/holders", "list", object="map:1"))["holders"] == []


async def test_ob_06_racing_moves_and_deletes_leave_one_tree(studio: Studio) -> None:
    for number in range(5):
        one, two, world = f"map:a{number}", f"map:b{number}", f"world:{number}"
        await save(studio, an_object(one), an_object(two), an_object(world))
        holder = {"object": two, "user_id": OTHER_USER, "roles": ["editor"]}
        statuses = await asyncio.gather(
            status_of(studio, "object", "save", objects=[an_object(one, two)]),
            status_of(studio, "object", "save", objects=[an_object(two, one)]),
            status_of(studio, "object/holders", "save", holders=[holder]),
            status_of(studio, "object", "delete", objects=[{"object": world}], recursive=True),
            status_of(studio, "object", "save", objects=[an_object(f"map:c{number}", world)]),
        )
        assert sorted(statuses[:2]) == [200, 409]
        assert (statuses[2], statuses[3]) == (200, 200)
        assert statuses[4] in {200, 404}
        listed = (await ask(studio, "object", "list", limit=1_000))["objects"]
        names = {each["object"] for each in listed}
        assert {each["parent"] for each in listed} <= names | {None}
        assert (await check(studio, "map.edit", two)) == [YES]  # what is held moved along


async def status_of(studio: Studio, path: str, action: str, **data: object) -> int:
    body = {"action": action, "application_id": studio.shop.application_id, "data": data}
    return (await studio.post(path, body, studio.owner.headers)).status_code


async def test_authzen_decides_about_objects_and_finds_them(studio: Studio) -> None:
    await save(studio, an_object("world:1"), an_object("map:1", "world:1"), an_object("map:2"))
    await hold(studio, {"object": "world:1", "user_id": OTHER_USER, "roles": ["editor"]})
    key = {"Authorization": f"Bearer {await studio.access_key()}"}
    common = {"subject": {"type": "user", "id": OTHER_USER}, "action": {"name": "map.edit"}}
    ids = ("1", "2", "3", "a b")
    body = {**common, "evaluations": [{"resource": {"type": "map", "id": each}} for each in ids]}
    answer = await studio.service.client.post("/access/v1/evaluations", json=body, headers=key)
    assert [each["decision"] for each in answer.json()["evaluations"]] == [True, False, False, False]
    body = {**common, "resource": {"type": "map", "id": "1"}}
    answer = await studio.service.client.post("/access/v1/evaluation", json=body, headers=key)
    assert answer.json() == {"decision": True}
    for path, named in (("subject", {"subject": {"type": "user"}}), ("action", {})):
        answer = await studio.service.client.post(f"/access/v1/search/{path}", json={**body, **named}, headers=key)
        assert answer.json()["results"] == []
    body = {**common, "resource": {"type": "map"}}
    found = (await studio.service.client.post("/access/v1/search/resource", json=body, headers=key)).json()
    assert found == {"page": {"next_token": ""}, "results": [{"type": "map", "id": "1"}]}


async def test_export_of_a_person_has_what_they_hold_on_objects(studio: Studio) -> None:
    await save(studio, an_object("map:1"))
    await hold(studio, {"object": "map:1", "user_id": OTHER_USER, "roles": ["editor"]})
    administrator = await create_administrator(studio)
    body = {"action": "export", "data": {"user_id": OTHER_USER}}
    exported = (await studio.expect_ok("user", body, administrator.headers))["data"]["export"]
    held = {"application_id": studio.shop.application_id, "object": "map:1", "held": "editor", "allowed": True}
    assert exported["objects"] == [{**held, "ends": ""}]
