"""Applications: create, read, save, move, remove (interface §4.4, R5, R6; checklist section 8)."""

import asyncio
import json
from typing import Any

import pytest

from gatehouse.audit.events import AuditEvent
from gatehouse.keys.key_objects import public_pem
from gatehouse.permissions.model.rules import ROOT, Scope, application_scope
from tests.support.database_contents import read_all_tables, tables_that_mention
from tests.support.permission_builders import a_project, holdings_with, publish, set_project_fields
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
)
from tests.support.tokens import application_private_key

MANAGES = "project.can_manage_applications"
CANARY = "-----BEGIN PRIVATE KEY-----\nCANARY0123456789canary\n-----END PRIVATE KEY-----\n"


def save_request(**data: object) -> dict[str, object]:
    return {"action": "save", "data": data}


def get_request(application_id: object, **options: object) -> dict[str, object]:
    return {"action": "get", "data": {"application_id": application_id}, **({"options": options} if options else {})}


def delete_request(application_id: object) -> dict[str, object]:
    return {"action": "delete", "data": {"application_id": application_id}}


async def save(studio: Studio, who: Person, **data: object) -> Any:
    return (await studio.expect_ok("application", save_request(**data), who.headers))["data"]


async def get(studio: Studio, who: Person, application_id: int) -> Any:
    return (await studio.expect_ok("application", get_request(application_id, full=True), who.headers))["data"]


# -- creating -----------------------------------------------------------------------------------------


async def test_ap_01_can_create_app_creates_outside_a_project_and_updates_nothing(studio: Studio) -> None:
    maker = await create_person_with(studio, {ROOT: holdings_with_rules("can_create_app")})
    await studio.expect_error(403, "application", save_request(name="Chess"), studio.other_user.headers)
    created = await save(studio, maker, name="Chess", description="A game")
    assert created == {
        "application_id": created["application_id"],
        "name": "Chess",
        "description": "A game",
        "removed": False,
        "version": 1,
    }
    other = studio.other.application_id
    await studio.expect_error(403, "application", save_request(application_id=other, name="Mine"), maker.headers)
    await studio.expect_error(403, "application", save_request(name="In it", project_id=PROJECT), maker.headers)
    assert await audit_records(studio, AuditEvent.APPLICATION_CREATED)


async def test_creator_of_an_application_outside_a_project_may_manage_it(studio: Studio) -> None:
    maker = await create_person_with(studio, {ROOT: holdings_with_rules("can_create_app")})
    number = (await save(studio, maker, name="Chess"))["application_id"]
    await save(studio, maker, application_id=number, description="Mine")
    await studio.expect_ok("meta/schema", {"action": "get", "application_id": number}, maker.headers)
    await studio.expect_ok("accessKey", {"action": "save", "application_id": number, "data": {}}, maker.headers)
    ask = {"action": "get", "application_id": number, "data": {"type": "tree"}}
    secret_data = (await studio.expect_ok("meta/data", ask, maker.headers))["data"]["secret_data"]
    assert secret_data == secret_document(
        *("canRead", "canReadSchema", "canModifySchema", "canSeeRoleList", "canCreateJwt", "canSave"),
        roles=("all", "all"),
        private=("all", "all"),
        public=("all", "all"),
    )
    theirs = {"action": "get", "application_id": number, "data": {"type": "tree", "user_id": studio.owner.user_id}}
    assert "secret_data" not in (await studio.expect_ok("meta/data", theirs, maker.headers))["data"]


async def test_creator_of_an_application_in_a_project_gets_roles_on_it(studio: Studio) -> None:
    maker = await create_person_with(studio, {IN_PROJECT: holdings_with_rules(MANAGES)})
    created = await save(studio, maker, name="Chess", project_id=PROJECT)
    assert created["project_id"] == PROJECT
    number = created["application_id"]
    ask = {"action": "get", "application_id": 1, "data": {"type": "roles"}}
    mine = f"{PROJECT}.applications.{number}"
    assert (await studio.expect_ok("meta/data", ask, maker.headers))["data"] == [
        f"{mine}/app_developer",
        f"{mine}/app_users_manager",
    ]
    await studio.expect_ok("meta/schema", {"action": "get", "application_id": number}, maker.headers)


async def test_a_new_application_needs_a_name_and_its_name_is_its_own_in_the_project(studio: Studio) -> None:
    error = await studio.expect_error(400, "application", save_request(project_id=PROJECT), studio.owner.headers)
    assert "data.name" in error
    again = save_request(project_id=PROJECT, name=studio.shop.name)
    await studio.expect_error(409, "application", again, studio.owner.headers)
    await save(studio, studio.owner, project_id=PROJECT, name="Chess")
    rename = save_request(application_id=studio.shop.application_id, name="Chess")
    await studio.expect_error(409, "application", rename, studio.owner.headers)


# -- ids ----------------------------------------------------------------------------------------------

SPELLINGS = [
    *(True, 1.0, "1_0", "\uff11", " 1", "1 ", "1\n", "0x1", "01", "+1", "-1", "1.0", "1e0", "", "²"),
    *([1], {"$ne": 0}, 2**63, str(2**63), "9" * 5_000, 0, -1, "one"),
]


def requests_about(spelling: object) -> list[tuple[str, dict[str, object]]]:
    return [
        ("application", get_request(spelling)),
        ("application", delete_request(spelling)),
        ("application", save_request(application_id=spelling, name="Taken over")),
        ("application/tags", {"application_id": spelling, "data": {"tags": []}}),
        ("application/keys", {"action": "get", "application_id": spelling}),
        ("meta/schema", {"action": "get", "application_id": spelling}),
        ("meta/data", {"action": "get", "application_id": spelling, "data": {}}),
        ("roles", {"action": "get", "application_id": spelling}),
        ("accessKey", {"action": "get", "application_id": spelling}),
    ]


async def test_ap_02_an_application_id_has_one_spelling(studio: Studio) -> None:
    boss = await create_administrator(studio)
    for path, body in (request for spelling in SPELLINGS for request in requests_about(spelling)):
        await studio.expect_error(400, path, body, boss.headers)
    assert (await get(studio, boss, 1))["name"] == "Central"


async def test_ap_02_an_id_is_taken_as_a_number_and_as_text(studio: Studio) -> None:
    shop = studio.shop.application_id
    one, two = [
        await studio.expect_ok("application", get_request(application_id), studio.owner.headers)
        for application_id in (shop, str(shop))
    ]
    assert one == two
    assert one["data"]["application_id"] == shop


async def test_get_and_delete_without_an_id_are_malformed(studio: Studio) -> None:
    for action in ("get", "delete"):
        error = await studio.expect_error(400, "application", {"action": action, "data": {}}, studio.owner.headers)
        assert "application_id" in error


async def test_ap_04_a_project_is_given_by_id_or_alias(studio: Studio) -> None:
    storage = studio.service.services.storage
    await storage.projects.edit_project(PROJECT, set_project_fields(aliases=("minds",)))
    assert (await save(studio, studio.owner, name="Chess", project_id="minds"))["project_id"] == PROJECT
    for strange in ("Mind_Games", "MIND_GAMES", ["mind_games"], "", "mind_games\n", 5, "a/b"):
        await studio.expect_error(
            400, "application", save_request(name="Go", project_id=strange), studio.owner.headers
        )
    await studio.expect_error(403, "application", save_request(name="Go", project_id=None), studio.owner.headers)
    await studio.expect_error(
        403, "application", save_request(name="Go", project_id="unheard_of"), studio.owner.headers
    )
    boss = await create_administrator(studio)
    await studio.expect_error(404, "application", save_request(name="Go", project_id="unheard_of"), boss.headers)
    assert "project_id" not in await save(studio, boss, name="Go", project_id=None)


# -- service_meta -------------------------------------------------------------------------------------


async def publisher(studio: Studio) -> Person:
    return await create_person_with(
        studio, {ROOT: holdings_with_rules("can_publish_services"), IN_PROJECT: holdings_with_rules(MANAGES)}
    )


FITS_AND_NOT: list[tuple[dict[str, object], dict[str, object]]] = [
    ({"name": "n" * 32}, {"name": "n" * 33}),
    ({"name": "Az09 _."}, {"name": "two\nlines"}),
    ({"name": "plain"}, {"name": "with-dash"}),
    ({"description": "d" * 1024}, {"description": "d" * 1025}),
    ({"tags": [f"t{n}" for n in range(10)]}, {"tags": [f"t{n}" for n in range(11)]}),
    ({"tags": ["t" * 64]}, {"tags": ["t" * 65]}),
    ({"tags": ["a:b_C"]}, {"tags": ["a-b"]}),
    ({"tags": ["a", "b"]}, {"tags": ["a", "a"]}),
    ({"url": "https://shop.example/", "doc": "http://doc.example/x"}, {"url": "javascript:alert(1)"}),
    ({"env": "prod"}, {"env": 5}),
    ({"config_schema": {"type": "object"}}, {"unheard_of": 1}),
]


async def test_ap_05_the_limits_of_service_meta_hold_to_the_character(studio: Studio) -> None:
    who, shop = await publisher(studio), studio.shop.application_id
    for fits, does_not in FITS_AND_NOT:
        await save(studio, who, application_id=shop, service_meta=fits)
        whole = save_request(application_id=shop, description="changed", service_meta={**fits, **does_not})
        await studio.expect_error(400, "application", whole, who.headers)
        now = await get(studio, who, shop)
        assert now["service_meta"] == fits
        assert "description" not in now


async def test_service_meta_needs_can_publish_services_and_the_right_to_save(studio: Studio) -> None:
    shop, meta = studio.shop.application_id, {"name": "Shop"}
    only_publishes = await create_person_with(studio, {ROOT: holdings_with_rules("can_publish_services")})
    only_saves = await create_person_with(studio, {IN_PROJECT: holdings_with_rules(MANAGES)})
    both = await create_person_with(
        studio, {ROOT: holdings_with_rules("can_publish_services")}, secret_data=secret_document("canSave")
    )
    for who in (only_publishes, only_saves, studio.other_user):
        await studio.expect_error(
            403, "application", save_request(application_id=shop, service_meta=meta), who.headers
        )
        tags = {"application_id": shop, "data": {"tags": ["a"]}}
        await studio.expect_error(403, "application/tags", tags, who.headers)
    await save(studio, both, application_id=shop, service_meta=meta)
    await studio.expect_error(
        403, "application", save_request(name="Go", project_id=PROJECT, service_meta=meta), only_saves.headers
    )


async def test_tags_have_an_endpoint_of_their_own(studio: Studio) -> None:
    who, shop = await publisher(studio), studio.shop.application_id
    await save(studio, who, application_id=shop, service_meta={"name": "Shop", "tags": ["old"]})
    ask = {"application_id": str(shop), "data": {"tags": ["a:b", "c"]}}
    body = await studio.expect_ok("application/tags", ask, who.headers)
    assert body["data"] == {"application_id": shop, "tags": ["a:b", "c"], "version": 3}
    assert (await get(studio, who, shop))["service_meta"] == {"name": "Shop", "tags": ["a:b", "c"]}
    for bad in (["a", "a"], ["a-b"], [5], ["t" * 65], [f"t{n}" for n in range(11)], "a"):
        await studio.expect_error(400, "application/tags", {**ask, "data": {"tags": bad}}, who.headers)
    await studio.expect_error(409, "application/tags", {**ask, "data": {"tags": [], "version": 2}}, who.headers)
    cleared = await studio.expect_ok("application/tags", {**ask, "data": {"tags": None, "version": 3}}, who.headers)
    assert cleared["data"] == {"application_id": shop, "tags": [], "version": 4}
    assert "colour" in await studio.expect_error(400, "application/tags", {**ask, "data": {"colour": 1}}, who.headers)
    assert await audit_records(studio, AuditEvent.APPLICATION_TAGGED)


async def test_tags_without_an_id_are_those_of_the_service_that_vouches(studio: Studio) -> None:
    who, shop = await publisher(studio), studio.shop.application_id
    vouched = bearer_headers(who.jwt, Service_Jwt=await studio.service_jwt())
    body = await studio.expect_ok("application/tags", {"data": {"tags": ["a"]}}, vouched)
    assert (body["data"]["application_id"], body["data"]["tags"]) == (shop, ["a"])
    await studio.expect_error(400, "application/tags", {"data": {"tags": ["a"]}}, who.headers)


async def test_tags_are_saved_beside_the_rest_of_the_record_which_stays_as_it_is(studio: Studio) -> None:
    boss, shop = await create_administrator(studio), studio.shop.application_id
    application = await get(studio, boss, shop)
    project = (await studio.expect_ok("project", {"action": "get", "data": {"id": PROJECT}}, boss.headers))["data"]
    group = await studio.expect_ok("group", save_request(project_id=PROJECT, title="Testers"), boss.headers)
    for path, record, named in (
        ("application/tags", {**application, "name": "Other"}, {"application_id": shop}),
        ("project/tags", {**project, "title": "Other"}, {}),
        (
            "group/tags",
            {**group["data"], "title": "Other", "users": [boss.user_id]},
            {"group_id": group["data"]["id"]},
        ),
    ):
        sent = {**record, "tags": ["a"], "created": "now", "updated_at": 1}
        assert (await studio.expect_ok(path, {**named, "data": sent}, boss.headers))["data"]["tags"] == ["a"]
        error = await studio.expect_error(400, path, {**named, "data": {**sent, "colour": 1}}, boss.headers)
        assert "colour" in error
    body = await studio.expect_ok("group", {"action": "get", "data": {"project_id": PROJECT}}, boss.headers)
    assert [(group["title"], group["users"]) for group in body["data"]["groups"]] == [("Testers", [])]
    assert (await get(studio, boss, shop))["name"] == "Shop"


async def test_settings_and_service_meta_are_told_only_when_asked_for(studio: Studio) -> None:
    shop = studio.shop.application_id
    short = (await studio.expect_ok("application", get_request(shop), studio.owner.headers))["data"]
    assert short.keys() == {"application_id", "name", "project_id", "removed", "version"}
    assert (await get(studio, studio.owner, shop)).keys() == {*short, "settings", "service_meta", "protected_sites"}


async def test_ap_06_a_private_key_once_written_is_nowhere_readable(
    studio: Studio, capfd: pytest.CaptureFixture[str]
) -> None:
    boss, shop = await create_administrator(studio), studio.shop.application_id
    meta = {"name": "Shop", "private_key": CANARY, "public_key": public_pem(application_private_key().public_key())}
    responses = [await studio.post("application", save_request(application_id=shop, service_meta=meta), boss.headers)]
    assert responses[0].status_code == 200
    for path, body in {
        "application": get_request(shop, full=True),
        "application/keys": {"action": "get", "application_id": shop},
        "meta/schema": {"action": "get", "application_id": shop},
        "meta/data": own_record(studio.shop),
        "project": {"action": "get", "data": {"id": PROJECT}},
    }.items():
        responses.append(await studio.post(path, body, boss.headers))
    responses.append(await studio.service.client.get(f"/api/permissions/application/publicKeys/{shop}"))
    responses.append(
        await studio.post(
            "application", save_request(application_id=shop, service_meta={"name": "x-y"}), boss.headers
        )
    )
    out, err = capfd.readouterr()
    for text in (*(response.text for response in responses), out, err):
        assert "CANARY" not in text
        assert "private_key" not in text
    rows = await read_all_tables(studio.service.services.storage)
    assert tables_that_mention(rows, "CANARY") == set()
    services = studio.service.services
    application = await services.storage.applications.application(shop)
    assert application.sealed_private_key is not None
    assert (
        services.core.masters.open(application.sealed_private_key, purpose="application-private-key").decode()
        == CANARY
    )


async def test_sc_22_service_meta_without_its_public_key_removes_it_and_keeps_the_unseen_one(studio: Studio) -> None:
    boss, shop = await create_administrator(studio), studio.shop.application_id
    pem = public_pem(application_private_key().public_key())
    storage = studio.service.services.storage
    await save(studio, boss, application_id=shop, service_meta={"private_key": CANARY, "public_key": pem})
    keyless = save_request(application_id=shop, service_meta={"name": "Shop"})
    await studio.expect_error(403, "application", keyless, (await publisher(studio)).headers)
    await save(studio, boss, application_id=shop, service_meta={"name": "Shop"})
    assert (await get(studio, boss, shop))["service_meta"] == {"name": "Shop"}
    assert (await storage.applications.application(shop)).sealed_private_key is not None
    await save(studio, boss, application_id=shop, service_meta={"private_key": None})
    assert (await storage.applications.application(shop)).sealed_private_key is None
    await save(studio, boss, application_id=shop, service_meta=None)
    assert (await get(studio, boss, shop))["service_meta"] == {}


async def test_keys_in_service_meta_need_can_create_jwt_as_well(studio: Studio) -> None:
    who, shop = await publisher(studio), studio.shop.application_id
    pem = public_pem(application_private_key().public_key())
    for key in ({"public_key": pem}, {"private_key": CANARY}):
        await studio.expect_error(
            403, "application", save_request(application_id=shop, service_meta=key), who.headers
        )
    scopes = {
        ROOT: holdings_with_rules("can_publish_services"),
        IN_PROJECT: holdings_with_rules(MANAGES, "app.can_manage_app_api_keys"),
    }
    keeper = await create_person_with(studio, scopes)
    await save(studio, keeper, application_id=shop, service_meta={"public_key": pem, "private_key": CANARY})
    for keys in ({"public_key": None}, {"private_key": None}, {"private_key": CANARY}, None):
        await studio.expect_error(
            403, "application", save_request(application_id=shop, service_meta=keys), who.headers
        )
    await save(studio, who, application_id=shop, service_meta={"name": "Shop", "public_key": pem})


async def test_a_record_can_be_saved_back_as_it_was_told(studio: Studio) -> None:
    shop, boss = studio.shop.application_id, await create_administrator(studio)
    meta = {"name": "Shop", "public_key": public_pem(application_private_key().public_key())}
    await save(studio, boss, application_id=shop, service_meta=meta, settings={"restricted_domains": ["a.example"]})
    manager = await create_person_with(studio, {IN_PROJECT: holdings_with_rules(MANAGES)})
    data = await get(studio, manager, shop)
    saved = await save(studio, manager, **{**data, "description": "Sells"})
    assert (saved["description"], saved["version"]) == ("Sells", data["version"] + 1)
    assert (await get(studio, manager, shop))["service_meta"] == meta


async def test_ap_07_only_a_sound_public_key_is_taken_as_one(studio: Studio) -> None:
    boss, shop = await create_administrator(studio), studio.shop.application_id
    for text in (CANARY, "no key", "", 5, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"):
        body = save_request(application_id=shop, service_meta={"public_key": text})
        await studio.expect_error(400, "application", body, boss.headers)
    assert (await get(studio, boss, shop))["service_meta"] == {}


INSIDE = [
    *("https://169.254.169.254/latest", "https://127.0.0.1/", "https://[::ffff:127.0.0.1]/", "https://2130706433/"),
    *("https://0/", "file:///etc/passwd", "gopher://x.example/", "https://10.0.0.1/", "https://localhost/"),
    *("http://public.example/", "https://[::1]/", "https://0x7f.1/", "https://user@x.example/", "//x.example/", 5),
]


async def test_ap_08_gdpr_addresses_inside_are_refused_at_save(studio: Studio) -> None:
    shop = studio.shop.application_id
    for gdpr in (
        source
        for url in INSIDE
        for source in (
            {"char_sources": [url]},
            {"data_sources": [{"fetch": url, "remove": "https://x.example/remove"}]},
            {"data_sources": [{"fetch": "https://x.example/fetch", "remove": url}]},
        )
    ):
        body = save_request(application_id=shop, settings={"gdpr": gdpr})
        await studio.expect_error(400, "application", body, studio.owner.headers)
    good = {
        "gdpr": {
            "char_sources": ["https://x.example/chars"],
            "data_sources": [{"fetch": "https://x.example/fetch", "remove": "https://x.example/remove"}],
        },
        "restricted_domains": ["studio.example"],
    }
    await save(studio, studio.owner, application_id=shop, settings=good)
    assert (await get(studio, studio.owner, shop))["settings"] == good


def nested_tree(depth: int) -> dict[str, Any]:
    tree: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        tree = {"properties": {"a": tree}}
    return tree


@pytest.mark.parametrize(
    ("schema", "status"),
    [
        ({"$ref": "https://evil.example/schema.json"}, 400),
        ({"$ref": "http://127.0.0.1:1/"}, 400),
        ({"type": "string", "pattern": "(a+)+$"}, None),
        ({"properties": {"a": {"$ref": "#"}}}, None),
        (nested_tree(60), 400),
    ],
    ids=["remote", "local", "slow pattern", "loop", "deep"],
)
async def test_ap_09_config_schema_fetches_nothing_and_is_bounded(
    studio: Studio, schema: dict[str, Any], status: int | None
) -> None:
    who, shop = await publisher(studio), studio.shop.application_id
    body = save_request(application_id=shop, service_meta={"config_schema": schema})
    async with asyncio.timeout(5):
        response = await studio.post("application", body, who.headers)
    assert response.status_code in ((status,) if status else (200, 400)), response.text


async def test_ap_09_a_huge_or_bottomless_config_schema_is_refused(studio: Studio) -> None:
    who = await publisher(studio)
    client, headers = studio.service.client, {**who.headers, "Content-Type": "application/json"}
    address = "/api/permissions/application"
    deep = b'{"action":"save","data":{"service_meta":{"config_schema":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_003
    assert (await client.post(address, content=deep, headers=headers)).status_code == 400
    large = b'{"action":"save","data":{"description":"' + b"x" * (5 * 1024 * 1024) + b'"}}'
    assert (await client.post(address, content=large, headers=headers)).status_code == 413


# -- removing -----------------------------------------------------------------------------------------


async def test_ap_10_a_removed_application_stays_removed(studio: Studio) -> None:
    shop = studio.shop.application_id
    key, jwt = await studio.access_key(), await studio.service_jwt()
    assert await studio.expect_ok("application", delete_request(shop), studio.owner.headers) == {"status": "OK"}
    assert (await get(studio, studio.owner, shop))["removed"] is True
    client = studio.service.client
    assert (await client.get(f"/api/permissions/application/publicKeys/{shop}")).status_code == 404
    await studio.expect_error(401, "meta/data", own_record(studio.shop, jwt=studio.owner.jwt), bearer_headers(key))
    await studio.expect_error(
        401, "meta/data", own_record(studio.shop), bearer_headers(studio.owner.jwt, Service_Jwt=jwt)
    )
    for path, body in (
        ("application", save_request(application_id=shop, removed=False)),
        ("meta/schema", {"application_id": shop, **save_request()}),
        ("roles", {"application_id": shop, **save_request(name="moderator")}),
        ("meta/data", {"application_id": shop, **save_request(user_id=studio.other_user.user_id, roles=[])}),
    ):
        assert await studio.expect_error(409, path, body, studio.owner.headers) == "The application was removed."
    await studio.expect_error(
        404, "accessKey", {"action": "save", "application_id": shop, "data": {}}, studio.owner.headers
    )
    boss = await create_administrator(studio)
    tags = {"application_id": shop, "data": {"tags": ["x"]}}
    await studio.expect_error(409, "application/tags", tags, boss.headers)
    assert (await get(studio, studio.owner, shop))["removed"] is True
    assert await studio.expect_ok("application", delete_request(shop), studio.owner.headers) == {"status": "OK"}
    assert len(await audit_records(studio, AuditEvent.APPLICATION_REMOVED)) == 1


@pytest.mark.parametrize("gone", ["removed", "moved out"])
async def test_rights_on_an_application_end_when_it_leaves_its_project(studio: Studio, gone: str) -> None:
    number, rule = (
        studio.shop.application_id,
        f"{PROJECT}/applications/{studio.shop.application_id}/app.can_manage_users",
    )
    who = await create_person_with(studio, {application_scope(PROJECT, number): holdings_with("app_users_manager")})
    listing = {"action": "get", "application_id": 1, "data": {"type": "list_short"}}
    resource = {"kind": "applications", "id": str(number)}
    check = {"project_id": PROJECT, "resource": resource, "rule": "app.can_manage_users"}
    checking = {"application_id": 1, "data": {"checks": [check]}}
    theirs = {
        "action": "get",
        "application_id": number,
        "data": {"user_id": studio.other_user.user_id, "type": "tree"},
    }
    assert rule in (await studio.expect_ok("meta/data", listing, who.headers))["data"]
    assert (await studio.expect_ok("check", checking, who.headers))["data"] == [True]
    assert "private_data" in (await studio.expect_ok("meta/data", theirs, who.headers))["data"]
    boss = await create_administrator(studio)
    body = delete_request(number) if gone == "removed" else save_request(application_id=number, project_id=None)
    await studio.expect_ok("application", body, boss.headers)
    assert rule not in (await studio.expect_ok("meta/data", listing, who.headers))["data"]
    assert (await studio.expect_ok("check", checking, who.headers))["data"] == [False]
    assert (await studio.expect_ok("meta/data", theirs, who.headers))["data"].keys() == {"public_data", "version"}
    await studio.expect_error(403, "application", get_request(number), who.headers)


async def test_a_name_is_free_again_when_its_application_is_removed_the_id_never(studio: Studio) -> None:
    shop = studio.shop.application_id
    await studio.expect_ok("application", delete_request(shop), studio.owner.headers)
    again = await save(studio, studio.owner, name=studio.shop.name, project_id=PROJECT)
    assert again["application_id"] > max(shop, studio.other.application_id)


async def test_ap_11_delete_needs_can_remove_apps_or_the_project(studio: Studio) -> None:
    storage, shop = studio.service.services.storage, studio.shop.application_id
    await publish(storage, a_project("Elsewhere"))
    saves = await create_person_with(studio, secret_data=secret_document("canSave", "canRead"))
    elsewhere = await create_person_with(studio, {Scope("elsewhere"): holdings_with_rules(MANAGES)})
    for who in (saves, elsewhere, studio.other_user):
        await studio.expect_error(403, "application", delete_request(shop), who.headers)
    await studio.expect_ok(
        "application",
        delete_request(shop),
        (await create_person_with(studio, {ROOT: holdings_with_rules("can_remove_apps")})).headers,
    )
    remover = await create_person_with(studio, {ROOT: holdings_with_rules("can_remove_apps")})
    await studio.expect_ok("application", delete_request(studio.other.application_id), remover.headers)


async def test_application_1_is_neither_removed_nor_moved(studio: Studio) -> None:
    boss = await create_administrator(studio)
    await studio.expect_error(403, "application", delete_request(1), boss.headers)
    await studio.expect_error(403, "application", save_request(application_id=1, project_id=PROJECT), boss.headers)
    remover = await create_person_with(studio, {ROOT: holdings_with_rules("can_remove_apps")})
    await studio.expect_error(403, "application", delete_request(1), remover.headers)


# -- saving -------------------------------------------------------------------------------------------


async def test_an_absent_field_keeps_null_clears_and_what_may_not_be_changed_is_ignored(studio: Studio) -> None:
    shop, owner = studio.shop.application_id, studio.owner
    domains = {"restricted_domains": ["studio.example"]}
    await save(studio, owner, application_id=shop, description="Sells", settings=domains)
    await save(studio, owner, application_id=shop, name="Market", removed=True, created="now", tags=["x"])
    now = await get(studio, owner, shop)
    assert (now["name"], now["description"], now["settings"], now["removed"]) == ("Market", "Sells", domains, False)
    await save(studio, owner, application_id=shop, description=None, settings=None)
    now = await get(studio, owner, shop)
    assert ("description" in now, now["settings"], now["project_id"]) == (False, {}, PROJECT)


async def test_an_updated_at_is_accepted_and_ignored_by_every_save(studio: Studio) -> None:
    shop, owner, sent = studio.shop.application_id, studio.owner, {"updated_at": 1}
    group = {"action": "save", "data": {"project_id": PROJECT, "title": "Testers", **sent}}
    created = (await studio.expect_ok("group", group, owner.headers))["data"]["id"]
    for path, body in (
        ("application", save_request(application_id=shop, **sent)),
        ("project", save_request(id=PROJECT, **sent)),
        ("project/membership", save_request(id=PROJECT, **sent)),
        ("group", {"group_id": created, **save_request(**sent)}),
        ("group/access", {"group_id": created, "data": sent}),
        ("roles", {"application_id": shop, **save_request(name="moderator", **sent)}),
        ("meta/schema", {"application_id": shop, **save_request(**sent)}),
        ("meta/data", {"application_id": shop, **save_request(roles=[], **sent)}),
    ):
        saved = (await studio.expect_ok(path, body, owner.headers))["data"]
        assert saved.get("updated_at") != 1, path


async def test_an_unknown_field_is_refused_by_name(studio: Studio) -> None:
    shop = studio.shop.application_id
    error = await studio.expect_error(
        400, "application", save_request(application_id=shop, colour="red"), studio.owner.headers
    )
    assert "colour" in error
    body = {**get_request(shop), "colour": "red"}
    assert "colour" in await studio.expect_error(400, "application", body, studio.owner.headers)
    options = {**get_request(shop), "options": {"whole": True}}
    assert "whole" in await studio.expect_error(400, "application", options, studio.owner.headers)


async def test_a_save_of_an_old_version_is_refused_and_one_without_wins(studio: Studio) -> None:
    shop, owner = studio.shop.application_id, studio.owner
    assert (await save(studio, owner, application_id=shop, description="a", version=1))["version"] == 2
    await studio.expect_error(
        409, "application", save_request(application_id=shop, description="b", version=1), owner.headers
    )
    assert (await save(studio, owner, application_id=shop, description="c"))["version"] == 3
    assert (await get(studio, owner, shop))["description"] == "c"


async def test_creating_an_object_with_a_version_is_a_conflict(studio: Studio) -> None:
    for path, body in (
        ("application", save_request(name="New", project_id=PROJECT, version=5)),
        ("group", save_request(project_id=PROJECT, title="New", version=5)),
        ("roles", {"application_id": studio.shop.application_id, **save_request(name="new", version=5)}),
    ):
        await studio.expect_error(409, path, body, studio.owner.headers)


async def test_ap_13_of_two_parallel_saves_both_are_kept_or_one_conflicts(studio: Studio) -> None:
    shop, owner = studio.shop.application_id, studio.owner
    bodies = [
        save_request(application_id=shop, name="Market"),
        save_request(application_id=shop, description="Sells"),
    ]
    responses = await asyncio.gather(*(studio.post("application", body, owner.headers) for body in bodies))
    assert [response.status_code for response in responses] == [200, 200]
    now = await get(studio, owner, shop)
    assert (now["name"], now["description"], now["version"]) == ("Market", "Sells", 3)
    versioned = [save_request(application_id=shop, name=f"n{n}", version=3) for n in range(4)]
    responses = await asyncio.gather(*(studio.post("application", body, owner.headers) for body in versioned))
    assert sorted(response.status_code for response in responses) == [200, 409, 409, 409]


async def test_ap_14_strange_names_are_refused_or_told_as_they_are(studio: Studio) -> None:
    shop = studio.shop.application_id
    headers = {**studio.owner.headers, "Content-Type": "application/json"}
    strange = ["\u202eevil", "nul\0l", "\ud800", "two\nlines", "\x07", " lead", "n" * 129, ""]
    for body in (
        save_request(application_id=shop, **{field: text}) for field in ("name", "description") for text in strange
    ):
        raw = json.dumps(body).encode()  # with escapes, which no HTTP library would send
        response = await studio.service.client.post("/api/permissions/application", content=raw, headers=headers)
        fine = body["data"] in (
            {"application_id": shop, "description": text} for text in ("two\nlines", " lead", "n" * 129, "")
        )
        assert response.status_code == (200 if fine else 400), raw
    created = await studio.post(
        "application", save_request(application_id=shop, name="<b>bold</b>"), studio.owner.headers
    )
    assert created.json()["data"]["name"] == "<b>bold</b>"
    assert created.headers["content-type"].startswith("application/json")
    assert created.headers["x-content-type-options"] == "nosniff"


# -- visibility ---------------------------------------------------------------------------------------


async def test_any_role_on_an_application_lets_see_it_and_not_save_it(studio: Studio) -> None:
    shop = studio.shop.application_id
    keeper = await create_person_with(studio, {application_scope(PROJECT, shop): holdings_with("app_users_manager")})
    assert (await get(studio, keeper, shop))["name"] == "Shop"
    await studio.expect_error(403, "application", save_request(application_id=shop, name="Mine"), keeper.headers)
    await studio.expect_error(403, "application", get_request(studio.other.application_id), keeper.headers)


async def test_pa_13_an_unknown_application_is_no_different_from_a_foreign_one(studio: Studio) -> None:
    for body in (get_request, delete_request, lambda number: save_request(application_id=number, name="x")):
        foreign, unknown = [
            await studio.post("application", body(number), studio.other_user.headers)
            for number in (studio.other.application_id, 999_999)
        ]
        assert (foreign.status_code, foreign.content) == (unknown.status_code, unknown.content)
        assert foreign.status_code == 403
    boss = await create_administrator(studio)
    await studio.expect_error(404, "application", get_request(999_999), boss.headers)


# -- moving -------------------------------------------------------------------------------------------


async def test_an_application_moves_with_the_right_in_both_projects(studio: Studio) -> None:
    storage, shop = studio.service.services.storage, studio.shop.application_id
    await publish(storage, a_project("Elsewhere"))
    there = Scope("elsewhere")
    only_here = await create_person_with(studio, {IN_PROJECT: holdings_with_rules(MANAGES)})
    only_there = await create_person_with(
        studio, {there: holdings_with_rules(MANAGES)}, secret_data=secret_document("canSave")
    )
    both = await create_person_with(
        studio, {IN_PROJECT: holdings_with_rules(MANAGES), there: holdings_with_rules(MANAGES)}
    )
    move = save_request(application_id=shop, project_id="elsewhere")
    for who in (only_here, only_there):
        await studio.expect_error(403, "application", move, who.headers)
    assert (await studio.expect_ok("application", move, both.headers))["data"]["project_id"] == "elsewhere"
    await studio.expect_error(403, "application", get_request(shop), only_here.headers)
    assert (await get(studio, only_there, shop))["name"] == "Shop"


async def test_an_application_of_no_project_moves_in_with_can_save(studio: Studio) -> None:
    other = studio.other.application_id
    mover = await create_person_with(
        studio,
        {IN_PROJECT: holdings_with_rules(MANAGES)},
        secret_data=secret_document("canSave"),
        application_id=other,
    )
    assert (await save(studio, mover, application_id=other, project_id=PROJECT))["project_id"] == PROJECT


async def test_an_application_leaves_for_no_project_with_can_create_app_as_well(studio: Studio) -> None:
    shop, manager = (
        studio.shop.application_id,
        await create_person_with(studio, {IN_PROJECT: holdings_with_rules(MANAGES)}),
    )
    await studio.expect_error(403, "application", save_request(name="Outside"), manager.headers)
    await studio.expect_error(403, "application", save_request(application_id=shop, project_id=None), manager.headers)
    both = await create_person_with(
        studio, {IN_PROJECT: holdings_with_rules(MANAGES), ROOT: holdings_with_rules("can_create_app")}
    )
    assert "project_id" not in await save(studio, both, application_id=shop, project_id=None)


async def test_the_stored_project_decides_not_the_one_that_is_sent(studio: Studio) -> None:
    mover = await create_person_with(studio, {IN_PROJECT: holdings_with_rules(MANAGES)})
    other = studio.other.application_id
    await studio.expect_error(
        403, "application", save_request(application_id=other, project_id=PROJECT), mover.headers
    )
    body = {"action": "get", "data": {"application_id": other, "project_id": PROJECT}}
    await studio.expect_error(403, "application", body, mover.headers)


async def test_an_application_of_a_removed_project_is_closed_to_all_but_administrators(studio: Studio) -> None:
    storage, shop = studio.service.services.storage, studio.shop.application_id
    holder = await create_person_with(
        studio, secret_data=secret_document("canRead", "canSave", "canReadSchema", "canCreateJwt")
    )
    await studio.expect_ok("application", get_request(shop), holder.headers)
    await storage.projects.edit_project(PROJECT, set_project_fields(removed=True))
    for who in (holder, studio.owner):
        await studio.expect_error(403, "application", get_request(shop), who.headers)
        await studio.expect_error(403, "application", save_request(application_id=shop, name="x"), who.headers)
        await studio.expect_error(403, "meta/schema", {"action": "get", "application_id": shop}, who.headers)
        await studio.expect_error(403, "accessKey", {"action": "get", "application_id": shop}, who.headers)
    await studio.expect_ok("application", get_request(shop), (await create_administrator(studio)).headers)


async def test_fa_09_only_administrators_change_the_sites_of_an_application(studio: Studio) -> None:
    shop, site = studio.shop.application_id, {"https://shop.example": "store.open"}
    admin = await create_administrator(studio)
    saver = await create_person_with(studio, secret_data=secret_document("canRead", "canSave"))
    await studio.expect_error(
        403, "application", save_request(application_id=shop, protected_sites=site), saver.headers
    )
    await save(studio, admin, application_id=shop, protected_sites=site)
    assert (await get(studio, saver, shop))["protected_sites"] == site
    await save(studio, saver, application_id=shop, name="Store", protected_sites=site)  # unchanged
    await studio.expect_error(
        403, "application", save_request(application_id=shop, protected_sites={}), saver.headers
    )
    other = studio.other.application_id
    await studio.expect_error(
        409, "application", save_request(application_id=other, protected_sites=site), admin.headers
    )
    for wrong in (
        *({"http://shop.example": "a"}, {"https://shop.example/": "a"}, {"https://shop.example:443": "a"}),
        *({"https://SHOP.example": "a"}, {"https://*.example": "a"}, {"https://u@shop.example": "a"}),
        *({"https://shop.example": ""}, {"https://shop.example": "a b"}, {"https://shop.example": 1}),
        {f"https://s{number}.example": "a" for number in range(101)},
    ):
        body = save_request(application_id=other, protected_sites=wrong)
        await studio.expect_error(400, "application", body, admin.headers)
    await studio.expect_ok("application", delete_request(shop), admin.headers)  # which gives the site free
    await save(studio, admin, application_id=other, protected_sites={"http://localhost:8080": "a", **site})


@pytest.mark.both_databases
async def test_fa_13_first_site_of_a_second_application_is_saved_with_a_warning(studio: Studio) -> None:
    admin = await create_administrator(studio)
    shop, other = studio.shop.application_id, studio.other.application_id

    async def warnings_of(application_id: int, *sites: str) -> Any:
        body = save_request(application_id=application_id, protected_sites=dict.fromkeys(sites, "a"))
        return (await studio.expect_ok("application", body, admin.headers)).get("warnings", [])

    assert await warnings_of(shop, "https://shop.example") == []
    (warning,) = await warnings_of(other, "https://other.example")
    assert "application_id" in warning
    assert await warnings_of(other, "https://other.example", "https://more.example") == [], "it is known by now"
    body = save_request(name="Third", protected_sites={"https://third.example": "a"})
    assert "warnings" not in await studio.expect_ok("application", body, admin.headers), "the rule holds already"
    assert await warnings_of(other) == []
