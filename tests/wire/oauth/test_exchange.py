"""exchange and exchangeToken: between user JWTs and OAuth (interface §4.2, R2)."""

from typing import Any

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.permissions.model.application import Application
from tests.support.builders import a_record
from tests.support.oauth import (
    DAY,
    RelyingPartyClient,
    a_native_client,
    claims_of,
    header_of,
    oauth_error,
    success_body,
)
from tests.support.permission_builders import create_application, set_fields
from tests.support.service import RunningService
from tests.support.studio import FACTOR, Studio, a_studio, own_record

EXCHANGE = "/proxy/oauth/exchange"
EXCHANGE_TOKEN = "/proxy/oauth/exchangeToken"
BAD = (401, "invalid_token")


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


async def post(service: RunningService, path: str, bearer: str, **more: Any) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    return await service.client.post(path, headers=headers, **more)


async def user_jwt(service: RunningService, user: User, **fields: Any) -> str:
    return await service.services.accounts.user_tokens.issue(user, auth="login", factor=FACTOR, **fields)


async def test_exchange_gives_an_id_token_for_the_service_itself(service: RunningService, anna: User) -> None:
    response = await post(service, EXCHANGE, await user_jwt(service, anna))
    body = success_body(response)
    assert body.keys() == {"id_token", "expires_in"}
    assert body["expires_in"] == 3_600
    assert response.headers["cache-control"] == "no-store"
    claims, now = claims_of(body["id_token"]), service.clock.now()
    assert claims == {
        "typ": "id_token",
        "iss": service.base_url,
        "aud": [service.base_url],
        "sub": anna.user_id,
        "iat": now,
        "exp": now + 3_600,
        "kid": header_of(body["id_token"])["kid"],
    }


async def test_exchange_never_lives_past_the_user_jwt(service: RunningService, anna: User) -> None:
    jwt = await user_jwt(service, anna)
    await service.clock.advance(90 * DAY - 100)
    body = success_body(await post(service, EXCHANGE, jwt))
    assert body["expires_in"] == 100
    assert claims_of(body["id_token"])["exp"] == claims_of(jwt)["exp"]


async def test_ui_08_exchange_refuses_whatever_is_not_a_living_user_jwt(
    service: RunningService, studio: Studio, web: RelyingPartyClient, anna: User
) -> None:
    jwt = await user_jwt(service, anna)
    tokens = await web.tokens(await web.issue_code(anna))
    exchanged = success_body(await post(service, EXCHANGE_TOKEN, tokens["access_token"]))["token"]
    key = await studio.access_key()
    for_shop = (await studio.expect_ok("exchangeJwt", {"jwt": jwt}, {"Authorization": f"Bearer {key}"}))["jwt"]
    head, payload, signature = jwt.split(".")
    altered = f"{head}.{payload[:-2]}{'AA' if payload[-2:] != 'AA' else 'BB'}.{signature}"
    for wrong in (
        *("", altered, f"{head}.{payload}.", f"{head}.{payload}.{signature[:-4]}AAAA", "x", key),
        *(tokens["access_token"], tokens["id_token"], tokens["refresh_token"], exchanged, for_shop),
        await studio.service_jwt(),
    ):
        assert oauth_error(await post(service, EXCHANGE, wrong)) == BAD, wrong
        assert oauth_error(await post(service, EXCHANGE, wrong, json={"jwt": jwt, "access_token": jwt})) == BAD
    await service.clock.advance(90 * DAY)
    assert oauth_error(await post(service, EXCHANGE, jwt)) == BAD


async def test_ui_08_exchange_refuses_a_blocked_user_and_a_revoked_jwt(service: RunningService, anna: User) -> None:
    jwt = await user_jwt(service, anna)
    await service.services.accounts.administration.block(anna.user_id, AuditOrigin(actor="test"))
    assert oauth_error(await post(service, EXCHANGE, jwt)) == BAD
    await service.services.accounts.administration.unblock(anna.user_id, AuditOrigin(actor="test"))
    assert oauth_error(await post(service, EXCHANGE, jwt)) == BAD


async def test_exchange_honours_the_addresses_a_jwt_is_for(service: RunningService, anna: User) -> None:
    here = await user_jwt(service, anna, fixed_ips=["127.0.0.1/32"])
    elsewhere = await user_jwt(service, anna, fixed_ips=["10.0.0.0/8"])
    assert success_body(await post(service, EXCHANGE, here))
    assert oauth_error(await post(service, EXCHANGE, elsewhere)) == (403, "access_denied")


async def exchange_for(relying: RelyingPartyClient, user: User, **fields: Any) -> dict[str, Any]:
    tokens = await relying.tokens(await relying.issue_code(user, **fields))
    body = success_body(await post(relying.service, EXCHANGE_TOKEN, tokens["access_token"]))
    assert body.keys() == {"token"}
    return claims_of(body["token"])


async def test_exchange_token_gives_a_user_jwt_that_says_where_it_came_from(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    claims = await exchange_for(web, anna)
    ordinary = claims_of(await user_jwt(service, anna))
    assert claims.keys() == (ordinary.keys() - {"fac"}) | {"typ", "azp", "gid"}
    now = service.clock.now()
    assert (claims["auth"], claims["typ"], claims["azp"]) == ("openid", "exchanged_token", "web")
    assert (claims["iat"], claims["exp"]) == (now, now + 3_600)
    assert (claims["uid"], claims["nick"], claims["rev"]) == (anna.user_id, anna.nick, anna.rev)


async def test_exchange_token_never_outlives_the_access_token(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    tokens = await web.tokens(await web.issue_code(anna))
    ends_at = service.clock.now() + 3_600
    await service.clock.advance(3_000)
    jwt = success_body(await post(service, EXCHANGE_TOKEN, tokens["access_token"]))["token"]
    assert claims_of(jwt)["exp"] == ends_at


async def test_third_party_clients_get_nick_and_tags_only_with_their_scopes(
    service: RunningService, anna: User
) -> None:
    await service.services.storage.accounts.set_labels(
        anna.user_id, a_record(), tags=frozenset({"staff"}), purchases=None
    )
    third = await a_native_client(service, "third", first_party=False)
    first = await a_native_client(service, "first", first_party=True)
    for relying, scopes, nick, tags in (
        (third, ("openid",), "", ""),
        (third, ("openid", "profile"), anna.nick, ""),
        (third, ("openid", "trust"), "", "staff"),
        (first, ("openid",), anna.nick, "staff"),
    ):
        claims = await exchange_for(relying, anna, scopes=scopes)
        assert (claims["nick"], claims["tgs"]) == (nick, tags), scopes


async def test_a_client_that_may_not_exchange_is_told_so(
    service: RunningService, oidc_client: RelyingPartyClient, anna: User
) -> None:
    tokens = await oidc_client.tokens(await oidc_client.issue_code(anna))
    answer = await post(service, EXCHANGE_TOKEN, tokens["access_token"])
    assert oauth_error(answer) == (403, "unauthorized_client")


async def test_exchange_token_refuses_whatever_is_no_access_token(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    tokens = await web.tokens(await web.issue_code(anna))
    exchanged = success_body(await post(service, EXCHANGE_TOKEN, tokens["access_token"]))["token"]
    for wrong in ("", tokens["id_token"], tokens["refresh_token"], exchanged, await user_jwt(service, anna)):
        answer = await post(service, EXCHANGE_TOKEN, wrong, json={"access_token": tokens["access_token"]})
        assert oauth_error(answer) == BAD


async def deny_access(service: RunningService, anna: User, shop: Application) -> None:
    login = set_fields(login={"cannot": {"value": True}})
    await service.services.storage.user_records.edit_record(shop.application_id, anna.user_id, login, 0)


async def remove(service: RunningService, _anna: User, shop: Application) -> None:
    await service.services.storage.applications.edit_application(shop.application_id, set_fields(removed=True))


@pytest.mark.parametrize(("end", "refusal"), [(deny_access, (403, "access_denied")), (remove, BAD)])
async def test_ui_10_exchange_token_refuses_users_without_the_right_to_log_in(
    service: RunningService, anna: User, end: Any, refusal: tuple[int, str]
) -> None:
    shop = await create_application(service.services.storage, name="Shop")
    web = await a_native_client(service, application_id=shop.application_id)
    tokens = await web.tokens(await web.issue_code(anna))
    assert success_body(await post(service, EXCHANGE_TOKEN, tokens["access_token"]))
    await end(service, anna, shop)
    assert oauth_error(await post(service, EXCHANGE_TOKEN, tokens["access_token"])) == refusal


async def test_ui_11_an_exchanged_token_reads_its_owner_and_writes_nothing(
    studio: Studio, web: RelyingPartyClient, anna: User
) -> None:
    service, shop = studio.service, studio.shop
    tokens = await web.tokens(await web.issue_code(anna))
    jwt = success_body(await post(service, EXCHANGE_TOKEN, tokens["access_token"]))["token"]
    bearer = {"Authorization": f"Bearer {jwt}"}
    beside_service = {**bearer, "Service-Jwt": await studio.service_jwt()}
    assert (await studio.expect_ok("user/info", {}, bearer))["status"] == "OK"
    assert (await studio.expect_ok("meta/data", own_record(shop), beside_service))["user_id"] == anna.user_id
    about = {"application_id": shop.application_id}
    for path, body in (
        ("meta/data", {"action": "save", "data": {}, **about}),
        ("publish", {"project": "Mine"}),
        ("project", {"action": "save", "data": {"id": "mind_games", "title": "Mine"}}),
        ("group", {"action": "save", "data": {"project_id": "mind_games", "title": "Mine"}}),
        ("application", {"action": "save", "data": {"name": "Mine"}}),
        ("accessKey", {"action": "save", "data": {}, **about}),
        ("roles", {"action": "save", "data": {"name": "mine"}, **about}),
        ("meta/schema", {"action": "save", "data": {}, **about}),
    ):
        for headers in (bearer, beside_service):
            response = await studio.post(path, body, headers)
            assert response.status_code in (401, 403), (path, response.text)
    await studio.expect_error(
        403, "exchangeJwt", {"jwt": jwt}, {"Authorization": f"Bearer {await studio.access_key()}"}
    )


async def test_ui_11_an_exchanged_token_dies_with_its_grant(
    studio: Studio, web: RelyingPartyClient, anna: User
) -> None:
    service = studio.service
    tokens = await web.tokens(await web.issue_code(anna))
    jwt = success_body(await post(service, EXCHANGE_TOKEN, tokens["access_token"]))["token"]
    bearer = {"Authorization": f"Bearer {jwt}"}
    assert await studio.expect_ok("user/info", {}, bearer)
    fields = {"client_id": "web", "client_secret": web.secret, "refresh_token": tokens["refresh_token"]}
    assert success_body(await service.client.post("/proxy/oauth/token/revoke", json=fields))
    await studio.expect_error(401, "user/info", {}, bearer)
