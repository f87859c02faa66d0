"""Guests: a key on a device is an account (R10, checklist GU-01 to GU-05)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.times import DAY
from gatehouse.permissions.errors import ProtectedRoleForGuest
from gatehouse.permissions.model.rules import ROOT
from tests.support.browser import HttpBrowser
from tests.support.guests import GUEST, Device, ask_challenge, post_guest, turn_guests_on
from tests.support.oauth import an_oidc_client
from tests.support.permission_builders import a_role
from tests.support.processes import free_port
from tests.support.service import RunningService, running_service
from tests.support.studio import Studio, a_studio, create_administrator, put_roles, set_user_roles
from tests.wire.accounts.test_login import ALWAYS, claims_of, with_totp
from tests.wire.accounts.test_proof_of_work import DIFFICULTY, solve

ORIGIN = AuditOrigin(actor="test")
REFUSED = {"status": "LOGINERROR"}


@pytest.fixture
async def guests(service: RunningService) -> RunningService:
    await turn_guests_on(service)
    return service


@pytest.fixture
async def studio(guests: RunningService) -> Studio:
    return await a_studio(guests)


async def user_of(service: RunningService, user_id: str) -> User:
    return await service.services.storage.accounts.user(user_id)


async def test_first_sign_in_makes_a_guest_and_the_next_one_finds_it(guests: RunningService) -> None:
    device = Device()
    first = await device.log_in(guests, factor="pc")
    assert set(first) == ALWAYS | {"jwt", "factor", "created"}
    assert (first["status"], first["auth"], first["tags"], first["created"]) == ("OK", "guest", "guest", True)
    claims = claims_of(first["jwt"])
    assert (claims["uid"], claims["auth"], claims["tgs"]) == (first["user_id"], "guest", "guest")
    again = await device.log_in(guests)
    assert (again["user_id"], again["tags"], "created" in again) == (first["user_id"], "guest", False)
    assert (await Device().log_in(guests))["user_id"] != first["user_id"]
    user = await user_of(guests, first["user_id"])
    assert (user.login, user.password_hash, user.nick[:6]) == (None, None, "Guest ")


async def test_guests_are_off_until_they_are_turned_on(service: RunningService) -> None:
    device = Device()
    assert (await service.client.post(GUEST)).status_code == 403
    await turn_guests_on(service, applications=["7"])
    assert (await service.client.post(GUEST, json={"app_id": 8})).status_code == 403
    challenge = await ask_challenge(service, app_id=7)
    body = {**device.sign(challenge), "app_id": 7, "gapp_id": 8}
    assert (await service.client.post(GUEST, json=body)).status_code == 403
    await service.services.settings_editor.save({"guests.enabled": False}, ORIGIN)
    response = await service.client.post(GUEST, json={**device.sign(challenge), "app_id": 7})
    assert response.status_code == 403
    assert "turned off" in response.text


async def test_application_of_a_service_jwt_must_admit_guests_too(studio: Studio) -> None:
    service, app_id = studio.service, studio.other.application_id
    await turn_guests_on(service, applications=[str(app_id)])
    sent = {**Device().sign(await ask_challenge(service, app_id=app_id)), "app_id": app_id}
    named = {"app_id": app_id, "service_jwt": await studio.service_jwt(studio.shop)}
    assert (await service.client.post(GUEST, json=named)).status_code == 403
    assert (await service.client.post(GUEST, json={**sent, **named})).status_code == 403
    assert (await post_guest(service, **sent))["status"] == "OK"


@pytest.mark.both_databases
async def test_gu_13_guest_of_some_applications_enters_no_other_one_by_any_door(studio: Studio) -> None:
    service, shop, other = studio.service, studio.shop.application_id, studio.other.application_id
    await turn_guests_on(service, applications=[str(shop)])
    guest = await Device().log_in(service, app_id=shop, factor="pc")
    user = await user_of(service, guest["user_id"])
    rules = service.services.permissions.login_rules
    assert [await rules.may_log_in(user, ids) for ids in ((shop,), (other,), (shop, other), ())] == [
        True,
        False,
        False,
        False,
    ]
    exchanged = await service.client.post(
        "/proxy/oauth/exchange", headers={"Authorization": f"Bearer {guest['jwt']}"}
    )
    assert exchanged.status_code == 403, exchanged.text
    administrator = await create_administrator(studio)
    for application_id, status in ((shop, 200), (other, 403)):
        save = {"action": "save", "application_id": application_id, "data": {}}
        key = (await studio.expect_ok("accessKey", save, administrator.headers))["data"]["hash"]
        sent = {"jwt": guest["jwt"], "factor": "pc"}
        answer = await studio.post("exchangeJwt", sent, {"Authorization": f"Bearer {key}"})
        assert answer.status_code == status, answer.text
    for application_id, expected in ((shop, True), (other, False)):
        client = await an_oidc_client(service, client_id=f"c{application_id}", application_id=application_id)
        browser = HttpBrowser(service)
        login = await Device().log_in(service, app_id=shop, short_token="1")
        await browser.get(f"/?stoken={login['stoken']}")
        await browser.post("/sign-in/stoken")
        page = await browser.get(client.authorize_path())
        assert ("code=" in page.headers.get("location", "")) is expected, page.text
        await browser.client.aclose()
    await turn_guests_on(service, applications=[])
    assert await rules.may_log_in(user, (other,))


async def test_malformed_fields_are_named(guests: RunningService) -> None:
    whole = Device().sign(await ask_challenge(guests))
    for name, value in (("device_key", "AAAA"), ("device_key", "?" * 44), ("signature", "x" * 500)):
        response = await guests.client.post(GUEST, json={**whole, name: value})
        assert (response.status_code, name in response.text) == (400, True)
    assert (await guests.client.post(GUEST, json={"intent": "other"})).status_code == 400


async def test_gu_01_challenge_works_once_for_two_minutes_and_only_as_issued(guests: RunningService) -> None:
    device = Device()
    challenge = await ask_challenge(guests)
    sent = device.sign(challenge)
    answers = await asyncio.gather(*(post_guest(guests, **sent) for _ in range(4)))
    assert sorted(answer["status"] for answer in answers) == ["LOGINERROR"] * 3 + ["OK"]
    late = device.sign(await ask_challenge(guests))
    upgrade = device.sign(await ask_challenge(guests, intent="upgrade"))
    assert await post_guest(guests, **upgrade) == REFUSED
    kind, ends_at, nonce, mac = (await ask_challenge(guests)).split(".")
    for forged in (f"{kind}.{int(ends_at) + 999}.{nonce}.{mac}", f"{kind}.{ends_at}.{nonce}.", "", "x", "é.1.2.3"):
        assert await post_guest(guests, **device.sign(forged)) == REFUSED
    await guests.clock.advance(120)
    assert await post_guest(guests, **late) == REFUSED


async def test_gu_02_device_key_alone_signs_no_one_in(guests: RunningService) -> None:
    """The public key is no secret: it signs no one in, nor does a signature by another key."""
    device, thief = Device(), Device()
    await device.log_in(guests)
    sent = {**thief.sign(await ask_challenge(guests)), "device_key": device.public_key}
    assert await post_guest(guests, **sent) == REFUSED


async def test_gu_03_guests_of_one_source_are_limited(guests: RunningService) -> None:
    await turn_guests_on(guests, created_per_hour=2)
    known = Device()
    assert [(await one.log_in(guests))["status"] for one in (known, Device())] == ["OK", "OK"]
    blocked = await Device().log_in(guests)
    assert blocked["status"] == "BLOCKED"
    assert (await known.log_in(guests))["status"] == "OK"
    await guests.clock.advance(blocked["retry_after"] + 1)
    assert (await Device().log_in(guests))["status"] == "OK"


async def test_gu_03_new_guests_solve_a_puzzle_while_it_is_required(guests: RunningService) -> None:
    known, new = Device(), Device()
    await known.log_in(guests)
    await guests.services.settings_editor.save(
        {"protection.proof_of_work": "on", "protection.difficulty": DIFFICULTY}, ORIGIN
    )
    assert (await known.log_in(guests))["status"] == "OK"
    assert "puzzle" not in await post_guest(guests, device_key=known.public_key)
    asked = await new.log_in(guests)
    assert (asked["status"], asked["puzzle"]["parts"]) == ("PUZZLE", 8)
    solved = {"puzzle": asked["puzzle"]["puzzle"], "solution": solve(asked["puzzle"]["puzzle"])}
    done = await post_guest(guests, **new.sign(asked["challenge"]), **solved)
    assert (done["status"], done["created"]) == ("OK", True)
    other = Device().sign(await ask_challenge(guests))
    assert (await post_guest(guests, **other, **solved))["status"] == "PUZZLE", "a puzzle works once"


async def test_gu_03_guests_of_all_sources_solve_puzzles_and_then_are_refused(guests: RunningService) -> None:
    await turn_guests_on(guests, total_per_hour=4)
    await guests.services.settings_editor.save({"protection.difficulty": DIFFICULTY}, ORIGIN)
    known = Device()
    assert [(await one.log_in(guests))["status"] for one in (known, Device())] == ["OK", "OK"]
    assert [(await log_in_with_puzzle(guests))["status"] for _ in range(3)] == ["OK", "OK", "BLOCKED"]
    assert (await known.log_in(guests))["status"] == "OK"
    await guests.clock.advance(3_601)
    assert (await Device().log_in(guests))["status"] == "OK"


async def log_in_with_puzzle(guests: RunningService) -> dict[str, Any]:
    device = Device()
    asked = await device.log_in(guests)
    assert asked["status"] == "PUZZLE"
    solved = {"puzzle": asked["puzzle"]["puzzle"], "solution": solve(asked["puzzle"]["puzzle"])}
    return await post_guest(guests, **device.sign(asked["challenge"]), **solved)


async def test_gu_04_guest_gets_no_protected_role(studio: Studio) -> None:
    service = studio.service
    guest = await Device().log_in(service)
    await put_roles(studio, a_role("moderator", protected=True), a_role("player"))
    await set_user_roles(studio, guest["user_id"], {ROOT: ["player"]})
    with pytest.raises(ProtectedRoleForGuest):
        await set_user_roles(studio, guest["user_id"], {ROOT: ["player", "moderator"]})
    await put_roles(studio, a_role("player", protected=True))  # has it already, and it becomes protected
    administrator = await create_administrator(studio)
    get = {"action": "get", "application_id": studio.shop.application_id}
    about = {**get, "data": {"user_id": guest["user_id"], "type": "roles"}}
    assert (await studio.expect_ok("meta/data", about, administrator.headers))["data"] == []
    ask = {
        "action": "save",
        "application_id": 1,
        "data": {"user_id": guest["user_id"], "roles": ["administrator"]},
    }
    error = await studio.expect_error(403, "meta/data", ask, administrator.headers)
    assert "guest cannot hold a protected role" in error


async def test_gu_05_second_factor_of_the_account_is_asked(guests: RunningService) -> None:
    device = Device()
    guest = await device.log_in(guests)
    app = await with_totp(guests, await user_of(guests, guest["user_id"]))
    asked = await device.log_in(guests, factor="pc")
    assert asked["status"] == "2STEP"
    wrong = await post_guest(guests, request_id=asked["request_id"], otp="000000")
    assert wrong == {"status": "2STEPERROR"}
    done = await post_guest(guests, request_id=asked["request_id"], otp=app.at(guests.clock.now()))
    assert (done["status"], done["auth"], done["user_id"]) == ("OK", "2step", guest["user_id"])


async def test_banned_guest_is_told_and_blocked_one_is_not(studio: Studio) -> None:
    service, device = studio.service, Device()
    guest = await device.log_in(service)
    administrator = await create_administrator(studio)
    ask = {"action": "save", "user_id": guest["user_id"], "data": {"public_text": "Cheating"}}
    await studio.expect_ok("user/ban", ask, administrator.headers)
    denied = await device.log_in(service)
    assert (denied["status"], denied["reason"], denied["public_text"]) == ("DENIED", "banned", "Cheating")
    await studio.expect_ok("user/ban", {**ask, "action": "lift"}, administrator.headers)
    assert (await device.log_in(service))["status"] == "OK"
    await service.services.accounts.administration.block(guest["user_id"], ORIGIN)
    assert await device.log_in(service) == REFUSED


async def test_idle_guests_are_erased_but_not_those_with_a_ban(studio: Studio) -> None:
    service = studio.service
    await turn_guests_on(service, idle_days=30)
    idle, banned, active = Device(), Device(), Device()
    ids = {device: (await device.log_in(service))["user_id"] for device in (idle, banned, active)}
    administrator = await create_administrator(studio)
    ask = {"action": "save", "user_id": ids[banned], "data": {"public_text": "Cheating"}}
    await studio.expect_ok("user/ban", ask, administrator.headers)
    await service.clock.advance(29 * DAY)
    await active.log_in(service)
    await service.clock.advance(2 * DAY)
    await service.services.accounts.guest_expiry.erase_idle(ORIGIN)
    assert (await idle.log_in(service))["user_id"] != ids[idle]
    assert (await active.log_in(service))["user_id"] == ids[active]
    assert (await user_of(service, ids[banned])).user_id == ids[banned]


async def test_page_of_another_site_is_refused(guests: RunningService) -> None:
    response = await guests.client.post(GUEST, headers={"Sec-Fetch-Site": "cross-site"})
    assert response.status_code == 403


@pytest.fixture
async def nodes(installed_postgres_url: str, tmp_path: Path) -> AsyncIterator[tuple[RunningService, RunningService]]:
    environment = {
        "GATEHOUSE__SERVER__BASE_URL": f"http://localhost:{free_port()}",
        "GATEHOUSE__GUESTS__ENABLED": "true",
    }
    async with (
        running_service(installed_postgres_url, tmp_path, environment=environment) as first,
        running_service(installed_postgres_url, tmp_path, environment=environment, clock=first.clock) as second,
    ):
        yield first, second


async def test_gu_01_two_nodes_take_a_challenge_once_and_make_one_guest_of_a_key(
    nodes: tuple[RunningService, RunningService],
) -> None:
    device = Device()
    sent = device.sign(await ask_challenge(nodes[0]))
    answers = await asyncio.gather(*(post_guest(node, **sent) for node in nodes * 2))
    assert sorted(answer["status"] for answer in answers) == ["LOGINERROR"] * 3 + ["OK"]
    other = Device()
    at_once = await asyncio.gather(*(other.log_in(node) for node in nodes * 3))
    assert len({answer["user_id"] for answer in at_once}) == 1
    assert [answer.get("created") for answer in at_once].count(True) == 1
