"""Users' records (interface §2.9, §4.5, R5, R6; checklist section 12)."""

from typing import Any

import pytest

from gatehouse.audit.events import AuditEvent
from gatehouse.permissions.model.facts import Assignment
from gatehouse.permissions.model.rules import ROOT, End, Scope, application_scope
from tests.support.permission_builders import (
    a_project,
    create_application,
    holdings_with,
    publish,
    set_project_fields,
)
from tests.support.studio import (
    FACTOR,
    IN_PROJECT,
    PROJECT,
    SPELLED_LIKE_NO_PROJECT,
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

KICK = {"user": {"kick": {"value": True}}}
BADGE = {"badge": {"value": True}}
SECTIONS = {"roles": "roles", "private": "private_data", "public": "public_data", "secret": "secret_data"}


def save_request(studio: Studio, user_id: str, **data: object) -> dict[str, object]:
    return {
        "action": "save",
        "application_id": studio.shop.application_id,
        "data": {"user_id": user_id, **data},
    }


def get_request(studio: Studio, user_id: str, kind: str = "tree", **options: object) -> dict[str, object]:
    data = {"user_id": user_id, "type": kind}
    return {"action": "get", "application_id": studio.shop.application_id, "data": data, "options": options}


async def save(studio: Studio, who: Person, user_id: str, **data: object) -> Any:
    return (await studio.expect_ok("meta/data", save_request(studio, user_id, **data), who.headers))["data"]


async def get(studio: Studio, who: Person, user_id: str, kind: str = "tree", **options: object) -> Any:
    return (await studio.expect_ok("meta/data", get_request(studio, user_id, kind, **options), who.headers))["data"]


async def with_roles(studio: Studio, *names: str, **roles: object) -> None:
    wanted = {**{name: {"meta": {"private_data": KICK}} for name in names}, **roles}
    body = {"action": "save", "application_id": studio.shop.application_id, "data": {"roles": wanted}}
    await studio.expect_ok("meta/schema", body, studio.owner.headers)


def all_of(**parts: tuple[str, str]) -> dict[str, object]:
    return secret_document(**{**dict.fromkeys(SECTIONS, ("none", "none")), **parts})


# -- read and write access ----------------------------------------------------------------------------

CONTENT: dict[str, object] = {
    "roles": ["Mod"],
    "private": KICK,
    "public": BADGE,
    "secret": {"application": {"canRead": {"value": False}}},
}
EXTENTS = ("none", "self", "all")


@pytest.mark.parametrize("part", SECTIONS)
async def test_sc_05_each_section_is_read_as_far_as_it_is_opened(studio: Studio, part: str) -> None:
    await with_roles(studio, "Mod")
    other = await create_person_with(studio)
    everything = {SECTIONS[name]: content for name, content in CONTENT.items()}
    boss = await create_administrator(studio)
    await save(studio, boss, other.user_id, **everything)
    for extent in EXTENTS:
        reader = await create_person_with(studio, secret_data=all_of(**{part: (extent, "none")}))
        own = await get(studio, reader, reader.user_id)
        assert own.keys() == {"login", "private_data", "public_data", "roles", "secret_data", "version"}
        if extent != "all":
            await studio.expect_error(403, "meta/data", get_request(studio, other.user_id), reader.headers)
            continue
        seen = await get(studio, reader, other.user_id)
        assert seen.keys() == {SECTIONS[part], "version"} | ({"login"} if part == "secret" else set())
        assert seen[SECTIONS[part]] == CONTENT[part]


@pytest.mark.parametrize("part", SECTIONS)
async def test_sc_05_each_section_is_written_as_far_as_it_is_opened(studio: Studio, part: str) -> None:
    await with_roles(studio, "Mod")
    other = await create_person_with(studio)
    for extent in EXTENTS:
        writer = await create_person_with(studio, secret_data=all_of(**{part: ("none", extent)}))
        for target, allowed in ((writer.user_id, extent != "none"), (other.user_id, extent == "all")):
            for name, section in SECTIONS.items():
                status = 200 if allowed and name == part else 403
                body = save_request(studio, target, **{section: CONTENT[name]})
                if name == part == "secret" and target == writer.user_id:
                    body = save_request(studio, target, secret_data=all_of(secret=("none", extent)))
                response = await studio.post("meta/data", body, writer.headers)
                assert response.status_code == status, (extent, section, response.text)
                if status == 200 and target != writer.user_id:
                    assert response.json()["data"].keys() == {"version"}
            login = await studio.post("meta/data", save_request(studio, target, login={}), writer.headers)
            assert login.status_code == (200 if allowed and part == "secret" else 403)


async def test_a_save_answers_the_tree_as_far_as_its_author_may_read_it(studio: Studio) -> None:
    await with_roles(studio, "Mod")
    boss, other = await create_administrator(studio), await create_person_with(studio)
    await save(studio, boss, other.user_id, secret_data=secret_document("canRead"), private_data=KICK)
    writer = await create_person_with(studio, secret_data=all_of(roles=("all", "all"), public=("none", "all")))
    assert await save(studio, writer, other.user_id, roles=["Mod"]) == {"roles": ["Mod"], "version": 2}
    assert await save(studio, writer, other.user_id, public_data=BADGE) == {"roles": ["Mod"], "version": 3}


async def test_sc_07_a_save_is_all_or_nothing(studio: Studio) -> None:
    other = await create_person_with(studio)
    writer = await create_person_with(studio, secret_data=all_of(public=("all", "all")))
    both = save_request(studio, other.user_id, public_data=BADGE, secret_data=secret_document("canSave"))
    await studio.expect_error(403, "meta/data", both, writer.headers)
    boss = await create_administrator(studio)
    half = save_request(studio, other.user_id, public_data=BADGE, roles=["unheard_of"])
    await studio.expect_error(404, "meta/data", half, boss.headers)
    half = save_request(studio, other.user_id, public_data=BADGE, private_data={"badge": {"value": True}})
    await studio.expect_error(400, "meta/data", half, boss.headers)
    seen = await get(studio, boss, other.user_id)
    assert (seen["public_data"], seen["secret_data"], seen["version"]) == ({}, {}, 0)


async def test_sc_08_no_one_grants_themselves_more_than_they_may_grant(studio: Studio) -> None:
    ban = {"private_data": {"ban": {"value": True}}}
    schema = {
        "private_data": {"ban": {"value": False, "protected": True}},
        "roles": {"Guard": {"protected": True, "meta": ban}, "Mod": {"meta": {"private_data": KICK}}},
    }
    body = {"action": "save", "application_id": studio.shop.application_id, "data": schema}
    await studio.expect_ok("meta/schema", body, studio.owner.headers)
    me = await create_person_with(studio, secret_data=all_of(roles=("self", "self"), private=("self", "self")))
    await studio.expect_error(403, "meta/data", save_request(studio, me.user_id, roles=["Guard"]), me.headers)
    await studio.expect_error(403, "meta/data", save_request(studio, me.user_id, **ban), me.headers)
    await studio.expect_error(404, "meta/data", save_request(studio, me.user_id, roles=["project_owner"]), me.headers)
    await save(studio, me, me.user_id, roles=["Mod"])
    sly = await create_person_with(
        studio, secret_data=all_of(roles=("self", "self"), private=("self", "self")), application_id=1
    )
    central = {"action": "save", "application_id": 1}
    for data in (
        {"roles": ["administrator"]},
        {"roles": ["project_owner"]},
        {"roles": ["app_developer"]},
        {"private_data": {"can_create_projects": {"value": True}}},
        {"private_data": {"can_administer": {"value": True}}},
        {"private_data": {"project": {"can_view_project": {"value": True}}}},
        {"private_data": {"projectAccess": {PROJECT: {"roles": ["project_administrator"]}}}},
    ):
        await studio.expect_error(403, "meta/data", {**central, "data": data}, sly.headers)


async def test_no_one_assigns_secret_data_they_do_not_hold_or_for_longer(studio: Studio) -> None:
    other, now = await create_person_with(studio), studio.service.clock.now()
    giver = await create_person_with(
        studio, secret_data=secret_document("canRead", secret=("all", "all"), roles=("self", "none"))
    )
    for wanted in (
        secret_document("canSave"),
        secret_document("canModifySchema"),
        secret_document(roles=("all", "none")),
        secret_document(roles=("none", "self")),
        secret_document(private=("all", "all")),
    ):
        await studio.expect_error(
            403, "meta/data", save_request(studio, other.user_id, secret_data=wanted), giver.headers
        )
    await save(studio, giver, other.user_id, secret_data=secret_document("canRead", roles=("self", "none")))
    boss = await create_administrator(studio)
    short = {"application": {"canSave": {"value": True, "expired": now + 60}}}
    await save(studio, boss, other.user_id, secret_data=short)
    endless = save_request(studio, other.user_id, secret_data=secret_document("canSave"))
    await studio.expect_error(403, "meta/data", endless, giver.headers)
    with_more = {**short, "meta": {"roles": {"canRead": {"value": "self"}}}}
    await save(studio, giver, other.user_id, secret_data=with_more)
    await save(studio, giver, other.user_id, secret_data=None)
    narrowed = {"meta": {"public": {"canRead": {"value": "none"}}}}
    await save(studio, boss, other.user_id, secret_data=narrowed)
    blind = await create_person_with(studio, secret_data=all_of(secret=("all", "all")))
    back_to_default = save_request(studio, other.user_id, secret_data={})
    await studio.expect_error(403, "meta/data", back_to_default, blind.headers)


async def test_secret_data_that_has_ended_opens_nothing(studio: Studio) -> None:
    now = studio.service.clock.now()
    ending = {"meta": {"private": {"canRead": {"value": "all", "expired": now + 60}}}}
    reader = await create_person_with(studio, secret_data=ending)
    await save(studio, studio.owner, studio.other_user.user_id, private_data=KICK)
    assert "private_data" in await get(studio, reader, studio.other_user.user_id)
    await studio.service.clock.advance(60)
    assert "private_data" not in await get(studio, reader, studio.other_user.user_id)


async def test_project_access_is_judged_project_by_project(studio: Studio) -> None:
    await publish(studio.service.services.storage, a_project("Elsewhere"), owners=[studio.other_user.user_id])
    await with_roles(studio, "Mod")
    other = await create_person_with(studio)
    manager = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_manage_project")})
    here = {"projectAccess": {PROJECT: {"roles": ["Mod"], "private_data": {"x": {"value": True}}}}}
    await studio.expect_ok("meta/data", save_request(studio, other.user_id, private_data=here), manager.headers)
    assert await get(studio, other, other.user_id, "list_short") == [f"{PROJECT}/user.kick", f"{PROJECT}/x"]
    there = {"projectAccess": {**here["projectAccess"], "elsewhere": {"roles": ["Mod"]}}}
    for who in (manager, studio.owner):
        response = await studio.post(
            "meta/data", save_request(studio, other.user_id, private_data=there), who.headers
        )
        assert response.status_code == 403
    boss = await create_administrator(studio)
    error = await studio.expect_error(
        400, "meta/data", save_request(studio, other.user_id, private_data=there), boss.headers
    )
    assert "elsewhere" in error
    for nothing in ({}, None, {PROJECT: {}}, {"unheard_of": {}}):
        body = save_request(studio, other.user_id, private_data={"projectAccess": nothing})
        await studio.expect_error(403, "meta/data", body, studio.other_user.headers)
    unknown = {"projectAccess": {"unheard_of": {"roles": ["Mod"]}}}
    await studio.expect_error(
        403, "meta/data", save_request(studio, other.user_id, private_data=unknown), manager.headers
    )
    root_too = {**KICK, **here}
    await studio.expect_error(
        403, "meta/data", save_request(studio, other.user_id, private_data=root_too), manager.headers
    )
    await studio.expect_ok(
        "meta/data", save_request(studio, other.user_id, private_data={"projectAccess": None}), manager.headers
    )
    assert await get(studio, other, other.user_id, "list_short") == []


async def test_a_central_role_in_a_project_is_given_by_who_holds_it_there(studio: Studio) -> None:
    deputy = await create_person_with(studio, {IN_PROJECT: holdings_with("project_administrator")})
    other = await create_person_with(studio)

    def central(**access: object) -> dict[str, object]:
        data = {"user_id": other.user_id, "private_data": {"projectAccess": {PROJECT: access}}}
        return {"action": "save", "application_id": 1, "data": data}

    await studio.expect_ok("meta/data", central(roles=["app_developer"]), deputy.headers)
    await studio.expect_error(403, "meta/data", central(roles=["project_owner"]), deputy.headers)
    remove = {"project": {"can_remove_project": {"value": True}}}
    await studio.expect_error(403, "meta/data", central(private_data=remove), deputy.headers)
    await studio.expect_error(400, "meta/data", central(private_data={"mine": {"value": True}}), studio.owner.headers)
    await studio.expect_ok("meta/data", central(roles=["project_owner"]), studio.owner.headers)
    await studio.expect_error(403, "meta/data", central(), deputy.headers)


# -- formats ------------------------------------------------------------------------------------------


async def person_with_everything(studio: Studio) -> Person:
    """A person with some of everything, partly expired."""
    now = studio.service.clock.now()
    await with_roles(studio, "Mod", "Old")
    who, boss = await create_person_with(studio), await create_administrator(studio)
    shop = str(studio.shop.application_id)
    access = {
        PROJECT: {
            "roles": ["Mod"],
            "public_data": {"crown": {"value": True, "params": "gold"}},
            "applications": {shop: {"roles": [{"name": "Mod", "expired": now + 100}]}},
        }
    }
    await save(
        *(studio, boss, who.user_id),
        roles=["Mod", {"name": "Old", "expired": now - 5}],
        public_data={"badge": {"value": True, "expired": now + 50}, "past": {"value": True, "expired": now - 1}},
        private_data={"direct": {"value": True}, "never": {"value": False}, "projectAccess": access},
        secret_data=secret_document("canSeeRoleList"),
        login={"cannot": {"value": False}},
    )
    return who


async def test_sc_10_lists_tell_what_counts_and_the_tree_what_is_written(studio: Studio) -> None:
    who, now = await person_with_everything(studio), studio.service.clock.now()
    shop = studio.shop.application_id
    place = f"private_data.projectAccess.{PROJECT}"
    answer = await studio.expect_ok("meta/data", own_record(studio.shop), who.headers)
    assert answer == {
        "status": "OK",
        "data": [
            "private_data.direct",
            f"{place}.applications.{shop}.private_data.user.kick",
            f"{place}.private_data.user.kick",
            f"{place}.public_data.crown|gold",
            "private_data.user.kick",
            "public_data.badge",
        ],
        "user_id": who.user_id,
        "expired": now + 50,
        "max_age": 2,
        "version": 1,
    }
    assert await get(studio, who, who.user_id, "list_short") == [
        "badge",
        "direct",
        f"{PROJECT}/applications/{shop}/user.kick",
        f"{PROJECT}/crown|gold",
        f"{PROJECT}/user.kick",
        "user.kick",
    ]
    roles = [f"{PROJECT}.applications.{shop}/Mod", f"{PROJECT}/Mod", "Mod"]
    assert sorted(await get(studio, who, who.user_id, "roles")) == sorted(roles)
    tree = await get(studio, who, who.user_id)
    assert tree["roles"] == ["Mod", {"name": "Old", "expired": now - 5}]
    assert tree["public_data"]["past"] == {"value": True, "expired": now - 1}
    assert tree["secret_data"] == {"application": {"canSeeRoleList": {"value": True}}}
    assert tree["login"] == {"cannot": {"value": False}}
    assert tree["private_data"]["projectAccess"][PROJECT]["roles"] == ["Mod"]
    assert tree["version"] == 1


async def test_with_exp_option_returns_the_seconds_left(studio: Studio) -> None:
    who = await person_with_everything(studio)
    data = await get(studio, who, who.user_id, "list_short", with_exp=True, project_id=PROJECT)
    shop = studio.shop.application_id
    assert data == [
        "badge:50",
        "direct:0",
        f"{PROJECT}/applications/{shop}/user.kick:100",
        f"{PROJECT}/crown|gold:0",
        f"{PROJECT}/user.kick:0",
        "user.kick:0",
    ]
    root = await studio.expect_ok(
        "meta/data", get_request(studio, who.user_id, "list_short", hide_project_access=True), who.headers
    )
    assert root["data"] == ["badge", "direct", "user.kick"]


async def test_sc_11_a_project_that_cannot_be_told_of_is_left_out_without_a_hint(studio: Studio) -> None:
    storage = studio.service.services.storage
    who = await person_with_everything(studio)
    await publish(storage, a_project("Elsewhere"))
    await storage.projects.edit_project(PROJECT, set_project_fields(aliases=("minds",)))
    root = ["badge", "direct", "user.kick"]
    whole = await get(studio, who, who.user_id, "list_short", project_id=PROJECT)
    assert len(whole) == 6
    assert await get(studio, who, who.user_id, "list_short", project_id="minds") == whole
    responses = [
        await studio.post("meta/data", get_request(studio, who.user_id, "list_short", **options), who.headers)
        for options in (
            {"project_id": "unheard_of"},
            {"project_id": "elsewhere"},
            {"hide_project_access": True},
            *({"project_id": name} for name in SPELLED_LIKE_NO_PROJECT),
        )
    ]
    await storage.projects.edit_project(PROJECT, set_project_fields(removed=True))
    responses.append(
        await studio.post(
            "meta/data", get_request(studio, who.user_id, "list_short", project_id=PROJECT), who.headers
        )
    )
    for response in responses:
        assert response.json()["data"] == root
    assert len({response.content for response in responses}) == 1
    assert await get(studio, who, who.user_id, "list_short") == root
    for options, projects in (
        ({}, [PROJECT]),
        ({"project_id": "unheard_of"}, []),
        ({"project_id": "elsewhere"}, []),
        ({"hide_project_access": True}, []),
    ):
        tree = await get(studio, who, who.user_id, "tree", **options)
        assert list(tree["private_data"].get("projectAccess", {})) == projects
    for strange in (5, ["minds"], {}):
        body = get_request(studio, who.user_id, "list_short", project_id=strange)
        await studio.expect_error(400, "meta/data", body, who.headers)


async def test_sc_12_with_apps_data_tells_of_what_they_may_see(studio: Studio) -> None:
    storage = studio.service.services.storage
    apps = [await create_application(storage, name=f"App {n}", project_id=PROJECT) for n in range(10)]
    await storage.projects.edit_project(PROJECT, set_project_fields(aliases=("minds",)))
    user_id = apps[3].application_id
    narrow = await create_person_with(studio, {application_scope(PROJECT, user_id): holdings_with("app_developer")})
    ask = {"action": "get", "application_id": 1, "data": {"type": "list_short"}}
    both = {**ask, "options": {"with_apps_data": True, "with_roles": True}}
    data = (await studio.expect_ok("meta/data", both, narrow.headers))["data"]
    assert data == {
        "rules": [
            f"{PROJECT}/applications/{user_id}/app.can_manage_app_api_keys",
            f"{PROJECT}/applications/{user_id}/app.can_modify_schema",
        ],
        "roles": [f"{PROJECT}.applications.{user_id}/app_developer"],
        "projects": {PROJECT: {"name": "Mind Games"}},
        "apps": {PROJECT: [{"id": user_id, "name": "App 3"}]},
    }
    viewer = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_view_project")})
    data = (await studio.expect_ok("meta/data", {**ask, "options": {"with_apps_data": True}}, viewer.headers))["data"]
    assert data["projects"] == {PROJECT: {"name": "Mind Games", "aliases": ["minds"]}}
    assert data["apps"] == {}
    wide = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_manage_applications")})
    data = (await studio.expect_ok("meta/data", {**ask, "options": {"with_apps_data": True}}, wide.headers))["data"]
    assert data.keys() == {"rules", "projects", "apps"}
    assert len(data["apps"][PROJECT]) == 11
    nothing = (await studio.expect_ok("meta/data", both, studio.other_user.headers))["data"]
    assert nothing == {"rules": [], "roles": [], "projects": {}, "apps": {}}
    for kind in ("tree", "roles"):
        for option in ("with_roles", "with_apps_data"):
            body = {**ask, "data": {"type": kind}, "options": {option: True}}
            await studio.expect_error(400, "meta/data", body, wide.headers)


async def test_types_and_options_are_those_there_are(studio: Studio) -> None:
    me = studio.owner.user_id
    for kind in ("TREE", "", "all", 5, None, ["list"]):
        body = {"action": "get", "application_id": studio.shop.application_id, "data": {"type": kind}}
        await studio.expect_error(400, "meta/data", body, studio.owner.headers)
    for options in ({"colour": 1}, {"with_exp": "true"}, {"with_exp": 1}, [], 5):
        body = {**get_request(studio, me), "options": options}
        await studio.expect_error(400, "meta/data", body, studio.owner.headers)
    assert "colour" in await studio.expect_error(
        400, "meta/data", save_request(studio, me, colour=1), studio.owner.headers
    )
    for strange in ("x", "", "0", "1\n", 5, ["1"], "9" * 30):
        await studio.expect_error(400, "meta/data", get_request(studio, strange), studio.owner.headers)  # type: ignore[arg-type]
    none = {"action": "get", "data": {}}
    await studio.expect_error(400, "meta/data", none, studio.owner.headers)


# -- saving -------------------------------------------------------------------------------------------


async def test_absent_sections_stay_null_empties_and_versions_count(studio: Studio) -> None:
    await with_roles(studio, "Mod")
    user, owner = studio.other_user.user_id, studio.owner
    first = await save(studio, owner, user, roles=["mod"], public_data=BADGE, private_data=KICK)
    assert (first["roles"], first["public_data"], first["private_data"], first["version"]) == (
        ["Mod"],
        BADGE,
        KICK,
        1,
    )
    access = {"projectAccess": {PROJECT: {"roles": ["Mod"]}}}
    saved = await save(studio, owner, user, private_data={**KICK, **access}, version=1)
    assert (saved["roles"], saved["public_data"], saved["private_data"]) == (["Mod"], BADGE, {**KICK, **access})
    await studio.expect_error(409, "meta/data", save_request(studio, user, roles=[], version=1), owner.headers)
    emptied = await save(studio, owner, user, private_data=None, public_data=None)
    assert (emptied["private_data"], emptied["public_data"], emptied["version"]) == ({}, {}, 3)
    assert (await save(studio, owner, user, roles=None))["roles"] == []
    (first_reply, *_) = await audit_records(studio, AuditEvent.USER_SCHEMA_SAVED)
    assert (first_reply.actor, first_reply.subject) == (owner.user_id, user)
    await studio.expect_error(400, "meta/data", save_request(studio, user), owner.headers)


async def test_sc_13_sc_14_entries_are_strict(studio: Studio) -> None:
    user = studio.other_user.user_id
    body = {"action": "save", "application_id": studio.shop.application_id}
    schema = {"private_data": {"user": {"kick": {"value": False}}}}
    await studio.expect_ok("meta/schema", {**body, "data": schema}, studio.owner.headers)
    for entry in (
        {"value": "true"},
        {"value": 1},
        {"value": None},
        {"value": True, "child": {"value": True}},
        {"value": True, "expired": "5"},
        {"value": True, "ttl": -1},
        {"value": True, "colour": 1},
        {"value": True, "params": ["a"]},
        {"value": True, "params": "a|b"},
        5,
    ):
        for section in ("private_data", "public_data"):
            await studio.expect_error(
                400, "meta/data", save_request(studio, user, **{section: {"x": entry}}), studio.owner.headers
            )
    for private in (
        {"a.b": {"value": True}},
        {"caf\u00e9": {"value": True}},
        {"user": {"value": True}},
        {"user": {"kick": {"hard": {"value": True}}}},
    ):
        await studio.expect_error(
            400, "meta/data", save_request(studio, user, private_data=private), studio.owner.headers
        )
    taken = {"user": {"kick": {"value": True}}}
    await studio.expect_error(400, "meta/data", save_request(studio, user, public_data=taken), studio.owner.headers)
    twins = {"Kick": {"value": True}, "kick": {"value": False}}
    assert (await save(studio, studio.owner, user, private_data=twins))["private_data"] == twins
    for bad in (5, "x", {"a": 1}, [5], [None], [["Mod"]], ["a/b"], ["Mod", "mod"]):
        await studio.expect_error(400, "meta/data", save_request(studio, user, roles=bad), studio.owner.headers)
    for access in ([], 5, {"Mind_Games": {}}, {PROJECT: 5}, {PROJECT: {"colour": 1}}):
        wrong = save_request(studio, user, private_data={"projectAccess": access})
        await studio.expect_error(400, "meta/data", wrong, studio.owner.headers)


async def test_sc_17_a_record_is_saved_for_who_never_logged_in_and_not_for_no_one(studio: Studio) -> None:
    user = await create_person_with(studio)
    saved = await save(studio, studio.owner, user.user_id, public_data=BADGE)
    assert saved["public_data"] == BADGE
    no_one = "4444444444"
    body = save_request(studio, no_one, public_data=BADGE)
    assert await studio.expect_error(404, "meta/data", body, studio.owner.headers) == "user not found"
    assert (
        await studio.expect_error(404, "meta/data", get_request(studio, no_one), studio.owner.headers)
        == "user not found"
    )
    blind = await create_person_with(studio, secret_data=all_of(secret=("self", "self")))
    foreign, unknown = [
        await studio.post("meta/data", get_request(studio, user_id), blind.headers)
        for user_id in (user.user_id, no_one)
    ]
    assert (foreign.status_code, foreign.content) == (unknown.status_code, unknown.content)
    for body in (save_request(studio, user_id, public_data=BADGE) for user_id in (user.user_id, no_one)):
        await studio.expect_error(403, "meta/data", body, blind.headers)


async def test_sc_18_roles_without_a_jwt_are_told_to_the_applications_service(studio: Studio) -> None:
    who = await person_with_everything(studio)
    body = get_request(studio, who.user_id, "roles")
    shop = studio.shop.application_id
    wanted = sorted([f"{PROJECT}.applications.{shop}/Mod", f"{PROJECT}/Mod", "Mod"])
    key, jwt = await studio.access_key(), await studio.service_jwt()
    for headers in ({"Service-Jwt": jwt}, bearer_headers(key)):
        assert sorted((await studio.expect_ok("meta/data", body, headers))["data"]) == wanted
        for kind in ("tree", "list", "list_short"):
            await studio.expect_error(401, "meta/data", get_request(studio, who.user_id, kind), headers)
        unknown = await studio.post("meta/data", get_request(studio, "4444444444", "roles"), headers)
        assert unknown.status_code == 404
    boss = await create_administrator(studio)
    new_key = {"action": "save", "application_id": studio.other.application_id, "data": {}}
    theirs = (await studio.expect_ok("accessKey", new_key, boss.headers))["data"]["hash"]
    await studio.expect_error(403, "meta/data", body, bearer_headers(theirs))
    await studio.expect_error(403, "meta/data", body, {"Service-Jwt": await studio.service_jwt(studio.other)})
    for headers in ({}, {"Factor": FACTOR}):
        await studio.expect_error(401, "meta/data", body, headers)


async def test_sc_19_the_requests_end_is_for_what_has_none(studio: Studio) -> None:
    await with_roles(studio, "Mod", "Old")
    user, now = studio.other_user.user_id, studio.service.clock.now()
    data = {
        "roles": ["Mod", {"name": "Old", "expired": now + 500}],
        "public_data": {"badge": {"value": True}, "crown": {"value": True, "ttl": 5}},
        "private_data": {"projectAccess": {PROJECT: {"roles": ["Mod"]}}},
    }
    answer = await studio.expect_ok(
        "meta/data", {**save_request(studio, user, **data), "expired": now + 100}, studio.owner.headers
    )
    assert answer["expired"] == now + 5
    assert answer["data"]["roles"] == [
        {"name": "Mod", "expired": now + 100},
        {"name": "Old", "expired": now + 500},
    ]
    assert answer["data"]["public_data"]["badge"] == {"value": True, "expired": now + 100}
    access = answer["data"]["private_data"]["projectAccess"][PROJECT]
    assert access == {"roles": [{"name": "Mod", "expired": now + 100}]}
    await studio.service.clock.advance(100)
    assert await get(studio, studio.other_user, user, "list_short") == ["crown", "user.kick"]
    for strange in (-1, "5", 1.5, True, None, now * 1_000, 2**63):
        body = {**save_request(studio, user, roles=["Mod"]), "expired": strange}
        await studio.expect_error(400, "meta/data", body, studio.owner.headers)
    past = await studio.expect_ok(
        "meta/data", {**save_request(studio, user, roles=["Mod"]), "expired": 5}, studio.owner.headers
    )
    assert past["data"]["roles"] == [{"name": "Mod", "expired": 5}]


async def test_sc_21_each_request_is_decided_by_itself(studio: Studio) -> None:
    meta = {"meta": {"private_data": KICK}}
    await with_roles(studio, Inside={**meta, "condition": {"ip": "10.0.0.0/8"}})
    key, who = await studio.access_key(), studio.other_user

    async def list_from(address: str) -> Any:
        body = own_record(studio.shop, data={"type": "list_short"}, ip=address, ts=studio.service.clock.now())
        raw, headers = signed_request(body, key, studio.shop)
        address = "/api/permissions/meta/data"
        response = await studio.service.client.post(address, content=raw, headers=headers | bearer_headers(who.jwt))
        return response.json()["data"]

    for _ in range(3):
        assert await list_from("10.1.1.1") == ["user.kick"]
        assert await list_from("11.1.1.1") == []
    boss = await create_administrator(studio)
    assert await get(studio, studio.owner, who.user_id, "list_short") == []
    staff = {"meta": {"public_data": BADGE}, "condition": {"tag": "staff"}}
    buyer = {"meta": {"public_data": {"crown": {"value": True}}}, "condition": {"purchase": "gold"}}
    await with_roles(studio, Staff=staff, Buyer=buyer)
    for path, field, value, rule in (
        ("user/tags", "tags", "staff", "badge"),
        ("user/purchases", "purchases", "gold", "crown"),
    ):
        for values, expected in (([], []), ([value], [rule]), ([], [])):
            await studio.expect_ok(path, {"data": {"user_id": who.user_id, field: values}}, boss.headers)
            assert await get(studio, who, who.user_id, "list_short") == expected


async def test_a_list_can_be_kept_and_asked_for_again_by_its_etag(studio: Studio) -> None:
    await with_roles(studio, "Mod")
    me, body = studio.other_user, get_request(studio, studio.other_user.user_id, "list")
    first = await studio.post("meta/data", body, me.headers)
    assert (first.headers["cache-control"], first.headers["vary"]) == ("private, no-cache", "Authorization")
    again = {**me.headers, "If-None-Match": first.headers["etag"]}
    same = await studio.post("meta/data", body, again)
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", first.headers["etag"])
    await save(studio, studio.owner, me.user_id, roles=["Mod"])
    response = await studio.post("meta/data", body, again)
    assert (response.status_code, response.json()["data"]) == (200, ["private_data.user.kick"])
    await studio.expect_error(401, "meta/data", body, {"If-None-Match": first.headers["etag"]})


async def test_rules_of_an_application_of_a_removed_project_are_not_written(studio: Studio) -> None:
    await studio.service.services.storage.projects.edit_project(PROJECT, set_project_fields(removed=True))
    body = save_request(studio, studio.other_user.user_id, public_data=BADGE)
    await studio.expect_error(403, "meta/data", body, studio.owner.headers)


async def test_pa_13_an_unknown_application_is_no_different_from_a_foreign_one(studio: Studio) -> None:
    for number in (studio.other.application_id, 999_999):
        body = {"action": "save", "application_id": number, "data": {"user_id": studio.owner.user_id, "roles": []}}
        await studio.expect_error(403, "meta/data", body, studio.other_user.headers)
    boss = await create_administrator(studio)
    body = {"action": "save", "application_id": 999_999, "data": {"roles": []}}
    await studio.expect_error(404, "meta/data", body, boss.headers)


async def test_tags_and_purchases_are_written_by_administrators(studio: Studio) -> None:
    boss = await create_administrator(studio)
    who = await create_person_with(
        studio, {ROOT: holdings_with_rules("can_create_projects"), Scope(PROJECT): holdings_with("project_owner")}
    )
    for path, field in (("user/tags", "tags"), ("user/purchases", "purchases")):
        body = {"data": {"user_id": studio.other_user.user_id, field: ["b", "a"]}}
        await studio.expect_error(403, path, body, who.headers)
        answer = await studio.expect_ok(path, body, boss.headers)
        assert answer["data"] == {"user_id": studio.other_user.user_id, field: ["a", "b"]}
        unknown = {"data": {"user_id": "4444444444", field: []}}
        assert await studio.expect_error(404, path, unknown, boss.headers) == "user not found"
        for bad in (["a", "a"], [5], "a", ["x" * 1_000], ["a\n"]):
            await studio.expect_error(
                400, path, {"data": {"user_id": studio.other_user.user_id, field: bad}}, boss.headers
            )
        cleared = await studio.expect_ok(
            path, {"data": {"user_id": studio.other_user.user_id, field: None}}, boss.headers
        )
        assert cleared["data"] == {"user_id": studio.other_user.user_id, field: []}


async def test_user_record_can_be_saved_back_as_read(studio: Studio) -> None:
    who = await person_with_everything(studio)
    boss = await create_administrator(studio)
    tree = await get(studio, boss, who.user_id)
    sections = {name: section for name, section in tree.items() if name != "version"}
    assert await save(studio, boss, who.user_id, **sections, version=1) == {**tree, "version": 2}
    await write_user_record(studio, who, studio.shop.application_id)


# -- escalation ---------------------------------------------------------------------------------------


async def test_project_access_of_a_stranger_is_nothing_to_a_visitor(studio: Studio) -> None:
    """Not that they exist, nor what they have, nor its version: each response is the same (R6, checklist PA-13)."""
    owns, manages = {"roles": ["project_owner"]}, {"roles": ["project_administrator"]}
    answers = set()
    for application_id in (1, studio.shop.application_id, studio.other.application_id, 999_999):
        for user_id in (studio.owner.user_id, "4444444444", studio.other_user.user_id):
            for access in (None, {}, {PROJECT: owns}, {PROJECT: manages}, {PROJECT: "?"}, {"nowhere": owns}):
                data = {"user_id": user_id, "version": 77, "private_data": {"projectAccess": access}}
                body = {"action": "save", "application_id": application_id, "data": data}
                response = await studio.post("meta/data", body, studio.other_user.headers)
                answers.add((response.status_code, response.content))
    assert [status for status, _ in answers] == [403]
    assert not await audit_records(studio, AuditEvent.USER_SCHEMA_SAVED)


async def test_project_manager_writes_only_to_applications_of_the_project(studio: Studio) -> None:
    manager = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_manage_project")})
    for access in ({PROJECT: {}}, {PROJECT: {"roles": []}}, {}):
        body = {
            "action": "save",
            "application_id": studio.other.application_id,
            "data": {"user_id": studio.owner.user_id, "private_data": {"projectAccess": access}},
        }
        await studio.expect_error(403, "meta/data", body, manager.headers)
    about_shop = save_request(studio, studio.other_user.user_id, private_data={"projectAccess": {PROJECT: {}}})
    await studio.expect_ok("meta/data", about_shop, manager.headers)


async def test_secret_data_with_an_end_is_given_on_with_an_end_no_later(studio: Studio) -> None:
    now = studio.service.clock.now()

    def rights_until(end: int | None) -> dict[str, object]:
        more = {} if end is None else {"expired": end}
        return {
            "application": {"canSave": {"value": True, **more}},
            "meta": {"secret": {"canRead": {"value": "self"}, "canWrite": {"value": "self", **more}}},
        }

    who = await create_person_with(studio, secret_data=rights_until(now + 60))
    for end in (None, now + 61):
        await studio.expect_error(
            403, "meta/data", save_request(studio, who.user_id, secret_data=rights_until(end)), who.headers
        )
    forever = {**rights_until(now + 60), "application": {"canSave": {"value": True, "ttl": 5}}}
    await studio.expect_error(403, "meta/data", save_request(studio, who.user_id, secret_data=forever), who.headers)
    await save(studio, who, who.user_id, secret_data=rights_until(now + 60))
    await save(studio, who, who.user_id, secret_data=rights_until(now + 30))


async def test_secret_data_that_central_gives_ends_with_what_gives_it(studio: Studio) -> None:
    shop, now = studio.shop.application_id, studio.service.clock.now()
    scope, role = application_scope(PROJECT, shop), Assignment(role="app_developer", end=End(expired=now + 60))
    who = await create_person_with(
        studio, {scope: holdings_with(role)}, secret_data=secret_document(secret=("all", "all"))
    )

    def grant_request(**end: int) -> dict[str, object]:
        return save_request(
            studio,
            studio.other_user.user_id,
            secret_data={"application": {"canModifySchema": {"value": True, **end}}},
        )

    for end in ({}, {"expired": now + 61}):
        await studio.expect_error(403, "meta/data", grant_request(**end), who.headers)
    await studio.expect_ok("meta/data", grant_request(expired=now + 60), who.headers)
    lasting = await create_person_with(
        studio, {scope: holdings_with("app_developer")}, secret_data=secret_document(secret=("all", "all"))
    )
    await studio.expect_ok("meta/data", grant_request(), lasting.headers)


async def test_a_restriction_of_secret_data_is_lifted_by_who_could_give_it_whole(studio: Studio) -> None:
    shop, now = studio.shop.application_id, studio.service.clock.now()
    denied = {
        "application": {"canModifySchema": {"value": False}},
        "meta": {
            "public": {"canRead": {"value": "self"}, "canWrite": {"value": "none"}},
            "private": {"canWrite": {"value": "self"}},
        },
    }
    scope = application_scope(PROJECT, shop)
    developer = await create_person_with(
        studio, {scope: holdings_with("app_developer", "app_users_manager")}, secret_data=denied
    )
    keeper = await create_person_with(
        studio, secret_data=secret_document(secret=("all", "all"), public=("self", "none"))
    )
    sooner = {**denied, "application": {"canModifySchema": {"value": False, "expired": now + 5}}}
    for lifted in (
        {},
        None,
        sooner,
        {name: part for name, part in denied.items() if name != "application"},
        {name: part for name, part in denied.items() if name != "meta"},
        {**denied, "meta": {**denied["meta"], "public": {"canRead": {"value": "self"}}}},
        {**denied, "meta": {**denied["meta"], "public": {"canWrite": {"value": "none"}}}},
        {**denied, "meta": {**denied["meta"], "public": {**denied["meta"]["public"], "canWrite": {"value": "self"}}}},
    ):
        body = save_request(studio, developer.user_id, secret_data=lifted)
        await studio.expect_error(403, "meta/data", body, keeper.headers)
    narrower = {**denied, "meta": {**denied["meta"], "private": {"canWrite": {"value": "none"}}}}
    await save(studio, keeper, developer.user_id, secret_data=narrower)
    await save(studio, await create_administrator(studio), developer.user_id, secret_data={})


async def test_the_last_who_administers_neither_ends_nor_denies_it(studio: Studio) -> None:
    boss, now = await create_administrator(studio), studio.service.clock.now()

    def change_request(user_id: str, **data: object) -> dict[str, object]:
        return {"action": "save", "application_id": 1, "data": {"user_id": user_id, **data}}

    ending = [{"name": "administrator", "expired": now + 60}]
    denied = {"can_administer": {"value": False}}
    for data in ({"roles": []}, {"roles": ending}, {"private_data": denied}):
        await studio.expect_error(409, "meta/data", change_request(boss.user_id, **data), boss.headers)
    guest = studio.other_user.user_id
    await studio.expect_ok("meta/data", change_request(guest, roles=ending), boss.headers)
    await studio.expect_error(409, "meta/data", change_request(boss.user_id, roles=[]), boss.headers)
    await studio.expect_ok(
        "meta/data", change_request(guest, roles=["administrator"], private_data=denied), boss.headers
    )
    await studio.expect_error(409, "meta/data", change_request(boss.user_id, roles=[]), boss.headers)
    await studio.expect_ok("meta/data", change_request(guest, private_data=None), boss.headers)
    await studio.expect_ok("meta/data", change_request(boss.user_id, roles=ending), boss.headers)


# -- a record saved with parts left out ---------------------------------------------------------------

HELD_HERE = {"projectAccess": {PROJECT: {"roles": ["Mod"]}}}


async def test_sc_22_private_data_saved_back_without_its_last_entry_removes_it(studio: Studio) -> None:
    await with_roles(studio, "Mod")
    user, owner = studio.other_user.user_id, studio.owner
    await save(studio, owner, user, private_data={**KICK, **HELD_HERE})
    record = await get(studio, owner, user)
    del record["private_data"]["user"]
    assert (await save(studio, owner, user, **record))["private_data"] == HELD_HERE
    assert await get(studio, studio.other_user, user, "list_short", hide_project_access=True) == []


@pytest.mark.parametrize("left", [KICK, {**KICK, "projectAccess": {}}, {**KICK, "projectAccess": {PROJECT: {}}}])
async def test_sc_22_private_data_saved_back_without_its_last_project_removes_it(
    studio: Studio, left: dict[str, object]
) -> None:
    await with_roles(studio, "Mod")
    user, owner = studio.other_user.user_id, studio.owner
    await save(studio, owner, user, private_data={**KICK, **HELD_HERE})
    assert (await save(studio, owner, user, private_data=left))["private_data"] == KICK
    assert await get(studio, studio.other_user, user, "list_short") == ["user.kick"]


async def test_sc_22_what_a_caller_may_not_remove_is_refused_and_kept(studio: Studio) -> None:
    await with_roles(studio, "Mod")
    other, boss = await create_person_with(studio), await create_administrator(studio)
    private_data = {**KICK, **HELD_HERE}
    await save(studio, boss, other.user_id, private_data=private_data)
    writer = await create_person_with(studio, secret_data=all_of(private=("all", "all")))
    await studio.expect_error(
        403, "meta/data", save_request(studio, other.user_id, private_data=KICK), writer.headers
    )
    manages = {IN_PROJECT: holdings_with_rules("project.can_manage_project")}
    reader = await create_person_with(studio, manages, secret_data=all_of(private=("all", "none")))
    for left in (HELD_HERE, {"projectAccess": {}}, {"user": {"mute": {"value": True}}}, None):
        body = save_request(studio, other.user_id, private_data=left)
        await studio.expect_error(403, "meta/data", body, reader.headers)
    assert (await get(studio, boss, other.user_id))["private_data"] == private_data
    assert (await save(studio, reader, other.user_id, private_data=KICK))["private_data"] == KICK


async def test_sc_22_a_manager_who_reads_nothing_saves_projects_and_keeps_the_rest(studio: Studio) -> None:
    await with_roles(studio, "Mod")
    other, boss = await create_person_with(studio), await create_administrator(studio)
    await save(studio, boss, other.user_id, private_data=KICK)
    manager = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_manage_project")})
    await studio.expect_ok("meta/data", save_request(studio, other.user_id, private_data=HELD_HERE), manager.headers)
    assert (await get(studio, boss, other.user_id))["private_data"] == {**KICK, **HELD_HERE}
    for guess in (KICK, {**KICK, **HELD_HERE}, None, {}):
        await studio.expect_error(
            403, "meta/data", save_request(studio, other.user_id, private_data=guess), manager.headers
        )


@pytest.mark.parametrize(
    ("section", "content"),
    [
        ("roles", ["Mod"]),
        ("public_data", BADGE),
        ("private_data", KICK),
        ("secret_data", {"application": {"canRead": {"value": True}}}),
        ("login", {"cannot": {"value": True}}),
    ],
)
async def test_sc_22_a_section_saved_back_empty_is_empty(studio: Studio, section: str, content: object) -> None:
    await with_roles(studio, "Mod")
    boss, user = await create_administrator(studio), studio.other_user.user_id
    for nothing in ([] if section == "roles" else {}, None):
        assert (await save(studio, boss, user, **{section: content}))[section] == content
        assert not (await save(studio, boss, user, **{section: nothing}))[section]


async def test_sc_22_an_entry_of_one_project_saved_back_without_it_is_removed(studio: Studio) -> None:
    await with_roles(studio, "Mod")
    owner, user = studio.owner, studio.other_user.user_id
    shop = str(studio.shop.application_id)
    whole = {"roles": ["Mod"], "public_data": BADGE, "applications": {shop: {"private_data": KICK}}}
    for removed in whole:
        await save(studio, owner, user, private_data={"projectAccess": {PROJECT: whole}})
        left = {name: entry for name, entry in whole.items() if name != removed}
        saved = await save(studio, owner, user, private_data={"projectAccess": {PROJECT: left}})
        assert saved["private_data"] == {"projectAccess": {PROJECT: left}}
