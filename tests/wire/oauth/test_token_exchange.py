"""Token exchange (RFC 8693): the same rules as exchangeToken and exchange (R9)."""

from typing import Final

import httpx2

from gatehouse.accounts.model import User
from gatehouse.oauth.grants.token_exchange import ACCESS_TOKEN, ID_TOKEN, JWT
from gatehouse.oauth.vocabulary import GrantName
from tests.support.oauth import (
    TOKEN,
    RelyingPartyClient,
    a_public_client,
    an_oidc_client,
    claims_of,
    oauth_error,
    success_body,
)
from tests.support.service import RunningService

INVALID: Final = (400, "invalid_request")


async def exchange(relying: RelyingPartyClient, token: str, kind: str, **more: str) -> httpx2.Response:
    named = {"client_id": relying.client.client_id} if relying.client.public else {}
    fields = {"grant_type": GrantName.TOKEN_EXCHANGE.value, "subject_token": token, "subject_token_type": kind}
    return await relying.service.client.post(TOKEN, data={**fields, **named, **more}, headers=relying.headers)


async def test_mt_11_an_access_token_gives_a_user_jwt_and_a_user_jwt_gives_an_id_token(
    service: RunningService, anna: User
) -> None:
    relying = await an_oidc_client(service, "exchanger", may_exchange=True)
    tokens = await relying.tokens(await relying.issue_code(anna))
    body = success_body(await exchange(relying, tokens["access_token"], ACCESS_TOKEN))
    given = claims_of(body.pop("access_token"))
    assert body == {"token_type": "N_A", "expires_in": 3_600, "issued_token_type": JWT}
    assert (given["typ"], given["uid"], given["azp"]) == ("exchanged_token", anna.user_id, "exchanger")
    jwt = await service.services.accounts.user_tokens.issue(anna, auth="login", factor="x")
    body = success_body(await exchange(relying, jwt, JWT, requested_token_type=ID_TOKEN))
    assert (body["issued_token_type"], claims_of(body["access_token"])["sub"]) == (ID_TOKEN, anna.user_id)
    metadata = (await service.client.get("/.well-known/openid-configuration")).json()
    assert set(GrantName) == set(metadata["grant_types_supported"])


async def test_mt_12_nothing_else_is_exchanged(service: RunningService, anna: User) -> None:
    relying = await an_oidc_client(service, "exchanger", may_exchange=True)
    other = await an_oidc_client(service, "other", may_exchange=True)
    plain = await an_oidc_client(service, "plain")
    public = await a_public_client(service, may_exchange=True)
    tokens = await relying.tokens(await relying.issue_code(anna))
    token = tokens["access_token"]
    for client in (plain, public):
        assert oauth_error(await exchange(client, token, ACCESS_TOKEN)) == (400, "unauthorized_client")
    assert oauth_error(await exchange(other, token, ACCESS_TOKEN)) == INVALID  # issued to another client
    for presented, kind, more in (
        ("", ACCESS_TOKEN, {}),
        ("x", ACCESS_TOKEN, {}),
        (tokens["id_token"], JWT, {}),
        (tokens["refresh_token"], JWT, {}),
        (token, JWT, {}),
        (token, "", {}),
        (tokens["id_token"], ID_TOKEN, {}),
        (token, ACCESS_TOKEN, {"requested_token_type": ID_TOKEN}),
        (token, ACCESS_TOKEN, {"actor_token": "x", "actor_token_type": ACCESS_TOKEN}),
        (token, ACCESS_TOKEN, {"actor_token_type": ACCESS_TOKEN}),
    ):
        assert oauth_error(await exchange(relying, presented, kind, **more)) == INVALID, (kind, more)
    for more, code in (
        ({"resource": "https://x/"}, "invalid_target"),
        ({"audience": "x"}, "invalid_target"),
        ({"scope": "openid"}, "invalid_scope"),
    ):
        assert oauth_error(await exchange(relying, token, ACCESS_TOKEN, **more)) == (400, code)
