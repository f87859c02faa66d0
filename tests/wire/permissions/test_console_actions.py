"""What administrators do in the console, over the API."""

import pytest

from gatehouse.admin.games import session_ref
from tests.support.game import register_game
from tests.support.studio import PROJECT, Studio, create_administrator


async def test_service_tokens_and_email_secrets_are_created_and_revoked(studio: Studio) -> None:
    admin, shop = await create_administrator(studio), studio.shop.application_id
    ask = {"action": "create", "application_id": shop, "data": {"comment": "nightly", "days": 3}}
    created = (await studio.expect_ok("serviceToken", ask, admin.headers))["data"]
    assert created["comment"] == "nightly"
    assert created["jwt"].count(".") == 2
    await studio.expect_error(403, "serviceToken", ask, studio.owner.headers)
    revoke = {"action": "delete", "application_id": shop, "data": {"jti": created["jti"]}}
    await studio.expect_ok("serviceToken", revoke, admin.headers)
    view = {"action": "get", "application_id": shop}
    (listed,) = (await studio.expect_ok("serviceToken", view, admin.headers))["data"]
    assert listed["revoked"]
    assert "jwt" not in listed

    secret = {"action": "create", "application_id": shop}
    assert (await studio.expect_ok("emailSecret", secret, admin.headers))["data"]["secret"]
    await studio.expect_error(403, "emailSecret", secret, studio.owner.headers)
    (ref,) = (await studio.expect_ok("emailSecret", {**secret, "action": "get"}, admin.headers))["data"]
    gone = {"action": "delete", "application_id": shop, "data": {"ref": ref["ref"]}}
    await studio.expect_ok("emailSecret", gone, admin.headers)
    await studio.expect_error(404, "emailSecret", gone, admin.headers)


@pytest.mark.parametrize(
    ("path", "action", "member"),
    [
        ("serviceToken", "get", "days"),
        ("serviceToken", "create", "jti"),
        ("emailSecret", "create", "ref"),
        ("gameSession", "get", "reason"),
        ("settings", "get", "settings"),
        ("settings", "test_email", "part"),
        ("user", "block", "reason"),
        ("user", "save", "password"),
        ("user", "erase", "login"),
        ("user", "reset_factors", "session_id"),
        ("user/ban", "lift", "limit"),
        ("user/ban", "save", "after"),
        ("webhook", "rotate", "url"),
        ("webhook", "save", "delivery_id"),
    ],
)
async def test_member_of_another_action_is_refused_by_name(
    studio: Studio, path: str, action: str, member: str
) -> None:
    admin = await create_administrator(studio)
    required = {"ref": "0" * 12} if path == "gameSession" else {}
    ask = {"action": action, "application_id": studio.shop.application_id, "data": {**required, member: 1}}
    if path in ("settings", "webhook"):
        del ask["application_id"]
    error = await studio.expect_error(400, path, ask, admin.headers)
    assert error == f"data: object contains unknown field {member}"


@pytest.mark.parametrize("path", ["serviceToken", "settings", "user", "user/ban", "webhook"])
async def test_unknown_and_missing_actions_are_refused_in_the_same_words_everywhere(
    studio: Studio, path: str
) -> None:
    admin = await create_administrator(studio)
    for action, words in (("drop", "action: invalid enum value 'drop'"), (1, "action: expected str, got int")):
        assert await studio.expect_error(400, path, {"action": action, "data": {}}, admin.headers) == words
    missing = await studio.expect_error(400, path, {"data": {}}, admin.headers)
    assert missing == "object missing required field action"


async def test_a_game_session_is_ended_by_administrators_once(studio: Studio) -> None:
    admin = await create_administrator(studio)
    game = await register_game(studio.service)
    ask = {"action": "close", "data": {"ref": session_ref(game.gsid), "reason": "a test"}}
    await studio.expect_error(403, "gameSession", ask, studio.owner.headers)
    await studio.expect_ok("gameSession", ask, admin.headers)
    await studio.expect_error(409, "gameSession", ask, admin.headers)


async def test_a_project_is_erased_after_it_was_removed(studio: Studio) -> None:
    admin = await create_administrator(studio)
    erase = {"action": "erase", "data": {"id": PROJECT}}
    await studio.expect_error(403, "project", erase, studio.owner.headers)
    assert (await studio.post("project", erase, admin.headers)).status_code == 409
    await studio.expect_ok("project", {"action": "delete", "data": {"id": PROJECT}}, admin.headers)
    await studio.expect_ok("project", erase, admin.headers)
    await studio.expect_error(404, "project", {"action": "get", "data": {"id": PROJECT}}, admin.headers)


async def test_keys_are_rotated_and_the_mail_server_is_tried(studio: Studio) -> None:
    admin = await create_administrator(studio)
    rotate = {"action": "rotate_key", "data": {"purpose": "tokens", "alg": "ES256", "manner": "at_once"}}
    lines = (await studio.expect_ok("settings", rotate, admin.headers))["data"]["lines"]
    (keys,) = [line["keys"] for line in lines if (line["purpose"], line["alg"]) == ("tokens", "ES256")]
    assert sorted(key["state"] for key in keys) == ["signing", "verifying"]
    for action in (rotate, {"action": "test_email"}):
        await studio.expect_error(403, "settings", action, studio.owner.headers)
    unknown = {"action": "rotate_key", "data": {"purpose": "tokens", "alg": "none"}}
    await studio.expect_error(404, "settings", unknown, admin.headers)
    tried = (await studio.expect_ok("settings", {"action": "test_email"}, admin.headers))["data"]
    assert tried["part"] == "test_email"
