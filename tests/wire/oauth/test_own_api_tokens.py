"""Tokens for the service's own API: client_credentials with the scope `authzen` (R11)."""

from typing import Any, Final

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.oauth.grants.delegation import ACCESS_TOKEN
from gatehouse.permissions.model.rules import ROOT
from tests.support.builders import ORIGIN
from tests.support.game import OTHER_ADDRESS
from tests.support.oauth import (
    REDIRECT,
    TOKEN,
    RelyingPartyClient,
    a_public_client,
    an_oidc_client,
    oauth_error,
    success_body,
)
from tests.support.service import RunningService
from tests.support.studio import (
    OTHER_USER,
    PROJECT,
    Studio,
    a_studio,
    bearer_headers,
    create_administrator,
    create_person_with,
    holdings_with_rules,
    put_roles,
    role_granting,
    secret_document,
    set_user_roles,
    write_user_record,
)
from tests.support.tls import NO_TRUST_STORE
from tests.wire.oauth.test_machines import ask_token, create_account, introspect

REFUSED: Final = (400, "invalid_scope")


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    """A studio whose second person may kick in the shop."""
    studio = await a_studio(service)
    await put_roles(studio, role_granting("referee"))
    await set_user_roles(studio, OTHER_USER, {ROOT: ["referee"]})
    return studio


@pytest.fixture
async def gateway(studio: Studio) -> RelyingPartyClient:
    return await a_gateway(studio)


async def a_gateway(studio: Studio, client_id: str = "gateway", **fields: Any) -> RelyingPartyClient:
    """A machine of the shop that asks about permissions."""
    machine = {"machine": True, "redirect_uris": (), "scopes": ("authzen",), "first_party": False}
    return await an_oidc_client(
        studio.service, client_id, application_id=studio.shop.application_id, **(machine | fields)
    )


async def own_token(relying: RelyingPartyClient, scope: str = "authzen") -> str:
    answer = await ask_token(relying.service, relying.client.client_id, relying.secret, scope=scope)
    return str(success_body(answer)["access_token"])


async def evaluate(studio: Studio, token: str, application_id: int = 0, **more: Any) -> httpx2.Response:
    body = {
        "subject": {"type": "user", "id": OTHER_USER},
        "action": {"name": "user.kick"},
        "resource": {"type": "application", "id": str(application_id or studio.shop.application_id)},
        **more,
    }
    return await studio.service.client.post("/access/v1/evaluation", json=body, headers=bearer_headers(token))


async def is_allowed(studio: Studio, token: str, application_id: int = 0, **more: Any) -> bool:
    return bool(success_body(await evaluate(studio, token, application_id, **more))["decision"])


@pytest.mark.both_databases
async def test_pa_21_a_token_asks_about_the_application_of_its_client_and_ends(
    studio: Studio, gateway: RelyingPartyClient
) -> None:
    answer = success_body(await ask_token(studio.service, "gateway", gateway.secret, scope="authzen openid objects"))
    token = answer.pop("access_token")
    assert answer == {"token_type": "Bearer", "expires_in": 300, "scope": "authzen"}
    assert "." not in token
    assert await is_allowed(studio, token)
    assert not await is_allowed(studio, token, studio.other.application_id)
    live = await introspect(gateway, token)
    assert (live["active"], live["scope"], live["sub"]) == (True, "authzen", "client:gateway")
    await studio.service.clock.advance(299)
    assert await is_allowed(studio, token)
    await studio.service.clock.advance(1)
    assert (await evaluate(studio, token)).status_code == 401


async def test_pa_21_a_token_ends_with_its_client_its_scope_and_its_application(studio: Studio) -> None:
    service, shop = studio.service, studio.shop.application_id

    async def call(path: str, action: str, **data: object) -> None:
        asked = {"action": action, "application_id": shop, "data": data}
        await studio.expect_ok(path, asked, studio.owner.headers)

    revoked, narrowed, ended, removed, other = [await a_gateway(studio, f"g{number}") for number in range(5)]
    tokens = [await own_token(relying) for relying in (revoked, narrowed, ended, removed, other)]
    assert [await is_allowed(studio, token) for token in tokens] == [True] * 5
    revocation = await service.client.post("/proxy/oauth/revoke", data={"token": tokens[0]}, headers=revoked.headers)
    assert revocation.status_code == 200
    await call("client", "save", client_id="g1", scopes=[])
    assert oauth_error(await ask_token(service, "g1", narrowed.secret, scope="authzen")) == REFUSED
    await call("client", "revoke", client_id="g2")
    await call("client", "delete", client_id="g3")
    assert [(await evaluate(studio, token)).status_code for token in tokens] == [401] * 4 + [200]
    renewed = await studio.expect_ok(
        "client", {"action": "rotate", "application_id": shop, "data": {"client_id": "g4"}}, studio.owner.headers
    )
    assert await is_allowed(studio, tokens[4]), "a new secret ends no token"
    for secret in (other.secret, renewed["data"]["client_secret"]):
        assert success_body(await ask_token(service, "g4", secret, scope="authzen"))
    await studio.expect_ok(
        "application", {"action": "delete", "data": {"application_id": shop}}, studio.owner.headers
    )
    assert (await evaluate(studio, tokens[4])).status_code == 401


async def test_pa_22_a_token_opens_nothing_but_the_endpoints_of_its_scope(
    studio: Studio, gateway: RelyingPartyClient
) -> None:
    both = await a_gateway(studio, "both", scopes=("authzen", "objects"))
    plain = success_body(await ask_token(studio.service, "both", both.secret))["access_token"]
    for token in (plain, await own_token(both, "objects")):
        assert (await evaluate(studio, token)).status_code == 401
    token, shop = await own_token(gateway), studio.shop.application_id
    check = {"application_id": shop, "data": {"checks": [{"rule": "user.kick"}], "user_id": OTHER_USER}}
    roles = {"action": "get", "application_id": shop, "data": {"type": "roles", "user_id": OTHER_USER}}
    for headers in (bearer_headers(token), {**studio.owner.headers, "Service-Jwt": token}):
        for path, body in (
            ("check", check),
            ("meta/data", roles),
            ("accessKey", {"action": "get", "application_id": shop, "data": {}}),
        ):
            assert (await studio.post(path, body, headers)).status_code == 401
    for path in ("userinfo", "exchange", "exchangeToken"):
        answer = await studio.service.client.post(f"/proxy/oauth/{path}", headers=bearer_headers(token))
        assert oauth_error(answer) == (401, "invalid_token")
    exchange = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": token,
        "subject_token_type": ACCESS_TOKEN,
    }
    assert (await studio.service.client.post(TOKEN, data=exchange, headers=gateway.headers)).status_code == 400
    beside = bearer_headers(token, Service_Jwt=await studio.service_jwt(studio.other))
    answer = await studio.service.client.post("/access/v1/evaluation", json={}, headers=beside)
    assert answer.status_code == 400
    inside = {"context": {"ip": "192.0.2.9"}}
    assert await is_allowed(studio, token, **inside)  # ignored: a token signs no addresses


async def test_pa_22_no_person_ever_gives_the_scope(studio: Studio, anna: User) -> None:
    shop = studio.shop.application_id
    web = await an_oidc_client(
        studio.service,
        "web",
        application_id=shop,
        scopes=("openid", "offline_access", "authzen"),
        device_grant=True,
    )
    code = await web.sign_in(anna.login or "", scope="openid offline_access authzen", prompt="consent")
    tokens = await web.tokens(code)
    assert tokens["scope"] == "openid offline_access"
    assert oauth_error(await web.refresh(tokens["refresh_token"], scope="authzen")) == REFUSED
    assert (await evaluate(studio, tokens["access_token"])).status_code == 401
    assert await is_allowed(studio, await own_token(web))
    device = await studio.service.client.post(
        "/proxy/oauth/device_authorization", data={"scope": "openid authzen"}, headers=web.headers
    )
    stored = await studio.service.services.storage.device_requests.find_pending_request(
        success_body(device)["user_code"].replace("-", ""), studio.service.clock.now()
    )
    assert stored is not None
    assert stored.scopes == ("openid",)
    discovery = (await studio.service.client.get("/.well-known/openid-configuration")).json()
    assert not {"authzen", "objects", "scim"} & {*discovery["scopes_supported"]}


async def test_pa_23_the_names_are_reserved_and_only_confidential_clients_of_an_application_have_them(
    studio: Studio,
) -> None:
    shop, admin = studio.shop.application_id, await create_administrator(studio)
    blank = {"name": "x", "profile": "oidc", "redirect_uris": [REDIRECT], "scopes": ["openid", "authzen"]}
    for application_id, changes, place in (
        (shop, {"public": True}, "data.scopes: "),
        (shop, {"profile": "native", "may_exchange": True}, "data.scopes: "),
        (None, {}, "data.scopes: "),
        (shop, {"scopes": ["scim"]}, "data.scopes[0]: "),
    ):
        data = {"client_id": "x", **blank, **changes}
        asked = {"action": "create", **({"application_id": application_id} if application_id else {}), "data": data}
        assert place in await studio.expect_error(400, "client", asked, admin.headers)
    for name in ("authzen", "objects", "scim"):
        api = {"resource": "https://api.example/x", "scopes": {name: {"title": "x"}}}
        asked = {"action": "save", "data": {"application_id": shop, "api": api}}
        assert f"data.api.scopes.{name}" in await studio.expect_error(400, "application", asked, studio.owner.headers)
    without = await an_oidc_client(studio.service, "without", application_id=shop)
    public = await a_public_client(studio.service, "page", application_id=shop)
    assert oauth_error(await ask_token(studio.service, "without", without.secret, scope="authzen")) == REFUSED
    asked = {"grant_type": "client_credentials", "client_id": public.client.client_id, "scope": "authzen"}
    assert (await studio.service.client.post(TOKEN, data=asked)).status_code in (400, 401)


async def test_pa_23_saving_a_client_with_the_scope_takes_the_right_to_create_credentials(studio: Studio) -> None:
    shop = studio.shop.application_id
    saver = await create_person_with(studio, secret_data=secret_document("canSave"))
    creator = await create_person_with(studio, secret_data=secret_document("canSave", "canCreateJwt"))
    new = {"name": "x", "profile": "oidc", "machine": True, "scopes": ["authzen"]}

    def asked(action: str, client_id: str, **data: object) -> dict[str, object]:
        return {"action": action, "application_id": shop, "data": {"client_id": client_id, **data}}

    await studio.expect_ok("client", asked("create", "bare", **new | {"scopes": []}), saver.headers)
    await studio.expect_error(403, "client", asked("create", "mine", **new), saver.headers)
    await studio.expect_error(403, "client", asked("save", "bare", scopes=["authzen"]), saver.headers)
    await studio.expect_ok("client", asked("create", "mine", **new), creator.headers)
    for action, data in (("save", {"name": "y"}), ("save", {"scopes": []}), ("rotate", {}), ("delete", {})):
        await studio.expect_error(403, "client", asked(action, "mine", **data), saver.headers)
    await studio.expect_ok("client", asked("save", "mine", scopes=[]), creator.headers)
    await studio.expect_ok("client", asked("delete", "mine"), saver.headers)


@pytest.mark.both_databases
async def test_pa_21_a_service_account_asks_about_the_applications_of_its_project(studio: Studio) -> None:
    service, other = studio.service, studio.other.application_id
    account = await create_account(studio)
    refused = await ask_token(service, account["user_id"], account["jwt"], scope="objects")
    assert oauth_error(refused) == REFUSED
    token = success_body(await ask_token(service, account["user_id"], account["jwt"], scope="authzen"))[
        "access_token"
    ]
    assert await is_allowed(studio, token)
    elsewhere = {ROOT: holdings_with_rules("user.kick")}
    await write_user_record(studio, studio.other_user, other, scopes=elsewhere)
    assert await is_allowed(studio, await studio.service_jwt(studio.other), other)
    assert not await is_allowed(studio, token, other)
    assert not await is_allowed(studio, token, 1)
    here = {"type": "project", "id": PROJECT}
    named = {"resource": {**here, "properties": {"application_id": studio.shop.application_id}}}
    assert not await is_allowed(studio, token, **named), "held in the application, not in the project"
    question = {"subject": {"type": "user"}, "action": {"name": "user.kick"}}
    for application_id, found in ((studio.shop.application_id, [OTHER_USER]), (other, [])):
        body = {**question, "resource": {"type": "application", "id": str(application_id)}}
        answer = await service.client.post("/access/v1/search/subject", json=body, headers=bearer_headers(token))
        assert [one["id"] for one in success_body(answer)["results"]] == found
    resource = {"type": "application", "properties": {"application_id": other}}
    body = {"subject": {"type": "user", "id": OTHER_USER}, "action": {"name": "user.kick"}, "resource": resource}
    answer = await service.client.post("/access/v1/search/resource", json=body, headers=bearer_headers(token))
    assert success_body(answer)["results"] == []
    beside = bearer_headers(token, Service_Jwt=await studio.service_jwt())
    assert (await service.client.post("/access/v1/evaluation", json=body, headers=beside)).status_code in (400, 403)
    await service.services.accounts.sessions.sign_out_everywhere(account["user_id"], ORIGIN)
    assert (await evaluate(studio, token)).status_code == 401


async def test_pa_21_a_service_accounts_token_is_good_from_its_networks_only(studio: Studio) -> None:
    account = await create_account(studio, ip_ranges=["127.0.0.1/32"])
    answer = await ask_token(studio.service, account["user_id"], account["jwt"], scope="authzen")
    token = success_body(answer)["access_token"]
    assert await is_allowed(studio, token)
    body = {"subject": {"type": "user", "id": OTHER_USER}, "action": {"name": "user.kick"}}
    resource = {"type": "application", "id": str(studio.shop.application_id)}
    transport = httpx2.AsyncHTTPTransport(local_address=OTHER_ADDRESS, verify=NO_TRUST_STORE)
    asked = {**body, "resource": resource}
    async with httpx2.AsyncClient(transport=transport, base_url=studio.service.client.base_url) as client:
        elsewhere = await client.post("/access/v1/evaluation", json=asked, headers=bearer_headers(token))
    assert elsewhere.status_code == 403
