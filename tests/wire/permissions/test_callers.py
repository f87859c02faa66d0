"""Identifying callers of permission endpoints (interface §4.1, R6; checklist section 7)."""

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jwt as other_peoples
from joserfc.jwk import RSAKey

from gatehouse.keys.key_objects import public_pem
from gatehouse.tokens.claims import ServiceAccountClaims
from tests.support.builders import ORIGIN, a_record
from tests.support.permission_builders import a_service_account, set_project_fields
from tests.support.service import running_service
from tests.support.studio import FACTOR, PROJECT, Person, Studio, a_studio, own_record, signed_request
from tests.support.tokens import application_private_key

DAY = 86_400
ROBOT = "5000000001"


def everything(studio: Studio) -> dict[str, Mapping[str, object]]:
    """One request to every endpoint that needs credentials."""
    shop = studio.shop.application_id
    return {
        "application": {"action": "get", "data": {"application_id": shop}},
        "application/keys": {"action": "get", "application_id": shop},
        "user/info": {},
        "user": {"action": "get", "data": {"user_id": studio.other_user.user_id}},
        "serviceToken": {"action": "get", "application_id": shop},
        "emailSecret": {"action": "get", "application_id": shop},
        "settings": {"action": "get", "data": {"part": "health"}},
        "gameSession": {"action": "get", "application_id": shop, "data": {"ref": "00000000-0000"}},
        "activity": {"action": "get", "data": {"record_id": "0"}},
        "meta/data": own_record(studio.shop),
        "meta/schema": {"action": "get", "application_id": shop},
        "roles": {"action": "get", "application_id": shop},
        "publish": {"project": "Another"},
        "project": {"action": "get", "data": {"id": PROJECT}},
        "project/membership": {"action": "get", "data": {"id": PROJECT}},
        "group": {"action": "get", "data": {"project_id": PROJECT}},
        "accessKey": {"action": "get", "application_id": shop},
        "client": {"action": "get", "application_id": shop},
        "exchangeJwt": {},
    }


def bearer_headers(token: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **{name.replace("_", "-"): value for name, value in more.items()}}


async def test_pa_01_without_valid_credentials_every_endpoint_is_closed(studio: Studio) -> None:
    jwt = studio.owner.jwt
    for path, body in everything(studio).items():
        for headers in (
            {},
            {"Authorization": ""},
            bearer_headers("garbage"),
            bearer_headers("a.b.c"),
            {"Authorization": f"Basic {jwt}"},
        ):
            assert await studio.expect_error(401, path, body, {**headers, "Factor": FACTOR}) == "invalid token"


async def test_pa_01_a_refusal_says_how_to_ask(studio: Studio) -> None:
    response = await studio.post("user/info", {}, {})
    assert response.headers["www-authenticate"].startswith("Bearer ")
    assert response.headers["cache-control"] == "no-store"


async def test_pa_01_two_authorization_headers_are_refused(studio: Studio) -> None:
    twice = [("Authorization", f"Bearer {studio.owner.jwt}")] * 2 + [("Factor", FACTOR)]
    response = await studio.service.client.post("/api/permissions/user/info", json={}, headers=twice)
    assert response.status_code == 401


async def test_pa_02_a_jwt_needs_its_own_factor(studio: Studio) -> None:
    for factor in ("", "of another device", "x" * 5_000):
        await studio.expect_error(401, "user/info", {}, bearer_headers(studio.owner.jwt, Factor=factor))
    await studio.expect_error(401, "user/info", {}, bearer_headers(studio.owner.jwt))
    await studio.expect_error(401, "user/info", {"jwt": studio.owner.jwt, "factor": "x" * 60_000}, {})
    assert (await studio.expect_ok("user/info", {}, studio.owner.headers))["projects"] == 1


@pytest.mark.parametrize("more", [{}, {"Content-Type": "application/json"}])
async def test_request_with_all_credentials_in_headers_needs_no_body(studio: Studio, more: dict[str, str]) -> None:
    path = "/api/permissions/user/info"
    response = await studio.service.client.post(path, headers={**studio.owner.headers, **more})
    assert (response.status_code, response.json()) == (200, {"status": "OK", "projects": 1})
    assert (await studio.service.client.post(path, headers=more)).status_code == 401


async def test_the_deprecated_fields_of_the_body_work(studio: Studio) -> None:
    assert await studio.expect_ok("user/info", {"jwt": studio.owner.jwt, "factor": FACTOR}, {})
    service_jwt = await studio.service_jwt()
    assert await studio.expect_ok("user/info", {"jwt": studio.owner.jwt, "service_jwt": service_jwt}, {})


async def test_pa_03_the_header_decides_for_check_and_action_alike(studio: Studio) -> None:
    theirs = {"jwt": studio.other_user.jwt, "factor": "not their"}
    answer = await studio.expect_ok("meta/data", own_record(studio.shop, **theirs), studio.owner.headers)
    assert answer["user_id"] == studio.owner.user_id
    ours = {"jwt": studio.owner.jwt, "factor": FACTOR}
    keys = {"action": "get", "application_id": studio.shop.application_id, **ours}
    await studio.expect_error(403, "accessKey", keys, studio.other_user.headers)


@pytest.mark.parametrize("blocked", [True, False], ids=["blocked", "signed out everywhere"])
async def test_a_revoked_jwt_is_refused_at_once(studio: Studio, *, blocked: bool) -> None:
    await studio.expect_ok("user/info", {}, studio.owner.headers)
    services = studio.service.services
    if blocked:
        await services.accounts.administration.block(studio.owner.user_id, ORIGIN)
    else:
        await services.storage.sessions.revoke_user(
            studio.owner.user_id, a_record(), keep=None, now=services.clock.now()
        )
    await studio.expect_error(401, "user/info", {}, studio.owner.headers)
    await studio.expect_error(
        401, "user/info", {}, bearer_headers(studio.owner.jwt, Service_Jwt=await studio.service_jwt())
    )


async def test_pa_04_a_service_jwt_serves_its_own_application_only(studio: Studio) -> None:
    theirs = bearer_headers(studio.owner.jwt, Service_Jwt=await studio.service_jwt(studio.other))
    for path, body in everything(studio).items():
        if path not in ("user/info", "exchangeJwt"):
            await studio.expect_error(403, path, body, theirs)
    await studio.expect_ok("user/info", {}, theirs)
    ours = bearer_headers(studio.owner.jwt, Service_Jwt=await studio.service_jwt())
    for path in ("application", "meta/data", "project", "group", "accessKey", "client", "user/info"):
        await studio.expect_ok(path, everything(studio)[path], ours)
    await studio.expect_error(403, "publish", {"project": "Another"}, ours)


async def test_pa_04_a_service_jwt_is_refused_when_revoked_expired_or_removed(studio: Studio) -> None:
    tokens, storage = studio.service.services.permissions.service_tokens, studio.service.services.storage
    issued = await tokens.issue(studio.shop.application_id, days=1, origin=ORIGIN)
    body, headers = own_record(studio.shop), bearer_headers(studio.owner.jwt, Service_Jwt=issued.jwt)
    await studio.expect_ok("meta/data", body, headers)
    await storage.projects.edit_project(PROJECT, set_project_fields(removed=True))
    await studio.expect_error(401, "meta/data", body, headers)
    await storage.projects.edit_project(PROJECT, set_project_fields(removed=False))
    await tokens.revoke(studio.shop.application_id, issued.token.jti, ORIGIN)
    await studio.expect_error(401, "meta/data", body, headers)
    other = await tokens.issue(studio.shop.application_id, days=1, origin=ORIGIN)
    await studio.service.clock.advance(DAY)
    await studio.expect_error(401, "meta/data", body, bearer_headers(studio.owner.jwt, Service_Jwt=other.jwt))


async def test_an_application_signs_its_service_jwts_itself(studio: Studio) -> None:
    private, shop = application_private_key(), str(studio.shop.application_id)
    ask = {"action": "save", "application_id": shop, "data": {"public_key": public_pem(private.public_key())}}
    kid = (await studio.expect_ok("application/keys", ask, studio.owner.headers))["data"]["id"]
    now = studio.service.clock.now()

    def generated_token(**changes: object) -> str:
        claims = {"iss": shop, "aud": studio.service.base_url, "iat": now, "exp": now + 300, "typ": "service_jwt"}
        header = {"alg": "RS256", "kid": kid}
        return other_peoples.encode(header, {**claims, **changes}, RSAKey.import_key(private))

    async def status(**changes: object) -> int:
        headers = bearer_headers(studio.owner.jwt, Service_Jwt=generated_token(**changes))
        return (await studio.post("meta/data", own_record(studio.shop), headers)).status_code

    assert await status() == 200
    assert await status(exp=now + 301) == 401
    assert await status(iat=now + 61) == 401
    assert await status(iss=str(studio.other.application_id)) == 401
    assert await status(aud="https://else.example") == 401
    assert await status(typ="id_token") == 401
    await studio.expect_ok(
        "application/keys", {"action": "delete", "application_id": shop, "data": {"id": kid}}, studio.owner.headers
    )
    assert await status() == 401


async def test_pa_05_an_expired_user_jwt_opens_meta_data_beside_a_service_within_the_grace(studio: Studio) -> None:
    key = await studio.access_key()
    await studio.service.clock.advance(90 * DAY)
    fresh = await studio.service_jwt()
    beside_service, beside_key = bearer_headers(studio.owner.jwt, Service_Jwt=fresh), bearer_headers(key)
    data = {"user_id": studio.owner.user_id, "public_data": {"seen": {"value": True}}}
    save = {**own_record(studio.shop, data=data), "action": "save"}
    for path, body in everything(studio).items():
        if path != "meta/data":
            await studio.expect_error(401, path, body, beside_service)
        await studio.expect_error(401, path, body, studio.owner.headers)
    await studio.expect_ok("meta/data", own_record(studio.shop), beside_service)
    await studio.expect_ok("meta/data", save, beside_service)
    await studio.expect_ok("meta/data", own_record(studio.shop, jwt=studio.owner.jwt), beside_key)
    await studio.expect_error(403, "meta/data", {**save, "jwt": studio.owner.jwt}, beside_key)
    await studio.expect_error(401, "exchangeJwt", {"jwt": studio.owner.jwt}, beside_key)
    await studio.service.clock.advance(30 * DAY)
    fresh = await studio.service_jwt()
    await studio.expect_error(
        401, "meta/data", own_record(studio.shop), bearer_headers(studio.owner.jwt, Service_Jwt=fresh)
    )
    await studio.expect_error(401, "meta/data", own_record(studio.shop, jwt=studio.owner.jwt), beside_key)


async def test_pa_07_a_service_lends_no_one_rights(studio: Studio) -> None:
    headers = bearer_headers(studio.other_user.jwt, Service_Jwt=await studio.service_jwt())
    for path in ("application", "application/keys", "accessKey", "project", "roles", "meta/schema"):
        await studio.expect_error(403, path, everything(studio)[path], headers)
    others = own_record(studio.shop, data={"user_id": studio.owner.user_id, "type": "tree"})
    response = await studio.post("meta/data", others, headers)
    assert "secret_data" not in response.text


async def test_pa_08_an_access_key_opens_nothing_but_its_own_records(studio: Studio) -> None:
    key = await studio.access_key()
    for path, body in everything(studio).items():
        if path not in ("meta/data", "exchangeJwt"):
            body_with_jwt = {**body, "jwt": studio.owner.jwt}
            await studio.expect_error(403, path, body_with_jwt, bearer_headers(key))
            await studio.expect_error(403, path, body_with_jwt, bearer_headers(key, Factor=FACTOR))
    mine = {"jwt": studio.owner.jwt}
    await studio.expect_ok("meta/data", own_record(studio.shop, **mine), bearer_headers(key))
    response_body = await studio.expect_ok("meta/data", {"action": "get", "data": {}, **mine}, bearer_headers(key))
    assert response_body["user_id"] == studio.owner.user_id
    await studio.expect_error(403, "meta/data", own_record(studio.other, **mine), bearer_headers(key))
    await studio.expect_error(401, "meta/data", own_record(studio.shop), bearer_headers(key))
    roles = own_record(studio.shop, data={"type": "roles", "user_id": studio.other_user.user_id})
    assert (await studio.expect_ok("meta/data", roles, bearer_headers(key)))["data"] == []
    await studio.expect_error(
        403, "meta/data", {**roles, "application_id": studio.other.application_id}, bearer_headers(key)
    )
    no_one = own_record(studio.shop, data={"type": "roles"})
    await studio.expect_error(400, "meta/data", no_one, bearer_headers(key))


async def send(studio: Studio, raw: bytes, headers: Mapping[str, str]) -> int:
    response = await studio.service.client.post("/api/permissions/meta/data", content=raw, headers=headers)
    return response.status_code


async def test_pa_09_a_signature_is_over_the_whole_request_and_soon_old(studio: Studio) -> None:
    key = await studio.access_key()
    now = studio.service.clock.now()
    body = own_record(studio.shop, ip="203.0.113.5", ts=now)
    raw, headers = signed_request(body, key, studio.shop)
    headers |= bearer_headers(studio.owner.jwt)
    assert await send(studio, raw, headers) == 200
    assert await send(studio, raw.replace(b"203.0.113.5", b"203.0.113.6"), headers) == 401
    assert await send(studio, raw, {**headers, "Application-Id": str(studio.other.application_id)}) == 401
    assert await send(studio, raw, {**headers, "Signature": "0" * 64}) == 401
    raw_of_other, theirs = signed_request(body, "0" * 64, studio.shop)
    assert await send(studio, raw_of_other, {**headers, **theirs}) == 401
    about_other, ours = signed_request({**body, "application_id": studio.other.application_id}, key, studio.shop)
    assert await send(studio, about_other, {**headers, **ours}) == 403
    await studio.service.clock.advance(60)
    assert await send(studio, raw, headers) == 200
    await studio.service.clock.advance(1)
    assert await send(studio, raw, headers) == 401


async def test_pa_09_the_signed_address_is_what_fip_sees(studio: Studio) -> None:
    services, key = studio.service.services, await studio.access_key()
    user = await services.storage.accounts.user(studio.owner.user_id)
    jwt = await services.accounts.user_tokens.issue(user, auth="login", factor=FACTOR, fixed_ips=["10.0.0.0/8"])
    await studio.expect_error(403, "user/info", {}, bearer_headers(jwt, Factor=FACTOR))
    await studio.expect_error(403, "meta/data", own_record(studio.shop, jwt=jwt), bearer_headers(key))
    for address, status in (("10.1.2.3", 200), ("11.1.2.3", 403)):
        body = own_record(studio.shop, ip=address, ts=studio.service.clock.now())
        raw, headers = signed_request(body, key, studio.shop)
        assert await send(studio, raw, headers | bearer_headers(jwt)) == status


async def a_robot(studio: Studio, **fields: Any) -> Person:
    services = studio.service.services
    account = a_service_account(ROBOT, **fields)
    await services.storage.service_accounts.create_service_account(account, (), [a_record()])
    now = services.clock.now()
    claims = ServiceAccountClaims(
        iss=studio.service.base_url,
        iat=now,
        exp=now + DAY,
        uid=ROBOT,
        sub=ROBOT,
        nick="ci",
        rev=0,
        jti=account.jti,
    )
    return Person(user_id=ROBOT, jwt=await services.keys.signer.sign(claims))


async def test_a_service_account_calls_until_it_is_revoked_or_its_project_removed(studio: Studio) -> None:
    robot, storage = await a_robot(studio), studio.service.services.storage
    assert (await studio.expect_ok("user/info", {}, bearer_headers(robot.jwt)))["projects"] == 0
    await storage.projects.edit_project(PROJECT, set_project_fields(removed=True))
    await studio.expect_error(401, "user/info", {}, bearer_headers(robot.jwt))
    await storage.projects.edit_project(PROJECT, set_project_fields(removed=False))
    await studio.expect_ok("user/info", {}, bearer_headers(robot.jwt))
    await storage.service_accounts.revoke_service_account(ROBOT, studio.service.clock.now(), [a_record()])
    await studio.expect_error(401, "user/info", {}, bearer_headers(robot.jwt))


async def test_a_service_account_with_a_key_signs_its_requests(studio: Studio) -> None:
    private = application_private_key()
    robot = await a_robot(studio, public_key=public_pem(private.public_key()), ip_ranges=("127.0.0.0/8",))
    raw = b'{"ts": 0}'
    headers = bearer_headers(robot.jwt, Content_Type="application/json")
    signature = b64encode(private.sign(raw, PKCS1v15(), SHA256())).decode()
    client = studio.service.client
    assert (await client.post("/api/permissions/user/info", content=raw, headers=headers)).status_code == 401
    headers["Request-Sign"] = signature
    assert (await client.post("/api/permissions/user/info", content=raw, headers=headers)).status_code == 200
    assert (await client.post("/api/permissions/user/info", content=b"{}", headers=headers)).status_code == 401


async def test_pa_15_one_principals_flood_from_many_addresses_is_limited(
    installed_sqlite_url: str, tmp_path: Path
) -> None:
    environment = {
        "GATEHOUSE__RATES__ADMIN": "5",
        "GATEHOUSE__SERVER__TRUSTED_PROXIES": "127.0.0.0/8",
    }
    async with running_service(installed_sqlite_url, tmp_path, environment=environment) as service:
        studio = await a_studio(service)

        async def ask(who: Person, number: int) -> Any:
            headers = {**who.headers, "X-Forwarded-For": f"198.51.100.{number}"}
            return await studio.post("user/info", {}, headers)

        statuses = [(await ask(studio.owner, number)).status_code for number in range(1, 8)]
        assert statuses == [200] * 5 + [429] * 2
        limited = await ask(studio.owner, 9)
        assert int(limited.headers["retry-after"]) > 0
        assert (await ask(studio.other_user, 10)).status_code == 200


async def test_permissions_can_answer_200_to_old_clients(installed_sqlite_url: str, tmp_path: Path) -> None:
    environment = {"GATEHOUSE__PERMISSIONS__ALWAYS_200": "true"}
    async with running_service(installed_sqlite_url, tmp_path, environment=environment) as service:
        response = await service.client.post("/api/permissions/user/info", json={})
        assert (response.status_code, response.json()) == (200, {"status": "ERROR", "error": "invalid token"})
