"""exchangeJwt: a user JWT for a single application (interface §4.8, R6)."""

import json
from base64 import urlsafe_b64decode
from typing import Any

import pytest

from tests.support.permission_builders import set_fields
from tests.support.studio import FACTOR, PROJECT, Studio, own_record

DAY = 86_400


def claims_of(jwt: str) -> Any:
    payload = jwt.split(".")[1]
    return json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


async def exchange_jwt(studio: Studio, key: str, **more: object) -> str:
    ask = {"jwt": studio.owner.jwt, **more}
    answer = await studio.expect_ok("exchangeJwt", ask, {"Authorization": f"Bearer {key}"})
    assert answer.keys() == {"status", "jwt"}
    jwt: str = answer["jwt"]
    return jwt


async def test_the_new_jwt_is_for_the_keys_application_and_ends_with_the_old_one(studio: Studio) -> None:
    key, before = await studio.access_key(), claims_of(studio.owner.jwt)
    await studio.service.clock.advance(DAY)
    after = claims_of(await exchange_jwt(studio, key, factor=FACTOR))
    assert after["aud"] == str(studio.shop.application_id)
    assert (after["exp"], after["iat"]) == (before["exp"], before["iat"] + DAY)
    names = before.keys() - {"iat", "kid"}
    assert {name: after[name] for name in names} == {name: before[name] for name in names}
    assert "typ" not in after


async def test_exchanged_jwt_has_no_fac_without_the_factor(studio: Studio) -> None:
    key = await studio.access_key()
    jwt = await exchange_jwt(studio, key)
    assert "fac" not in claims_of(jwt)
    await studio.expect_error(
        401, "meta/data", own_record(studio.shop), {"Authorization": f"Bearer {jwt}", "Factor": FACTOR}
    )
    beside_service = {"Authorization": f"Bearer {jwt}", "Service-Jwt": await studio.service_jwt()}
    assert (await studio.expect_ok("meta/data", own_record(studio.shop), beside_service))[
        "user_id"
    ] == studio.owner.user_id


async def test_a_factor_that_is_given_must_be_right(studio: Studio) -> None:
    bearer = {"Authorization": f"Bearer {await studio.access_key()}"}
    await studio.expect_error(401, "exchangeJwt", {"jwt": studio.owner.jwt, "factor": "wrong"}, bearer)
    await studio.expect_error(401, "exchangeJwt", {"jwt": studio.owner.jwt}, {**bearer, "Factor": "wrong"})


async def test_the_new_jwt_serves_requests_about_that_application_only(studio: Studio) -> None:
    jwt = await exchange_jwt(studio, await studio.access_key(), factor=FACTOR)
    headers = {"Authorization": f"Bearer {jwt}", "Factor": FACTOR}
    shop = studio.shop.application_id
    await studio.expect_ok("meta/data", own_record(studio.shop), headers)
    await studio.expect_ok("roles", {"action": "get", "application_id": shop}, headers)
    await studio.expect_ok("application", {"action": "get", "data": {"application_id": shop}}, headers)
    refusals = {
        "meta/data": own_record(studio.other),
        "user/info": {},
        "publish": {"project": "Another"},
        "project": {"action": "get", "data": {"id": PROJECT}},
        "group": {"action": "get", "data": {"project_id": PROJECT}},
        "accessKey": {"action": "get", "application_id": shop},
        "application/keys": {"action": "get", "application_id": shop},
        "application": {"action": "save", "data": {"application_id": shop, "name": "Mine"}},
    }
    for path, body in refusals.items():
        await studio.expect_error(403, path, body, headers)


async def test_an_exchanged_jwt_is_not_exchanged_again(studio: Studio) -> None:
    key = await studio.access_key()
    once = await exchange_jwt(studio, key, factor=FACTOR)
    ask = {"jwt": once, "factor": FACTOR}
    await studio.expect_error(403, "exchangeJwt", ask, {"Authorization": f"Bearer {key}"})


async def test_only_an_access_key_may_exchange_a_jwt(studio: Studio) -> None:
    ask = {"jwt": studio.owner.jwt, "factor": FACTOR}
    await studio.expect_error(401, "exchangeJwt", ask, {})
    await studio.expect_error(401, "exchangeJwt", ask, studio.owner.headers)
    await studio.expect_error(401, "exchangeJwt", ask, {"Service-Jwt": await studio.service_jwt()})
    await studio.expect_error(401, "exchangeJwt", ask, {"Authorization": f"Bearer {'0' * 64}"})
    await studio.expect_error(401, "exchangeJwt", {}, {"Authorization": f"Bearer {await studio.access_key()}"})


@pytest.mark.parametrize("days", [90, 91])
async def test_an_expired_jwt_is_not_exchanged(studio: Studio, days: int) -> None:
    key = await studio.access_key()
    await studio.service.clock.advance(days * DAY)
    await studio.expect_error(401, "exchangeJwt", {"jwt": studio.owner.jwt}, {"Authorization": f"Bearer {key}"})


async def test_fip_is_honoured_and_goes_along(studio: Studio) -> None:
    services, key = studio.service.services, await studio.access_key()
    user = await services.storage.accounts.user(studio.owner.user_id)
    jwt = await services.accounts.user_tokens.issue(user, auth="login", factor=FACTOR, fixed_ips=["10.0.0.0/8"])
    ask = {"jwt": jwt, "factor": FACTOR}
    await studio.expect_error(403, "exchangeJwt", ask, {"Authorization": f"Bearer {key}"})


async def test_a_wrong_factor_is_refused_also_beside_a_service_jwt(studio: Studio) -> None:
    key, service = await studio.access_key(), await studio.service_jwt()
    headers = {"Authorization": f"Bearer {key}", "Service-Jwt": service}
    for factor in ("wrong", "x" * 2_000):
        await studio.expect_error(401, "exchangeJwt", {"jwt": studio.owner.jwt, "factor": factor}, headers)
    await studio.expect_ok("exchangeJwt", {"jwt": studio.owner.jwt, "factor": FACTOR}, headers)
    await studio.expect_ok("exchangeJwt", {"jwt": studio.owner.jwt}, headers)


@pytest.mark.both_databases
async def test_an_application_that_lets_the_person_not_sign_in_gets_no_jwt(studio: Studio) -> None:
    key, records = await studio.access_key(), studio.service.services.storage.user_records
    ask, headers = {"jwt": studio.owner.jwt, "factor": FACTOR}, {"Authorization": f"Bearer {key}"}
    for login, status in (({"cannot": {"value": True}}, 403), ({}, 200)):
        await records.edit_record(
            studio.shop.application_id, studio.owner.user_id, set_fields(login=login), studio.service.clock.now()
        )
        answer = await studio.post("exchangeJwt", ask, headers)
        assert (answer.status_code, "jwt" in answer.json()) == (status, status == 200)
