"""Revocation: that of interface §4.2, and RFC 7009 (R3)."""

from typing import Any

import httpx2
import pytest

from gatehouse.accounts.model import User
from tests.support.oauth import RelyingPartyClient, a_native_client, basic_auth, oauth_error, success_body
from tests.support.service import RunningService

OWN = "/proxy/oauth/token/revoke"
RFC_7009 = "/proxy/oauth/revoke"
GONE = (400, "invalid_grant")


def secret_of(relying: RelyingPartyClient) -> dict[str, str]:
    return {"client_id": relying.client.client_id, "client_secret": relying.secret}


async def issue_tokens(relying: RelyingPartyClient, user: User) -> dict[str, Any]:
    return await relying.tokens(await relying.issue_code(user))


async def everything_is_dead(relying: RelyingPartyClient, tokens: dict[str, Any]) -> None:
    assert oauth_error(await relying.refresh(tokens["refresh_token"])) == GONE
    assert oauth_error(await relying.userinfo(tokens["access_token"])) == (401, "invalid_token")
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    exchanged = await relying.service.client.post("/proxy/oauth/exchangeToken", headers=headers)
    assert oauth_error(exchanged) == (401, "invalid_token")


@pytest.mark.parametrize("kind", ["json", "data"])
@pytest.mark.parametrize("name", ["refresh_token", "token"])
async def test_ui_05_after_a_revocation_nothing_of_that_grant_works(
    service: RunningService, web: RelyingPartyClient, anna: User, kind: str, name: str
) -> None:
    tokens, another = await issue_tokens(web, anna), await issue_tokens(web, anna)
    body: Any = {kind: {**secret_of(web), name: tokens["refresh_token"]}}
    response = await service.client.post(OWN, **body)
    assert success_body(response) == {"status": "ok"}
    assert response.headers["cache-control"] == "no-store"
    await everything_is_dead(web, tokens)
    assert success_body(await web.refresh(another["refresh_token"]))
    events = [
        record
        for record in await service.services.storage.audit.unsealed_records(100)
        if record.event == "grant.revoked"
    ]
    assert [(event.actor, event.subject) for event in events] == [("client:web", anna.user_id)]


async def test_ui_06_a_revocation_with_wrong_credentials_or_token_revokes_nothing(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    tokens = await issue_tokens(web, anna)
    token = {"refresh_token": tokens["refresh_token"]}
    for credentials in (
        {"client_id": "web", "client_secret": "wrong"},
        {"client_id": "no_one", "client_secret": "x"},
    ):
        assert oauth_error(await service.client.post(OWN, json={**credentials, **token})) == (401, "invalid_client")
    for missing in ({"client_id": "web"}, {"client_secret": web.secret}, {}):
        assert oauth_error(await service.client.post(OWN, json={**missing, **token})) == (401, "invalid_client")
    for wrong in (tokens["access_token"], tokens["id_token"], "x", "", "x" * 60_000, tokens["refresh_token"][:-1]):
        response = await service.client.post(OWN, json={**secret_of(web), "refresh_token": wrong})
        assert oauth_error(response) == (400, "invalid_request"), wrong[:80]
    response = await service.client.post(OWN, json={**secret_of(web), "refresh_token": "x" * 1_000_000})
    assert response.status_code in (400, 413)
    assert response.json()["error"] == "invalid_request"
    assert oauth_error(await service.client.post(f"{OWN}?token=x", json=secret_of(web)))[0] == 400
    assert success_body(await web.userinfo(tokens["access_token"]))
    assert success_body(await web.refresh(tokens["refresh_token"]))


async def test_ui_06_an_already_revoked_or_rotated_token_is_invalid_request(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    old = (await issue_tokens(web, anna))["refresh_token"]
    new = success_body(await web.refresh(old))["refresh_token"]
    assert success_body(await service.client.post(OWN, json={**secret_of(web), "refresh_token": new}))
    rotated = await service.client.post(OWN, json={**secret_of(web), "refresh_token": old})
    assert oauth_error(rotated) == (400, "invalid_request")
    again = await service.client.post(OWN, json={**secret_of(web), "refresh_token": new})
    assert oauth_error(again) == (400, "invalid_request")


async def test_ui_07_a_client_cannot_revoke_anothers_token(
    service: RunningService, web: RelyingPartyClient, oidc_client: RelyingPartyClient, anna: User
) -> None:
    tokens = await issue_tokens(web, anna)
    other = await a_native_client(service, "other")
    for other_client in (other, oidc_client):
        fields = {**secret_of(other_client), "refresh_token": tokens["refresh_token"]}
        assert oauth_error(await service.client.post(OWN, json=fields)) == (400, "invalid_request")
        for token in (tokens["refresh_token"], tokens["access_token"]):
            response = await service.client.post(RFC_7009, data={**secret_of(other_client), "token": token})
            assert (response.status_code, response.content) == (200, b"")
    assert success_body(await web.userinfo(tokens["access_token"]))
    assert success_body(await web.refresh(tokens["refresh_token"]))


@pytest.mark.parametrize(("path", "status"), [(RFC_7009, 200), (OWN, 400)], ids=["RFC 7009", "own"])
async def test_a_rotated_token_ends_its_family_anyone_who_rotated_it(
    service: RunningService, web: RelyingPartyClient, anna: User, path: str, status: int
) -> None:
    stolen = (await issue_tokens(web, anna))["refresh_token"]
    of_other_client = success_body(await web.refresh(stolen))
    response = await service.client.post(path, data={**secret_of(web), "token": stolen})
    assert response.status_code == status, response.text
    await everything_is_dead(web, of_other_client)
    events = [record.event for record in await service.services.storage.audit.unsealed_records(100)]
    assert events.count("grant.revoked") == 1


async def test_rfc_7009_tells_no_one_which_foreign_tokens_live(
    service: RunningService, oidc_client: RelyingPartyClient, app: RelyingPartyClient, anna: User
) -> None:
    old = (await issue_tokens(oidc_client, anna))["refresh_token"]
    new = success_body(await oidc_client.refresh(old))["refresh_token"]
    other_client = {"client_id": app.client.client_id}
    responses = [await service.client.post(RFC_7009, data={**other_client, "token": one}) for one in (old, new, "x")]
    assert [(response.status_code, response.content) for response in responses] == [(200, b"")] * 3
    assert success_body(await oidc_client.refresh(new))


@pytest.mark.parametrize("name", ["refresh_token", "access_token"])
async def test_rfc_7009_revokes_by_either_token(
    service: RunningService, oidc_client: RelyingPartyClient, anna: User, name: str
) -> None:
    tokens = await issue_tokens(oidc_client, anna)
    fields = {"token": tokens[name], "token_type_hint": "whatever"}
    response = await service.client.post(RFC_7009, data=fields, headers=oidc_client.headers)
    assert (response.status_code, response.content) == (200, b"")
    assert oauth_error(await oidc_client.refresh(tokens["refresh_token"])) == GONE
    assert oauth_error(await oidc_client.userinfo(tokens["access_token"])) == (401, "invalid_token")


async def test_rfc_7009_a_token_that_is_no_longer_good_is_no_error(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    tokens = await issue_tokens(web, anna)
    for token in (tokens["access_token"], tokens["access_token"], tokens["refresh_token"], "x"):
        response = await service.client.post(RFC_7009, data={**secret_of(web), "token": token})
        assert response.status_code == 200, response.text
    assert oauth_error(await service.client.post(RFC_7009, data=secret_of(web))) == (400, "invalid_request")


async def test_rfc_7009_wants_the_client_to_prove_itself(
    service: RunningService, oidc_client: RelyingPartyClient, app: RelyingPartyClient, anna: User
) -> None:
    tokens = await issue_tokens(oidc_client, anna)

    async def try_revoke(headers: dict[str, str], **fields: str) -> httpx2.Response:
        body = {"token": tokens["access_token"], **fields}
        return await service.client.post(RFC_7009, data=body, headers=headers)

    for headers in (
        {},
        {"Authorization": basic_auth("shelf", "wrong")},
        {"Authorization": f"Bearer {oidc_client.secret}"},
    ):
        assert oauth_error(await try_revoke(headers)) == (401, "invalid_client")
    assert (await try_revoke({}, client_id="app")).status_code == 200  # a public client: only its own tokens
    assert success_body(await oidc_client.userinfo(tokens["access_token"]))
    assert app.client.public


@pytest.mark.parametrize("kind", ["refresh_token", "access_token"])
@pytest.mark.parametrize("wrong_by", [-3_600, 7_200])
async def test_r_10_what_was_revoked_while_the_clock_was_wrong_is_dead_when_it_is_right(
    service: RunningService, web: RelyingPartyClient, anna: User, kind: str, wrong_by: int
) -> None:
    tokens = await issue_tokens(web, anna)
    service.clock.set_back(-wrong_by)
    assert (await service.client.post(RFC_7009, data={**secret_of(web), "token": tokens[kind]})).status_code == 200
    service.clock.set_back(wrong_by)
    await everything_is_dead(web, tokens)
