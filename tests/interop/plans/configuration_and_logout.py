"""The modules of the suite's plans for configuration, RP-initiated logout and back-channel logout."""

from typing import Final
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import RSAKey

from gatehouse.audit.model import AuditOrigin
from gatehouse.keys.model import Algorithm, KeyLine, KeyPurpose
from gatehouse.keys.rotation import RotationMode
from tests.interop.certifier import BACK, Certifier
from tests.interop.plans import BACK_CHANNEL, CONFIG, LOGOUT, module
from tests.support.oauth import base64url, header_of, success_body

LOGGED_OUT: Final = "http://schemas.openid.net/event/backchannel-logout"
RSA: Final = KeyLine(KeyPurpose.TOKENS, Algorithm.RS256)


# ---- Config OP


@module(CONFIG, "oidcc-discovery-endpoint-verification")
async def discovery(op: Certifier) -> None:
    response = await op.service.client.get("/.well-known/openid-configuration")
    assert response.headers["content-type"].startswith("application/json")
    body = success_body(response)
    assert body["issuer"] == op.service.base_url
    for name in ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri"):
        assert body[name].startswith(f"{op.service.base_url}/")
    assert "code" in body["response_types_supported"]
    assert "public" in body["subject_types_supported"]
    assert "RS256" in body["id_token_signing_alg_values_supported"]
    assert {"openid"} <= set(body["scopes_supported"])
    assert {"authorization_code"} <= set(body["grant_types_supported"])
    assert {"client_secret_basic", "client_secret_post"} <= set(body["token_endpoint_auth_methods_supported"])
    assert {"sub", "email", "nickname"} <= set(body["claims_supported"])
    assert body["request_uri_parameter_supported"] is False, (
        "a missing value means true (OpenID Connect Discovery §3)"
    )


@module(CONFIG, "oidcc-server-rotate-keys")
async def rotate_keys(op: Certifier) -> None:
    first = await op.sign_in()
    await op.service.services.keys.rotation.rotate(RSA, origin=AuditOrigin(actor="test"), mode=RotationMode.AT_ONCE)
    await op.service.services.keys.keyring.reload()  # as its notification does later
    second = await op.sign_in()
    assert header_of(first.id_token)["kid"] != header_of(second.id_token)["kid"]
    await op.verify_id_token(first.id_token)


# ---- RP-Initiated Logout OP


@module(LOGOUT, "oidcc-rp-initiated-logout-discovery-endpoint-verification")
async def logout_discovery(op: Certifier) -> None:
    assert (await op.configuration())["end_session_endpoint"].startswith(f"{op.service.base_url}/")


@module(LOGOUT, "oidcc-rp-initiated-logout")
async def logout(op: Certifier) -> None:
    hint = (await op.sign_in()).id_token
    page = await op.end_session(id_token_hint=hint, post_logout_redirect_uri=BACK, state="s1")
    assert page.headers["location"] == f"{BACK}?state=s1"
    assert not await op.is_signed_in()


@module(LOGOUT, "oidcc-rp-initiated-logout-no-state")
async def logout_no_state(op: Certifier) -> None:
    hint = (await op.sign_in()).id_token
    assert (await op.end_session(id_token_hint=hint, post_logout_redirect_uri=BACK)).headers["location"] == BACK
    assert not await op.is_signed_in()


@module(LOGOUT, "oidcc-rp-initiated-logout-no-post-logout-redirect-uri")
async def logout_no_redirect(op: Certifier) -> None:
    hint = (await op.sign_in()).id_token
    await op.expect_signed_out_page(await op.end_session(id_token_hint=hint, state="s1"))


@module(LOGOUT, "oidcc-rp-initiated-logout-no-params")
async def logout_no_parameters(op: Certifier) -> None:
    await op.sign_in()
    await op.expect_signed_out_page(await op.end_session())


@module(LOGOUT, "oidcc-rp-initiated-logout-only-state")
async def logout_only_state(op: Certifier) -> None:
    await op.sign_in()
    await op.expect_signed_out_page(await op.end_session(state="s1"))


@module(LOGOUT, "oidcc-rp-initiated-logout-no-id-token-hint")
async def logout_no_hint(op: Certifier) -> None:
    await op.sign_in()
    await op.expect_no_redirect(await op.end_session(post_logout_redirect_uri=BACK, state="s1"))


@module(LOGOUT, "oidcc-rp-initiated-logout-bad-post-logout-redirect-uri")
async def logout_bad_redirect(op: Certifier) -> None:
    hint = (await op.sign_in()).id_token
    await op.expect_no_redirect(
        await op.end_session(id_token_hint=hint, post_logout_redirect_uri=f"{BACK}-not", state="s")
    )


@module(LOGOUT, "oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri")
async def logout_query_added(op: Certifier) -> None:
    hint = (await op.sign_in()).id_token
    uri = f"{BACK}?foo=bar"
    await op.expect_no_redirect(await op.end_session(id_token_hint=hint, post_logout_redirect_uri=uri, state="s"))


@module(LOGOUT, "oidcc-rp-initiated-logout-modified-id-token-hint")
async def logout_modified_hint(op: Certifier) -> None:
    claims = (await op.sign_in()).id_token.split(".")[1]
    hint = ".".join((base64url(b'{"alg":"none"}'), claims, ""))
    await op.expect_no_redirect(await op.end_session(id_token_hint=hint, post_logout_redirect_uri=BACK, state="s"))


@module(LOGOUT, "oidcc-rp-initiated-logout-bad-id-token-hint")
async def logout_bad_hint(op: Certifier) -> None:
    signed_in = await op.sign_in()
    header = {"alg": "RS256", "kid": header_of(signed_in.id_token)["kid"]}
    hint = jwt.encode(header, signed_in.claims, RSAKey.generate_key(2048))
    await op.expect_no_redirect(await op.end_session(id_token_hint=hint, post_logout_redirect_uri=BACK, state="s"))


# ---- Back-Channel Logout OP


@module(BACK_CHANNEL, "oidcc-backchannel-logout-discovery-endpoint-verification")
async def back_channel_discovery(op: Certifier) -> None:
    configuration = await op.configuration()
    assert configuration["backchannel_logout_supported"] is True
    assert configuration["backchannel_logout_session_supported"] is True


@module(BACK_CHANNEL, "oidcc-backchannel-rp-initiated-logout")
async def back_channel_logout(op: Certifier) -> None:
    signed_in = await op.sign_in()
    page = await op.end_session(id_token_hint=signed_in.id_token, post_logout_redirect_uri=BACK, state="s1")
    assert page.headers["location"] == f"{BACK}?state=s1"
    await op.service.services.oauth.backchannel_logout.run_once()
    (call,) = op.back_channel.received
    fields = parse_qs(call.body.decode())
    assert fields.keys() == {"logout_token"}
    claims = await op.verify_id_token(fields["logout_token"][0])
    assert claims["events"] == {LOGGED_OUT: {}}
    assert (claims["sub"], claims["sid"]) == (signed_in.claims["sub"], signed_in.claims["sid"])
    assert claims["jti"]
    assert "nonce" not in claims
    assert not await op.is_signed_in()
