"""Roles (interface §2.7, §3, §4.9, R5, R6; checklist section 11)."""

import asyncio
from typing import Any

import pytest

from gatehouse.audit.events import AuditEvent
from gatehouse.permissions.model.rules import ROOT, application_scope
from tests.support.builders import a_record
from tests.support.permission_builders import (
    GROUP,
    a_group,
    a_project,
    create_application,
    holdings_with,
    publish,
)
from tests.support.studio import (
    IN_PROJECT,
    PROJECT,
    Person,
    Studio,
    audit_records,
    bearer_headers,
    create_administrator,
    create_person_with,
    holdings_with_rules,
    own_record,
    secret_document,
    signed_request,
    write_user_record,
)

KICK = {"private_data": {"user": {"kick": {"value": True}}}}
BAN = {"private_data": {"user": {"ban": {"value": True}}}}
SCHEMA = {
    "private_data": {
        "user": {"kick": {"value": False}, "ban": {"value": False, "protected": True, "description": "For ever"}}
    },
    "public_data": {"badge": {"value": False}},
}
MANAGES = "project.can_manage_applications"


def role_request(studio: Studio, action: str, **data: object) -> dict[str, object]:
    return {"action": action, "application_id": studio.shop.application_id, "data": data}


async def save(studio: Studio, who: Person, **data: object) -> Any:
    return (await studio.expect_ok("roles", role_request(studio, "save", **data), who.headers))["data"]


async def get(studio: Studio, who: Person, **data: object) -> Any:
    return (await studio.expect_ok("roles", role_request(studio, "get", **data), who.headers))["data"]


async def expect_refusal(studio: Studio, status: int, **data: object) -> str:
    """The error that the owner gets for this save of a role."""
    return await studio.expect_error(status, "roles", role_request(studio, "save", **data), studio.owner.headers)


async def with_schema(studio: Studio) -> None:
    await studio.expect_ok("meta/schema", role_request(studio, "save", **SCHEMA), studio.owner.headers)


async def assign(studio: Studio, who: Person, *roles: object, status: int = 200, project: bool = False) -> Any:
    """Assign exactly these roles to a person, at the root or in the project; return the response."""
    access = {"private_data": {"projectAccess": {PROJECT: {"roles": roles}}}}
    data = {"user_id": who.user_id, **(access if project else {"roles": roles})}
    response = await studio.post("meta/data", role_request(studio, "save", **data), studio.owner.headers)
    assert response.status_code == status, response.text
    return response.json()


async def read_held(studio: Studio, who: Person, kind: str = "list_short", **options: object) -> Any:
    body = own_record(studio.shop, data={"type": kind}, options=options)
    return (await studio.expect_ok("meta/data", body, who.headers))["data"]


# -- reading and saving -------------------------------------------------------------------------------


async def test_a_role_is_made_read_changed_and_deleted(studio: Studio) -> None:
    condition = {"or": [{"tag": "staff"}, {"domain": "studio.example"}]}
    created = await save(studio, studio.owner, name="Moderator", meta=KICK, condition=condition, params="a,b")
    assert created == {
        "name": "Moderator",
        "description": "",
        "protected": False,
        "default": False,
        "condition": condition,
        "condition_mode": "grant",
        "user_limit": 0,
        "params": "a,b",
        "meta": KICK,
        "users_count": 0,
        "version": 1,
    }
    assert await get(studio, studio.owner) == [created]
    assert await get(studio, studio.owner, name="MODERATOR") == created
    changed = await save(studio, studio.owner, name="moderator", description="Kicks", condition_mode="require")
    assert changed == {**created, "description": "Kicks", "condition_mode": "require", "version": 2}
    cleared = await save(
        *(studio, studio.owner),
        **dict.fromkeys(("description", "condition", "condition_mode", "params", "meta", "user_limit")),
        name="Moderator",
    )
    assert cleared == {**created, "condition": None, "params": "", "meta": {}, "version": 3}
    body = await studio.expect_ok("roles", role_request(studio, "delete", name="moderator"), studio.owner.headers)
    assert body == {"status": "OK"}
    assert await get(studio, studio.owner) == []
    await studio.expect_error(404, "roles", role_request(studio, "get", name="moderator"), studio.owner.headers)
    await studio.expect_error(404, "roles", role_request(studio, "delete", name="moderator"), studio.owner.headers)


async def test_meta_can_be_a_flat_list(studio: Studio) -> None:
    flat = [{"name": "user.kick", "value": True}, {"name": "public_data.badge", "value": True, "params": "gold"}]
    created = await save(studio, studio.owner, name="Moderator", permissions=flat)
    assert created["meta"] == {**KICK, "public_data": {"badge": {"value": True, "params": "gold"}}}
    again = await save(studio, studio.owner, name="Moderator", meta={"permissions": flat})
    assert again["meta"] == created["meta"]


async def test_role_names_and_unknown_fields(studio: Studio) -> None:
    for name in ("a/b", "a.b", "", " a", "a  b", "n" * 65, "caf\u00e9", "a\n", 5, None):
        await expect_refusal(studio, 400, name=name)
    assert "name" in await expect_refusal(studio, 400, description="x")
    assert "colour" in await expect_refusal(studio, 400, name="x", colour="red")
    assert "condition_mode" in await expect_refusal(studio, 400, name="x", condition_mode="deny")
    await save(studio, studio.owner, name="n" * 64)
    created = await save(studio, studio.owner, name="A role-of_9", users_count=7, application_id=1)
    assert (created["name"], created["users_count"]) == ("A role-of_9", 0)


async def test_a_save_of_an_old_version_is_refused_and_bumps_the_schema_otherwise(studio: Studio) -> None:
    ask = {"action": "get", "application_id": studio.shop.application_id}
    await save(studio, studio.owner, name="Moderator", version=0)
    await expect_refusal(studio, 409, name="Moderator", description="x", version=0)
    await save(studio, studio.owner, name="Moderator", description="x", version=1)
    await expect_refusal(studio, 409, name="Other", version=1)
    assert (await studio.expect_ok("meta/schema", ask, studio.owner.headers))["data"]["version"] == 3


async def test_ro_01_each_right_opens_what_is_its_own(studio: Studio) -> None:
    shop = application_scope(PROJECT, studio.shop.application_id)
    await save(studio, studio.owner, name="Moderator", description="Kicks", meta=KICK)
    names = [{"name": "Moderator", "description": "Kicks"}]
    reader = await create_person_with(studio, secret_data=secret_document("canReadSchema"))
    lister = await create_person_with(studio, secret_data=secret_document("canSeeRoleList"))
    modifier = await create_person_with(studio, secret_data=secret_document("canModifySchema"))
    manager = await create_person_with(studio, {IN_PROJECT: holdings_with_rules(MANAGES)})
    developer = await create_person_with(studio, {shop: holdings_with_rules("app.can_modify_schema")})
    for who, reads, writes in (
        (reader, "all", False),
        (lister, "names", False),
        (modifier, None, True),
        (manager, None, True),
        (developer, "all", True),
        (studio.other_user, None, False),
        (
            await create_person_with(studio, secret_data=secret_document("canRead", "canSave", "canCreateJwt")),
            None,
            False,
        ),
        (
            await create_person_with(studio, {ROOT: holdings_with_rules(MANAGES, "app.can_modify_schema")}),
            None,
            False,
        ),
    ):
        response = await studio.post("roles", role_request(studio, "get"), who.headers)
        assert response.status_code == (200 if reads else 403)
        if reads:
            assert (response.json()["data"] == names) == (reads == "names")
        status = 200 if writes else 403
        for action in ("save", "delete"):
            response = await studio.post("roles", role_request(studio, action, name="Mine"), who.headers)
            assert response.status_code == status, (action, response.text)


async def test_protected_and_default_roles_need_can_modify_schema(studio: Studio) -> None:
    await with_schema(studio)
    await save(studio, studio.owner, name="Guard", protected=True, meta=BAN)
    await save(studio, studio.owner, name="default", meta=KICK)
    await save(studio, studio.owner, name="All", default=True, meta=KICK)
    manager = await create_person_with(studio, {IN_PROJECT: holdings_with_rules(MANAGES)})
    for data in (
        {"name": "New", "protected": True},
        {"name": "New", "default": True},
        {"name": "Default"},
        {"name": "Guard", "description": "x"},
        {"name": "Guard", "protected": False, "meta": None},
        {"name": "All", "default": False},
    ):
        await studio.expect_error(403, "roles", role_request(studio, "save", **data), manager.headers)
    for name in ("Guard", "default", "All"):
        await studio.expect_error(403, "roles", role_request(studio, "delete", name=name), manager.headers)
    assert {role["name"] for role in await get(studio, studio.owner)} == {"Guard", "default", "All"}


async def test_ro_20_a_delegate_neither_edits_nor_gives_nor_takes_a_protected_role(studio: Studio) -> None:
    await with_schema(studio)
    await save(studio, studio.owner, name="Guard", protected=True, meta=BAN)
    await assign(studio, studio.other_user, "Guard")
    shop = application_scope(PROJECT, studio.shop.application_id)
    delegate = await create_person_with(
        studio, {shop: holdings_with("app_users_manager"), IN_PROJECT: holdings_with_rules(MANAGES)}
    )
    for roles in ([], ["Guard", "Guard2"], [{"name": "Guard", "expired": 1_900_000_000}]):
        data = {"user_id": studio.other_user.user_id, "roles": roles}
        response = await studio.post("meta/data", role_request(studio, "save", **data), delegate.headers)
        assert response.status_code in (403, 404), response.text
    mine = role_request(studio, "save", user_id=delegate.user_id, roles=["Guard"])
    await studio.expect_error(403, "meta/data", mine, delegate.headers)
    direct = role_request(studio, "save", user_id=delegate.user_id, **BAN)
    await studio.expect_error(403, "meta/data", direct, delegate.headers)
    same = role_request(studio, "save", user_id=studio.other_user.user_id, roles=["Guard"])
    await studio.expect_ok("meta/data", same, delegate.headers)
    assert await read_held(studio, studio.other_user) == ["user.ban"]


# -- protected ----------------------------------------------------------------------------------------


async def test_ro_02_a_protected_rule_goes_into_protected_roles_only(studio: Studio) -> None:
    await with_schema(studio)
    for meta in (BAN, {"private_data": {"user": {"ban": {"value": False}}}}):
        assert "user.ban" in await expect_refusal(studio, 400, name="Moderator", meta=meta)
    withparams = {"private_data": {"user": {"ban": {"value": True, "params": "a"}}}}
    await expect_refusal(studio, 400, name="Moderator", meta=withparams)
    await expect_refusal(studio, 400, name="Moderator", permissions=[{"name": "user.ban", "value": True}])
    await save(studio, studio.owner, name="Moderator", meta=KICK)
    await expect_refusal(studio, 400, name="Moderator", meta=BAN)
    whole = role_request(studio, "save", roles={"Moderator": {"meta": BAN}})
    await studio.expect_error(400, "meta/schema", whole, studio.owner.headers)
    await save(studio, studio.owner, name="Guard", meta=BAN, protected=True)
    collides = {"public_data": {"user": {"ban": {"value": True}}}}
    await expect_refusal(studio, 400, name="Sly", meta=collides)
    await expect_refusal(studio, 400, name="Sly", meta={"private_data": {"user": {"value": True}}})
    await save(studio, studio.owner, name="Free", meta={"private_data": {"unknown": {"value": True}}})


async def test_ro_03_a_protected_role_with_protected_rules_stays_protected(studio: Studio) -> None:
    await with_schema(studio)
    await save(studio, studio.owner, name="Guard", meta=BAN, protected=True)
    await expect_refusal(studio, 409, name="Guard", protected=False)
    await expect_refusal(studio, 409, name="Guard", protected=None)
    assert (await get(studio, studio.owner, name="Guard"))["protected"] is True
    assert (await save(studio, studio.owner, name="Guard", protected=False, meta=KICK))["protected"] is False


async def test_ro_04_a_role_that_becomes_protected_is_taken_from_projects_at_once(studio: Studio) -> None:
    await save(studio, studio.owner, name="Moderator", meta=KICK)
    await assign(studio, studio.other_user, "Moderator")
    await assign(studio, studio.other_user, "Moderator", project=True)
    assert await read_held(studio, studio.other_user) == [f"{PROJECT}/user.kick", "user.kick"]
    await save(studio, studio.owner, name="Moderator", protected=True)
    assert await read_held(studio, studio.other_user) == ["user.kick"]
    assert await read_held(studio, studio.other_user, "roles") == ["Moderator"]
    await assign(studio, studio.other_user, "Moderator", project=True, status=400)
    await save(studio, studio.owner, name="Moderator", protected=False)
    assert await read_held(studio, studio.other_user) == ["user.kick"]


# -- default roles, conditions ------------------------------------------------------------------------


async def test_ro_06_a_default_role_applies_in_its_own_application_and_is_audited_as_high(studio: Studio) -> None:
    meta = {"private_data": {"can_administer": {"value": True}, "project": {"can_view_project": {"value": True}}}}
    for data in ({"name": "Default"}, {"name": "Everyone", "default": True}):
        await save(studio, studio.owner, **data, meta=meta)
    assert len(await audit_records(studio, AuditEvent.DEFAULT_ROLE_SAVED)) == 2
    assert await read_held(studio, studio.other_user) == ["can_administer", "project.can_view_project"]
    assert await read_held(studio, studio.other_user, "roles") == []
    view = {"action": "get", "data": {"id": PROJECT}}
    await studio.expect_error(403, "project", view, studio.other_user.headers)
    await studio.expect_error(403, "user/tags", {"data": {"user_id": "1", "tags": []}}, studio.other_user.headers)
    central = {"action": "save", "application_id": 1, "data": {"name": "default", "meta": meta}}
    await studio.expect_error(403, "roles", central, studio.owner.headers)


async def test_ro_10_everyone_is_true_or_false_and_false_is_no_one(studio: Studio) -> None:
    for value in ("false", "true", 1, 0, None, []):
        await expect_refusal(studio, 400, name="All", meta=KICK, condition={"everyone": value})
    await save(studio, studio.owner, name="All", meta=KICK, condition={"everyone": False})
    assert await read_held(studio, studio.other_user) == []
    await save(studio, studio.owner, name="All", condition={"everyone": True})
    assert await read_held(studio, studio.other_user) == ["user.kick"]


async def test_ro_12_a_condition_is_bounded_in_depth_and_width(studio: Studio) -> None:
    def nest_condition(levels: int) -> dict[str, Any]:
        condition: dict[str, Any] = {"tag": "x"}
        for _ in range(levels - 1):
            condition = {"and": [condition]}
        return condition

    await save(studio, studio.owner, name="Deep", condition=nest_condition(16))
    for condition in (
        nest_condition(17),
        nest_condition(33),
        {"or": [{"tag": f"t{n}"} for n in range(257)]},
        {"or": []},
        {},
    ):
        await expect_refusal(studio, 400, name="Deep", condition=condition)
    headers = {**studio.owner.headers, "Content-Type": "application/json"}
    endless = b'{"action":"save","data":{"condition":' + b'{"and":[' * 100_000 + b"]}" * 100_000 + b"}}"
    wide = b'{"action":"save","data":{"condition":{"or":[' + b'{"tag":"x"},' * 100_000 + b'{"tag":"x"}]}}}'
    for raw in (endless, wide):
        response = await studio.service.client.post("/api/permissions/roles", content=raw, headers=headers)
        assert response.status_code in (400, 413)


async def test_ro_13_an_address_is_compared_as_what_it_is(studio: Studio) -> None:
    for network in ("10.0.0.1/8", "010.0.0.0/8", "10.0.0.0/33", "10.0.0.0/8,11.0.0.0/8", "x", "", 5, ["10.0.0.0/8"]):
        await expect_refusal(studio, 400, name="Inside", condition={"ip": network})
    key = await studio.access_key()

    async def list_from(address: str) -> Any:
        body = own_record(studio.shop, data={"type": "list_short"}, ip=address, ts=studio.service.clock.now())
        raw, headers = signed_request(body, key, studio.shop)
        client = studio.service.client
        response = await client.post(
            "/api/permissions/meta/data", content=raw, headers=headers | bearer_headers(studio.other_user.jwt)
        )
        return response.json()["data"]

    for network, console_browsers, outside in (
        ("10.0.0.0/8", ("10.1.2.3", "::ffff:10.1.2.3"), ("11.0.0.1", "2001:db8::1")),
        ("10.0.0.2/31", ("10.0.0.2", "10.0.0.3"), ("10.0.0.4",)),
        ("10.0.0.2/32", ("10.0.0.2",), ("10.0.0.3",)),
        ("2001:db8::/32", ("2001:db8::1",), ("2001:db9::1", "10.0.0.1")),
        ("0.0.0.0/0", ("10.0.0.1", "::ffff:10.0.0.1"), ("2001:db8::1",)),
    ):
        await save(studio, studio.owner, name="Inside", meta=KICK, condition={"ip": network})
        for address in console_browsers:
            assert await list_from(address) == ["user.kick"], (network, address)
        for address in outside:
            assert await list_from(address) == [], (network, address)
    beside = bearer_headers(studio.other_user.jwt, Service_Jwt=await studio.service_jwt())
    body = own_record(studio.shop, data={"type": "list_short"})
    assert (await studio.expect_ok("meta/data", body, beside))["data"] == []


async def test_ro_15_all_members_of_a_condition_have_to_hold(studio: Studio) -> None:
    both = {"uid": [studio.other_user.user_id], "tag": "staff"}
    await save(studio, studio.owner, name="Staff", meta=KICK, condition=both)
    assert await read_held(studio, studio.other_user) == []
    boss = await create_administrator(studio)
    tags = {"data": {"user_id": studio.other_user.user_id, "tags": ["staff"]}}
    assert (await studio.expect_ok("user/tags", tags, boss.headers))["data"]["tags"] == ["staff"]
    assert await read_held(studio, studio.other_user) == ["user.kick"]
    assert await read_held(studio, studio.owner) == []


async def test_a_required_condition_gates_assignments(studio: Studio) -> None:
    await save(
        studio, studio.owner, name="Buyer", meta=KICK, condition={"purchase": "gold"}, condition_mode="require"
    )
    await assign(studio, studio.other_user, "Buyer")
    assert await read_held(studio, studio.other_user) == []
    boss = await create_administrator(studio)
    bought = {"data": {"user_id": studio.other_user.user_id, "purchases": ["gold"]}}
    await studio.expect_ok("user/purchases", bought, boss.headers)
    assert await read_held(studio, studio.other_user) == ["user.kick"]
    bought["data"]["user_id"] = studio.owner.user_id
    await studio.expect_ok("user/purchases", bought, boss.headers)
    assert await read_held(studio, studio.owner) == []


# -- params -------------------------------------------------------------------------------------------


async def test_ro_08_params_hold_nothing_that_has_a_meaning_in_lists(studio: Studio) -> None:
    many = ",".join(f"p{n}" for n in range(65))
    for params in ("x|can_admin:0", "a:10", ",,", "a,", "a\nb", "\x07", "a" * 65, many, "x" * 100_000, 5, ["a"]):
        await expect_refusal(studio, 400, name="Moderator", params=params)
        leaf = {"private_data": {"user": {"kick": {"value": True, "params": params}}}}
        await expect_refusal(studio, 400, name="Moderator", meta=leaf)
    await save(studio, studio.owner, name="Moderator", meta=KICK, params="a b,c.d/e")
    await assign(studio, studio.other_user, "Moderator")
    assert await read_held(studio, studio.other_user) == ["user.kick|a b,c.d/e"]


async def test_ro_09_params_of_several_roles_are_merged_in_a_stable_order(studio: Studio) -> None:
    await save(studio, studio.owner, name="B", meta=KICK, params="b,shared")
    await save(studio, studio.owner, name="A", meta=KICK, params="a,shared")
    await save(studio, studio.owner, name="Plain", meta=KICK)
    await assign(studio, studio.other_user, "B", "A", "Plain")
    assert await read_held(studio, studio.other_user) == ["user.kick|b,shared,a"]
    await assign(studio, studio.other_user, "Plain", "A", "B")
    assert await read_held(studio, studio.other_user) == ["user.kick|a,shared,b"]


# -- limits and expiry --------------------------------------------------------------------------------


async def test_ro_17_a_limited_role_has_no_more_users_than_that(studio: Studio) -> None:
    for limit in (-1, True, "5", 2**63, 1.5, 2**31):
        await expect_refusal(studio, 400, name="Few", user_limit=limit)
    one, two, three = [await create_person_with(studio) for _ in range(3)]
    await save(studio, studio.owner, name="Few", meta=KICK, user_limit=2)
    soon = studio.service.clock.now() + 60
    await assign(studio, one, {"name": "Few", "expired": soon})
    await assign(studio, one, {"name": "Few", "expired": soon}, project=True)
    await assign(studio, two, "Few")
    assert (await get(studio, studio.owner, name="Few"))["users_count"] == 2
    await assign(studio, three, "Few", status=409)
    await assign(studio, three, "Few", project=True, status=409)
    assert await read_held(studio, three) == []
    await studio.service.clock.advance(60)
    await assign(studio, three, "Few")
    await save(studio, studio.owner, name="Few", user_limit=1)
    await assign(studio, two, {"name": "Few", "expired": 1_900_000_000})
    await assign(studio, one, "Few", status=409)
    assert (await get(studio, studio.owner, name="Few"))["users_count"] == 2
    await save(studio, studio.owner, name="Few", user_limit=0)
    await assign(studio, one, "Few")


@pytest.mark.parametrize("ending", ["revoked", "project removed", "erased"])
async def test_ro_23_a_seat_is_free_again_when_its_holder_is_gone(studio: Studio, ending: str) -> None:
    storage, now = studio.service.services.storage, studio.service.clock.now()
    await publish(storage, a_project("Elsewhere"))
    account = {"action": "save", "data": {"project_id": "elsewhere", "name": "ci"}}
    response_body = await studio.expect_ok("serviceAccount", account, (await create_administrator(studio)).headers)
    first = response_body["data"]["user_id"] if ending != "erased" else studio.other_user.user_id
    second = (await create_person_with(studio)).user_id
    boss = await create_administrator(studio)
    await save(studio, boss, name="Few", meta=KICK, user_limit=1)

    async def give_to(user_id: str, status: int) -> None:
        body = role_request(studio, "save", user_id=user_id, roles=["Few"])
        assert (await studio.post("meta/data", body, boss.headers)).status_code == status

    async def members(**parameters: str) -> list[str]:
        body = {"application_id": studio.shop.application_id, "data": parameters}
        listed = (await studio.expect_ok("members", body, boss.headers))["data"]["members"]
        return [user["user_id"] for user in listed]

    await give_to(first, 200)
    await give_to(second, 409)
    if ending == "revoked":
        await studio.expect_ok("serviceAccount", {"action": "delete", "data": {"user_id": first}}, boss.headers)
    elif ending == "erased":
        await storage.profile.erase_user(first, a_record(), even_last_administrator=False, now=now)
    else:
        await studio.expect_ok("project", {"action": "delete", "data": {"id": "elsewhere"}}, boss.headers)
    assert (await get(studio, boss, name="Few"))["users_count"] == 0
    assert await members(role="Few") == await members(rule="user.kick") == []
    await give_to(second, 200)
    await give_to(studio.owner.user_id, 409)
    assert (await get(studio, boss, name="Few"))["users_count"] == 1
    assert await members(role="Few") == await members(rule="user.kick") == [second]
    if ending != "erased":
        ask = {"application_id": studio.shop.application_id, "data": {"user_id": first, "rule": "user.kick"}}
        explanation = (await studio.expect_ok("explain", ask, boss.headers))["data"]
        assert (explanation["allowed"], explanation["missing"][0]["kind"]) == (False, "account_ended")


async def test_ro_23_what_is_held_in_a_removed_project_takes_no_seat(studio: Studio) -> None:
    await publish(studio.service.services.storage, a_project("Elsewhere"))
    boss, member = await create_administrator(studio), await create_person_with(studio)
    published = {"application_id": studio.shop.application_id, "service_meta": {"name": "Shop"}}
    await studio.expect_ok("application", {"action": "save", "data": published}, boss.headers)
    await save(studio, boss, name="Few", meta=KICK, user_limit=1)

    async def assign_role(user_id: str, status: int, **data: object) -> None:
        body = role_request(studio, "save", user_id=user_id, **data)
        assert (await studio.post("meta/data", body, boss.headers)).status_code == status

    there = {"projectAccess": {"elsewhere": {"roles": ["Few"]}}}
    await assign_role(member.user_id, 200, private_data=there)
    await assign_role(studio.other_user.user_id, 409, roles=["Few"])
    await studio.expect_ok("project", {"action": "delete", "data": {"id": "elsewhere"}}, boss.headers)
    assert (await get(studio, boss, name="Few"))["users_count"] == 0
    ask = {"application_id": studio.shop.application_id, "data": {"role": "Few", "project_id": "elsewhere"}}
    assert (await studio.expect_ok("members", ask, boss.headers))["data"]["members"] == []
    await assign_role(studio.other_user.user_id, 200, roles=["Few"])
    await assign_role(member.user_id, 409, roles=["Few"], private_data=there)
    assert (await get(studio, boss, name="Few"))["users_count"] == 1


async def test_ro_18_a_role_made_again_under_its_old_name_belongs_to_no_one(studio: Studio) -> None:
    storage = studio.service.services.storage
    await storage.groups.create_group(a_group(GROUP, users=(studio.owner.user_id,)), [a_record()])
    await save(studio, studio.owner, name="Moderator", meta=KICK)
    await assign(studio, studio.other_user, "Moderator")
    await assign(studio, studio.other_user, "Moderator", project=True)
    grant = {"group_id": GROUP, "roles": ["Moderator"], "action": "grant"}
    services = {"services": {str(studio.shop.application_id): {"groups": [grant]}}}
    project = {"action": "save", "data": {"id": PROJECT, "settings": services}}
    await studio.expect_ok("project", project, studio.owner.headers)
    assert await read_held(studio, studio.owner, "roles") == [f"{PROJECT}/Moderator"]
    await studio.expect_ok("roles", role_request(studio, "delete", name="Moderator"), studio.owner.headers)
    assert await read_held(studio, studio.other_user) == []
    await save(studio, studio.owner, name="moderator", meta=KICK)
    for who in (studio.other_user, studio.owner):
        assert await read_held(studio, who) == []
        assert await read_held(studio, who, "roles") == []
    assert (await get(studio, studio.owner, name="moderator"))["users_count"] == 0
    schema = {"roles": {}}
    await assign(studio, studio.other_user, "moderator")
    await studio.expect_ok("meta/schema", role_request(studio, "save", **schema), studio.owner.headers)
    await save(studio, studio.owner, name="moderator", meta=KICK)
    assert await read_held(studio, studio.other_user) == []


async def test_ro_19_assignments_end_to_the_second(studio: Studio) -> None:
    now = studio.service.clock.now()
    await save(studio, studio.owner, name="A", meta=KICK)
    await save(studio, studio.owner, name="B", meta={"public_data": {"badge": {"value": True}}})
    for end in ({"expired": value} for value in (-1, "123", 1.5, now * 1_000, 2**63, True, None)):
        await assign(studio, studio.other_user, {"name": "A", **end}, status=400)
    for end in ({"ttl": value} for value in (-1, True, "1", 1.5, 2**63)):
        await assign(studio, studio.other_user, {"name": "A", **end}, status=400)
    for expired, alive in ((now - 1, False), (now, False), (now + 1, True), (0, True)):
        saved = await assign(studio, studio.other_user, {"name": "A", "expired": expired})
        assert saved["expired"] == (expired if expired > now else 0)
        assert bool(await read_held(studio, studio.other_user)) is alive
    await assign(studio, studio.other_user, {"name": "A", "expired": now + 100}, {"name": "B", "expired": now + 60})
    body = own_record(studio.shop, data={"type": "list_short"}, options={"with_exp": True})
    reply = await studio.expect_ok("meta/data", body, studio.other_user.headers)
    assert (reply["data"], reply["expired"]) == (["badge:60", "user.kick:100"], now + 60)
    await studio.service.clock.advance(30)
    reply = await studio.expect_ok("meta/data", body, studio.other_user.headers)
    assert (reply["data"], reply["expired"]) == (["badge:30", "user.kick:70"], now + 60)
    await studio.service.clock.advance(30)
    reply = await studio.expect_ok("meta/data", body, studio.other_user.headers)
    assert (reply["data"], reply["expired"]) == (["user.kick:40"], now + 100)
    await assign(studio, studio.other_user, {"name": "A", "expired": now + 10_000, "ttl": 5}, {"name": "B", "ttl": 0})
    for _ in range(2):
        reply = await studio.expect_ok("meta/data", body, studio.other_user.headers)
        assert (reply["data"], reply["expired"]) == (["badge:0", "user.kick:5"], studio.service.clock.now() + 5)
        await studio.service.clock.advance(20)


async def test_ro_21_of_parallel_saves_of_one_role_each_is_whole(studio: Studio) -> None:
    """Between nodes: tests/conformance/test_permission_races.py, save_schema."""
    await save(studio, studio.owner, name="Moderator")
    drafts = [{"name": "Moderator", "description": f"d{n}", "params": f"p{n}"} for n in range(8)]
    responses = await asyncio.gather(
        *(studio.post("roles", role_request(studio, "save", **draft), studio.owner.headers) for draft in drafts)
    )
    assert [response.status_code for response in responses] == [200] * 8
    last = await get(studio, studio.owner, name="Moderator")
    assert last["version"] == 9
    assert last["description"][1:] == last["params"][1:]
    racing = [role_request(studio, "save", name="Moderator", description="x", version=9) for _ in range(4)]
    responses = await asyncio.gather(*(studio.post("roles", body, studio.owner.headers) for body in racing))
    assert sorted(response.status_code for response in responses) == [200, 409, 409, 409]


# -- application 1 ------------------------------------------------------------------------------------


async def test_the_roles_of_application_1_are_safe(studio: Studio) -> None:
    boss = await create_administrator(studio)
    body = {"action": "save", "application_id": 1, "data": {"name": "project_owner", "meta": None}}
    await studio.expect_error(403, "roles", body, boss.headers)
    body["data"] = {"name": "administrator", "protected": False}
    response = await studio.post("roles", body, boss.headers)
    assert response.status_code in (403, 409)
    delete = {"action": "delete", "application_id": 1, "data": {"name": "administrator"}}
    await studio.expect_error(403, "roles", delete, boss.headers)
    unknown = {"name": "Mine", "meta": {"private_data": {"unheard_of": {"value": True}}}}
    await studio.expect_error(400, "roles", {**body, "data": unknown}, boss.headers)
    await write_user_record(
        studio, studio.other_user, 1, secret_data=secret_document("canModifySchema", "canReadSchema")
    )
    mine = {"name": "Mine", "meta": {"private_data": {"project": {"can_view_project": {"value": True}}}}}
    await studio.expect_error(403, "roles", {**body, "data": mine}, studio.other_user.headers)
    await studio.expect_ok("roles", {**body, "data": mine}, boss.headers)


async def test_a_role_of_another_application_is_unknown_here(studio: Studio) -> None:
    storage = studio.service.services.storage
    await publish(storage, a_project("Elsewhere"))
    await create_application(storage, "theirs", name="Theirs", project_id="elsewhere")
    await assign(studio, studio.other_user, "theirs", status=404)
    await assign(studio, studio.other_user, "project_owner", status=404)


async def test_the_roles_gatehouse_is_run_by_apply_to_whom_they_are_given_and_no_others(studio: Studio) -> None:
    boss = await create_administrator(studio)
    no_one, everybody = {"everyone": False}, {"everyone": True}
    for name in ("administrator", "project_owner", "app_developer"):
        for change in (
            {"condition": no_one, "condition_mode": "require"},
            {"condition": everybody},
            {"condition_mode": "require"},
            {"default": True},
        ):
            body = {"action": "save", "application_id": 1, "data": {"name": name, **change}}
            await studio.expect_error(403, "roles", body, boss.headers)
    words = {"action": "save", "application_id": 1, "data": {"name": "app_developer", "description": "Builds"}}
    await studio.expect_ok("roles", words, boss.headers)


async def test_no_role_may_deny_can_administer(studio: Studio) -> None:
    boss = await create_administrator(studio)
    denied = {"private_data": {"can_administer": {"value": False}}}
    role = {"name": "None", "protected": True, "meta": denied, "condition": {"everyone": True}}
    await studio.expect_error(400, "roles", {"action": "save", "application_id": 1, "data": role}, boss.headers)
    await studio.expect_error(
        400, "meta/schema", {"action": "save", "application_id": 1, "data": {"roles": {"None": role}}}, boss.headers
    )


@pytest.mark.parametrize("left", [{}, None, {"public_data": {}}, {"private_data": {"user": {}}}])
async def test_sc_22_a_role_saved_back_without_its_last_rule_gives_nothing(studio: Studio, left: object) -> None:
    shop, owner = studio.shop.application_id, studio.owner

    async def save_role(**data: object) -> Any:
        body = {"action": "save", "application_id": shop, "data": {"name": "Mod", **data}}
        return (await studio.expect_ok("roles", body, owner.headers))["data"]

    record = await save_role(meta=KICK)
    assert record["meta"] == KICK
    assert (await save_role(**{**record, "meta": left}))["meta"] == {}
    await save_role(meta=KICK)
    assert (await save_role(permissions=[]))["meta"] == {}
