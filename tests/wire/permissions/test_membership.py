"""Membership of a project (interface §4.6, R5; checklist PR-13)."""

from typing import Any

from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.permissions.model.facts import Assignment
from gatehouse.permissions.model.project import ProjectSettings
from gatehouse.permissions.model.rules import ROOT, End, application_scope, group_scope, service_scope
from tests.support.builders import a_record
from tests.support.permission_builders import (
    GROUP,
    a_group,
    a_project,
    an_application,
    create_application,
    holdings_with,
    publish,
    set_fields,
    set_project_fields,
)
from tests.support.studio import (
    IN_PROJECT,
    OWNER,
    PROJECT,
    Person,
    Studio,
    audit_records,
    bearer_headers,
    create_administrator,
    create_person_with,
    holdings_with_rules,
)

OTHER_GROUP = "0" * 23 + "b"
UNTAGGED = "0" * 23 + "c"
FOREIGN = "f" * 24


def save_request(**data: object) -> dict[str, object]:
    return {"action": "save", "data": {"id": PROJECT, **data}}


async def get(studio: Studio, who: Person) -> Any:
    ask = {"action": "get", "data": {"id": PROJECT}}
    return (await studio.expect_ok("project/membership", ask, who.headers))["data"]


async def save(studio: Studio, who: Person, **data: object) -> Any:
    return (await studio.expect_ok("project/membership", save_request(**data), who.headers))["data"]


async def connect(studio: Studio, *applications: int) -> None:
    """Connect exactly these published applications."""
    storage = studio.service.services.storage
    for number in applications:
        await storage.applications.edit_application(number, set_fields(service_meta={"name": "Service"}))
    settings = ProjectSettings(services=dict.fromkeys(applications, ()))
    await storage.projects.edit_project(PROJECT, set_project_fields(settings=settings))


async def groups(studio: Studio) -> None:
    storage = studio.service.services.storage
    await publish(storage, a_project("Elsewhere"))
    for group in (
        a_group(GROUP, "Testers", users=(studio.other_user.user_id,)),
        a_group(OTHER_GROUP, "Others"),
        a_group(UNTAGGED, "Untagged", tags=()),
        a_group(FOREIGN, "Foreign", project_id="elsewhere"),
    ):
        await storage.groups.create_group(group, [a_record()])


async def test_members_are_told_with_what_they_hold(studio: Studio) -> None:
    await groups(studio)
    shop = str(studio.shop.application_id)
    member = {
        "roles": ["project_administrator", {"name": "app_developer", "expired": 1_900_000_000}],
        "applications": {shop: {"roles": ["app_users_manager"]}},
        "groups": {GROUP: {"roles": ["group_manager"]}},
    }
    saved = await save(studio, studio.owner, users={studio.other_user.user_id: member})
    assert saved == {
        "id": PROJECT,
        "users": {OWNER: {"roles": ["project_owner"]}, studio.other_user.user_id: member},
        "allow": [],
        "disallow": [],
        "version": 2,
    }
    assert await get(studio, studio.other_user) == saved
    assert await audit_records(studio, AuditEvent.MEMBERSHIP_SAVED)
    assert {row.subject for row in await audit_records(studio, AuditEvent.USER_SCHEMA_SAVED)} == {
        studio.other_user.user_id
    }


async def test_each_user_named_is_replaced_null_removes_and_others_stay(studio: Studio) -> None:
    one, two = await create_person_with(studio), await create_person_with(studio)
    admin, manager = {"roles": ["project_administrator"]}, {"roles": ["group_manager"]}
    await save(studio, studio.owner, users={one.user_id: admin, two.user_id: admin})
    await save(studio, studio.owner, users={one.user_id: manager})
    assert (await get(studio, studio.owner))["users"] == {
        OWNER: {"roles": ["project_owner"]},
        **dict(sorted({one.user_id: manager, two.user_id: admin}.items())),
    }
    await save(studio, studio.owner, users={one.user_id: None, two.user_id: {}})
    assert (await get(studio, studio.owner))["users"].keys() == {OWNER}


async def test_removal_from_a_project_keeps_rights_held_elsewhere(studio: Studio) -> None:
    who = await create_person_with(
        studio, {ROOT: holdings_with_rules("can_create_app"), IN_PROJECT: holdings_with("group_manager")}
    )
    await save(studio, studio.owner, users={who.user_id: None})
    await studio.expect_ok("application", {"action": "save", "data": {"name": "Mine"}}, who.headers)


async def test_membership_can_be_saved_back_as_read(studio: Studio) -> None:
    who = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_view_project")})
    users = (await get(studio, studio.owner))["users"]
    assert users[who.user_id] == {"private_data": {"project": {"can_view_project": {"value": True}}}}
    assert (await save(studio, studio.owner, users=users))["users"] == users


async def test_rights_on_a_disconnected_service_can_be_saved_back_but_not_extended(studio: Studio) -> None:
    shop, application_id = str(studio.shop.application_id), studio.other.application_id
    await connect(studio, application_id)
    who = await create_person_with(
        studio, {service_scope(PROJECT, application_id): holdings_with("service_administrator")}
    )
    await connect(studio)
    data = (await get(studio, studio.owner))["users"][who.user_id]
    assert data == {"services": {str(application_id): {"roles": ["service_administrator"]}}}
    more = {**data, "applications": {shop: {"roles": ["app_developer"]}}}
    assert (await save(studio, studio.owner, users={who.user_id: more}))["users"][who.user_id] == more
    record = {
        "user_id": who.user_id,
        "private_data": {"projectAccess": {PROJECT: {**more, "roles": ["group_manager"]}}},
    }
    await studio.expect_ok("meta/data", {"action": "save", "application_id": 1, "data": record}, studio.owner.headers)
    other_role = {"services": {str(application_id): {"roles": ["app_users_manager"]}}}
    for users in ({who.user_id: other_role}, {studio.other_user.user_id: data}):
        await studio.expect_error(400, "project/membership", save_request(users=users), studio.owner.headers)
    both = {"services": {str(application_id): {"roles": ["service_administrator", "app_users_manager"]}}}
    await studio.expect_error(
        400, "project/membership", save_request(users={who.user_id: both}), studio.owner.headers
    )
    assert (await save(studio, studio.owner, users={who.user_id: None}))["users"].keys() == {OWNER}


async def test_pr_13_saving_needs_can_manage_project(studio: Studio) -> None:
    viewer = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_view_project")})
    await get(studio, viewer)
    for data in ({}, {"users": {viewer.user_id: {"roles": ["project_administrator"]}}}, {"allow": []}):
        await studio.expect_error(403, "project/membership", save_request(**data), viewer.headers)
    manager = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_manage_project")})
    await save(studio, manager, allow=[])
    await studio.expect_error(403, "project/membership", {"action": "get", "data": {"id": PROJECT}}, manager.headers)


async def test_pr_13_lists_take_groups_of_the_project_that_carry_its_tag(studio: Studio) -> None:
    await groups(studio)
    for ids in ([UNTAGGED], [FOREIGN], ["0" * 24], ["x"], [5], GROUP):
        await studio.expect_error(400, "project/membership", save_request(allow=ids), studio.owner.headers)
        await studio.expect_error(400, "project/membership", save_request(disallow=ids), studio.owner.headers)
    many = await studio.expect_error(
        400, "project/membership", save_request(allow=[GROUP] * 501), studio.owner.headers
    )
    assert "data.allow: at most 500" in many
    both = save_request(allow=[GROUP], disallow=[GROUP])
    await studio.expect_error(400, "project/membership", both, studio.owner.headers)
    saved = await save(studio, studio.owner, allow=[GROUP], disallow=[OTHER_GROUP])
    assert (saved["allow"], saved["disallow"]) == ([GROUP], [OTHER_GROUP])
    await studio.expect_error(400, "project/membership", save_request(disallow=[GROUP]), studio.owner.headers)
    second_save = await save(studio, studio.owner, users={})
    assert (second_save["allow"], second_save["disallow"]) == ([GROUP], [OTHER_GROUP])
    cleared = await save(studio, studio.owner, allow=None, disallow=[])
    assert (cleared["allow"], cleared["disallow"]) == ([], [])


async def test_allow_and_disallow_decide_at_once_and_owners_are_exempt(studio: Studio) -> None:
    await groups(studio)
    view = {"action": "get", "data": {"id": PROJECT}}
    outsider = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_view_project")})
    await save(studio, studio.owner, users={studio.other_user.user_id: {"roles": ["project_administrator"]}})
    await save(studio, studio.owner, allow=[GROUP])
    await studio.expect_ok("project", view, studio.other_user.headers)
    await studio.expect_error(403, "project", view, outsider.headers)
    await save(studio, studio.owner, allow=[], disallow=[GROUP])
    await studio.expect_error(403, "project", view, studio.other_user.headers)
    await studio.expect_ok("project", view, outsider.headers)
    settings = {"allowed_domains": ["else.example"]}
    await studio.expect_ok(
        "project", {"action": "save", "data": {"id": PROJECT, "settings": settings}}, studio.owner.headers
    )
    await studio.expect_error(403, "project", view, outsider.headers)
    await studio.expect_ok("project", view, studio.owner.headers)


async def test_the_last_owner_stays(studio: Studio) -> None:
    boss = await create_administrator(studio)
    for who in (studio.owner, boss):
        await studio.expect_error(409, "project/membership", save_request(users={OWNER: None}), who.headers)
    second = {"roles": ["project_owner"]}
    await save(studio, studio.owner, users={studio.other_user.user_id: second})
    await save(studio, studio.owner, users={OWNER: None})
    await studio.expect_error(403, "project/membership", save_request(users={}), studio.owner.headers)
    save_own = {"user_id": studio.other_user.user_id, "private_data": {"projectAccess": {}}}
    body = {"action": "save", "application_id": 1, "data": save_own}
    await studio.expect_error(409, "meta/data", body, studio.other_user.headers)


async def test_owners_are_made_and_unmade_by_owners(studio: Studio) -> None:
    deputy = await create_person_with(studio, {IN_PROJECT: holdings_with("project_administrator")})
    second = await create_person_with(studio, {IN_PROJECT: holdings_with("project_owner")})
    owner, no_one = {"roles": ["project_owner"]}, {"roles": ["project_administrator"]}
    for users in ({deputy.user_id: owner}, {second.user_id: None}, {second.user_id: no_one}):
        await studio.expect_error(403, "project/membership", save_request(users=users), deputy.headers)
    await save(studio, studio.owner, users={second.user_id: no_one})
    boss = await create_administrator(studio)
    await save(studio, boss, users={deputy.user_id: owner})


async def test_no_one_assigns_rights_they_do_not_hold_in_the_project(studio: Studio) -> None:
    shop = studio.shop.application_id
    manager = await create_person_with(
        studio, {IN_PROJECT: holdings_with_rules("project.can_manage_project", "project.can_view_project")}
    )
    friend = studio.other_user.user_id
    for holdings in (
        {"roles": ["project_administrator"]},
        {"roles": ["app_developer"]},
        {"applications": {str(shop): {"roles": ["app_developer"]}}},
        {"private_data": {"project": {"can_remove_project": {"value": True}}}},
        {"roles": ["administrator"]},
    ):
        await studio.expect_error(403, "project/membership", save_request(users={friend: holdings}), manager.headers)
    seen = {"private_data": {"project": {"can_view_project": {"value": True}}}}
    await save(studio, manager, users={friend: seen})
    await studio.expect_error(403, "project/membership", save_request(users={OWNER: None}), manager.headers)


async def test_a_member_is_checked_as_strictly_as_a_record(studio: Studio) -> None:
    await groups(studio)
    friend, boss = studio.other_user.user_id, await create_administrator(studio)
    for holdings in (
        {"roles": ["project_administrator", "Project_Administrator"]},
        {"roles": [{"name": "group_manager", "expired": -1}]},
        {"roles": [{"name": "group_manager", "ttl": True}]},
        {"roles": [{"name": "group_manager", "colour": 1}]},
        {"colour": 1},
        {"applications": {"999999": {"roles": ["app_developer"]}}},
        {"applications": {str(studio.other.application_id): {"roles": ["app_developer"]}}},
        {"services": {str(studio.shop.application_id): {"roles": ["service_administrator"]}}},
        {"groups": {FOREIGN: {"roles": ["group_manager"]}}},
        {"private_data": {"unheard_of": {"value": True}}},
        {"applications": {str(studio.shop.application_id): {"private_data": {"unheard_of": {"value": True}}}}},
        {"roles": ["administrator"]},
        [],
        "project_owner",
    ):
        await studio.expect_error(400, "project/membership", save_request(users={friend: holdings}), boss.headers)
    await studio.expect_error(
        404, "project/membership", save_request(users={friend: {"roles": ["unheard_of"]}}), boss.headers
    )
    await studio.expect_error(400, "project/membership", save_request(users={"4444444444": {}}), boss.headers)
    for strange in ("x", "", "0", "1\n"):
        await studio.expect_error(400, "project/membership", save_request(users={strange: {}}), boss.headers)
    assert "colour" in await studio.expect_error(400, "project/membership", save_request(colour=1), boss.headers)
    assert (await get(studio, boss))["version"] == 1


async def test_a_save_is_all_or_nothing(studio: Studio) -> None:
    await groups(studio)
    users = {studio.other_user.user_id: {"roles": ["project_administrator"]}, OWNER: None}
    await studio.expect_error(
        409, "project/membership", save_request(users=users, allow=[GROUP]), studio.owner.headers
    )
    now = await get(studio, studio.owner)
    assert (now["users"].keys(), now["allow"], now["version"]) == ({OWNER}, [], 1)


async def test_a_save_of_an_old_version_is_refused(studio: Studio) -> None:
    await groups(studio)
    await save(studio, studio.owner, allow=[GROUP], version=1)
    await studio.expect_error(409, "project/membership", save_request(allow=[], version=1), studio.owner.headers)
    assert (await get(studio, studio.owner))["allow"] == [GROUP]


async def test_a_right_on_a_resource_reaches_no_further(studio: Studio) -> None:
    await groups(studio)
    shop, other = studio.shop.application_id, GROUP
    scopes = {
        application_scope(PROJECT, shop): holdings_with("app_developer"),
        group_scope(PROJECT, other): holdings_with("group_manager"),
    }
    who = await create_person_with(studio, scopes)
    await studio.expect_error(403, "project/membership", {"action": "get", "data": {"id": PROJECT}}, who.headers)
    body = await studio.expect_ok("group", {"action": "get", "data": {"project_id": PROJECT}}, who.headers)
    assert [group["id"] for group in body["data"]["groups"]] == [GROUP]
    await studio.service.services.storage.projects.edit_project(PROJECT, set_project_fields(removed=True))
    await studio.expect_error(403, "application", {"action": "get", "data": {"application_id": shop}}, who.headers)


# -- escalation ---------------------------------------------------------------------------------------


def schema_denying(*names: str) -> dict[str, object]:
    return {"private_data": {"project": {name: {"value": False} for name in names}}}


async def test_an_owner_is_changed_by_owners_alone(studio: Studio) -> None:
    deputy = await create_person_with(studio, {IN_PROJECT: holdings_with("project_administrator")})
    owner, shop = {"roles": ["project_owner"]}, str(studio.shop.application_id)
    for more in (
        schema_denying("can_view_project"),
        schema_denying("can_manage_project", "can_remove_project"),
        {"roles": ["project_owner", "app_developer"]},
        {"roles": [{"name": "project_owner", "expired": studio.service.clock.now() + 1}]},
        {"applications": {shop: {"private_data": {"app": {"can_modify_schema": {"value": False}}}}}},
    ):
        holdings = {**owner, **more}
        await studio.expect_error(403, "project/membership", save_request(users={OWNER: holdings}), deputy.headers)
        record = {"user_id": OWNER, "private_data": {"projectAccess": {PROJECT: holdings}}}
        body = {"action": "save", "application_id": 1, "data": record}
        await studio.expect_error(403, "meta/data", body, deputy.headers)
    await save(studio, deputy, users={OWNER: owner})  # unchanged
    await save(studio, studio.owner, users={OWNER: {**owner, **schema_denying("can_remove_project")}})
    await studio.expect_error(403, "project/membership", save_request(users={OWNER: owner}), deputy.headers)
    await save(studio, await create_administrator(studio), users={OWNER: owner})


async def test_former_owner_is_treated_as_an_ordinary_member(studio: Studio) -> None:
    deputy = await create_person_with(studio, {IN_PROJECT: holdings_with("project_administrator")})
    past = Assignment(role="project_owner", end=End(expired=1))
    former = await create_person_with(studio, {IN_PROJECT: holdings_with(past, "group_manager")})
    data = (await get(studio, deputy))["users"][former.user_id]
    assert data["roles"][1:] == ["group_manager"]
    await save(studio, deputy, users={former.user_id: {"roles": data["roles"][:1]}})


async def test_a_service_gives_nothing_beyond_its_own_application(studio: Studio) -> None:
    await groups(studio)
    sibling = await create_application(studio.service.services.storage, name="Sibling", project_id=PROJECT)
    mine, other = str(studio.shop.application_id), str(sibling.application_id)
    developer = {"roles": ["app_developer"]}
    vouched = bearer_headers(studio.owner.jwt, Service_Jwt=await studio.service_jwt())
    friend = studio.other_user.user_id
    for holdings in (
        {"roles": ["project_administrator"]},
        developer,
        {"private_data": {"project": {"can_view_project": {"value": True}}}},
        {"applications": {other: developer}},
        {"groups": {GROUP: {"roles": ["group_manager"]}}},
        {"applications": {mine: developer, other: developer}},
    ):
        await studio.expect_error(403, "project/membership", save_request(users={friend: holdings}), vouched)
    on_own = {"applications": {mine: developer}}
    await studio.expect_ok("project/membership", save_request(users={friend: on_own}), vouched)
    await save(studio, studio.owner, users={friend: {"roles": ["app_developer"], **on_own}})
    await studio.expect_error(403, "project/membership", save_request(users={friend: on_own}), vouched)
    await studio.expect_error(403, "project/membership", save_request(users={friend: None}), vouched)
    await studio.expect_ok("project/membership", save_request(users={friend: developer}), vouched)
    central = bearer_headers(studio.owner.jwt, Service_Jwt=await studio.service_jwt(an_application(1)))
    await studio.expect_ok(
        "project/membership", save_request(users={friend: {"roles": ["project_administrator"]}}), central
    )


async def test_person_with_an_expiring_role_assigns_nothing_that_ends_later(studio: Studio) -> None:
    now, role = studio.service.clock.now(), "project_administrator"
    deputy = await create_person_with(
        studio, {IN_PROJECT: holdings_with(Assignment(role=role, end=End(expired=now + 60)))}
    )
    shop, friend = str(studio.shop.application_id), studio.other_user.user_id
    rule = {"can_view_project": {"value": True}}
    for holdings in (
        {"roles": [role]},
        {"roles": [{"name": role, "expired": now + 61}]},
        {"roles": [{"name": role, "ttl": 5}]},  # such an end never takes effect
        {"roles": [{"name": role, "expired": now + 60, "ttl": 5}]},
        {"private_data": {"project": rule}},
        {"applications": {shop: {"roles": ["app_developer"]}}},
    ):
        for user_id in (friend, deputy.user_id):
            await studio.expect_error(
                403, "project/membership", save_request(users={user_id: holdings}), deputy.headers
            )
    until = {"roles": [{"name": role, "expired": now + 60}]}
    await save(studio, deputy, users={friend: until, deputy.user_id: until})
    await save(studio, deputy, users={friend: None})
    await save(studio, deputy, users={friend: schema_denying("can_view_project")})
    await studio.service.clock.advance(60)
    await studio.expect_error(403, "project/membership", save_request(), deputy.headers)


async def test_person_with_a_ttl_role_assigns_nothing_with_a_longer_ttl(studio: Studio) -> None:
    role, now = "project_administrator", studio.service.clock.now()
    deputy = await create_person_with(studio, {IN_PROJECT: holdings_with(Assignment(role=role, end=End(ttl=60)))})
    friend = studio.other_user.user_id
    for end in ({}, {"ttl": 61}, {"expired": now + 600}):
        holdings = {"roles": [{"name": role, **end}]}
        await studio.expect_error(403, "project/membership", save_request(users={friend: holdings}), deputy.headers)
    for end in ({"ttl": 60}, {"expired": now + 30}):
        await save(studio, deputy, users={friend: {"roles": [{"name": role, **end}]}})


async def test_the_longest_of_several_ways_to_hold_a_right_decides(studio: Studio) -> None:
    now, view = studio.service.clock.now(), "can_view_project"
    short = Assignment(role="project_administrator", end=End(expired=now + 60))
    holdings = holdings_with_rules("project.can_view_project", "project.can_manage_project")
    deputy = await create_person_with(studio, {IN_PROJECT: replace(holdings, roles=(short,))})
    friend = studio.other_user.user_id
    await save(studio, deputy, users={friend: {"private_data": {"project": {view: {"value": True}}}}})
    more = {"private_data": {"project": {"can_manage_groups": {"value": True}}}}
    await studio.expect_error(403, "project/membership", save_request(users={friend: more}), deputy.headers)


async def test_temporary_administrator_assigns_nothing_permanent(studio: Studio) -> None:
    await create_administrator(studio)
    now = studio.service.clock.now()
    guest = await create_person_with(
        studio, {ROOT: holdings_with(Assignment(role="administrator", end=End(expired=now + 60)))}
    )
    body = {"action": "save", "application_id": 1, "data": {"roles": ["administrator"]}}
    await studio.expect_error(403, "meta/data", body, guest.headers)
    owner = save_request(users={studio.other_user.user_id: {"roles": ["project_owner"]}})
    await studio.expect_error(403, "project/membership", owner, guest.headers)


async def test_a_restriction_is_lifted_by_who_could_give_the_right(studio: Studio) -> None:
    manager = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_manage_project")})
    tree = {"project": {"can_manage_groups": {"value": False}}}
    friend = await create_person_with(studio, {IN_PROJECT: holdings_with("project_administrator", private_data=tree)})
    freed = {"roles": ["project_administrator"]}
    sooner = {**freed, "private_data": {"project": {"can_manage_groups": {"value": False, "expired": 2_000_000_000}}}}
    for holdings in (freed, sooner):
        await studio.expect_error(
            403, "project/membership", save_request(users={friend.user_id: holdings}), manager.headers
        )
    await save(studio, studio.owner, users={friend.user_id: freed})


async def test_an_owner_whose_time_ends_does_not_count_as_the_one_a_project_needs(studio: Studio) -> None:
    now = studio.service.clock.now()
    ending = {"roles": [{"name": "project_owner", "expired": now + 60}]}
    boss = await create_administrator(studio)
    for who in (studio.owner, boss):
        await studio.expect_error(409, "project/membership", save_request(users={OWNER: ending}), who.headers)
    await save(studio, studio.owner, users={studio.other_user.user_id: ending})
    for holdings in (ending, None):
        await studio.expect_error(
            409, "project/membership", save_request(users={OWNER: holdings}), studio.owner.headers
        )
    lasting = {"roles": ["project_owner"]}
    await save(studio, studio.owner, users={studio.other_user.user_id: lasting, OWNER: ending})
