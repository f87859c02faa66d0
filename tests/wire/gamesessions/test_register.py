"""getGsid: every format in which a game may send it (interface §4.3, R4)."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import URL

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.digests import sha256
from tests.support.browser import PASSWORD
from tests.support.builders import a_confirmation, a_record
from tests.support.game import GET_GSID, RESULT, approve_in_storage, refusal_reason, register_game, wait_until_held
from tests.support.oauth import claims_of
from tests.support.permission_builders import create_application
from tests.support.service import RunningService, running_service
from tests.support.studio import a_studio

MULTIPART = {"Content-Type": "multipart/form-data; boundary=frontier"}
KINDS = ("json", "form", "multipart", "empty multipart", "empty multipart of .NET", "nothing", "empty json")


async def test_the_answer_tells_where_to_send_the_person_and_how_to_poll(service: RunningService) -> None:
    response = await service.client.post(GET_GSID)
    body = response.json()
    assert body.keys() == {"status", "gsid", "ts", "started", "url"}
    assert body["status"] == "OK"
    assert body["ts"] == body["started"] == service.clock.now()
    assert body["url"] == f"{service.base_url}/?gsid={body['gsid']}"
    assert re.fullmatch(rf"{RESULT}\?location=[A-Za-z0-9_-]{{32}}", response.headers["location"])
    assert response.headers["cache-control"] == "no-store"


async def test_a_code_and_a_picture_come_when_they_are_asked_for(service: RunningService) -> None:
    body = (await register_game(service, qr="1", code="1")).answer
    assert re.fullmatch(r"[1-9][0-9]", body["code"])
    assert body["qr"].startswith("data:image/svg+xml")


@pytest.mark.parametrize("kind", KINDS)
async def test_every_endpoint_reads_every_body_format(service: RunningService, anna: User, kind: str) -> None:
    sent: dict[str, Any] = {
        "json": {"json": {"factor": "f"}},
        "form": {"data": {"factor": "f"}},
        "multipart": {"files": {"factor": (None, "f")}},
        "empty multipart": {"content": b"--frontier--\r\n", "headers": MULTIPART},
        "empty multipart of .NET": {"content": b"--frontier\r\n\r\n--frontier--\r\n", "headers": MULTIPART},
        "nothing": {},
        "empty json": {"json": {}},
    }[kind]
    response = await service.client.post(GET_GSID, **sent)
    assert response.status_code == 200, response.text
    game = await register_game(service, factor="f")
    await approve_in_storage(game, anna)
    polled: dict[str, Any] = {
        "form": {"data": {"gsid": game.gsid}},
        "multipart": {"files": {"gsid": (None, game.gsid)}},
    }.get(kind, {"json": {"gsid": game.gsid}})
    assert (await service.client.post(RESULT, **polled)).json()["status"] == "OK"
    for path in ("getGsidResult", "info", "closeGsid"):
        empty = await service.client.post(f"/proxy/api/gameSession/{path}")
        assert (empty.status_code, empty.json()["status"]) == (400, "ERROR")


@pytest.mark.parametrize(
    "fields",
    [
        {"distr": "x" * 1_048_576},
        {"distr": "x" * 2_000},
        {"factor": "a\0b"},
        {"factor": "x" * 2_000},
        {"app_id": -1},
        {"app_id": 2**63},
        {"app_id": True},
        {"app_id": "1x"},
        {"app_id": 1.5},
        {"gapp_id": -1},
        {"nojwt": "2"},
        {"nojwt": 1},
        {"qr": "yes"},
        {"code": "2"},
        {"fixed_ips": ["8.8.8.8"]},
        {"fixed_ips": ["10.0.0.1/8"]},
        {"fixed_ips": "10.0.0.0/8"},
        {"jwt_public_key": "garbage"},
    ],
    ids=lambda fields: str(fields)[:40],
)
async def test_gs_29_oversized_and_mistyped_fields_are_refused(
    service: RunningService, fields: dict[str, object]
) -> None:
    response = await service.client.post(GET_GSID, json=fields)
    assert (response.status_code, response.json()["status"]) == (400, "ERROR")


@pytest.mark.parametrize("path", [GET_GSID, "/proxy/api/login"])
async def test_gs_80_address_ranges_are_counted_as_sent(service: RunningService, anna: User, path: str) -> None:
    credentials = {"login": anna.login, "password": PASSWORD, "factor": "f"}
    for name, entries in (("fixed_ips", 10_000), ("fixed_ips[]", 10_000), ("fixed_ips", 33), ("fixed_ips[]", 33)):
        response = await service.client.post(path, json={name: ["10.0.0.0/8"] * entries, **credentials})
        assert (response.status_code, response.json()["status"]) == (400, "ERROR"), response.text
        assert "at most 32" in response.text
    both = {"fixed_ips": ["10.0.0.0/8"] * 17, "fixed_ips[]": ["10.0.0.0/8"] * 16}
    assert (await service.client.post(path, json=both | credentials)).status_code == 400
    fits = {"fixed_ips": ["10.0.0.0/8"] * 16, "fixed_ips[]": ["10.0.0.0/8"] * 16}
    assert (await service.client.post(path, json=fits | credentials)).status_code == 200


async def test_gs_29_a_lone_surrogate_is_refused(service: RunningService) -> None:
    response = await service.client.post(
        GET_GSID, content=b'{"factor":"\\ud800"}', headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 400


async def test_ht_08_deep_nesting_is_refused_here_too(service: RunningService) -> None:
    deep = b"[" * 5_000 + b"]" * 5_000
    for path in ("getGsid", "getGsidResult", "info", "closeGsid"):
        response = await service.client.post(
            f"/proxy/api/gameSession/{path}", content=deep, headers={"Content-Type": "application/json"}
        )
        assert response.status_code == 400


async def test_ht_13_line_ends_in_values_split_no_header(service: RunningService) -> None:
    game = await register_game(service, distr="a\r\nSet-Cookie: x=1", factor="f\r\nX: y")
    assert "set-cookie" not in (await game.poll(gsid="a\r\nX: y")).headers


async def test_gs_21_a_wrong_with_email_changes_nothing_but_the_missing_login(
    service: RunningService, anna: User
) -> None:
    storage = service.services.storage
    application = await create_application(storage)
    await storage.permissions.add_email_secret(application.application_id, sha256("right"), 0, a_record())
    bodies = {}
    for secret in ("right", "wrong", ""):
        game = await register_game(service, app_id=application.application_id, with_email=secret)
        await approve_in_storage(game, anna)
        bodies[secret] = (await game.poll()).json()
    assert bodies["right"]["login"] == anna.login
    assert bodies["right"].keys() - {"login"} == bodies["wrong"].keys() == bodies[""].keys()


async def test_gs_23_a_short_token_and_a_bound_jwt_are_good_at_the_games_address_only(
    installed_url: str, tmp_path: Path
) -> None:
    async with service_behind_proxy(installed_url, tmp_path) as (service, anna):
        here, there = {"X-Forwarded-For": "10.1.2.3"}, {"X-Forwarded-For": "10.1.2.4"}
        mapped = {"X-Forwarded-For": "::ffff:10.1.2.3"}
        response = await service.client.post(
            GET_GSID, json={"short_token": "1", "fixed_ip": "1", "factor": "f"}, headers=here
        )
        gsid, location = response.json()["gsid"], response.headers["location"]
        store, now = service.services.storage.game_sessions, service.clock.now()
        assert await store.confirm_session(a_confirmation(gsid, anna), now, a_record(subject=anna.user_id))
        body = (await service.client.post(location, json={"gsid": gsid}, headers=there)).json()
        assert claims_of(body["jwt"])["fip"] == ["10.1.2.3/32"]
        info = "/api/permissions/user/info"
        bearer = {"Authorization": f"Bearer {body['jwt']}", "Factor": "f"}
        assert (await service.client.post(info, json={}, headers={**bearer, **there})).status_code == 403
        assert (await service.client.post(info, json={}, headers={**bearer, **here})).status_code == 200
        assert (await service.client.post(info, json={}, headers={**bearer, **mapped})).status_code == 200
        page = await service.client.get("/", params={"stoken": body["stoken"]}, headers=there)
        assert "Anna" not in page.text
        page = await service.client.get("/", params={"stoken": body["stoken"]}, headers=mapped)
        assert "Anna" in page.text


@asynccontextmanager
async def service_behind_proxy(url: str, tmp_path: Path) -> AsyncIterator[tuple[RunningService, User]]:
    environment = {"GATEHOUSE__SERVER__TRUSTED_PROXIES": "127.0.0.1/32"}
    async with running_service(url, tmp_path, environment=environment) as service:
        anna = await service.services.accounts.administration.create(
            login="anna@studio.example", nick="Anna", password=None, origin=AuditOrigin(actor="test")
        )
        yield service, anna


async def test_permissions_of_the_named_application_stand_in_the_jwt(service: RunningService, anna: User) -> None:
    application = await create_application(service.services.storage)
    game = await register_game(service, app_id=application.application_id, factor="f")
    await approve_in_storage(game, anna)
    claims = claims_of((await game.poll()).json()["jwt"])
    assert claims["app_perm"] == application.application_id
    assert claims["perm"] == []


async def test_an_application_can_switch_game_login_off(service: RunningService) -> None:
    closed = await create_application(service.services.storage, settings={"game": {"enabled": False}})
    for named in ({"app_id": closed.application_id}, {"gapp_id": closed.application_id}):
        answer = await service.client.post(GET_GSID, json=named)
        assert await refusal_reason(service, answer) == "game login is turned off for the application"


async def test_an_application_can_demand_a_code_of_every_game(service: RunningService) -> None:
    strict = await create_application(service.services.storage, settings={"game": {"code_match": True}})
    body = (await register_game(service, app_id=strict.application_id)).answer
    assert re.fullmatch(r"[1-9][0-9]", body["code"])


async def test_a_service_jwt_names_its_application_and_a_broken_one_is_refused(
    service: RunningService, anna: User
) -> None:
    studio = await a_studio(service)
    game = await register_game(service, service_jwt=await studio.service_jwt(), factor="f")
    await service.clock.advance(100)
    await approve_in_storage(game, anna)
    assert claims_of((await game.poll()).json()["jwt"])["app_perm"] == studio.shop.application_id
    broken = await service.client.post(GET_GSID, json={"service_jwt": "x.y.z"})
    assert (await refusal_reason(service, broken, 401)).startswith("service_jwt: ")


async def test_gs_28_registering_en_masse_is_limited_per_source_and_in_total(
    installed_url: str, tmp_path: Path
) -> None:
    environment = {"GATEHOUSE__RATES__POLL": "30", "GATEHOUSE__GAME__PENDING_MOST": "100"}
    async with running_service(installed_url, tmp_path, environment=environment) as service:
        statuses = [(await service.client.post(GET_GSID)).status_code for _ in range(40)]
        assert statuses.count(200) == 30
        refusal = await service.client.post(GET_GSID)
        assert refusal.status_code == 429
        assert int(refusal.headers["retry-after"]) > 0


async def test_gs_28_beyond_the_cap_of_waiting_sessions_the_answer_is_503(installed_url: str, tmp_path: Path) -> None:
    environment = {"GATEHOUSE__GAME__PENDING_MOST": "100"}
    async with running_service(installed_url, tmp_path, environment=environment) as service:
        statuses = [(await service.client.post(GET_GSID)).status_code for _ in range(110)]
        assert statuses[:95] == [200] * 95  # counted with a short delay, so the limit is approximate
        assert statuses[-1] == 503
        await service.clock.advance(130)  # all of them have ended, and are counted again
        responses = [await service.client.post(GET_GSID) for _ in range(3)]
        assert responses[-1].status_code == 200


async def test_gs_32_logs_hold_neither_gsid_nor_location(
    service: RunningService, capsys: pytest.CaptureFixture[str]
) -> None:
    game = await register_game(service, factor="secret-factor")
    polling = game.start_poll()
    await wait_until_held(service)
    await service.clock.advance(31)
    await polling
    await refusal_reason(service, await game.poll(gsid="00000000-0000-4000-8000-000000000000"))
    await service.client.get(str(URL("/").include_query_params(gsid=game.gsid)))
    logged = "".join(capsys.readouterr())
    assert "game.get_gsid_result" in logged
    for secret in (game.gsid, game.location, "secret-factor"):
        assert secret not in logged
