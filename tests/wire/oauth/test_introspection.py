"""Introspection by a client of its own tokens, by an application of its login tokens (RFC 7662, R1)."""

from typing import Any

import httpx2

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD
from tests.support.oauth import DAY, RelyingPartyClient, an_oidc_client, basic_auth, oauth_error, success_body
from tests.support.permission_builders import create_application
from tests.support.service import RunningService
from tests.support.studio import a_studio

PATH = "/proxy/oauth/introspect"
INACTIVE = {"active": False}


async def introspect(relying: RelyingPartyClient, token: str) -> httpx2.Response:
    headers = {"Authorization": basic_auth(relying.client.client_id, relying.secret)}
    return await relying.service.client.post(PATH, data={"token": token}, headers=headers)


async def issue_tokens(relying: RelyingPartyClient, user: User, **fields: Any) -> dict[str, Any]:
    return await relying.tokens(await relying.issue_code(user, **fields))


async def test_a_client_learns_about_its_access_and_refresh_token(
    service: RunningService, oidc_client: RelyingPartyClient, web: RelyingPartyClient, anna: User
) -> None:
    for relying in (oidc_client, web):
        tokens = await issue_tokens(relying, anna, scopes=("openid", "offline_access", "email"))
        client_id, now = relying.client.client_id, service.clock.now()
        about = {
            "active": True,
            "iss": service.base_url,
            "sub": anna.user_id,
            "client_id": client_id,
            "aud": [service.base_url, client_id],
            "scope": "openid offline_access email",
        }
        response = await introspect(relying, tokens["access_token"])
        assert success_body(response) == {**about, "token_type": "Bearer", "exp": now + 3_600}
        assert response.headers["cache-control"] == "no-store"
        assert success_body(await introspect(relying, tokens["refresh_token"])) == {**about, "exp": now + 30 * DAY}


async def test_a_narrowed_access_token_says_so(oidc_client: RelyingPartyClient, anna: User) -> None:
    tokens = await issue_tokens(oidc_client, anna)
    narrow = success_body(await oidc_client.refresh(tokens["refresh_token"], scope="openid"))
    assert success_body(await introspect(oidc_client, narrow["access_token"]))["scope"] == "openid"
    assert success_body(await introspect(oidc_client, tokens["refresh_token"])) == INACTIVE  # rotated


async def test_expired_revoked_or_unknown_token_is_inactive_without_details(
    service: RunningService, oidc_client: RelyingPartyClient, anna: User
) -> None:
    tokens = await issue_tokens(oidc_client, anna)
    assert success_body(await introspect(oidc_client, tokens["id_token"])) == INACTIVE
    assert success_body(await introspect(oidc_client, "x")) == INACTIVE
    await service.clock.advance(3_600)
    assert success_body(await introspect(oidc_client, tokens["access_token"])) == INACTIVE
    assert success_body(await introspect(oidc_client, tokens["refresh_token"]))["active"] is True
    await service.services.accounts.administration.block(anna.user_id, AuditOrigin(actor="test"))
    assert success_body(await introspect(oidc_client, tokens["refresh_token"])) == INACTIVE


async def test_another_clients_tokens_are_inactive_unless_it_is_of_the_same_application(
    service: RunningService, oidc_client: RelyingPartyClient, anna: User
) -> None:
    shop = await create_application(service.services.storage, name="Shop")
    first = await an_oidc_client(service, "first", application_id=shop.application_id)
    second = await an_oidc_client(service, "second", application_id=shop.application_id)
    tokens = await issue_tokens(first, anna)
    for token in (tokens["access_token"], tokens["refresh_token"]):
        assert success_body(await introspect(oidc_client, token)) == INACTIVE
        assert success_body(await introspect(second, token))["client_id"] == "first"


async def test_introspection_requires_client_authentication(
    service: RunningService, oidc_client: RelyingPartyClient, app: RelyingPartyClient, anna: User
) -> None:
    token = (await issue_tokens(oidc_client, anna))["access_token"]
    for headers, fields in (
        ({}, {}),
        ({}, {"client_id": app.client.client_id}),
        ({"Authorization": basic_auth("shelf", "wrong")}, {}),
        ({"Authorization": f"Bearer {token}"}, {}),
    ):
        answer = await service.client.post(PATH, data={"token": token, **fields}, headers=headers)
        assert oauth_error(answer) == (401, "invalid_client")
    assert oauth_error(await service.client.post(PATH, data={}, headers=oidc_client.headers)) == (
        400,
        "invalid_request",
    )


async def test_an_application_learns_whether_its_login_token_is_live(
    service: RunningService, oidc_client: RelyingPartyClient, anna: User
) -> None:
    shop = await create_application(service.services.storage, name="Shop")
    own = await an_oidc_client(service, "own", application_id=shop.application_id)
    ask = {"login": anna.login, "password": PASSWORD, "app_id": shop.application_id}
    token = (await service.client.post("/proxy/api/login", json=ask)).json()["token"]
    unbound_token = (await service.client.post("/proxy/api/login", json={**ask, "app_id": 0})).json()["token"]
    about = {
        "active": True,
        "iss": service.base_url,
        "sub": anna.user_id,
        "exp": service.clock.now() + 3_600,
    }
    assert success_body(await introspect(own, token)) == about
    assert (
        success_body(await introspect(oidc_client, token))
        == success_body(await introspect(oidc_client, unbound_token))
        == INACTIVE
    )
    await service.clock.advance(3_600)
    assert success_body(await introspect(own, token)) == INACTIVE


async def test_an_application_without_a_client_asks_with_an_access_key(service: RunningService) -> None:
    studio = await a_studio(service)
    shop = studio.shop.application_id
    anna = await service.services.accounts.administration.create(
        login="anna@studio.example", nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
    )
    ask = {"login": anna.login, "password": PASSWORD, "app_id": shop}
    token = (await service.client.post("/proxy/api/login", json=ask)).json()["token"]
    headers = {"Authorization": f"Bearer {await studio.access_key()}"}
    answer = await service.client.post(PATH, data={"token": token}, headers=headers)
    assert success_body(answer)["sub"] == anna.user_id
    other = {"Authorization": f"Bearer {'0' * 64}"}
    assert oauth_error(await service.client.post(PATH, data={"token": token}, headers=other)) == (
        401,
        "invalid_client",
    )
    foreign = (await service.client.post("/proxy/api/login", json={**ask, "app_id": 0})).json()["token"]
    assert success_body(await service.client.post(PATH, data={"token": foreign}, headers=headers)) == INACTIVE


async def test_a_login_token_dies_with_its_user(service: RunningService, anna: User) -> None:
    shop = await create_application(service.services.storage, name="Shop")
    own = await an_oidc_client(service, "own", application_id=shop.application_id)
    ask = {"login": anna.login, "password": PASSWORD, "app_id": shop.application_id}
    token = (await service.client.post("/proxy/api/login", json=ask)).json()["token"]
    await service.services.accounts.administration.block(anna.user_id, AuditOrigin(actor="test"))
    assert success_body(await introspect(own, token)) == INACTIVE
