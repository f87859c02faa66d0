"""The console's data over the API: people, game sessions, service tokens, the audit log and old schemas."""

from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.digests import sha256
from gatehouse.permissions.model.central import ROOT_RULES
from gatehouse.permissions.model.rules import ROOT
from gatehouse.settings.entries import ALL_SETTINGS, value_of
from gatehouse.settings.secret import Secret
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.statements import Verb
from tests.support.builders import ORIGIN
from tests.support.game import RESULT, register_game
from tests.support.permission_builders import create_application, holdings_with
from tests.support.studio import (
    IN_PROJECT,
    PROJECT,
    Studio,
    bearer_headers,
    create_administrator,
    create_person_with,
    holdings_with_rules,
    secret_document,
)


async def test_accounts_refusals_and_service_tokens_are_read_by_administrators_in_person(studio: Studio) -> None:
    admin, shop = await create_administrator(studio), studio.shop.application_id
    token = (
        await studio.service.services.permissions.service_tokens.issue(shop, comment="nightly", origin=ORIGIN)
    ).token
    value = await studio.service.services.commands.email_secrets.create_as_operator(shop, ORIGIN)
    refusal = await studio.service.client.post(RESULT, json={"gsid": "00000000-0000-4000-8000-000000000000"})
    (newest, *_) = await studio.service.services.storage.audit.newest_records(1, f"application {shop}", "")
    asks: dict[str, list[tuple[dict[str, object], dict[str, object]]]] = {
        "user": [
            ({"data": {"user_id": studio.other_user.user_id}}, {"nick": "Anna", "blocked": False, "version": 1})
        ],
        "user/sessions": [({"data": {"user_id": studio.other_user.user_id}}, {"sessions": [], "connected": []})],
        "user/methods": [({"data": {"user_id": studio.other_user.user_id}}, {"totp": None, "passkeys": []})],
        "user/roles": [
            ({"data": {"user_id": studio.other_user.user_id}}, {"roles": [], "entries": [], "groups": []})
        ],
        "serviceToken": [({"application_id": shop}, {"jti": token.jti, "comment": "nightly", "revoked": False})],
        "emailSecret": [({"application_id": shop}, {"ref": sha256(value).hex()[:12]})],
        "activity": [
            ({"data": {"record_id": newest.record_id}}, {"event": newest.event, "refused": False}),
            ({"data": {"record_id": refusal.json()["error"]}}, {"subject": "00000000…", "refused": True}),
        ],
    }
    vouched = bearer_headers(admin.jwt, Service_Jwt=await studio.service_jwt())
    for path, each in asks.items():
        for body, expected in each:
            ask = {"action": "get", **body}
            data = (await studio.expect_ok(path, ask, admin.headers))["data"]
            records = data if isinstance(data, list) else [data]
            assert any(expected.items() <= record.items() for record in records), path
            await studio.expect_error(403, path, ask, studio.other_user.headers)
            if path != "activity":
                await studio.expect_error(403, path, ask, studio.owner.headers)
            # Through a service an administrator reads people with a record in its application; this one has none.
            await studio.expect_error(404 if path == "user" else 403, path, ask, vouched)
            await studio.expect_error(400, path, {**ask, "action": "read"}, admin.headers)
    assert "user not found" in await studio.expect_error(
        404, "user", {"action": "get", "data": {"user_id": "77"}}, admin.headers
    )
    await studio.expect_error(400, "user", {"action": "get", "data": {"user_id": "x"}}, admin.headers)
    nothing = {"action": "get", "data": {"record_id": "none"}}
    hidden = {"action": "get", "data": {"record_id": refusal.json()["error"]}}
    errors = [await studio.expect_error(404, "activity", nothing, who.headers) for who in (admin, studio.owner)]
    assert {*errors, await studio.expect_error(404, "activity", hidden, studio.owner.headers)} == {errors[0]}
    for path in ("serviceToken", "emailSecret"):
        await studio.expect_error(400, path, {"action": "get"}, admin.headers)


async def test_the_installation_is_read_by_administrators_in_person_and_its_secrets_by_no_one(studio: Studio) -> None:
    admin, settings = await create_administrator(studio), studio.service.services.settings
    others = [
        studio.other_user,
        studio.owner,
        await create_person_with(studio, {IN_PROJECT: holdings_with("project_administrator")}),
        await create_person_with(studio, {ROOT: holdings_with_rules(*ROOT_RULES.keys() - {"can_administer"})}),
        await create_person_with(studio, secret_data=secret_document("canRead", "canSave", roles=("all", "all"))),
    ]
    vouched = bearer_headers(admin.jwt, Service_Jwt=await studio.service_jwt())
    expected = {
        "configuration": {"settings"},
        "branding": {"settings", "colours"},
        "policies": {"policies"},
        "risks": {"risks"},
        "health": {"status", "checks", "version", "database", "sealed"},
        "keys": {"lines", "rotate_days"},
        "email": {"server", "waiting", "letters", "total", "page", "pages"},
    }
    values = [value_of(settings, entry) for entry in ALL_SETTINGS.values() if entry.is_secret]
    secrets = [value.reveal() for value in values if isinstance(value, Secret) and value.is_masked]
    assert settings.security.master_key.reveal() in secrets
    for part, fields in expected.items():
        ask = {"action": "get", "data": {"part": part}}
        response = await studio.post("settings", ask, admin.headers)
        assert {"part", *fields} <= response.json()["data"].keys(), part
        assert [value for value in secrets if value in response.text] == [], part
        for headers in (vouched, *(record.headers for record in others)):
            await studio.expect_error(403, "settings", ask, headers)
    for data in ({}, {"part": "secrets"}, {"part": "email", "page": 0}, {"part": "email", "limit": 1_001}):
        await studio.expect_error(400, "settings", {"action": "get", "data": data}, admin.headers)


async def test_a_service_that_vouches_shows_an_owner_of_the_log_no_more_than_it_reaches(studio: Studio) -> None:
    shop = studio.shop.application_id
    wiki = await create_application(studio.service.services.storage, name="Wiki", project_id=PROJECT)
    about = (f"application {shop}", f"project {PROJECT}", f"application {wiki.application_id}")
    written = [
        studio.service.services.core.recorder.record(AuditEvent.ROLE_SAVED, ORIGIN, subject=record)
        for record in about
    ]

    def verb() -> Verb[None]:
        for record in written:
            yield from add_audit_record(record)

    await studio.service.services.storage.runner.write(verb)
    asks = [{"action": "get", "data": {"record_id": record.record_id}} for record in written]
    vouched = bearer_headers(studio.owner.jwt, Service_Jwt=await studio.service_jwt())
    elsewhere = bearer_headers(studio.owner.jwt, Service_Jwt=await studio.service_jwt(studio.other))
    for ask in asks:
        await studio.expect_ok("activity", ask, studio.owner.headers)
        await studio.expect_error(403, "activity", ask, elsewhere)
    for ask in asks[:2]:
        await studio.expect_ok("activity", ask, vouched)
    await studio.expect_error(404, "activity", asks[2], vouched)


async def test_a_game_session_is_seen_with_its_application_and_its_person_by_administrators_only(
    studio: Studio,
) -> None:
    admin, shop = await create_administrator(studio), studio.shop.application_id
    game = await register_game(studio.service, app_id=shop)
    ask = {"action": "get", "application_id": shop, "data": {"ref": game.gsid[:13]}}
    anywhere = {"action": "get", "data": {"ref": game.gsid[:13]}}
    data = (await studio.expect_ok("gameSession", ask, studio.owner.headers))["data"]
    assert (data["state"], data["stage"], data["application_id"], data["proof"]) == (
        "pending",
        "waiting",
        shop,
        "location",
    )
    assert "address" not in data
    whole = (await studio.expect_ok("gameSession", anywhere, admin.headers))["data"]
    assert whole == data | {"address": "127.0.0.1"}
    assert game.gsid not in str(whole)
    await studio.expect_error(403, "gameSession", anywhere, studio.owner.headers)
    await studio.expect_error(403, "gameSession", ask, studio.other_user.headers)
    elsewhere = ask | {"application_id": studio.other.application_id}
    theirs = await create_person_with(
        studio, secret_data=secret_document("canRead"), application_id=studio.other.application_id
    )
    assert "Game session not found" in await studio.expect_error(404, "gameSession", elsewhere, theirs.headers)
    for ref in ("00000000-0000", "%", "", game.gsid):
        await studio.expect_error(404, "gameSession", ask | {"data": {"ref": ref}}, admin.headers)


async def test_a_schema_is_read_as_it_was_by_anyone_who_may_read_it_as_it_is(studio: Studio) -> None:
    shop = studio.shop.application_id
    current = {"action": "get", "application_id": shop}
    first = (await studio.expect_ok("meta/schema", current, studio.owner.headers))["data"]
    tree = {"user": {"kick": {"value": False, "protected": False, "description": ""}}}
    save = {"action": "save", "application_id": shop, "data": {"private_data": tree}}
    second = (await studio.expect_ok("meta/schema", save, studio.owner.headers))["data"]

    def request_for_version(version: object) -> dict[str, object]:
        return {**current, "options": {"version": version}}

    assert (await studio.expect_ok("meta/schema", request_for_version(first["version"]), studio.owner.headers))[
        "data"
    ] == first
    assert (await studio.expect_ok("meta/schema", request_for_version(second["version"]), studio.owner.headers))[
        "data"
    ] == second
    for version in (0, -1, second["version"] + 1, 2**63 - 1):
        await studio.expect_error(404, "meta/schema", request_for_version(version), studio.owner.headers)
    await studio.expect_error(403, "meta/schema", request_for_version(1), studio.other_user.headers)
    saves = (await studio.expect_ok("meta/schema/versions", current, studio.owner.headers))["data"]
    assert [version["version"] for version in saves["versions"]] == [second["version"], first["version"]]
    newest = saves["versions"][0]
    added = {"what": "rule", "how": "added", "count": 1, "names": ["private_data.user.kick"]}
    assert (newest["by"], newest["changes"], saves["total"]) == (studio.owner.user_id, [added], 2)
    beyond = {**current, "data": {"page": 9}}
    assert (await studio.expect_ok("meta/schema/versions", beyond, studio.owner.headers))["data"]["versions"] == []
    elsewhere = await create_person_with(
        studio, secret_data=secret_document("canReadSchema"), application_id=studio.other.application_id
    )
    unread = await create_person_with(studio, secret_data=secret_document("canRead"))
    for no_one in (studio.other_user, elsewhere, unread):
        await studio.expect_error(403, "meta/schema/versions", current, no_one.headers)
    await studio.expect_error(400, "meta/schema", request_for_version("1"), studio.owner.headers)


async def test_single_group_and_single_member_can_be_read(studio: Studio) -> None:
    bodies = [
        (
            await studio.expect_ok(
                "group", {"action": "save", "data": {"project_id": PROJECT, "title": title}}, studio.owner.headers
            )
        )
        for title in ("Artists", "Testers")
    ]
    groups = [body["data"] for body in bodies]
    ask = {"action": "get", "data": {"project_id": PROJECT}}
    for group in groups:
        record = (await studio.expect_ok("group", {**ask, "group_id": group["id"]}, studio.owner.headers))["data"]
        assert record == {"groups": [group], "max_users_cnt": 100}
    await studio.expect_error(404, "group", {**ask, "group_id": "0" * 24}, studio.owner.headers)
    member = await create_person_with(studio, {IN_PROJECT: holdings_with("project_administrator")})
    every = (
        await studio.expect_ok("project/membership", {"action": "get", "data": {"id": PROJECT}}, studio.owner.headers)
    )["data"]
    for user_id in (member.user_id, studio.other_user.user_id):
        data = {"id": PROJECT, "user_id": user_id}
        record = (
            await studio.expect_ok("project/membership", {"action": "get", "data": data}, studio.owner.headers)
        )["data"]
        assert record == every | {
            "users": {name: holdings for name, holdings in every["users"].items() if name == user_id}
        }
    misplaced = {"action": "save", "data": {"id": PROJECT, "user_id": member.user_id}}
    assert "data.user_id" in await studio.expect_error(400, "project/membership", misplaced, studio.owner.headers)
