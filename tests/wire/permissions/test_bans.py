"""Bans from the installation, a project or an application: who may, what ends, and that it comes back (R10)."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from gatehouse.accounts.model import CENTRAL_APPLICATION, User
from gatehouse.accounts.own_account.model import LastAdministrator
from gatehouse.audit.events import AuditEvent
from gatehouse.permissions.model.central import roles as central_roles
from gatehouse.permissions.model.facts import UserRecord
from gatehouse.permissions.model.rules import ROOT, application_scope
from gatehouse.storage.accounts.bans import MAX_DEVICES
from gatehouse.storage.permissions.sample_factors import SampleFactorStorage
from gatehouse.storage.tables.accounts import user_devices
from tests.support.browser import PASSWORD, AccountBrowser, HttpBrowser
from tests.support.builders import ORIGIN, a_record, a_user
from tests.support.game import approve_in_storage, confirm_in_browser, poll_ended_session, register_game
from tests.support.oauth import RelyingPartyClient, an_oidc_client, oauth_error, success_body
from tests.support.permission_builders import a_role, create_application, holdings_with
from tests.support.service import RunningService
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
    role_meta,
    set_user_roles,
    write_record,
)
from tests.support.websockets import close_code_and_reason, connect_game_socket, receive_json
from tests.wire.oauth.authorize_responses import count_rows

LOGIN: Final = "anna@studio.example"
TEXT: Final = "Cheating in ranked games"
DAY: Final = 86_400
PC: Final = "factor of a PC"


@pytest.fixture
async def anna(service: RunningService) -> User:
    hashed = await service.services.accounts.passwords.hash(PASSWORD)
    user = a_user(login=LOGIN, password_hash=hashed, email_verified=True)
    await service.services.storage.accounts.create_user(user, a_record())
    return user


@pytest.fixture
async def moderator(studio: Studio) -> Person:
    """A person who may ban from the shop and nothing else."""
    shop = application_scope(PROJECT, studio.shop.application_id)
    return await create_person_with(studio, {shop: holdings_with_rules("app.can_ban")})


@pytest.fixture
async def browser(service: RunningService) -> AsyncIterator[HttpBrowser]:
    someone = HttpBrowser(service)
    yield someone
    await someone.client.aclose()


def ban_request(user_id: str, *, action: str = "save", **fields: Any) -> dict[str, object]:
    scope = {name: fields.pop(name) for name in ("application_id", "project_id") if name in fields}
    data = {"data": {"public_text": TEXT, **fields}} if action == "save" else {}
    return {"action": action, "user_id": user_id, **scope, **data}


async def ban(studio: Studio, who: Person, user_id: str, **fields: Any) -> dict[str, Any]:
    saved: dict[str, Any] = (await studio.expect_ok("user/ban", ban_request(user_id, **fields), who.headers))["data"]
    return saved


async def lift(studio: Studio, who: Person, user_id: str, **scope: Any) -> None:
    await studio.expect_ok("user/ban", ban_request(user_id, action="lift", **scope), who.headers)


async def log_in(service: RunningService, **fields: Any) -> dict[str, Any]:
    ask = {"login": LOGIN, "password": PASSWORD, "factor": "the device", **fields}
    body: dict[str, Any] = (await service.client.post("/proxy/api/login", json=ask)).json()
    return body


# -- who may ban -------------------------------------------------------------------------------------------


async def test_bn_01_each_scope_takes_its_own_right(studio: Studio, moderator: Person) -> None:
    shop, player = studio.shop.application_id, studio.other_user
    administrator = await create_administrator(studio)
    scopes: list[dict[str, Any]] = [{"application_id": shop}, {"project_id": PROJECT}, {}]
    may = {moderator: [True, False, False], studio.owner: [True, True, False], administrator: [True, True, True]}
    for who, expected in may.items():
        for scope, allowed in zip(scopes, expected, strict=True):
            for action in ("save", "list", "lift"):
                answer = await studio.post(
                    "user/ban", ban_request(player.user_id, action=action, **scope), who.headers
                )
                assert answer.status_code == (200 if allowed else 403), (who, scope, action, answer.text)
    everyone = await create_person_with(studio)
    for scope in scopes:
        assert await studio.expect_error(403, "user/ban", ban_request(player.user_id, **scope), everyone.headers)


async def test_bn_01_of_the_built_in_roles_project_owner_alone_contains_the_right_to_ban() -> None:
    assert [role.name for role in central_roles() if "can_ban" in str(role.meta)] == ["project_owner"]
    by_role = [role.name for role in central_roles() if "can_manage_objects" in str(role.meta)]
    assert by_role == ["project_owner", "object_manager"]  # R12


async def test_bn_02_no_one_bans_a_person_above_them(studio: Studio, moderator: Person) -> None:
    shop = {"application_id": studio.shop.application_id}
    manager = await create_person_with(studio, {IN_PROJECT: holdings_with("project_administrator")})
    administrator, second = await create_administrator(studio), await create_administrator(studio)
    refused = [
        (moderator, shop, studio.owner),
        (moderator, shop, manager),
        (moderator, shop, administrator),
        (manager, {"project_id": PROJECT}, studio.owner),
        (studio.owner, {"project_id": PROJECT}, administrator),
        (moderator, shop, moderator),
        (administrator, {}, administrator),
    ]
    for who, scope, target in refused:
        await studio.expect_error(403, "user/ban", ban_request(target.user_id, **scope), who.headers)
    await ban(studio, studio.owner, manager.user_id, project_id=PROJECT)
    await ban(studio, administrator, studio.owner.user_id, project_id=PROJECT)
    await ban(studio, administrator, second.user_id)
    third = await create_administrator(studio)
    await ban(studio, third, administrator.user_id)


async def test_bn_02_no_one_lifts_a_ban_of_their_own(studio: Studio, moderator: Person) -> None:
    own = ban_request(moderator.user_id, action="lift", application_id=studio.shop.application_id)
    assert "of your own" in await studio.expect_error(403, "user/ban", own, moderator.headers)


async def test_bn_02_a_banned_moderator_lifts_no_ban_in_the_console(
    service: RunningService, studio: Studio, anna: User
) -> None:
    shop, player = studio.shop.application_id, studio.other_user.user_id
    moderates = {application_scope(PROJECT, shop): holdings_with_rules("app.can_ban")}
    await write_record(studio, UserRecord(application_id=CENTRAL_APPLICATION, user_id=anna.user_id, scopes=moderates))
    administrator = await create_administrator(studio)
    browser = AccountBrowser(service)
    await browser.sign_in(LOGIN)
    for is_banned, answer in ((False, 303), (True, 403)):
        await ban(studio, administrator, player, application_id=shop)
        if is_banned:
            await ban(studio, administrator, anna.user_id, application_id=shop)
        lifted = await browser.post_with_csrf(f"/console/people/{player}/bans/lift", application_id=str(shop))
        assert lifted.status_code == answer, lifted.text
    assert "where you are banned" in lifted.text
    saved = await browser.post_with_csrf(f"/console/people/{player}/bans", application_id=str(shop))
    assert saved.status_code == 403
    await browser.client.aclose()


async def test_bn_02_one_administrator_is_always_left(studio: Studio) -> None:
    first, second = await create_administrator(studio), await create_administrator(studio)
    await ban(studio, first, second.user_id)
    with pytest.raises(LastAdministrator):
        await studio.service.services.accounts.administration.block(first.user_id, origin=ORIGIN)


async def test_bans_with_bad_input_are_refused_by_name(studio: Studio) -> None:
    administrator, player = await create_administrator(studio), studio.other_user.user_id
    shop = studio.shop.application_id
    for fields, words in (
        ({"until": studio.service.clock.now()}, "data.until"),
        ({"until": -1}, "data.until"),
        ({"public_text": "x" * 501}, "data.public_text"),
        ({"public_text": "a\nb"}, "data.public_text"),
        ({"reason": "x" * 1_001}, "data.reason"),
        ({"surprise": 1}, "surprise"),
        ({"application_id": shop, "project_id": PROJECT}, "project_id"),
        ({"application_id": 1}, "application_id"),
    ):
        error = await studio.expect_error(400, "user/ban", ban_request(player, **fields), administrator.headers)
        assert words in error, (fields, error)
    for user_id, status in (("1999999999", 404), ("", 400)):
        await studio.expect_error(status, "user/ban", ban_request(user_id), administrator.headers)
    await studio.expect_error(404, "user/ban", ban_request(player, action="lift"), administrator.headers)


# -- what a ban ends ---------------------------------------------------------------------------------------


async def test_bn_03_login_is_denied_with_the_public_text_until_the_ban_is_lifted(
    studio: Studio, moderator: Person, anna: User
) -> None:
    service, shop = studio.service, studio.shop.application_id
    until = service.clock.now() + DAY
    saved = await ban(studio, moderator, anna.user_id, application_id=shop, until=until, reason="ticket 4711")
    assert (saved["state"], saved["author"], saved["reason"]) == ("active", moderator.user_id, "ticket 4711")
    denied = {"status": "DENIED", "reason": "banned", "public_text": TEXT, "until": until}
    assert await log_in(service, app_id=shop) == denied
    assert await log_in(service, app_id=studio.other.application_id, gapp_id=shop) == denied
    assert (await log_in(service, app_id=studio.other.application_id))["status"] == "OK"
    assert (await log_in(service))["status"] == "OK"
    await lift(studio, moderator, anna.user_id, application_id=shop)
    assert (await log_in(service, app_id=shop))["status"] == "OK"


async def test_bn_04_a_ban_ends_by_itself(studio: Studio, anna: User) -> None:
    service, administrator = studio.service, await create_administrator(studio)
    await ban(studio, administrator, anna.user_id, until=service.clock.now() + 60)
    assert (await log_in(service))["status"] == "DENIED"
    await service.clock.advance(59)
    assert (await log_in(service))["status"] == "DENIED"
    await service.clock.advance(1)
    assert (await log_in(service))["status"] == "OK"


async def test_bn_05_a_ban_shows_only_after_the_credential_was_proved(studio: Studio, anna: User) -> None:
    service, administrator = studio.service, await create_administrator(studio)
    await ban(studio, administrator, anna.user_id)
    assert await log_in(service, password="wrong") == {"status": "LOGINERROR"}
    assert await log_in(service) == {"status": "DENIED", "reason": "banned", "public_text": TEXT, "until": 0}
    await service.services.factors.email_codes.enable(anna, origin=ORIGIN)
    asked = await log_in(service)
    assert asked.keys() == {"status", "request_id", "methods"}
    wrong = {"request_id": asked["request_id"], "otp": "000000"}
    assert (await service.client.post("/proxy/api/login", json=wrong)).json() == {"status": "2STEPERROR"}


async def test_bn_03_permission_answers_of_the_scope_end_and_come_back(studio: Studio, moderator: Person) -> None:
    shop, player = studio.shop.application_id, studio.other_user
    await put_roles(studio, a_role("Fan", meta=role_meta(user_kick=True)))
    await set_user_roles(studio, player.user_id, {ROOT: ["fan"]})
    own = own_record(studio.shop)
    about_player = own_record(studio.shop, data={"user_id": player.user_id})
    service_jwt = {"Service-Jwt": await studio.service_jwt(), **player.headers}
    assert (await studio.expect_ok("meta/data", own, player.headers))["data"] == ["private_data.user.kick"]

    until = studio.service.clock.now() + 60
    await ban(studio, moderator, player.user_id, application_id=shop, until=until)
    refused = await studio.post("meta/data", own, player.headers)
    assert refused.status_code == 403
    told = {"reason": "banned", "public_text": TEXT, "until": until}
    assert refused.json() == {"status": "ERROR", "error": "This account is banned.", **told}
    assert (await studio.post("meta/data", own, service_jwt)).json()["reason"] == "banned"
    await studio.expect_ok("meta/data", own_record(studio.other), player.headers)
    check = {"application_id": shop, "data": {"user_id": player.user_id, "checks": [{"rule": "user.kick"}]}}
    answer = await studio.expect_ok("check", check, studio.owner.headers)
    assert (answer["data"], answer["expired"]) == ([False], until)
    explained = await studio.expect_ok(
        "explain",
        {"application_id": shop, "data": {"user_id": player.user_id, "rule": "user.kick"}},
        studio.owner.headers,
    )
    assert [one["kind"] for one in explained["data"]["missing"]] == ["banned"]
    assert (await studio.expect_ok("meta/data", about_player, studio.owner.headers))["data"] == []

    await studio.service.clock.advance(60)
    assert (await studio.expect_ok("meta/data", own, player.headers))["data"] == ["private_data.user.kick"]
    assert (await studio.expect_ok("check", check, studio.owner.headers))["data"] == [True]


async def test_bn_03_a_ban_from_a_project_covers_its_applications_and_rights_in_it(studio: Studio) -> None:
    player = await create_person_with(studio, {IN_PROJECT: holdings_with("project_administrator")})
    central = {"action": "get", "application_id": 1, "data": {}}
    assert "project.can_view_project" in str(await studio.expect_ok("meta/data", central, player.headers))
    await ban(studio, studio.owner, player.user_id, project_id=PROJECT)
    assert (await studio.expect_ok("meta/data", central, player.headers))["data"] == []
    await studio.expect_error(403, "meta/data", own_record(studio.shop), player.headers)
    await studio.expect_ok("meta/data", own_record(studio.other), player.headers)
    await studio.expect_error(
        403, "user/ban", ban_request(player.user_id, action="lift", project_id=PROJECT), player.headers
    )
    await lift(studio, studio.owner, player.user_id, project_id=PROJECT)
    assert "project.can_view_project" in str(await studio.expect_ok("meta/data", central, player.headers))


async def relying_party(studio: Studio) -> RelyingPartyClient:
    return await an_oidc_client(studio.service, application_id=studio.shop.application_id)


async def test_bn_03_tokens_of_clients_stop_and_go_on(studio: Studio, moderator: Person, anna: User) -> None:
    client, shop = await relying_party(studio), studio.shop.application_id
    tokens = await client.tokens(await client.issue_code(anna))
    waiting = await client.issue_code(anna)
    await ban(studio, moderator, anna.user_id, application_id=shop)
    assert (await client.userinfo(tokens["access_token"])).status_code == 401
    assert oauth_error(await client.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert oauth_error(await client.redeem(waiting)) == (400, "invalid_grant")
    await lift(studio, moderator, anna.user_id, application_id=shop)
    assert (await client.userinfo(tokens["access_token"])).status_code == 200
    success_body(await client.refresh(tokens["refresh_token"]))
    assert (await client.userinfo((await client.tokens(waiting))["access_token"])).status_code == 200


async def test_bn_03_a_token_revoked_during_a_ban_stays_revoked(
    studio: Studio, moderator: Person, anna: User
) -> None:
    client, shop = await relying_party(studio), studio.shop.application_id
    tokens = await client.tokens(await client.issue_code(anna))
    await ban(studio, moderator, anna.user_id, application_id=shop)
    await studio.service.client.post(
        "/proxy/oauth/revoke", data={"token": tokens["refresh_token"]}, headers=client.headers
    )
    await lift(studio, moderator, anna.user_id, application_id=shop)
    assert oauth_error(await client.refresh(tokens["refresh_token"])) == (400, "invalid_grant")


async def test_bn_03_browser_sessions_stop_and_go_on(studio: Studio, service: RunningService, anna: User) -> None:
    administrator = await create_administrator(studio)
    browser = AccountBrowser(service)
    await browser.sign_in(LOGIN)
    assert (await browser.get("/account")).status_code == 200
    await ban(studio, administrator, anna.user_id)
    assert (await browser.get("/account")).status_code == 303
    await lift(studio, administrator, anna.user_id)
    assert (await browser.get("/account")).status_code == 200
    await browser.client.aclose()


# -- games -------------------------------------------------------------------------------------------------


async def test_bn_03_a_poll_is_told_of_the_ban(studio: Studio, moderator: Person, anna: User) -> None:
    shop = studio.shop.application_id
    game = await register_game(studio.service, app_id=shop)
    await approve_in_storage(game, anna)
    await ban(studio, moderator, anna.user_id, application_id=shop)
    answer = (await game.poll()).json()
    assert answer == {
        "status": "ERROR",
        "error": answer["error"],
        "reason": "banned",
        "public_text": TEXT,
        "until": 0,
    }
    again = (await poll_ended_session(game)).json()
    assert again == answer


@pytest.mark.parametrize("everywhere", [True, False])
async def test_bn_03_the_browser_shows_the_ban_and_the_game_is_told(
    studio: Studio, browser: HttpBrowser, anna: User, *, everywhere: bool
) -> None:
    administrator, shop = await create_administrator(studio), studio.shop.application_id
    game = await register_game(studio.service, app_id=shop)
    scope = {} if everywhere else {"application_id": shop}
    await ban(studio, administrator, anna.user_id, **scope)
    polling = game.start_poll()
    if everywhere:
        page = await browser.get(f"/?gsid={game.gsid}")
        while page.status_code == 303:
            page = await browser.follow()
        page = await browser.post("/sign-in", login=LOGIN, password=PASSWORD)
    else:
        page = await confirm_in_browser(browser, game)
    assert page.status_code == 403
    assert TEXT in page.text
    answer = (await polling).json()
    assert (answer["status"], answer["reason"], answer["public_text"]) == ("ERROR", "banned", TEXT)


async def test_bn_06_an_open_socket_of_a_banned_player_is_closed(
    studio: Studio, moderator: Person, anna: User
) -> None:
    shop = studio.shop.application_id
    game = await register_game(studio.service, app_id=shop)
    async with connect_game_socket(game) as socket:
        await approve_in_storage(game, anna)
        assert (await receive_json(socket))["event"] == "confirmed"
        assert (await game.poll()).json()["status"] == "OK"
        await ban(studio, moderator, anna.user_id, application_id=shop)
        last = await receive_json(socket)
        assert (last["status"], last["reason"], last["public_text"], last["until"]) == ("ERROR", "banned", TEXT, 0)
        assert (await close_code_and_reason(socket))[0] == 4410
    async with connect_game_socket(game) as socket:
        assert (await receive_json(socket))["reason"] == "banned"
    await lift(studio, moderator, anna.user_id, application_id=shop)
    async with connect_game_socket(game) as socket:
        assert (await receive_json(socket))["event"] == "confirmed"


# -- devices -----------------------------------------------------------------------------------------------


@pytest.mark.both_databases
async def test_bn_09_a_ban_of_devices_counts_for_every_account_on_them(
    studio: Studio, moderator: Person, anna: User
) -> None:
    service, shop = studio.service, studio.shop.application_id
    eve = a_user(user_id="1000000077", login="eve@studio.example", password_hash=anna.password_hash)
    await service.services.storage.accounts.create_user(eve, a_record())
    hers = {"login": "eve@studio.example", "app_id": shop, "factor": PC}
    assert (await log_in(service, app_id=shop, factor=PC))["status"] == "OK"
    jwt = (await log_in(service, **hers))["jwt"]
    headers = {"Authorization": f"Bearer {jwt}", "Factor": PC}
    await studio.expect_ok("meta/data", own_record(studio.shop), headers)

    saved = await ban(studio, moderator, anna.user_id, application_id=shop, device=True)
    assert saved["devices"] == 1
    denied = {"status": "DENIED", "reason": "banned", "public_text": TEXT, "until": 0}
    assert await log_in(service, **hers) == denied
    assert (await studio.post("meta/data", own_record(studio.shop), headers)).json()["reason"] == "banned"
    assert (await log_in(service, **{**hers, "factor": "another device"}))["status"] == "OK"
    assert (await log_in(service, login="eve@studio.example", factor=PC))["status"] == "OK"
    game = await register_game(service, app_id=shop, factor=PC)
    await approve_in_storage(game, eve)
    assert (await game.poll()).json()["reason"] == "banned"

    changed = await ban(studio, moderator, anna.user_id, application_id=shop, public_text="Still")
    assert (changed["devices"], (await log_in(service, **hers))["public_text"]) == (1, "Still")
    await lift(studio, moderator, anna.user_id, application_id=shop)
    assert (await log_in(service, **hers))["status"] == "OK"
    await studio.expect_ok("meta/data", own_record(studio.shop), headers)


@pytest.mark.both_databases
async def test_bn_10_the_factor_of_a_code_sample_is_refused_for_new_applications_and_is_no_device_of_old_ones(
    studio: Studio, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, shop = studio.service, studio.shop.application_id
    sample = "a random text kept on this device"
    paths = {
        "/proxy/api/gameSession/getGsid": {},
        "/proxy/api/login": {"login": LOGIN, "password": PASSWORD},
        "/proxy/api/guest": {"device_key": "x", "challenge": "x", "signature": "x"},
    }

    async def refused(application_id: int) -> list[bool]:
        answers = [
            await service.client.post(path, json={**fields, "app_id": application_id, "factor": sample})
            for path, fields in paths.items()
        ]
        return [one.status_code == 400 and "device_factor" in one.text for one in answers]

    old = await create_application(service.services.storage, name="Old", accepts_sample_factor=True)
    assert await refused(old.application_id) == [True, True, True], "in development"
    monkeypatch.setattr(service.services.permissions.sample_factor, "_accepts_none", False)
    assert await refused(shop) == [True, True, True], "a new application"
    assert await refused(old.application_id) == [False, False, False]

    eve = a_user(user_id="1000000077", login="eve@studio.example", password_hash=anna.password_hash)
    await service.services.storage.accounts.create_user(eve, a_record())
    hers = {"login": "eve@studio.example", "app_id": old.application_id, "factor": sample}
    for fields in ({"app_id": old.application_id, "factor": sample}, hers):
        assert (await log_in(service, **fields))["status"] == "OK"
    administrator = await create_administrator(studio)
    saved = await ban(studio, administrator, anna.user_id, application_id=old.application_id, device=True)
    assert saved.get("devices", 0) == 0
    assert (await log_in(service, **hers))["status"] == "OK"
    now = service.clock.now()
    factors = SampleFactorStorage(service.services.storage.runner)
    assert await factors.applications(now) == ["Old"]
    assert await factors.applications(now + 31 * 86_400) == []


async def test_bn_09_a_shared_device_asks_for_confirmation_and_old_devices_are_forgotten(
    studio: Studio, moderator: Person, anna: User
) -> None:
    service, shop = studio.service, studio.shop.application_id
    assert (await log_in(service, app_id=shop, factor=PC))["status"] == "OK"
    devices = service.services.permissions.devices
    for user_id in ("1000000071", "1000000072", "1000000073"):
        await service.services.storage.accounts.create_user(a_user(user_id=user_id), a_record())
        await devices.record_sign_in(user_id, PC)
    request = ban_request(anna.user_id, application_id=shop, device=True)
    assert "confirm" in await studio.expect_error(409, "user/ban", request, moderator.headers)
    assert (await ban(studio, moderator, anna.user_id, application_id=shop, device=True, confirm=True))[
        "devices"
    ] == 1
    await devices.record_sign_in(studio.owner.user_id, PC)
    request = ban_request(anna.user_id, application_id=shop, device=True, confirm=True)
    await studio.expect_error(403, "user/ban", request, moderator.headers)
    await lift(studio, moderator, anna.user_id, application_id=shop)
    await service.clock.advance(30 * DAY + 1)
    assert (await ban(studio, moderator, anna.user_id, application_id=shop, device=True)).get("devices", 0) == 0


async def test_bn_09_sign_in_at_an_erasure_stores_no_device(service: RunningService, anna: User) -> None:
    await service.services.accounts.erasure.erase(anna, ORIGIN)
    await service.services.permissions.devices.record_sign_in(anna.user_id, PC)
    assert await count_rows(service, user_devices) == 0


async def test_bn_09_made_up_devices_of_a_person_are_bounded(studio: Studio, moderator: Person, anna: User) -> None:
    service, shop = studio.service, studio.shop.application_id
    devices = service.services.permissions.devices
    for number in range(MAX_DEVICES + 5):
        await devices.record_sign_in(anna.user_id, f"made up {number}")
    await service.clock.advance(1)
    assert (await log_in(service, app_id=shop, factor=PC))["status"] == "OK"
    assert await count_rows(service, user_devices) == MAX_DEVICES
    await ban(studio, moderator, anna.user_id, application_id=shop, device=True)
    assert (await devices.find_bans(PC))[0].application_id == shop


# -- history -----------------------------------------------------------------------------------------------


async def test_bn_08_every_ban_stays_in_the_history(studio: Studio, moderator: Person) -> None:
    shop, player = studio.shop.application_id, studio.other_user.user_id
    first = await ban(
        studio, moderator, player, application_id=shop, reason="one", until=studio.service.clock.now() + 9
    )
    await studio.service.clock.advance(1)
    second = await ban(studio, moderator, player, application_id=shop, public_text="Two")
    assert (second["reason"], second["until"], second["public_text"]) == ("one", first["until"], "Two")
    await studio.service.clock.advance(10)
    third = await ban(studio, moderator, player, application_id=shop)
    assert (third["reason"], third["until"]) == ("", 0)
    await lift(studio, moderator, player, application_id=shop)
    ask = {"action": "list", "application_id": shop, "data": {"limit": 2}}
    page = await studio.expect_ok("user/ban", ask, moderator.headers)
    assert [(one["ban_id"], one["state"]) for one in page["data"]] == [
        (third["ban_id"], "lifted"),
        (second["ban_id"], "ended"),
    ]
    rest = {**ask, "data": {"limit": 2, "after": page["after"]}}
    page = await studio.expect_ok("user/ban", rest, moderator.headers)
    assert [(one["state"], one["lifted_by"]) for one in page["data"]] == [("lifted", moderator.user_id)]
    assert page["after"] is None
    active = {**ask, "data": {"filters": {"state": "active"}}}
    assert (await studio.expect_ok("user/ban", active, moderator.headers))["data"] == []
    banned = await audit_records(studio, AuditEvent.USER_BANNED)
    lifted = await audit_records(studio, AuditEvent.USER_BAN_LIFTED)
    assert ([one.subject for one in banned], len(lifted)) == ([player] * 3, 1)
    assert "Two" not in str(banned)


async def test_bn_08_the_export_has_the_bans_and_erasure_keeps_what_matches(
    studio: Studio, moderator: Person, anna: User
) -> None:
    services, shop = studio.service.services, studio.shop.application_id
    await ban(studio, moderator, anna.user_id, application_id=shop, reason="ticket 4711")
    export = await services.personal_data.export.export_user(anna, ORIGIN)
    assert [(one.application_id, one.text, one.until) for one in export.bans] == [(shop, TEXT, "")]
    assert "4711" not in str(export)
    await services.accounts.erasure.erase(await services.storage.accounts.user(anna.user_id), ORIGIN)
    ask = {"action": "list", "application_id": shop}
    (kept,) = (await studio.expect_ok("user/ban", ask, moderator.headers))["data"]
    assert (kept["user_id"], kept["state"], bool(kept["erased"])) == (anna.user_id, "active", True)
    administrator = AccountBrowser(studio.service)
    hashed = await services.accounts.passwords.hash(PASSWORD)
    root = a_user(user_id="1000000090", login="root@studio.example", password_hash=hashed, email_verified=True)
    await services.storage.accounts.create_user(root, a_record(), administrator=True)
    await administrator.sign_in("root@studio.example")
    assert "account deleted" in (await administrator.get("/console/people/bans")).text
    lifted = await administrator.submit(f"/console/people/{anna.user_id}/bans/lift")
    assert (lifted.status_code, lifted.headers["location"]) == (303, "/console/people/bans")
    assert (await studio.expect_ok("user/ban", ask, moderator.headers))["data"][0]["state"] == "lifted"
    await services.storage.sweep(studio.service.clock.now())
    assert (await studio.expect_ok("user/ban", ask, moderator.headers))["data"] == []
    await administrator.client.aclose()
