"""Refresh tokens are authenticated by secret keys of a line of their own (R2, checklist RK)."""

import hmac
import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.keys.key_objects import HmacKey, PublicKey
from gatehouse.keys.keyring import OpenedKey
from gatehouse.keys.model import REFRESH_KEYS, Algorithm, KeyLine, KeyPurpose
from gatehouse.keys.rotation import RotationMode, make_key
from gatehouse.oauth.model import TokenSettings
from gatehouse.tokens.claims import UserJwtClaims
from tests.support.builders import ORIGIN, a_record
from tests.support.oauth import (
    DAY,
    RelyingPartyClient,
    an_oidc_client,
    base64url,
    header_of,
    oauth_error,
    success_body,
)
from tests.support.service import RunningService
from tests.support.tokens import segment, signature_by

GONE = (400, "invalid_grant")
OF_BEFORE = KeyLine(KeyPurpose.REFRESH, Algorithm.EDDSA)


@pytest.fixture
async def refresh_token(oidc_client: RelyingPartyClient, anna: User) -> str:
    token: str = (await oidc_client.tokens(await oidc_client.issue_code(anna)))["refresh_token"]
    return token


def payload_of(token: str) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(urlsafe_b64decode(token.split(".")[1] + "=="))
    return payload


def unsigned(token: str, *, alg: str, kid: str) -> str:
    """The token with another algorithm and key id in its header and payload."""
    return f"{segment({'alg': alg, 'kid': kid, 'typ': 'JWT'})}.{segment({**payload_of(token), 'kid': kid})}"


def with_mac(message: str, secret: bytes) -> str:
    return f"{message}.{base64url(hmac.digest(secret, message.encode(), 'sha256'))}"


def refresh_key(service: RunningService) -> OpenedKey:
    return service.services.keys.keyring.signing_key(REFRESH_KEYS.purpose, REFRESH_KEYS.alg, service.clock.now())


async def add_key_of_before(service: RunningService) -> OpenedKey:
    """Store a refresh key as versions before HS256 made them: it verifies, and does not sign any more."""
    services, now = service.services, service.clock.now()
    key = make_key(OF_BEFORE, services.core.masters, now=now, signs_from=0, rsa_bits=2048)
    key = replace(key, signs_until=now, verifies_until=now + 30 * DAY)
    stored = await services.storage.keys.load_keys()
    await services.storage.keys.save_keys([key], seen=stored.version, entry=a_record(AuditEvent.KEY_MADE))
    await services.keys.keyring.reload()
    opened = await services.keys.keyring.verification_key(KeyPurpose.REFRESH, key.kid, now)
    assert opened is not None
    return opened


def forms_of(public: PublicKey) -> Iterator[bytes]:
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    yield from (pem, pem.strip(), public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


async def test_a_refresh_token_has_an_hmac_by_an_unpublished_key(service: RunningService, refresh_token: str) -> None:
    key = refresh_key(service)
    assert header_of(refresh_token) == {"alg": "HS256", "kid": key.record.kid, "typ": "JWT"}
    assert isinstance(key.private, HmacKey)
    message, _, mac = refresh_token.rpartition(".")
    assert mac == base64url(hmac.digest(key.private.secret, message.encode(), "sha256"))
    published = (await service.client.get("/proxy/oauth/keys")).json()["keys"]
    assert key.record.kid not in {one["kid"] for one in published}
    assert "HS256" not in {one["alg"] for one in published}
    discovery = (await service.client.get("/.well-known/openid-configuration")).json()
    assert "HS256" not in discovery["id_token_signing_alg_values_supported"]


async def test_rk_01_no_public_key_is_a_secret_of_refresh_tokens(
    service: RunningService, oidc_client: RelyingPartyClient, refresh_token: str
) -> None:
    """Under its own kid, and under that of the secret key; published keys, and refresh keys of before."""
    keyring, now = service.services.keys.keyring, service.clock.now()
    pairs = [keyring.signing_key(KeyPurpose.TOKENS, alg, now) for alg in Algorithm]
    own = refresh_key(service)
    for pair in (*pairs, await add_key_of_before(service)):
        assert pair.public is not None
        for kid in (pair.record.kid, own.record.kid):
            message = unsigned(refresh_token, alg="HS256", kid=kid)
            for form in (*forms_of(pair.public), pair.record.public, kid.encode(), b""):
                assert oauth_error(await oidc_client.refresh(with_mac(message, form))) == GONE
    assert success_body(await oidc_client.refresh(refresh_token))


async def test_rk_02_keys_of_other_lines_authenticate_no_refresh_token(
    service: RunningService, oidc_client: RelyingPartyClient, refresh_token: str
) -> None:
    """The signature is right, and the key is of this service."""
    keyring, now = service.services.keys.keyring, service.clock.now()
    keys = [keyring.signing_key(KeyPurpose.TOKENS, alg, now) for alg in Algorithm]
    keys.append(keyring.signing_key(KeyPurpose.AUDIT, Algorithm.EDDSA, now))
    for key in keys:
        message = unsigned(refresh_token, alg=key.record.alg, kid=key.record.kid)
        forged = f"{message}.{base64url(signature_by(key.private, message))}"
        assert oauth_error(await oidc_client.refresh(forged)) == GONE, key.record.line
    assert success_body(await oidc_client.refresh(refresh_token))


async def test_rk_03_the_algorithm_of_a_refresh_token_is_that_of_its_key(
    service: RunningService, oidc_client: RelyingPartyClient, refresh_token: str
) -> None:
    old, new = await add_key_of_before(service), refresh_key(service)
    for signer, alg, kid in (
        (old, "EdDSA", new.record.kid),
        (new, "EdDSA", new.record.kid),
        (new, "HS256", old.record.kid),
        (old, "HS256", old.record.kid),
        *((new, alg, new.record.kid) for alg in ("HS512", "hs256", "RS256", "none", "")),
    ):
        message = unsigned(refresh_token, alg=alg, kid=kid)
        forged = f"{message}.{base64url(signature_by(signer.private, message))}"
        assert oauth_error(await oidc_client.refresh(forged)) == GONE, (alg, kid)
    assert success_body(await oidc_client.refresh(refresh_token))


async def test_rk_04_a_user_jwt_is_never_authenticated_by_a_secret_key(service: RunningService, anna: User) -> None:
    """Even with the secret key itself, and its kid."""
    token = await service.services.accounts.user_tokens.issue(anna, auth="login", factor="f")
    secret, own = refresh_key(service), payload_of(token)["kid"]

    async def exchange(jwt: str) -> int:
        headers = {"Authorization": f"Bearer {jwt}"}
        return (await service.client.post("/proxy/oauth/exchange", headers=headers)).status_code

    assert isinstance(secret.private, HmacKey)
    for kid in (secret.record.kid, own):
        assert await exchange(with_mac(unsigned(token, alg="HS256", kid=kid), secret.private.secret)) == 401
    assert await exchange(token) == 200
    claims = await service.services.permissions.token_verifier.verify(token, UserJwtClaims)
    with pytest.raises(ValueError, match="not signed with"):
        await service.services.keys.signer.sign(claims, alg=REFRESH_KEYS.alg)


async def test_rk_05_distrusting_the_refresh_keys_ends_tokens_of_all_of_them(
    service: RunningService, oidc_client: RelyingPartyClient, anna: User, refresh_token: str
) -> None:
    old = await add_key_of_before(service)
    message = unsigned(refresh_token, alg="EdDSA", kid=old.record.kid)
    of_before = f"{message}.{base64url(signature_by(old.private, message))}"
    of_now = success_body(await oidc_client.refresh(of_before))["refresh_token"]  # valid until it ends
    assert header_of(of_now)["alg"] == "HS256"
    another = (await oidc_client.tokens(await oidc_client.issue_code(anna)))["refresh_token"]
    message = unsigned(another, alg="EdDSA", kid=old.record.kid)
    await service.services.keys.rotation.rotate(REFRESH_KEYS, origin=ORIGIN, mode=RotationMode.DISTRUST)
    for token in (of_now, another, f"{message}.{base64url(signature_by(old.private, message))}"):
        assert oauth_error(await oidc_client.refresh(token)) == GONE
    fresh = await oidc_client.tokens(await oidc_client.issue_code(anna))
    assert success_body(await oidc_client.refresh(fresh["refresh_token"]))


async def test_rk_06_a_repeat_within_the_grace_window_gets_the_same_token_after_a_rotation_of_the_key(
    service: RunningService, anna: User
) -> None:
    shop = await an_oidc_client(service, token_settings=TokenSettings(refresh_grace_seconds=10))
    first = (await shop.tokens(await shop.issue_code(anna)))["refresh_token"]
    second = success_body(await shop.refresh(first))["refresh_token"]
    await service.services.keys.rotation.rotate(REFRESH_KEYS, origin=ORIGIN, mode=RotationMode.AT_ONCE)
    assert success_body(await shop.refresh(first))["refresh_token"] == second
    third = success_body(await shop.refresh(second))["refresh_token"]
    assert header_of(third)["kid"] != header_of(second)["kid"]


async def test_rk_06_a_repeat_gets_no_token_of_a_distrusted_key(service: RunningService, anna: User) -> None:
    """The repeated token has a valid MAC of the new key, so that only the key of the newest one can be the reason."""
    shop = await an_oidc_client(service, token_settings=TokenSettings(refresh_grace_seconds=10))
    first = (await shop.tokens(await shop.issue_code(anna)))["refresh_token"]
    assert success_body(await shop.refresh(first))
    await service.services.keys.rotation.rotate(REFRESH_KEYS, origin=ORIGIN, mode=RotationMode.DISTRUST)
    await service.services.keys.keyring.reload()
    key = refresh_key(service)
    message = unsigned(first, alg="HS256", kid=key.record.kid)
    assert oauth_error(await shop.refresh(f"{message}.{base64url(signature_by(key.private, message))}")) == GONE
