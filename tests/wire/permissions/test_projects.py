"""Projects: read, save, remove, connect to services (interface §4.6, R5; checklist section 9)."""

from typing import Any

from gatehouse.audit.events import AuditEvent
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.rules import ROOT, Scope, application_scope, service_scope
from tests.support.builders import a_record
from tests.support.permission_builders import (
    GROUP,
    a_group,
    a_project,
    a_role,
    create_application,
    holdings_with,
    publish,
    set_project_fields,
)
from tests.support.studio import (
    IN_PROJECT,
    PROJECT,
    Person,
    Studio,
    add_passkey_to,
    audit_records,
    bearer_headers,
    create_administrator,
    create_person_with,
    holdings_with_rules,
    own_record,
    write_user_record,
)

FOREIGN_GROUP = "f" * 24


def project_request(action: str, **data: object) -> dict[str, object]:
    return {"action": action, "data": {"id": PROJECT, **data}}


async def get(studio: Studio, who: Person) -> Any:
    return (await studio.expect_ok("project", project_request("get"), who.headers))["data"]


async def save(studio: Studio, who: Person, **data: object) -> Any:
    return (await studio.expect_ok("project", project_request("save", **data), who.headers))["data"]


def connecting_services(application: Application | int, *grants: dict[str, object]) -> dict[str, object]:
    number = application if isinstance(application, int) else application.application_id
    return {"services": {str(number): {"groups": list(grants)}}}


def grant(*roles: str, action: str = "grant", group_id: str = GROUP) -> dict[str, object]:
    return {"group_id": group_id, "roles": list(roles), "action": action}


async def other_project_application(studio: Studio) -> Application:
    """A second project with an unpublished application and a group."""
    storage = studio.service.services.storage
    await publish(storage, a_project("Elsewhere"), owners=[studio.other_user.user_id])
    await storage.groups.create_group(a_group(FOREIGN_GROUP, project_id="elsewhere"), [a_record()])
    return await create_application(storage, "moderator", name="Theirs", project_id="elsewhere")


# -- reading and saving -------------------------------------------------------------------------------


async def test_each_action_needs_its_own_right(studio: Studio) -> None:
    viewer = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_view_project")})
    manager = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_manage_project")})
    remover = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_remove_project")})
    bodies = {
        "get": project_request("get"),
        "save": project_request("save", description="x"),
        "delete": project_request("delete"),
    }
    for who, allowed in ((viewer, "get"), (manager, "save"), (remover, "delete")):
        for action, body in bodies.items():
            if action != allowed:
                await studio.expect_error(403, "project", body, who.headers)
        await studio.expect_ok("project", bodies[allowed], who.headers)


async def test_pr_09_a_save_cannot_change_tags_removed_or_author(studio: Studio) -> None:
    before = await get(studio, studio.owner)
    ignored = {"tags": ["x"], "removed": True, "author": "4444444444", "application_id": 1, "created": 5}
    after = await save(studio, studio.owner, **ignored)
    assert after == {**before, "version": before["version"] + 1}
    error = await studio.expect_error(400, "project", project_request("save", colour="red"), studio.owner.headers)
    assert "colour" in error


async def test_an_absent_field_keeps_null_clears_and_a_new_title_keeps_the_id(studio: Studio) -> None:
    settings = {"allowed_domains": ["studio.example"], "services": {}}
    await save(studio, studio.owner, description="Games", aliases=["minds"], settings=settings)
    saved = await save(studio, studio.owner, title="Mind Sports")
    assert (saved["id"], saved["title"], saved["description"]) == (PROJECT, "Mind Sports", "Games")
    assert (saved["aliases"], saved["settings"]) == (["minds"], settings)
    cleared = await save(studio, studio.owner, description=None, aliases=None, settings=None)
    assert (cleared["description"], cleared["aliases"]) == ("", [])
    assert cleared["settings"] == {"allowed_domains": [], "services": {}}
    assert await audit_records(studio, AuditEvent.PROJECT_CHANGED)


async def test_a_save_of_an_old_version_is_refused_and_one_without_wins(studio: Studio) -> None:
    assert (await save(studio, studio.owner, description="a", version=1))["version"] == 2
    await studio.expect_error(
        409, "project", project_request("save", description="b", version=1), studio.owner.headers
    )
    assert (await save(studio, studio.owner, description="c"))["version"] == 3


async def test_pr_02_a_new_title_follows_the_rules_of_the_first(studio: Studio) -> None:
    for title in ("abc\n", "a\u00a0b", "\u212aings", "a" * 33, "", " a", "a  b", "a-b", "Internal", "GAME"):
        await studio.expect_error(400, "project", project_request("save", title=title), studio.owner.headers)


async def test_pr_12_a_project_has_one_id_and_its_aliases(studio: Studio) -> None:
    await save(studio, studio.owner, aliases=["minds"])
    ask = {"action": "get", "data": {"id": "minds"}}
    assert (await studio.expect_ok("project", ask, studio.owner.headers))["data"]["id"] == PROJECT
    for strange in (["mind_games"], 5, "Mind_Games", "mind_games\0", "mind_games\n", "", None, {"$ne": 1}, "m" * 33):
        for path in ("project", "project/membership"):
            await studio.expect_error(400, path, {"action": "get", "data": {"id": strange}}, studio.owner.headers)
        await studio.expect_error(400, "project/tags", {"data": {"id": strange, "tags": []}}, studio.owner.headers)
        group = {"action": "get", "data": {"project_id": strange}}
        await studio.expect_error(400, "group", group, studio.owner.headers)
    two = {"action": "get", "data": {"id": PROJECT}, "id": "elsewhere"}
    assert "id" in await studio.expect_error(400, "project", two, studio.owner.headers)


async def test_aliases_are_no_one_elses_name(studio: Studio) -> None:
    await other_project_application(studio)
    await studio.service.services.storage.projects.edit_project("elsewhere", set_project_fields(aliases=("taken",)))
    for alias in ("elsewhere", "taken", PROJECT):
        await studio.expect_error(409, "project", project_request("save", aliases=[alias]), studio.owner.headers)
    many = [f"a{n}" for n in range(11)]
    for aliases in (["internal"], ["game"], ["Upper"], ["a b"], ["a", "a"], [""], ["x" * 33], many, "a", [5]):
        await studio.expect_error(400, "project", project_request("save", aliases=aliases), studio.owner.headers)
    assert len((await save(studio, studio.owner, aliases=many[:10]))["aliases"]) == 10
    author = await add_passkey_to(
        studio, await create_person_with(studio, {ROOT: holdings_with_rules("can_create_projects")})
    )
    await studio.expect_error(409, "publish", {"project": "a1"}, author.headers)


async def test_tags_of_a_project_are_replaced_with_can_manage_project(studio: Studio) -> None:
    body = {"data": {"id": PROJECT, "tags": ["a:b"]}}
    manager = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_manage_project")})
    publisher = await create_person_with(studio, {ROOT: holdings_with_rules("can_publish_services")})
    for who in (publisher, studio.other_user):
        await studio.expect_error(403, "project/tags", body, who.headers)
    assert (await studio.expect_ok("project/tags", body, manager.headers))["data"]["tags"] == ["a:b"]
    assert (await get(studio, studio.owner))["tags"] == ["a:b"]
    await studio.expect_error(400, "project/tags", {"data": {"id": PROJECT, "tags": ["a-b"]}}, manager.headers)
    old = {"data": {"id": PROJECT, "tags": [], "version": 1}}
    await studio.expect_error(409, "project/tags", old, manager.headers)


async def test_pa_13_an_unknown_project_is_no_different_from_a_foreign_one(studio: Studio) -> None:
    await other_project_application(studio)
    for action in ("get", "save", "delete"):
        foreign, unknown = [
            await studio.post("project", {"action": action, "data": {"id": name}}, studio.owner.headers)
            for name in ("elsewhere", "unheard_of")
        ]
        assert (foreign.status_code, foreign.content) == (unknown.status_code, unknown.content)
        assert foreign.status_code == 403
    boss = await create_administrator(studio)
    await studio.expect_error(404, "project", {"action": "get", "data": {"id": "unheard_of"}}, boss.headers)


# -- services -----------------------------------------------------------------------------------------


async def test_pr_10_only_what_can_be_connected_is_connected(studio: Studio) -> None:
    storage = studio.service.services.storage
    theirs = await other_project_application(studio)
    await storage.groups.create_group(a_group(), [a_record()])
    hidden = a_role("hidden", protected=True)
    service = await create_application(storage, "moderator", hidden, name="Chat", service_meta={"name": "Chat"})
    owner = studio.owner
    for settings in (
        connecting_services(theirs),
        connecting_services(1),
        connecting_services(999_999),
        connecting_services(service, grant("moderator", group_id=FOREIGN_GROUP)),
        connecting_services(service, grant("moderator", group_id="0" * 24)),
        connecting_services(service, grant("unheard_of")),
        connecting_services(service, grant("hidden")),
        connecting_services(service, grant("moderator", action="give")),
        connecting_services(service, {"group_id": GROUP}),
        {"services": {"x": {}}},
        {"services": []},
        {"services": {str(service.application_id): {"colour": 1}}},
        {"colour": 1},
        {"allowed_domains": ["not a domain"]},
    ):
        await studio.expect_error(400, "project", project_request("save", settings=settings), owner.headers)
    settings = connecting_services(service, grant("Moderator"))
    saved = await save(studio, owner, settings=settings)
    assert saved["settings"]["services"] == connecting_services(service, grant("moderator"))["services"]
    assert (await get(studio, owner))["settings"] == saved["settings"]
    await save(studio, owner, settings=connecting_services(studio.shop))


async def test_connected_service_can_be_saved_back_after_it_was_unpublished(studio: Studio) -> None:
    storage = studio.service.services.storage
    service = await create_application(storage, "moderator", name="Chat", service_meta={"name": "Chat"})
    saved = await save(studio, studio.owner, settings=connecting_services(service))
    boss = await create_administrator(studio)
    removed = {"action": "save", "data": {"application_id": service.application_id, "service_meta": None}}
    await studio.expect_ok("application", removed, boss.headers)
    assert (await save(studio, studio.owner, settings=saved["settings"]))["settings"] == saved["settings"]
    await save(studio, studio.owner, settings=None)
    await studio.expect_error(
        400, "project", project_request("save", settings=saved["settings"]), studio.owner.headers
    )


async def test_a_grant_lands_in_the_members_record_of_that_application(studio: Studio) -> None:
    storage = studio.service.services.storage
    rule = {"private_data": {"user": {"kick": {"value": True}}}}
    role = a_role(meta=rule)
    service = await create_application(storage, role, name="Chat", service_meta={"name": "Chat"})
    await storage.groups.create_group(a_group(users=(studio.other_user.user_id,)), [a_record()])
    await save(studio, studio.owner, settings=connecting_services(service, grant("moderator")))

    async def short_list() -> list[str]:
        ask = own_record(service, data={"type": "list_short"})
        data: list[str] = (await studio.expect_ok("meta/data", ask, studio.other_user.headers))["data"]
        return data

    assert await short_list() == [f"{PROJECT}/user.kick"]
    await write_user_record(
        studio, studio.other_user, service.application_id, scopes={ROOT: holdings_with("moderator")}
    )
    grants = (grant("moderator"), grant("moderator", action="revoke"))
    await save(studio, studio.owner, settings=connecting_services(service, *grants))
    assert await short_list() == ["user.kick"]


# -- removing -----------------------------------------------------------------------------------------


async def test_rights_on_a_service_apply_only_while_it_is_connected(studio: Studio) -> None:
    number = studio.shop.application_id
    await save(studio, studio.owner, settings=connecting_services(studio.shop))
    who = await create_person_with(studio, {service_scope(PROJECT, number): holdings_with("service_administrator")})
    rule, role = (
        f"{PROJECT}/services/{number}/srv.can_manage_service",
        f"{PROJECT}.services.{number}/service_administrator",
    )

    async def held_data() -> tuple[list[str], list[str]]:
        listing = {
            "action": "get",
            "application_id": 1,
            "data": {"type": "list_short"},
            "options": {"with_roles": True},
        }
        data = (await studio.expect_ok("meta/data", listing, who.headers))["data"]
        return data["rules"], data["roles"]

    assert await held_data() == ([rule], [role])
    await save(studio, studio.owner, settings={})
    assert await held_data() == ([], [])
    await save(studio, studio.owner, settings=connecting_services(studio.shop))
    assert await held_data() == ([rule], [role])
    removing = {"action": "delete", "data": {"application_id": number}}
    await studio.expect_ok("application", removing, studio.owner.headers)
    assert await held_data() == ([], [])


async def test_pr_11_a_removed_project_is_refused_everywhere_and_its_id_is_spent(studio: Studio) -> None:
    storage, shop = studio.service.services.storage, studio.shop.application_id
    await storage.groups.create_group(a_group(), [a_record()])
    await save(studio, studio.owner, aliases=["minds"])
    key, service_jwt = await studio.access_key(), await studio.service_jwt()
    assert await studio.expect_ok("project", project_request("delete"), studio.owner.headers) == {"status": "OK"}
    for path, body in (
        ("project", project_request("get")),
        ("project", project_request("save", description="x")),
        ("project", project_request("delete")),
        ("project/membership", project_request("get")),
        ("project/membership", project_request("save")),
        ("group", {"action": "get", "data": {"project_id": PROJECT}}),
        ("group", {"action": "save", "data": {"project_id": PROJECT, "title": "New"}}),
        ("group", {"action": "delete", "group_id": GROUP}),
        ("group/access", {"group_id": GROUP, "data": {"users": []}}),
        ("application", {"action": "get", "data": {"application_id": shop}}),
        ("application", {"action": "save", "data": {"name": "x", "project_id": PROJECT}}),
        ("accessKey", {"action": "get", "application_id": shop}),
        ("meta/schema", {"action": "get", "application_id": shop}),
        ("roles", {"action": "get", "application_id": shop}),
    ):
        await studio.expect_error(403, path, body, studio.owner.headers)
    await studio.expect_error(401, "meta/data", own_record(studio.shop, jwt=studio.owner.jwt), bearer_headers(key))
    beside = bearer_headers(studio.owner.jwt, Service_Jwt=service_jwt)
    await studio.expect_error(401, "meta/data", own_record(studio.shop), beside)
    assert (await studio.expect_ok("meta/data", own_record(studio.shop), studio.owner.headers))["data"] == []
    assert (await studio.expect_ok("user/info", {}, studio.owner.headers))["projects"] == 0
    boss = await add_passkey_to(studio, await create_administrator(studio))
    for title in ("Mind Games", "minds"):
        await studio.expect_error(409, "publish", {"project": title}, boss.headers)
    assert (await get(studio, boss))["removed"] is True
    await studio.expect_error(409, "project", project_request("save", removed=False), boss.headers)
    await studio.expect_error(409, "project/membership", project_request("save", users={}), boss.headers)
    assert len(await audit_records(studio, AuditEvent.PROJECT_REMOVED)) == 1


async def test_people_of_a_removed_project_keep_what_they_have_elsewhere(studio: Studio) -> None:
    await other_project_application(studio)
    both = {
        IN_PROJECT: holdings_with_rules("project.can_view_project"),
        Scope("elsewhere"): holdings_with_rules("project.can_view_project"),
    }
    viewer = await create_person_with(studio, both)
    await studio.expect_ok("project", project_request("delete"), studio.owner.headers)
    await studio.expect_error(403, "project", project_request("get"), viewer.headers)
    await studio.expect_ok("project", {"action": "get", "data": {"id": "elsewhere"}}, viewer.headers)


async def test_pr_14_who_runs_one_project_reaches_nothing_of_another(studio: Studio) -> None:
    theirs = (await other_project_application(studio)).application_id
    for path, body in (
        *(("project", {"action": action, "data": {"id": "elsewhere"}}) for action in ("get", "save", "delete")),
        *(("project/membership", {"action": action, "data": {"id": "elsewhere"}}) for action in ("get", "save")),
        ("project/tags", {"data": {"id": "elsewhere", "tags": []}}),
        ("group", {"action": "get", "data": {"project_id": "elsewhere"}}),
        ("group", {"action": "save", "data": {"project_id": "elsewhere", "title": "New"}}),
        ("group", {"action": "save", "group_id": FOREIGN_GROUP, "data": {"title": "New"}}),
        ("group", {"action": "save", "group_id": FOREIGN_GROUP, "data": {"title": "New", "project_id": PROJECT}}),
        ("group", {"action": "delete", "group_id": FOREIGN_GROUP}),
        ("group/access", {"group_id": FOREIGN_GROUP, "data": {"users": []}}),
        ("group/tags", {"group_id": FOREIGN_GROUP, "data": {"tags": []}}),
        ("application", {"action": "get", "data": {"application_id": theirs, "project_id": PROJECT}}),
        ("application", {"action": "save", "data": {"application_id": theirs, "project_id": PROJECT}}),
        ("application", {"action": "delete", "data": {"application_id": theirs}}),
        ("application/tags", {"application_id": theirs, "data": {"tags": []}}),
        *(("application/keys", {"action": action, "application_id": theirs, "data": {}}) for action in ("get",)),
        *(("accessKey", {"action": action, "application_id": theirs, "data": {}}) for action in ("get", "save")),
        *(
            ("roles", {"action": action, "application_id": theirs, "data": {"name": "x"}})
            for action in ("get", "save")
        ),
        ("roles", {"action": "delete", "application_id": theirs, "data": {"name": "moderator"}}),
        *(("meta/schema", {"action": action, "application_id": theirs, "data": {}}) for action in ("get", "save")),
    ):
        await studio.expect_error(403, path, body, studio.owner.headers)
    scope = application_scope("elsewhere", theirs)
    access = {scope.project_id: {"applications": {scope.resource_id: {"roles": ["app_developer"]}}}}
    data = {"user_id": studio.owner.user_id, "private_data": {"projectAccess": access}}
    await studio.expect_error(
        403, "meta/data", {"action": "save", "application_id": 1, "data": data}, studio.owner.headers
    )


async def test_rights_granted_by_a_project_end_when_the_application_moves_away(studio: Studio) -> None:
    storage, shop = studio.service.services.storage, studio.shop.application_id
    await publish(storage, a_project("Elsewhere"), owners=[studio.owner.user_id])
    role = {"name": "moderator", "permissions": [{"name": "user.kick", "value": True}]}
    await studio.expect_ok("roles", {"action": "save", "application_id": shop, "data": role}, studio.owner.headers)
    await storage.groups.create_group(a_group(users=(studio.other_user.user_id,)), [a_record()])
    await save(studio, studio.owner, settings=connecting_services(shop, grant("moderator")))

    async def held_data() -> object:
        ask = {**own_record(studio.shop), "data": {"type": "list_short"}}
        return (await studio.expect_ok("meta/data", ask, studio.other_user.headers))["data"]

    assert await held_data() == [f"{PROJECT}/user.kick"]
    moved = {"action": "save", "data": {"application_id": shop, "project_id": "elsewhere"}}
    await studio.expect_ok("application", moved, studio.owner.headers)
    assert await held_data() == []
    published = {"action": "save", "data": {"application_id": shop, "service_meta": {"name": "Shop"}}}
    await studio.expect_ok("application", published, (await create_administrator(studio)).headers)
    assert await held_data() == [f"{PROJECT}/user.kick"]


async def test_the_users_that_the_conditions_of_an_application_name_are_limited(studio: Studio) -> None:
    def request_naming(name: str, count: int) -> dict[str, object]:
        condition = {"uid": [str(1_000_000 + n) for n in range(count)]}
        data = {"name": name, "condition": condition}
        return {"action": "save", "application_id": studio.shop.application_id, "data": data}

    for number in range(10):
        await studio.expect_ok("roles", request_naming(f"r{number}", 1_000), studio.owner.headers)
    error = await studio.expect_error(400, "roles", request_naming("more", 1), studio.owner.headers)
    assert error == "the conditions of an application's roles can name at most 10000 users in total"
    await studio.expect_ok("roles", request_naming("r0", 999), studio.owner.headers)
    await studio.expect_ok("roles", request_naming("more", 1), studio.owner.headers)
    assert "at most 1000 users" in await studio.expect_error(
        400, "roles", request_naming("r1", 1_001), studio.owner.headers
    )
