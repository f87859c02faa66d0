"""Client authentication at the token endpoint (interface §5.1, R3)."""

import dataclasses
import json
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from secrets import token_hex
from typing import Any
from urllib.parse import quote_plus

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OKPKey, RSAKey
from msgspec.structs import replace
from sqlalchemy import select

from gatehouse.accounts.model import User
from gatehouse.oauth.model import ClientSecret, SecretKind
from gatehouse.storage.oauth.clients import replace_client
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.audit import audit_refusals
from tests.support.builders import ORIGIN
from tests.support.oauth import (
    TOKEN,
    RelyingPartyClient,
    an_oidc_client,
    base64url,
    basic_auth,
    challenge_of,
    native_proof,
    oauth_error,
    success_body,
)
from tests.support.service import RunningService

UNPROVED = (401, "invalid_client")
VERIFIER = "v" * 64
BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
KEYS: dict[str, Callable[[], Any]] = {
    "RS256": lambda: RSAKey.generate_key(2048, {"kid": "k1", "use": "sig"}),
    "ES256": lambda: ECKey.generate_key("P-256", {"kid": "k1", "use": "sig"}),
    "EdDSA": lambda: OKPKey.generate_key("Ed25519", {"kid": "k1", "use": "sig"}),
}


async def redeem(relying: RelyingPartyClient, code: str, headers: dict[str, str], **more: str) -> httpx2.Response:
    fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": relying.redirect_uri, **more}
    return await relying.service.client.post(TOKEN, data=fields, headers=headers)


async def test_basic_and_post_are_the_same_and_an_equal_client_id_may_stand_beside(
    oidc_client: RelyingPartyClient, anna: User
) -> None:
    secret = {"client_id": "shelf", "client_secret": oidc_client.secret}
    ways: list[tuple[dict[str, str], dict[str, str]]] = [
        ({"Authorization": basic_auth("shelf", oidc_client.secret)}, {}),
        ({"Authorization": basic_auth("shelf", oidc_client.secret)}, {"client_id": "shelf"}),
        ({"Authorization": basic_auth("shelf", oidc_client.secret)}, secret),
        ({"Authorization": basic_auth("shelf", oidc_client.secret).replace("Basic", "basic")}, {}),
        ({}, secret),
    ]
    for headers, fields in ways:
        assert success_body(await redeem(oidc_client, await oidc_client.issue_code(anna), headers, **fields))


async def test_two_different_ways_at_once_are_invalid_request(oidc_client: RelyingPartyClient, anna: User) -> None:
    header = {"Authorization": basic_auth("shelf", oidc_client.secret)}
    for headers, fields in (
        (header, {"client_id": "other"}),
        (header, {"client_secret": "another"}),
        (header, {"client_assertion": "a.b.c", "client_assertion_type": BEARER}),
        (
            {"Authorization": f"Bearer {native_proof(oidc_client.redirect_uri, 'x')}"},
            {"client_secret": oidc_client.secret},
        ),
    ):
        answer = await redeem(oidc_client, await oidc_client.issue_code(anna), headers, **fields)
        assert oauth_error(answer) == (400, "invalid_request"), fields


async def test_a_native_client_has_no_way_but_its_proof(web: RelyingPartyClient, anna: User) -> None:
    for headers, fields in (
        ({"Authorization": basic_auth("web", web.secret)}, {}),
        ({}, {"client_id": "web", "client_secret": web.secret}),
        ({}, {"client_id": "web"}),
    ):
        assert oauth_error(await redeem(web, await web.issue_code(anna), headers, **fields)) == UNPROVED
    assert success_body(await redeem(web, await web.issue_code(anna), web.headers, client_id="web"))


async def test_the_sha_1_proof_is_refused_from_a_client_of_profile_oidc(
    oidc_client: RelyingPartyClient, anna: User
) -> None:
    headers = {"Authorization": f"Bearer {native_proof(oidc_client.redirect_uri, oidc_client.secret)}"}
    assert oauth_error(await redeem(oidc_client, await oidc_client.issue_code(anna), headers)) == UNPROVED
    assert (
        oauth_error(await redeem(oidc_client, await oidc_client.issue_code(anna), headers, client_id="shelf"))
        == UNPROVED
    )


async def test_a_public_client_names_itself_in_the_body_or_by_basic_with_no_password(
    app: RelyingPartyClient, anna: User
) -> None:
    for headers, fields in (({}, {"client_id": "app"}), ({"Authorization": basic_auth("app", "")}, {})):
        code = await app.issue_code(anna, code_challenge=challenge_of(VERIFIER))
        assert success_body(await redeem(app, code, headers, code_verifier=VERIFIER, **fields))
    code = await app.issue_code(anna, code_challenge=challenge_of(VERIFIER))
    headers = {"Authorization": basic_auth("app", "something")}
    assert oauth_error(await redeem(app, code, headers, code_verifier=VERIFIER)) == UNPROVED
    headers = {"Authorization": f"Bearer {native_proof(app.redirect_uri, '')}"}
    assert oauth_error(await redeem(app, code, headers, code_verifier=VERIFIER, client_id="app")) == UNPROVED


async def test_missing_client_id_or_secret_is_refused(oidc_client: RelyingPartyClient, anna: User) -> None:
    for headers, fields in (
        ({}, {}),
        ({}, {"client_id": "shelf"}),
        ({}, {"client_id": "no_one"}),
        ({"Authorization": basic_auth("shelf", "")}, {}),
        ({"Authorization": basic_auth("", oidc_client.secret)}, {}),
        ({"Authorization": "Basic " + b64encode(b"shelf").decode()}, {}),
        ({"Authorization": "Digest x"}, {}),
    ):
        assert (
            oauth_error(await redeem(oidc_client, await oidc_client.issue_code(anna), headers, **fields)) == UNPROVED
        )


async def put_secret(service: RunningService, relying: RelyingPartyClient, kind: SecretKind, secret: bytes) -> None:
    secrets = (ClientSecret(kind=kind, secret=secret, created_at=service.clock.now()),)
    changed = replace(await service.services.storage.clients.client(relying.client.client_id), secrets=secrets)
    await service.services.storage.runner.write(partial(replace_client, changed))


async def test_an_imported_secret_is_read_as_it_is_and_encoded(
    service: RunningService, oidc_client: RelyingPartyClient, anna: User
) -> None:
    secret = "p%40ss+w rd/ä" * 4
    hashed = await service.services.accounts.passwords.hash(secret)
    await put_secret(service, oidc_client, SecretKind.ARGON2, hashed.encode())
    for sent in (secret, quote_plus(secret)):
        assert success_body(
            await redeem(
                oidc_client, await oidc_client.issue_code(anna), {"Authorization": basic_auth("shelf", sent)}
            )
        )
    fields = {"client_id": "shelf", "client_secret": secret}
    assert success_body(await redeem(oidc_client, await oidc_client.issue_code(anna), {}, **fields))


async def test_guesses_at_a_weak_secret_end_and_a_right_one_is_remembered(
    service: RunningService, oidc_client: RelyingPartyClient, anna: User
) -> None:
    await put_secret(
        service, oidc_client, SecretKind.ARGON2, (await service.services.accounts.passwords.hash("weak")).encode()
    )
    assert success_body(
        await redeem(oidc_client, await oidc_client.issue_code(anna), {"Authorization": basic_auth("shelf", "weak")})
    )
    responses = [
        await redeem(oidc_client, "code", {"Authorization": basic_auth("shelf", f"guess {number}")})
        for number in range(25)
    ]
    assert [response.status_code for response in responses] == [401] * 20 + [429] * 5
    assert success_body(
        await redeem(oidc_client, await oidc_client.issue_code(anna), {"Authorization": basic_auth("shelf", "weak")})
    )


async def test_either_of_two_live_secrets_is_taken_until_the_old_one_ends(
    service: RunningService, web: RelyingPartyClient, oidc_client: RelyingPartyClient, anna: User
) -> None:
    for relying in (web, oidc_client):
        new = await service.services.oauth.clients.commands.rotate_secret(relying.client.client_id, ORIGIN)
        assert success_body(await relying.redeem(await relying.issue_code(anna)))
        assert success_body(await dataclasses.replace(relying, secret=new).redeem(await relying.issue_code(anna)))
    await service.clock.advance(7 * 86_400)
    for relying in (web, oidc_client):
        assert oauth_error(await relying.redeem(await relying.issue_code(anna))) == UNPROVED


async def client_with_key(service: RunningService, key: Any, alg: str) -> RelyingPartyClient:
    """A client of profile oidc that registered this key."""
    jwks = {"keys": [{**key.as_dict(private=False), "alg": alg}]}
    return await an_oidc_client(service, "keyed", jwks=jwks)


def signed_assertion(
    service: RunningService, key: Any, alg: str, header: dict[str, object] | None = None, **changes: object
) -> str:
    now = service.clock.now()
    claims = {
        "iss": "keyed",
        "sub": "keyed",
        "aud": f"{service.base_url}{TOKEN}",
        "jti": token_hex(8),
        "iat": now,
        "exp": now + 60,
        **changes,
    }
    claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode({"alg": alg, **(header or {})}, claims, key, algorithms=[alg])


async def with_assertion(relying: RelyingPartyClient, user: User, assertion: str, **more: str) -> httpx2.Response:
    fields = {"client_assertion": assertion, "client_assertion_type": BEARER, **more}
    return await redeem(relying, await relying.issue_code(user), {}, **fields)


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
@pytest.mark.parametrize("alg", list(KEYS))
async def test_private_key_jwt_of_each_algorithm_for_issuer_or_token_endpoint(
    service: RunningService, anna: User, alg: str
) -> None:
    key = KEYS[alg]()
    shop = await client_with_key(service, key, alg)
    for audience in (service.base_url, f"{service.base_url}{TOKEN}", [service.base_url, "https://other.example"]):
        assert success_body(await with_assertion(shop, anna, signed_assertion(service, key, alg, aud=audience)))
    named = signed_assertion(service, key, alg, {"kid": "k1", "typ": "JWT"})
    assert success_body(await with_assertion(shop, anna, named, client_id="keyed"))


async def test_private_key_jwt_is_good_once(service: RunningService, anna: User) -> None:
    key = KEYS["ES256"]()
    shop = await client_with_key(service, key, "ES256")
    assertion = signed_assertion(service, key, "ES256")
    assert success_body(await with_assertion(shop, anna, assertion))
    assert oauth_error(await with_assertion(shop, anna, assertion)) == UNPROVED


async def test_private_key_jwt_refuses_whatever_is_not_this_clients_word_for_us_now(
    service: RunningService, anna: User
) -> None:
    key, other = KEYS["ES256"](), KEYS["ES256"]()
    shop = await client_with_key(service, key, "ES256")
    now = service.clock.now()
    wrong = [
        signed_assertion(service, other, "ES256"),
        signed_assertion(service, key, "ES256", {"kid": "k2"}),
        signed_assertion(service, key, "ES256", {"jku": "https://keyed.example/jwks"}),
        signed_assertion(service, key, "ES256", iss="someone"),
        signed_assertion(service, key, "ES256", aud="https://other.example"),
        signed_assertion(service, key, "ES256", aud=f"{service.base_url}/"),
        signed_assertion(service, key, "ES256", aud=None),
        signed_assertion(service, key, "ES256", exp=now),
        signed_assertion(service, key, "ES256", exp=now + 86_400),
        signed_assertion(service, key, "ES256", exp=None),
        signed_assertion(service, key, "ES256", iat=now + 120),
        signed_assertion(service, key, "ES256", nbf=now + 120),
        signed_assertion(service, key, "ES256", jti=None),
        signed_assertion(service, key, "ES256", jti=""),
        signed_assertion(service, key, "ES256") + "A",
        "e30.e30.",
        "x",
    ]
    for assertion in wrong:
        assert oauth_error(await with_assertion(shop, anna, assertion, client_id="keyed")) == UNPROVED, assertion
    right = signed_assertion(service, key, "ES256")
    assert oauth_error(await with_assertion(shop, anna, right, client_assertion_type="saml")) == UNPROVED
    assert oauth_error(await with_assertion(shop, anna, right, client_id="web")) == (400, "invalid_request")
    assert success_body(await with_assertion(shop, anna, right))


async def test_an_assertion_about_another_client_proves_only_that_one(
    service: RunningService, oidc_client: RelyingPartyClient, anna: User
) -> None:
    key = KEYS["ES256"]()
    await client_with_key(service, key, "ES256")
    fields = {"client_assertion": signed_assertion(service, key, "ES256"), "client_assertion_type": BEARER}
    assert oauth_error(await redeem(oidc_client, await oidc_client.issue_code(anna), {}, **fields)) == (
        400,
        "invalid_grant",
    )


ENDPOINTS = [
    TOKEN,
    *(f"/proxy/oauth/{name}" for name in ("introspect", "revoke", "token/revoke", "device_authorization")),
]


@pytest.mark.parametrize("path", ENDPOINTS)
async def test_a_name_that_no_client_can_have_is_refused_and_not_looked_up(
    service: RunningService, path: str
) -> None:
    for name in ("\0", "a\0b", "%00", "a%00b", "\u202e", "💥", "a" * 65, "a b"):
        fields = {"grant_type": "refresh_token", "refresh_token": "x"} if path == TOKEN else {"token": "x"}
        answer = await service.client.post(path, data=fields, headers={"Authorization": basic_auth(name, "x")})
        assert oauth_error(answer) == UNPROVED, name


async def test_an_assertion_of_odd_parts_is_refused(oidc_client: RelyingPartyClient, anna: User) -> None:
    def assertion(header: object, payload: object) -> str:
        return ".".join(base64url(json.dumps(part).encode()) for part in (header, payload)) + ".eA"

    types: list[object] = [[], {}, None, 1, True, "at+jwt"]
    for typ in types:
        odd = assertion({"alg": "RS256", "typ": typ}, {"sub": "shelf"})
        assert oauth_error(await with_assertion(oidc_client, anna, odd)) == UNPROVED, typ
    names: list[object] = ["a\0b", "\0", [], {}, 1, "a" * 65]
    for name in names:
        odd = assertion({"alg": "RS256"}, {"sub": name})
        assert oauth_error(await with_assertion(oidc_client, anna, odd)) == UNPROVED, name


async def refusals_kept(service: RunningService) -> list[Any]:
    statement = Statement(lambda: select(audit_refusals).order_by(audit_refusals.c.position))

    def verb() -> Verb[list[Any]]:
        return list((yield statement()))

    return await service.services.storage.runner.snapshot_read(verb)


async def test_wrong_proofs_are_among_the_refusals_until_their_source_is_kept_out(
    service: RunningService, web: RelyingPartyClient, oidc_client: RelyingPartyClient, anna: User
) -> None:
    await redeem(oidc_client, "code", {"Authorization": basic_auth("shelf", "wrong")})
    await redeem(
        web, await web.issue_code(anna), {"Authorization": f"Bearer {native_proof(web.redirect_uri, 'wrong')}"}
    )
    refusals = await refusals_kept(service)
    assert [(record.event, record.subject, record.reason) for record in refusals] == [
        ("client.refused", "shelf", "wrong credentials"),
        ("client.refused", "web", "wrong credentials"),
    ]
    assert all(refusal.request_id and refusal.personal["address"] == "127.0.0.1" for refusal in refusals)
    stored = await service.services.storage.audit.find_record(refusals[0].record_id)
    assert stored is not None
    responses = [
        await redeem(oidc_client, "code", {"Authorization": basic_auth("shelf", "wrong")}) for _ in range(105)
    ]
    assert responses[-1].status_code == 429
    assert len(await refusals_kept(service)) == 2 + [response.status_code for response in responses].count(401)


async def test_right_proofs_and_names_of_no_one_leave_no_refusal(
    service: RunningService, oidc_client: RelyingPartyClient, anna: User
) -> None:
    await oidc_client.tokens(await oidc_client.issue_code(anna))
    assert oauth_error(await redeem(oidc_client, "code", {"Authorization": basic_auth("no_one", "x")})) == UNPROVED
    assert await refusals_kept(service) == []
