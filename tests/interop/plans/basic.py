"""The modules of the suite's plan oidcc-basic-certification-test-plan, in groups."""

import json
from typing import Final

import pytest
from joserfc.errors import BadSignatureError

from gatehouse.oauth.user_claims import EMAIL_CLAIMS, PROFILE_CLAIMS
from tests.interop.certifier import LOGIN, Certifier, SignedIn
from tests.interop.plans import BASIC, module
from tests.support.oauth import AUTHORIZE, REDIRECT, TOKEN, base64url, challenge_of, oauth_error, success_body

VERIFIER: Final = "v" * 50


# ---- tokens and userinfo


@module(BASIC, "oidcc-server")
async def server(op: Certifier) -> None:
    signed_in = await op.sign_in()
    assert {"iss", "sub", "aud", "exp", "iat", "auth_time"} <= signed_in.claims.keys()
    assert signed_in.tokens["expires_in"] > 0


@module(BASIC, "oidcc-server-client-secret-post")
async def server_client_secret_post(op: Certifier) -> None:
    code = (await op.authorize())["code"]
    fields = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": REDIRECT,
        "client_id": op.client.client.client_id,
        "client_secret": op.client.secret,
    }
    await op.verify_id_token(success_body(await op.service.client.post(TOKEN, data=fields))["id_token"])


@module(BASIC, "oidcc-response-type-missing")
async def response_type_missing(op: Certifier) -> None:
    answer = await op.authorize(response_type="")
    assert answer["error"] in {"unsupported_response_type", "invalid_request"}


@module(BASIC, "oidcc-idtoken-signature")
async def idtoken_signature(op: Certifier) -> None:
    signed_in = await op.sign_in()
    head, _, signature = signed_in.id_token.rpartition(".")
    changed = f"{head}.{'B' if signature[0] == 'A' else 'A'}{signature[1:]}"
    with pytest.raises(BadSignatureError):
        await op.verify_id_token(changed)


@module(BASIC, "oidcc-idtoken-unsigned")
async def idtoken_unsigned(op: Certifier) -> None:
    """Skipped by the suite where `none` is not supported, as here."""
    assert "none" not in (await op.configuration())["id_token_signing_alg_values_supported"]


@module(BASIC, "oidcc-userinfo-get")
async def userinfo_get(op: Certifier) -> None:
    signed_in = await op.sign_in()
    assert (await op.userinfo(signed_in.access_token))["sub"] == signed_in.claims["sub"]


@module(BASIC, "oidcc-userinfo-post-header")
async def userinfo_post_header(op: Certifier) -> None:
    signed_in = await op.sign_in()
    headers = {"Authorization": f"Bearer {signed_in.access_token}"}
    answer = await op.service.client.post("/proxy/oauth/userinfo", headers=headers)
    assert success_body(answer)["sub"] == signed_in.claims["sub"]


@module(BASIC, "oidcc-userinfo-post-body")
async def userinfo_post_body(op: Certifier) -> None:
    signed_in = await op.sign_in()
    answer = await op.service.client.post("/proxy/oauth/userinfo", data={"access_token": signed_in.access_token})
    assert success_body(answer)["sub"] == signed_in.claims["sub"]


@module(BASIC, "oidcc-refresh-token")
async def refresh_token(op: Certifier) -> None:
    first = await op.sign_in(scope="openid offline_access", prompt="consent")
    token = first.tokens["refresh_token"]
    assert oauth_error(await op.other.refresh(token)) == (400, "invalid_grant"), (
        "a refresh token is bound to its client"
    )
    renewed = success_body(await op.client.refresh(token, redirect_uri=""))
    claims = await op.verify_id_token(renewed["id_token"], access_token=renewed["access_token"])
    for claim in ("iss", "sub", "aud", "auth_time", "acr", "amr"):
        assert claims[claim] == first.claims[claim]
    assert (await op.userinfo(renewed["access_token"]))["sub"] == claims["sub"]


# ---- scopes and claims


@module(BASIC, "oidcc-scope-profile")
async def scope_profile(op: Certifier) -> None:
    """The suite warns of claims of a scope in an id_token that is issued with an access token (Core §5.4)."""
    signed_in = await op.sign_in(scope="openid profile")
    userinfo = await op.userinfo(signed_in.access_token)
    assert userinfo["nickname"] == "Anna"
    assert "email" not in userinfo
    assert not signed_in.claims.keys() & set(PROFILE_CLAIMS)


@module(BASIC, "oidcc-scope-email")
async def scope_email(op: Certifier) -> None:
    signed_in = await op.sign_in(scope="openid email")
    userinfo = await op.userinfo(signed_in.access_token)
    assert userinfo["email"] == LOGIN
    assert "nickname" not in userinfo
    assert not signed_in.claims.keys() & set(EMAIL_CLAIMS)


@module(BASIC, "oidcc-scope-address")
async def scope_address(op: Certifier) -> None:
    """Not supported, so that it is left out of the granted scopes."""
    await scope_not_offered(op, "address")


@module(BASIC, "oidcc-scope-phone")
async def scope_phone(op: Certifier) -> None:
    signed_in = await op.sign_in(scope="openid phone")
    userinfo = await op.userinfo(signed_in.access_token)
    assert userinfo["sub"] == signed_in.claims["sub"]
    assert "phone" in (await op.configuration())["scopes_supported"]


async def scope_not_offered(op: Certifier, scope: str) -> None:
    assert scope not in (await op.configuration())["scopes_supported"]
    signed_in = await op.sign_in(scope=f"openid {scope}")
    assert (await op.userinfo(signed_in.access_token))["sub"] == signed_in.claims["sub"]


@module(BASIC, "oidcc-scope-all")
async def scope_all(op: Certifier) -> None:
    signed_in = await op.sign_in(scope="openid profile email address phone")
    assert {"sub", "email", "nickname"} <= (await op.userinfo(signed_in.access_token)).keys()
    assert not signed_in.claims.keys() & {*EMAIL_CLAIMS, *PROFILE_CLAIMS}


@module(BASIC, "oidcc-ensure-other-scope-order-succeeds")
async def other_scope_order(op: Certifier) -> None:
    assert (await op.userinfo((await op.sign_in(scope="email openid")).access_token))["email"] == LOGIN


@module(BASIC, "oidcc-claims-essential")
async def claims_essential(op: Certifier) -> None:
    await op.sign_in(claims=json.dumps({"userinfo": {"name": {"essential": True}}}))


# ---- parameters of the authorization request


@module(BASIC, "oidcc-ensure-request-without-nonce-succeeds-for-code-flow")
async def without_nonce(op: Certifier) -> None:
    assert "nonce" not in (await op.sign_in(nonce="")).claims


@module(BASIC, "oidcc-display-page")
async def display_page(op: Certifier) -> None:
    await op.sign_in(display="page")
    assert op.logins == [LOGIN]


@module(BASIC, "oidcc-display-popup")
async def display_popup(op: Certifier) -> None:
    await op.sign_in(display="popup")


@module(BASIC, "oidcc-prompt-login")
async def prompt_login(op: Certifier) -> None:
    first = await op.sign_in()
    await op.service.clock.advance(5)
    second = await op.sign_in(prompt="login")
    assert op.logins == [LOGIN, LOGIN]
    assert second.claims["auth_time"] > first.claims["auth_time"]
    assert second.claims["sub"] == first.claims["sub"]


@module(BASIC, "oidcc-prompt-none-not-logged-in")
async def prompt_none_not_logged_in(op: Certifier) -> None:
    answer = await op.authorize(prompt="none")
    assert answer["error"] in {"login_required", "interaction_required"}
    assert op.logins == []


@module(BASIC, "oidcc-prompt-none-logged-in")
async def prompt_none_logged_in(op: Certifier) -> None:
    first = await op.sign_in()
    await op.service.clock.advance(5)
    second = await op.sign_in(prompt="none")
    assert op.logins == [LOGIN]
    assert same_sign_in(first, second)


@module(BASIC, "oidcc-max-age-1")
async def max_age_1(op: Certifier) -> None:
    first = await op.sign_in()
    await op.service.clock.advance(2)
    second = await op.sign_in(max_age="1")
    assert op.logins == [LOGIN, LOGIN]
    assert second.claims["auth_time"] > first.claims["auth_time"]


@module(BASIC, "oidcc-max-age-10000")
async def max_age_10000(op: Certifier) -> None:
    first = await op.sign_in(max_age="15000")
    await op.service.clock.advance(5)
    second = await op.sign_in(max_age="10000")
    assert op.logins == [LOGIN]
    assert same_sign_in(first, second)


@module(BASIC, "oidcc-id-token-hint")
async def id_token_hint(op: Certifier) -> None:
    first = await op.sign_in()
    second = await op.sign_in(prompt="none", id_token_hint=first.id_token)
    assert same_sign_in(first, second)


def same_sign_in(first: SignedIn, second: SignedIn) -> bool:
    return all(first.claims[claim] == second.claims[claim] for claim in ("sub", "auth_time"))


@module(BASIC, "oidcc-login-hint")
async def login_hint(op: Certifier) -> None:
    page = await op.begin(login_hint="buffy@localhost")
    assert 'value="buffy@localhost"' in page.text
    await op.sign_in(login_hint="buffy@localhost")


@module(BASIC, "oidcc-ui-locales")
async def ui_locales(op: Certifier) -> None:
    page = await op.begin(ui_locales="se de")
    assert '<html lang="de"' in page.text
    await op.sign_in(ui_locales="se")


@module(BASIC, "oidcc-claims-locales")
async def claims_locales(op: Certifier) -> None:
    await op.sign_in(claims_locales="se")


@module(BASIC, "oidcc-ensure-request-with-acr-values-succeeds")
async def acr_values(op: Certifier) -> None:
    await op.sign_in(acr_values="1 2")


@module(BASIC, "oidcc-ensure-request-with-unknown-parameter-succeeds")
async def unknown_parameter(op: Certifier) -> None:
    await op.sign_in(extra="foobar")


@module(BASIC, "oidcc-ensure-request-with-valid-pkce-succeeds")
async def valid_pkce(op: Certifier) -> None:
    await op.sign_in(code_challenge=challenge_of(VERIFIER), code_challenge_method="S256", code_verifier=VERIFIER)


@module(BASIC, "oidcc-ensure-post-request-succeeds")
async def post_request(op: Certifier) -> None:
    fields = op.client.authorize_fields(scope="openid", response_mode="")
    headers = {"Origin": "https://shop.example"}
    answer = await op.walk_to_client(await op.person.client.post(AUTHORIZE, data=fields, headers=headers))
    await op.verify_id_token((await op.client.tokens(answer["code"]))["id_token"])


@module(BASIC, "oidcc-ensure-registered-redirect-uri")
async def registered_redirect_uri(op: Certifier) -> None:
    page = await op.begin(redirect_uri=f"{REDIRECT}-not")
    assert page.status_code == 400
    assert "location" not in page.headers


# ---- codes


@module(BASIC, "oidcc-codereuse")
async def code_reuse(op: Certifier) -> None:
    code = (await op.authorize())["code"]
    await op.client.tokens(code)
    assert oauth_error(await op.client.redeem(code)) == (400, "invalid_grant")


@module(BASIC, "oidcc-codereuse-30seconds")
async def code_reuse_30_seconds(op: Certifier) -> None:
    code = (await op.authorize())["code"]
    tokens = await op.client.tokens(code)
    await op.service.clock.advance(30)
    assert oauth_error(await op.client.redeem(code)) == (400, "invalid_grant")
    assert (await op.client.userinfo(tokens["access_token"])).status_code == 401, "its tokens must be revoked"


# ---- request objects, refused by name (R3)


def unsigned_request(**claims: str) -> str:
    return ".".join((base64url(b'{"alg":"none"}'), base64url(json.dumps(claims).encode()), ""))


@module(BASIC, "oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported")
async def unsigned_request_object(op: Certifier) -> None:
    answer = await op.authorize(request=unsigned_request(scope="openid", nonce="inside"))
    assert answer["error"] == "request_not_supported"


@module(BASIC, "oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported")
async def request_uri_unsigned(op: Certifier) -> None:
    answer = await op.authorize(request_uri="https://shop.example/request.jwt")
    assert answer["error"] == "request_uri_not_supported"


@module(BASIC, "oidcc-ensure-request-object-with-redirect-uri")
async def request_object_with_redirect_uri(op: Certifier) -> None:
    """Skipped by the suite without request objects; here, a URL inside one is not used."""
    assert (await op.configuration())["request_parameter_supported"] is False
    answer = await op.authorize(request=unsigned_request(redirect_uri="https://elsewhere.example/"))
    assert answer["error"] == "request_not_supported"
