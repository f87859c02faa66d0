"""userinfo, and calls to it from pages of a client's origin (interface §4.2, R3)."""

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.builders import ORIGIN as TESTER
from tests.support.oauth import (
    RelyingPartyClient,
    a_public_client,
    an_oidc_client,
    claims_of,
    oauth_error,
    success_body,
)
from tests.support.service import RunningService
from tests.wire.oauth.test_token import SCOPE_SETS

PATH = "/proxy/oauth/userinfo"
BAD = (401, "invalid_token")


async def access_token(relying: RelyingPartyClient, user: User) -> str:
    token: str = (await relying.tokens(await relying.issue_code(user)))["access_token"]
    return token


async def test_ui_01_userinfo_answers_exactly_the_fields_of_its_scopes(web: RelyingPartyClient, anna: User) -> None:
    fields: dict[str, dict[str, object]] = {
        "email": {"email": anna.login},
        "profile": {"nickname": anna.nick},
        "trust": {"email_verified": False, "phone_verified": False},
    }
    for scopes in SCOPE_SETS:
        tokens = await web.tokens(await web.issue_code(anna, scopes=scopes))
        expected: dict[str, object] = {"status": "ok", "sub": claims_of(tokens["id_token"])["sub"]}
        for scope in scopes:
            expected |= fields.get(scope, {})
        response = await web.userinfo(tokens["access_token"])
        assert success_body(response) == expected
        assert response.headers["cache-control"] == "no-store"


async def test_ui_02_only_the_exact_living_access_token_is_one(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    token = await access_token(web, anna)
    middle = len(token) // 2
    flipped = token[:middle] + token[middle:].swapcase()
    for other in (token[:-1], token + "A", flipped, token.swapcase(), token + "=", token[:80], "A" * 200, "é"):
        headers = [(b"Authorization", f"Bearer {other}".encode())]
        response = await service.client.get(PATH, headers=headers)
        if other == token:
            continue  # shorter than 80 characters: not cut
        assert oauth_error(response) == BAD, other
        assert response.headers["www-authenticate"].startswith("Bearer ")
    assert oauth_error(await service.client.post(PATH, data={"access_token": f"{token} "})) == BAD
    missing = await service.client.get(PATH)
    assert oauth_error(missing) == BAD
    assert missing.headers["www-authenticate"].startswith("Bearer ")
    assert success_body(await web.userinfo(token))


async def test_ui_02_an_access_token_ends_on_its_second(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    token = await access_token(web, anna)
    await service.clock.advance(3_599)
    assert success_body(await web.userinfo(token))
    await service.clock.advance(1)
    assert oauth_error(await web.userinfo(token)) == BAD


async def test_ui_02_no_other_kind_of_token_is_taken(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    tokens = await web.tokens(await web.issue_code(anna))
    ask = {"login": anna.login, "password": "correct horse battery staple", "factor": "f"}
    login = (await service.client.post("/proxy/api/login", json=ask)).json()
    for other in (tokens["id_token"], tokens["refresh_token"], login["token"], login["jwt"]):
        assert oauth_error(await web.userinfo(other)) == BAD


@pytest.mark.parametrize("path", ["userinfo", "exchange", "exchangeToken"])
async def test_bearer_only_endpoint_answers_basic_with_a_bearer_challenge(
    service: RunningService, oidc_client: RelyingPartyClient, path: str
) -> None:
    response = await service.client.post(f"/proxy/oauth/{path}", headers=oidc_client.headers)
    assert oauth_error(response) == (401, "invalid_token")
    assert response.headers["www-authenticate"] == 'Bearer realm="gatehouse", error="invalid_token"'


async def test_ui_03_the_query_and_two_places_at_once_are_refused(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    token = await access_token(web, anna)
    headers = {"Authorization": f"Bearer {token}"}
    assert oauth_error(await service.client.get(f"{PATH}?access_token={token}")) == (400, "invalid_request")
    assert oauth_error(await service.client.get(f"{PATH}?access_token=x", headers=headers))[0] == 400
    assert oauth_error(await service.client.post(PATH, data={"access_token": token}, headers=headers))[0] == 400
    twice = httpx2.Headers([("Authorization", f"Bearer {token}")] * 2)
    assert oauth_error(await service.client.get(PATH, headers=twice)) == BAD
    assert success_body(await service.client.post(PATH, headers=headers))
    assert success_body(await service.client.post(PATH, data={"access_token": token}))


ORIGIN = "https://spa.example"


@pytest.fixture
async def spa(service: RunningService) -> RelyingPartyClient:
    return await a_public_client(service, origins=(ORIGIN,))


@pytest.mark.usefixtures("spa")
@pytest.mark.parametrize("path", ["/proxy/oauth/token", PATH, "/proxy/oauth/revoke", "/proxy/oauth/token/revoke"])
async def test_ht_12_pages_of_a_registered_origin_may_call_and_no_others(service: RunningService, path: str) -> None:
    asking = {"Access-Control-Request-Method": "POST"}
    for origin in ("https://evil.example", "null", "https://spa.example.evil.example", "http://spa.example"):
        response = await service.client.options(path, headers={"Origin": origin, **asking})
        assert response.status_code == 405
        assert not any(name.startswith("access-control") for name in response.headers)
    response = await service.client.options(path, headers={"Origin": ORIGIN, **asking})
    assert response.status_code == 204
    assert response.headers["access-control-allow-origin"] == ORIGIN
    assert "POST" in response.headers["access-control-allow-methods"]
    assert response.headers["access-control-allow-headers"] == "authorization, content-type"
    assert response.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in response.headers


async def test_ht_12_answers_and_refusals_are_shared_with_that_origin_alone(
    service: RunningService, spa: RelyingPartyClient, anna: User
) -> None:
    await spa.issue_code(anna)
    for origin, shared in ((ORIGIN, True), ("https://evil.example", False)):
        response = await service.client.get(PATH, headers={"Origin": origin})
        assert response.status_code == 401
        assert (response.headers.get("access-control-allow-origin") == origin) is shared


async def test_ht_12_an_origin_taken_away_is_taken_at_its_word_a_second_later(
    service: RunningService, spa: RelyingPartyClient
) -> None:
    asking = {"Access-Control-Request-Method": "POST", "Origin": ORIGIN}
    assert (await service.client.options(PATH, headers=asking)).status_code == 204
    await service.services.oauth.clients.commands.remove(spa.client.client_id, TESTER)
    assert (await service.client.options(PATH, headers=asking)).status_code == 405


async def test_ui_01_scope_phone_gives_the_number_to_clients_of_profile_oidc(
    service: RunningService, anna: User
) -> None:
    shelf = await an_oidc_client(service, scopes=("openid", "trust", "phone"))
    without = await shelf.userinfo(await access_token_for(shelf, anna))
    assert success_body(without).keys() == {"status", "sub", "email_verified", "phone_verified"}
    changes = {"phone": "+49 151 2345-6789", "phone_verified": True}
    await service.services.accounts.editor.save(anna, changes, AuditOrigin(actor="test"), version=anna.version)
    body = success_body(await shelf.userinfo(await access_token_for(shelf, anna)))
    assert body["phone_verified"] is True
    assert (body["phone_number"], body["phone_number_verified"]) == ("+4915123456789", True)
    discovery = (await service.client.get("/.well-known/openid-configuration")).json()
    assert "phone" in discovery["scopes_supported"]
    assert {"phone_number", "phone_number_verified"} <= set(discovery["claims_supported"])


async def access_token_for(relying: RelyingPartyClient, user: User) -> str:
    code = await relying.issue_code(user, scopes=("openid", "trust", "phone"))
    token: str = (await relying.tokens(code))["access_token"]
    return token
