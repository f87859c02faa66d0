"""The token endpoint and codes (interface §4.2, R3)."""

import asyncio
import json
from typing import Any

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.keys.model import Algorithm
from gatehouse.oauth.model import SCOPES, TokenSettings
from tests.support.oauth import (
    REDIRECT,
    TOKEN,
    RelyingPartyClient,
    a_native_client,
    an_oidc_client,
    basic_auth,
    challenge_of,
    claims_of,
    header_of,
    native_proof,
    oauth_error,
    success_body,
)
from tests.support.service import RunningService

GRANTED = {"access_token", "id_token", "token_type", "expires_in", "refresh_token"}
VERIFIER = "a" * 43
SCOPE_SETS = [
    ("openid", *(scope for place, scope in enumerate(SCOPES[1:]) if number >> place & 1)) for number in range(16)
]


async def post(service: RunningService, body: Any = None, headers: dict[str, str] | None = None, **more: Any) -> Any:
    return await service.client.post(TOKEN, data=body, headers=headers, **more)


async def count_records(service: RunningService, event: str) -> int:
    return [record.event for record in await service.services.storage.audit.unsealed_records(1_000)].count(event)


async def test_tk_01_a_code_from_the_pages_gives_the_documented_fields(web: RelyingPartyClient, anna: User) -> None:
    response = await web.redeem(await web.sign_in(anna.login or ""))
    tokens = success_body(response)
    assert tokens.keys() == GRANTED
    assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 3_600)
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["content-type"] == "application/json"


async def test_tk_01_json_and_form_are_the_same(service: RunningService, web: RelyingPartyClient, anna: User) -> None:
    fields = {"grant_type": "authorization_code", "code": await web.issue_code(anna), "redirect_uri": REDIRECT}
    by_json = await service.client.post(TOKEN, json=fields, headers=web.headers)
    assert success_body(by_json).keys() == GRANTED
    again = success_body(by_json)["refresh_token"]
    fields = {"grant_type": "refresh_token", "refresh_token": again, "redirect_uri": REDIRECT}
    assert success_body(await service.client.post(TOKEN, json=fields, headers=web.headers)).keys() == GRANTED


async def test_tk_01_a_refresh_token_comes_only_with_offline_access(web: RelyingPartyClient, anna: User) -> None:
    tokens = await web.tokens(await web.issue_code(anna, scopes=("openid", "email")))
    assert tokens.keys() == GRANTED - {"refresh_token"}


async def test_tk_01_a_client_of_profile_oidc_is_told_its_scopes(oidc_client: RelyingPartyClient, anna: User) -> None:
    tokens = await oidc_client.tokens(await oidc_client.issue_code(anna, scopes=("openid", "email")))
    assert tokens["scope"] == "openid email"


async def test_tk_02_the_id_token_has_exactly_the_claims_of_its_scopes(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    keys = (await service.client.get("/proxy/oauth/keys")).json()["keys"]
    for scopes in SCOPE_SETS:
        tokens = await web.tokens(await web.issue_code(anna, scopes=scopes, nonce="n-0S6"))
        header, claims = header_of(tokens["id_token"]), claims_of(tokens["id_token"])
        assert header == {"alg": "RS256", "kid": claims["kid"], "typ": "JWT"}
        assert claims["kid"] in {key["kid"] for key in keys}
        by_scope = {"email": anna.login} if "email" in scopes else {}
        by_scope |= {"nickname": anna.nick} if "profile" in scopes else {}
        now = service.clock.now()
        assert claims.pop("at_hash")
        assert claims == by_scope | {
            "typ": "id_token",
            "iss": service.base_url,
            "aud": [service.base_url, "web"],
            "azp": "web",
            "sub": anna.user_id,
            "iat": now,
            "exp": now + 3_600,
            "auth_time": now,
            "nonce": "n-0S6",
            "kid": header["kid"],
        }


async def test_tk_02_the_id_token_of_profile_oidc_is_for_its_client_alone(
    service: RunningService, anna: User
) -> None:
    client = await an_oidc_client(service, claims_in_id_token=True)
    tokens = await client.tokens(await client.issue_code(anna, scopes=("openid", "email", "profile")))
    header, claims = header_of(tokens["id_token"]), claims_of(tokens["id_token"])
    assert header.keys() == {"alg", "kid", "typ"}
    now = service.clock.now()
    assert claims.pop("at_hash")
    assert claims == {
        "iss": service.base_url,
        "aud": "shelf",
        "sub": anna.user_id,
        "iat": now,
        "exp": now + 3_600,
        "auth_time": now,
        "nonce": "n1",
        "email": anna.login,
        "email_verified": False,
        "name": anna.nick,
        "nickname": anna.nick,
        "preferred_username": "anna",
        "locale": "en",
        "updated_at": anna.reg_time,
        "acr": "urn:gatehouse:1",
        "amr": ["pwd"],
    }


async def test_tk_02_a_client_that_is_told_of_sign_outs_gets_the_name_of_the_session(
    service: RunningService, anna: User
) -> None:
    shop = await an_oidc_client(service, backchannel_logout_uri="https://shop.example/out")
    tokens = await shop.tokens(await shop.issue_code(anna, session_id="s7"))
    assert claims_of(tokens["id_token"])["sid"] == "s7"


@pytest.mark.parametrize("alg", list(Algorithm))
async def test_tk_02_a_client_gets_the_algorithm_it_asked_for(
    service: RunningService, anna: User, alg: Algorithm
) -> None:
    shop = await an_oidc_client(service, token_settings=TokenSettings(id_token_alg=alg))
    tokens = await shop.tokens(await shop.issue_code(anna))
    assert header_of(tokens["id_token"])["alg"] == alg.value
    half = 32 if alg is Algorithm.EDDSA else 16
    assert len(claims_of(tokens["id_token"])["at_hash"]) == -(-half * 8 // 6)


async def test_tk_03_a_wrong_proof_is_401_and_does_not_burn_the_code(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    code = await web.issue_code(anna)
    fields = web.fields(grant_type="authorization_code", code=code)
    wrong = await post(service, fields, {"Authorization": f"Bearer {native_proof(REDIRECT, 'wrong')}"})
    assert oauth_error(wrong) == (401, "invalid_client")
    assert wrong.headers["www-authenticate"].startswith("Bearer ")
    assert success_body(await web.redeem(code))


async def test_tk_03_five_failed_attempts_burn_the_code(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    code = await web.issue_code(anna)
    fields = web.fields(grant_type="authorization_code", code=code)
    for _ in range(5):
        await post(service, fields, {"Authorization": "Bearer " + "0" * 40})
    assert oauth_error(await web.redeem(code)) == (400, "invalid_grant")


async def test_tk_03_a_probe_with_the_wrong_method_does_not_burn_the_code(
    service: RunningService, oidc_client: RelyingPartyClient, anna: User
) -> None:
    code = await oidc_client.issue_code(anna)
    fields = oidc_client.fields(grant_type="authorization_code", code=code)
    probes = [
        await post(service, fields | {"client_id": "shelf"}),
        await post(service, fields, {"Authorization": f"Bearer {native_proof(REDIRECT, oidc_client.secret)}"}),
        await post(service, fields, {"Authorization": basic_auth("shelf", "wrong")}),
    ]
    assert [oauth_error(probe) for probe in probes] == [(401, "invalid_client")] * 3
    assert probes[2].headers["www-authenticate"].startswith("Basic ")
    assert success_body(await post(service, fields | {"client_id": "shelf", "client_secret": oidc_client.secret}))


async def test_tk_04_another_clients_code_is_refused_and_stays_good(
    service: RunningService, web: RelyingPartyClient, oidc_client: RelyingPartyClient, anna: User
) -> None:
    other = await a_native_client(service, "other")
    code = await web.issue_code(anna)
    assert oauth_error(await other.redeem(code)) == (401, "invalid_client")
    assert oauth_error(await oidc_client.redeem(code)) == (400, "invalid_grant")
    assert success_body(await web.redeem(code))
    code = await oidc_client.issue_code(anna)
    another = await an_oidc_client(service, "another")
    assert oauth_error(await another.redeem(code)) == (400, "invalid_grant")
    assert oauth_error(await web.redeem(code)) == (401, "invalid_client")
    assert success_body(await oidc_client.redeem(code))


async def test_tk_05_a_code_ends_on_its_second_without_any_sweep(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    first, second = await web.issue_code(anna), await web.issue_code(anna)
    await service.clock.advance(59)
    assert success_body(await web.redeem(first))
    await service.clock.advance(1)
    assert oauth_error(await web.redeem(second)) == (400, "invalid_grant")


@pytest.mark.parametrize("later", [0, 30, 3_000])
async def test_tk_07_a_code_used_twice_kills_everything_that_came_from_it(
    service: RunningService, web: RelyingPartyClient, anna: User, later: int
) -> None:
    code = await web.issue_code(anna)
    tokens = await web.tokens(code)
    bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
    exchanged = success_body(await service.client.post("/proxy/oauth/exchangeToken", headers=bearer))["token"]
    await service.clock.advance(later)
    assert oauth_error(await web.redeem(code)) == (400, "invalid_grant")
    assert oauth_error(await web.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert oauth_error(await web.userinfo(tokens["access_token"])) == (401, "invalid_token")
    assert oauth_error(await service.client.post("/proxy/oauth/exchangeToken", headers=bearer))[0] == 401
    info = await service.client.post(
        "/api/permissions/user/info", json={}, headers={"Authorization": f"Bearer {exchanged}"}
    )
    assert info.status_code == 401, info.text
    assert await count_records(service, "grant.code_reused") == 1


async def test_tk_07_of_many_at_once_one_gets_tokens_and_then_they_are_dead(
    web: RelyingPartyClient, anna: User
) -> None:
    code = await web.issue_code(anna)
    responses = await asyncio.gather(*(web.redeem(code) for _ in range(8)))
    good = [response for response in responses if response.status_code == 200]
    assert len(good) == 1
    assert oauth_error(await web.userinfo(good[0].json()["access_token"])) == (401, "invalid_token")


async def test_tk_07_anyone_who_cannot_prove_to_be_the_client_revokes_nothing(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    code = await web.issue_code(anna)
    tokens = await web.tokens(code)
    fields = web.fields(grant_type="authorization_code", code=code)
    assert oauth_error(await post(service, fields, {"Authorization": "Bearer " + "0" * 40})) == (
        401,
        "invalid_client",
    )
    assert success_body(await web.userinfo(tokens["access_token"]))


async def test_tk_09_nothing_that_resembles_a_code_is_one(web: RelyingPartyClient, anna: User) -> None:
    code = await web.issue_code(anna)
    for lookalike in (code.swapcase(), code[:-1], code + "A", code + " ", " " + code):
        assert oauth_error(await web.redeem(lookalike)) == (400, "invalid_grant")
    assert oauth_error(await web.redeem(code + "\0"))[0] == 400
    assert success_body(await web.redeem(code))


UNKNOWN_TO_NATIVE = ("password", "client_credentials", "urn:ietf:params:oauth:grant-type:token-exchange")


@pytest.mark.parametrize("grant_type", [None, "", *UNKNOWN_TO_NATIVE, ["refresh_token"], {"a": 1}, 7])
async def test_tk_20_odd_grant_types_are_refused(
    service: RunningService, web: RelyingPartyClient, anna: User, grant_type: object
) -> None:
    body = {"code": await web.issue_code(anna), "redirect_uri": REDIRECT}
    answer = await service.client.post(TOKEN, json=body | {"grant_type": grant_type}, headers=web.headers)
    unknown = grant_type in UNKNOWN_TO_NATIVE
    assert oauth_error(answer) == (400, "unsupported_grant_type" if unknown else "invalid_request")
    answer = await service.client.post(TOKEN, json=body, headers=web.headers)
    assert oauth_error(answer) == (400, "invalid_request")


async def test_tk_21_a_body_is_what_its_content_type_says(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    fields = web.fields(grant_type="authorization_code", code=await web.issue_code(anna))
    form, document = str(httpx2.QueryParams(fields)), json.dumps(fields)
    for kind, body in [
        ("application/json", form),
        ("application/x-www-form-urlencoded", document),
        ("", form),
        ("application/json; charset=utf-16", document),
        ("text/plain", form),
        ("multipart/form-data", form),
    ]:
        headers = {**web.headers, **({"Content-Type": kind} if kind else {})}
        answer = await service.client.post(TOKEN, content=body.encode(), headers=headers)
        assert oauth_error(answer) == (400, "invalid_request"), kind
    files = {name: (None, value) for name, value in fields.items()}
    assert oauth_error(await service.client.post(TOKEN, files=files, headers=web.headers)) == (400, "invalid_request")
    headers = {**web.headers, "Content-Type": "application/json; charset=UTF-8"}
    assert success_body(await service.client.post(TOKEN, content=document.encode(), headers=headers))


@pytest.mark.parametrize("kind", ["application/json;", "application/json ; ; charset=utf-8"])
async def test_a_content_type_may_have_empty_parameters(
    service: RunningService, web: RelyingPartyClient, anna: User, kind: str
) -> None:
    fields = web.fields(grant_type="authorization_code", code=await web.issue_code(anna))  # RFC 9110 §5.6.6
    headers = {**web.headers, "Content-Type": kind}
    assert success_body(await service.client.post(TOKEN, content=json.dumps(fields).encode(), headers=headers))


async def test_tk_22_a_parameter_given_twice_is_refused(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    code = await web.issue_code(anna)
    fields = web.fields(grant_type="authorization_code", code=code)
    form = str(httpx2.QueryParams(fields))
    json_twice = json.dumps(fields)[:-1] + f', "code": "{code}"}}'
    kinds = {"application/x-www-form-urlencoded": f"{form}&code={code}", "application/json": json_twice}
    for kind, body in kinds.items():
        headers = {**web.headers, "Content-Type": kind}
        answer = await service.client.post(TOKEN, content=body.encode(), headers=headers)
        assert oauth_error(answer) == (400, "invalid_request"), kind
    for query in (f"code={code}", "client_id=web", "grant_type=refresh_token"):
        answer = await service.client.post(f"{TOKEN}?{query}", data=fields, headers=web.headers)
        assert oauth_error(answer) == (400, "invalid_request"), query
    assert success_body(await web.redeem(code))


@pytest.mark.parametrize("code", [["c"], {"c": 1}, 7, True, None, "c" * 1_000_000])
async def test_tk_23_a_code_of_the_wrong_type_or_size_is_refused(
    service: RunningService, web: RelyingPartyClient, code: object
) -> None:
    body = {"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT}
    response = await service.client.post(TOKEN, json=body, headers=web.headers)
    assert response.status_code in (400, 413)
    assert response.json()["error"] == "invalid_request"


async def test_tk_24_a_malformed_authorization_header_is_401(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    fields = web.fields(grant_type="authorization_code", code=await web.issue_code(anna))
    good = native_proof(REDIRECT, web.secret)
    malformed: list[list[tuple[bytes, bytes]]] = [
        [],
        [(b"Authorization", b"Bearer")],
        [(b"Authorization", b"Bearer a b")],
        [(b"Authorization", b"Bearer \xff\xfe")],
        [(b"Authorization", good.encode())],
        [(b"Authorization", b"Basic !!!")],
        [(b"Authorization", b"Basic " + b"AAAA")],
        [(b"Authorization", f"Bearer {good}".encode())] * 2,
    ]
    for headers in malformed:
        # Each of them is one attempt, so each has its own code.
        fresh = fields | {"code": await web.issue_code(anna)}
        answer = await service.client.post(TOKEN, data=fresh, headers=headers)
        assert oauth_error(answer) == (401, "invalid_client"), headers
    assert success_body(await post(service, fields, {"Authorization": f"bearer {good}"}))


async def test_tk_25_the_proof_is_hex_in_either_case_and_nothing_else(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    good = native_proof(REDIRECT, web.secret)
    as_base64 = basic_auth("x", "")[6:] + good[:20]
    fields = web.fields(grant_type="authorization_code", code=await web.issue_code(anna))
    for wrong in (as_base64, good[:-1], good + "0", native_proof(web.secret, REDIRECT), web.secret):
        answer = await post(
            service, fields | {"code": await web.issue_code(anna)}, {"Authorization": f"Bearer {wrong}"}
        )
        assert oauth_error(answer) == (401, "invalid_client"), wrong
    assert success_body(await post(service, fields, {"Authorization": f"Bearer {good.upper()}"}))


async def test_tk_26_only_the_right_verifier_goes_with_a_challenge(web: RelyingPartyClient, anna: User) -> None:
    challenge = challenge_of(VERIFIER)
    for verifier in ("", "b" * 43, VERIFIER[:42], VERIFIER + "!", "a" * 129, challenge):
        code = await web.issue_code(anna, code_challenge=challenge)
        assert oauth_error(await web.redeem(code, code_verifier=verifier)) == (400, "invalid_grant"), verifier
        assert success_body(await web.redeem(code, code_verifier=VERIFIER))
    for odd in ("a" * 42, "a" * 129):
        code = await web.issue_code(anna, code_challenge=challenge_of(odd))
        assert oauth_error(await web.redeem(code, code_verifier=odd)) == (400, "invalid_grant")
    code = await web.issue_code(anna)
    assert oauth_error(await web.redeem(code, code_verifier=VERIFIER)) == (400, "invalid_grant")


async def test_tk_26_a_public_client_has_no_other_proof(app: RelyingPartyClient, anna: User) -> None:
    assert oauth_error(await app.redeem(await app.issue_code(anna))) == (400, "invalid_grant")
    code = await app.issue_code(anna, code_challenge=challenge_of(VERIFIER))
    assert success_body(await app.redeem(code, code_verifier=VERIFIER))


async def test_tk_29_guessing_proofs_is_limited_by_source_and_the_client_is_not_locked_out(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    code = await web.issue_code(anna)
    fields = web.fields(grant_type="authorization_code", code=code)
    responses = [await post(service, fields, {"Authorization": "Bearer " + "0" * 40}) for _ in range(110)]
    assert {response.status_code for response in responses} == {401, 429}
    assert responses[-1].status_code == 429
    assert int(responses[-1].headers["retry-after"]) > 0
    assert success_body(await web.redeem(await web.issue_code(anna)))


async def test_tk_30_no_description_repeats_input_or_leaves_the_alphabet(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    nasty = 'x"\\<é\x7f'
    asks = [
        {"grant_type": nasty},
        {"grant_type": "authorization_code", "code": nasty, "redirect_uri": nasty},
        {"grant_type": "refresh_token", "refresh_token": nasty, "redirect_uri": nasty},
        {"grant_type": "authorization_code", "code": await web.issue_code(anna), "redirect_uri": nasty},
        {"grant_type": "authorization_code", "code": "c", "redirect_uri": REDIRECT, "client_id": nasty},
        {nasty: nasty},
    ]
    for ask in asks:
        for headers in ({}, web.headers):
            body = (await post(service, ask, headers)).json()
            words = body["error"] + body["error_description"]
            assert all(" " <= message <= "~" and message not in '"\\' for message in words)
            assert "x" + nasty[3] not in words
            assert nasty not in words


async def test_a_code_needs_its_own_redirect_uri(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    code = await web.issue_code(anna)
    elsewhere = "https://shop.example/other"
    fields = web.fields(grant_type="authorization_code", code=code, redirect_uri=elsewhere)
    answer = await post(service, fields, {"Authorization": f"Bearer {native_proof(elsewhere, web.secret)}"})
    assert oauth_error(answer) == (400, "invalid_grant")
    answer = await post(service, {**fields, "redirect_uri": ""}, web.headers)
    assert oauth_error(answer) == (400, "invalid_request")
    assert success_body(await web.redeem(code))
