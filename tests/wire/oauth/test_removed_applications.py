"""Removing a client's application or its project ends all its OAuth data (R5, PR-11)."""

from typing import Any

import httpx2
import pytest

from gatehouse.accounts.model import User
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.oauth import (
    RelyingPartyClient,
    a_native_client,
    an_oidc_client,
    basic_auth,
    oauth_error,
    success_body,
)
from tests.support.service import RunningService
from tests.support.studio import PROJECT, Studio, a_studio
from tests.wire.oauth.authorize_responses import redirect_error

INVALID_TOKEN = (401, "invalid_token")
INVALID_CLIENT = (401, "invalid_client")


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


@pytest.fixture(params=["application", "project"])
def removal(request: pytest.FixtureRequest, studio: Studio) -> tuple[str, dict[str, object]]:
    """The request that removes the shop, alone or with its whole project."""
    about = {"application_id": studio.shop.application_id} if request.param == "application" else {"id": PROJECT}
    return request.param, {"action": "delete", "data": about}


async def post_to(service: RunningService, endpoint: str, headers: dict[str, str], **fields: Any) -> httpx2.Response:
    return await service.client.post(f"/proxy/oauth/{endpoint}", data=fields, headers=headers)


def secret_of(relying: RelyingPartyClient) -> dict[str, str]:
    return {"Authorization": basic_auth(relying.client.client_id, relying.secret)}


async def test_pr_11_no_token_of_its_clients_outlives_an_application_or_its_project(
    studio: Studio, removal: tuple[str, dict[str, object]], anna: User
) -> None:
    service, shop = studio.service, studio.shop.application_id
    web = await a_native_client(service, application_id=shop)
    tokens, code = await web.tokens(await web.issue_code(anna)), await web.issue_code(anna)
    bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
    exchanged = {"Authorization": f"Bearer {success_body(await post_to(service, 'exchangeToken', bearer))['token']}"}
    assert (await web.userinfo(tokens["access_token"])).status_code == 200
    assert await studio.expect_ok("user/info", {}, exchanged)

    await studio.expect_ok(*removal, studio.owner.headers)
    assert oauth_error(await web.userinfo(tokens["access_token"])) == INVALID_TOKEN
    assert oauth_error(await post_to(service, "exchangeToken", bearer)) == INVALID_TOKEN
    await studio.expect_error(401, "user/info", {}, exchanged)
    assert oauth_error(await web.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert oauth_error(await web.redeem(code)) == (400, "invalid_grant")


async def test_pr_11_no_client_proves_itself_for_an_application_that_is_removed_or_of_a_removed_project(
    studio: Studio, removal: tuple[str, dict[str, object]], anna: User, signed_in_browser: HttpBrowser
) -> None:
    service, shop = studio.service, studio.shop.application_id
    own = await an_oidc_client(service, "own", application_id=shop, device_grant=True)
    ask = {"login": anna.login, "password": PASSWORD, "app_id": shop}
    login_token = (await service.client.post("/proxy/api/login", json=ask)).json()["token"]
    tokens = await own.tokens(await own.issue_code(anna))
    device_code = success_body(await post_to(service, "device_authorization", own.headers, scope="openid"))[
        "device_code"
    ]
    all_tokens = (tokens["access_token"], tokens["refresh_token"], login_token)
    for token in all_tokens:
        assert success_body(await post_to(service, "introspect", secret_of(own), token=token))["active"]

    await studio.expect_ok(*removal, studio.owner.headers)
    for token in all_tokens:
        assert oauth_error(await post_to(service, "introspect", secret_of(own), token=token)) == INVALID_CLIENT
    assert oauth_error(await post_to(service, "device_authorization", own.headers, scope="openid")) == INVALID_CLIENT
    polling = {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": device_code}
    assert oauth_error(await post_to(service, "token", own.headers, **polling)) == INVALID_CLIENT
    assert redirect_error(await signed_in_browser.get(own.authorize_path())) == "access_denied"


async def test_clients_of_other_applications_go_on(
    studio: Studio, removal: tuple[str, dict[str, object]], anna: User, oidc_client: RelyingPartyClient
) -> None:
    own = await an_oidc_client(studio.service, "own", application_id=studio.other.application_id)
    clients = [(relying, await relying.tokens(await relying.issue_code(anna))) for relying in (oidc_client, own)]
    await studio.expect_ok(*removal, studio.owner.headers)
    for relying, tokens in clients:
        assert (await relying.userinfo(tokens["access_token"])).status_code == 200
        assert success_body(await relying.refresh(tokens["refresh_token"]))
