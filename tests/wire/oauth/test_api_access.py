"""Access tokens of people for the API of an application: `resource` on authorize, token and device requests (R9)."""

from html import unescape
from typing import Any, Final

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.storage.installation import BASE_URL
from tests.support.browser import HttpBrowser
from tests.support.oauth import (
    RelyingPartyClient,
    a_native_client,
    a_public_client,
    an_oidc_client,
    challenge_of,
    claims_of,
    header_of,
    oauth_error,
    query_of,
    success_body,
)
from tests.support.permission_builders import create_application, set_fields
from tests.support.service import RunningService
from tests.wire.oauth.test_device import ASK, ask, device_request, poll, sign_in_here, type_code

RESOURCE: Final = "https://api.mind.example/mcp"
API: Final = {
    "resource": RESOURCE,
    "access": "any",
    "scopes": {
        "match.report": {"title": "Report match results"},
        "match.read": {"title": "Read <matches> #1"},
    },
}
VERIFIER: Final = "v" * 43


@pytest.fixture
async def agent(service: RunningService) -> RelyingPartyClient:
    """A public client of another application than the API, which any client may ask for."""
    await create_application(service.services.storage, name="Matches", api=API)
    return await a_public_client(service, "agent", first_party=False)


def api_request(**changes: str) -> dict[str, str]:
    fields = {
        "scope": "match.report offline_access",
        "resource": RESOURCE,
        "nonce": "",
        "code_challenge": challenge_of(VERIFIER),
    }
    return {**fields, "code_challenge_method": "S256", **changes}


async def sign_in(agent: RelyingPartyClient, user: User, **changes: str) -> dict[str, Any]:
    code = await agent.sign_in(user.login or "", **api_request(**changes))
    return await agent.tokens(code, code_verifier=VERIFIER)


async def introspect(relying: RelyingPartyClient, token: str) -> dict[str, Any]:
    path = "/proxy/oauth/introspect"
    return success_body(await relying.service.client.post(path, data={"token": token}, headers=relying.headers))


async def test_mt_07_a_person_signs_in_for_an_api_and_the_token_is_for_it_alone(
    service: RunningService, agent: RelyingPartyClient, anna: User
) -> None:
    tokens = await sign_in(agent, anna)
    assert tokens.keys() == {"access_token", "token_type", "expires_in", "refresh_token", "scope"}
    assert (tokens["expires_in"], tokens["scope"]) == (300, "offline_access match.report")
    token = tokens["access_token"]
    assert header_of(token)["typ"] == "at+jwt"
    claims, now = claims_of(token), service.clock.now()
    assert claims.pop("jti").startswith("grant.")
    assert claims == {
        "iss": service.base_url,
        "iat": now,
        "exp": now + 300,
        "sub": anna.user_id,
        "aud": RESOURCE,
        "client_id": "agent",
        "scope": "match.report",
    }
    assert (await agent.userinfo(token)).status_code == 401
    for path in ("exchange", "exchangeToken"):
        answer = await service.client.post(f"/proxy/oauth/{path}", headers={"Authorization": f"Bearer {token}"})
        assert oauth_error(answer) == (401, "invalid_token")


async def test_openid_with_a_resource_gives_an_id_token_beside(agent: RelyingPartyClient, anna: User) -> None:
    tokens = await sign_in(agent, anna, scope="openid match.read")
    assert tokens["scope"] == "openid match.read"
    assert claims_of(tokens["access_token"])["scope"] == "match.read"
    assert claims_of(tokens["id_token"])["sub"] == anna.user_id


async def test_consent_page_names_the_api_by_its_application_and_asks_again_for_more(
    agent: RelyingPartyClient, signed_in_browser: HttpBrowser
) -> None:
    async def consent_page(**changes: str) -> httpx2.Response:
        page = await signed_in_browser.get(agent.authorize_path(**api_request(**changes)))
        return await signed_in_browser.get(page.headers["location"].removeprefix(agent.service.base_url))

    page = await consent_page(scope="match.report match.read")
    assert "Report match results" in page.text
    assert "Read &lt;matches&gt; #1" in page.text
    assert "use of Matches in your name" in page.text
    assert RESOURCE not in unescape(page.text)
    await agent.walk_authorize(signed_in_browser, "", **api_request(scope="match.report"))
    back = await signed_in_browser.get(agent.authorize_path(**api_request(scope="match.report")))
    assert "code" in query_of(back.headers["location"])
    assert "Read &lt;matches&gt; #1" in (await consent_page(scope="match.report match.read")).text
    account = await signed_in_browser.get("/account")
    assert "use of Matches in your name, Report match results" in account.text
    assert RESOURCE not in unescape(account.text)


async def test_mt_08_only_admitted_clients_may_name_a_resource(
    service: RunningService, agent: RelyingPartyClient, signed_in_browser: HttpBrowser
) -> None:
    closed = {"resource": "https://closed.example/", "scopes": {}}
    own = await create_application(service.services.storage, name="Closed", api=closed)
    member = await an_oidc_client(service, "member", application_id=own.application_id)
    for relying, resource, expected in (
        (agent, "https://closed.example/", "invalid_target"),
        (agent, "https://unknown.example/", "invalid_target"),
        (member, "https://closed.example/", ""),
    ):
        asked = relying.authorize_path(**api_request(resource=resource))
        back = query_of((await signed_in_browser.get(asked)).headers["location"])
        assert back.get("error", "") == expected
    twice = agent.authorize_path(**api_request()) + f"&resource={RESOURCE}"
    assert query_of((await signed_in_browser.get(twice)).headers["location"])["error"] == "invalid_request"


async def test_mt_09_a_code_or_refresh_token_gives_no_token_for_another_api(
    agent: RelyingPartyClient, anna: User
) -> None:
    code = await agent.sign_in(anna.login or "", **api_request())
    other = await agent.redeem(code, code_verifier=VERIFIER, resource="https://other.example/")
    assert oauth_error(other) == (400, "invalid_target")
    tokens = await agent.tokens(code, code_verifier=VERIFIER, resource=RESOURCE)
    refused = await agent.refresh(tokens["refresh_token"], resource="https://other.example/")
    assert oauth_error(refused) == (400, "invalid_target")
    assert oauth_error(await agent.refresh(tokens["refresh_token"], scope="match.read")) == (400, "invalid_scope")
    narrow = success_body(await agent.refresh(tokens["refresh_token"], scope="offline_access"))
    assert claims_of(narrow["access_token"])["aud"] == RESOURCE
    assert "scope" not in claims_of(narrow["access_token"])
    plain = await agent.sign_in(
        anna.login or "", **api_request(scope="openid", resource="", nonce="n1")
    )  # without a resource at authorize, none can be named later
    late = await agent.redeem(plain, code_verifier=VERIFIER, resource=RESOURCE)
    assert oauth_error(late) == (400, "invalid_target")


async def test_mt_10_introspection_revocation_and_sign_out_cover_tokens_of_people(
    service: RunningService, agent: RelyingPartyClient, anna: User
) -> None:
    storage = service.services.storage
    api = await storage.clients.find_api(RESOURCE)
    assert api is not None
    server = await an_oidc_client(service, "server", application_id=api.application_id)
    stranger = await an_oidc_client(service, "stranger")
    token = (await sign_in(agent, anna))["access_token"]
    about = await introspect(server, token)
    assert (about["active"], about["aud"], about["scope"]) == (True, [RESOURCE], "match.report")
    assert await introspect(stranger, token) == {"active": False}
    fields = {"token": token, "client_id": "agent"}
    assert (await service.client.post("/proxy/oauth/revoke", data=fields)).status_code == 200
    assert await introspect(server, token) == {"active": False}
    second = await sign_in(agent, anna)
    for access, active in (("own", False), ("any", True)):
        narrowed = set_fields(api={**API, "access": access})
        await storage.applications.edit_application(api.application_id, narrowed)
        assert (await introspect(server, second["access_token"]))["active"] is active
    await service.services.accounts.administration.block(anna.user_id, AuditOrigin(actor="test"))
    assert await introspect(server, second["access_token"]) == {"active": False}
    assert oauth_error(await agent.refresh(second["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.usefixtures("agent")
async def test_native_clients_ignore_a_resource(service: RunningService, anna: User) -> None:
    native = await a_native_client(service)
    code = await native.sign_in(anna.login or "", resource=RESOURCE)
    tokens = await native.tokens(code, resource=RESOURCE)
    assert tokens["expires_in"] == 3_600
    assert tokens["access_token"].count(".") == 0


@pytest.mark.usefixtures("agent", "anna")
async def test_a_device_signs_in_for_an_api(service: RunningService, browser_client: HttpBrowser) -> None:
    tv = await a_public_client(service, "tv", first_party=False, device_grant=True)
    unknown = device_request(tv, scope="match.read", resource="https://unknown.example/")
    assert oauth_error(await service.client.post(ASK, data=unknown)) == (400, "invalid_target")
    device = await ask(tv, scope="match.read", resource=RESOURCE)
    await type_code(browser_client, device["user_code"])
    assert "Read &lt;matches&gt; #1" in (await sign_in_here(browser_client)).text
    await browser_client.post("/sign-in/confirm", decision="confirm")
    other = await poll(tv, device["device_code"], resource="https://other.example/")
    assert oauth_error(other) == (400, "invalid_target")
    await service.clock.advance(5)
    tokens = success_body(await poll(tv, device["device_code"]))
    assert (claims_of(tokens["access_token"])["aud"], tokens["scope"]) == (RESOURCE, "match.read")


@pytest.mark.both_databases
async def test_ci_07_grants_for_an_address_that_is_this_service_now_stop_at_once(
    service: RunningService, agent: RelyingPartyClient, anna: User, signed_in_browser: HttpBrowser
) -> None:
    """As if the resource had been declared before such addresses were reserved: base_url moved to its host."""
    server = await an_oidc_client(service, "server", application_id=50001)
    tv = await a_public_client(service, "tv", redirect_uris=(), device_grant=True)
    tokens = await sign_in(agent, anna)
    waiting = await agent.sign_in(anna.login or "", **api_request())
    installation, base_url = service.services.storage.installation, service.base_url
    for moved in ("https://api.mind.example", RESOURCE.upper().replace("HTTPS", "https")):
        await installation.set_value(BASE_URL, moved)
        target = (400, "invalid_target")
        assert oauth_error(await agent.redeem(waiting, code_verifier=VERIFIER)) == target
        assert oauth_error(await agent.refresh(tokens["refresh_token"])) == target
        asked = device_request(tv, scope="match.read", resource=RESOURCE)
        assert oauth_error(await service.client.post(ASK, data=asked)) == target
        back = await signed_in_browser.get(agent.authorize_path(**api_request()))
        assert query_of(back.headers["location"])["error"] == "invalid_target"
        for token in (tokens["access_token"], tokens["refresh_token"]):
            assert await introspect(server, token) == {"active": False}
    await installation.set_value(BASE_URL, base_url)
    assert claims_of((await agent.tokens(waiting, code_verifier=VERIFIER))["access_token"])["aud"] == RESOURCE
    success_body(await agent.refresh(tokens["refresh_token"]))
