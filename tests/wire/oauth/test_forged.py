"""Tampered JWTs, at each OAuth endpoint that reads one.

A user JWT at exchange, a refresh token, a client's assertion. The signature is right wherever possible, so that only
the anomaly can be refused.
"""

import hmac
import json
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from secrets import token_hex
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gatehouse.accounts.model import User
from gatehouse.keys.key_objects import HmacKey, PrivateKey
from gatehouse.keys.model import Algorithm, KeyPurpose, MacAlgorithm
from tests.support.oauth import TOKEN, RelyingPartyClient, an_oidc_client, base64url, oauth_error, success_body
from tests.support.service import RunningService
from tests.support.tokens import application_private_key, segment, signature_by

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
Show = Callable[[str], Awaitable[httpx2.Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenReader:
    """An endpoint that reads a JWT, and the key that correctly signs it."""

    show: Show
    make: Callable[[], Awaitable[str]]
    private: PrivateKey | HmacKey
    refusal: tuple[int, str]

    async def forged(self, payload: dict[str, Any] | None = None, **header: object) -> str:
        """A token with this header and payload, correctly signed."""
        old_header, old_payload = parts(await self.make())
        message = f"{segment({**old_header, **header})}.{segment({**old_payload, **(payload or {})})}"
        return f"{message}.{base64url(signature_by(self.private, message))}"

    async def refuses(self, token: str) -> None:
        response = await self.show(token)
        if response.status_code == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            return  # it did not reach the endpoint
        assert oauth_error(response) == self.refusal, token[:200]


def parts(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    header, payload = (json.loads(urlsafe_b64decode(part + "==")) for part in token.split(".")[:2])
    return header, payload


async def exchange_reader(service: RunningService, anna: User) -> TokenReader:
    async def show(token: str) -> httpx2.Response:
        headers = [(b"Authorization", f"Bearer {token}".encode())]
        return await service.client.post("/proxy/oauth/exchange", headers=headers)

    async def make() -> str:
        return await service.services.accounts.user_tokens.issue(anna, auth="login", factor="f")

    key = service.services.keys.keyring.signing_key(KeyPurpose.TOKENS, Algorithm.RS256, service.clock.now())
    return TokenReader(show=show, make=make, private=key.private, refusal=(401, "invalid_token"))


async def refresh_reader(service: RunningService, anna: User) -> TokenReader:
    shop = await an_oidc_client(service)

    async def make() -> str:
        token: str = (await shop.tokens(await shop.issue_code(anna)))["refresh_token"]
        return token

    key = service.services.keys.keyring.signing_key(KeyPurpose.REFRESH, MacAlgorithm.HS256, service.clock.now())
    return TokenReader(show=shop.refresh, make=make, private=key.private, refusal=(400, "invalid_grant"))


async def assertion_reader(service: RunningService, anna: User) -> TokenReader:
    private = application_private_key()
    numbers = private.public_key().public_numbers()
    key = {"kty": "RSA", "kid": "k1", "n": base64url(numbers.n.to_bytes(256)), "e": base64url(numbers.e.to_bytes(3))}
    shop = await an_oidc_client(service, "keyed", jwks={"keys": [key]})

    async def show(token: str) -> httpx2.Response:
        return await redeem_with_assertion(shop, anna, token)

    async def make() -> str:
        now = service.clock.now()
        claims = {"iss": "keyed", "sub": "keyed", "aud": service.base_url, "exp": now + 60, "jti": token_hex(8)}
        message = f"{segment({'alg': 'RS256', 'kid': 'k1'})}.{segment(claims)}"
        return f"{message}.{base64url(signature_by(private, message))}"

    return TokenReader(show=show, make=make, private=private, refusal=(401, "invalid_client"))


async def redeem_with_assertion(shop: RelyingPartyClient, user: User, assertion: str) -> httpx2.Response:
    fields = {
        "grant_type": "authorization_code",
        "code": await shop.issue_code(user),
        "redirect_uri": shop.redirect_uri,
        "client_id": "keyed",
        "client_assertion_type": ASSERTION,
        "client_assertion": assertion,
    }
    return await shop.service.client.post(TOKEN, data=fields)


@pytest.fixture(params=[exchange_reader, refresh_reader, assertion_reader])
async def token_reader(request: pytest.FixtureRequest, service: RunningService, anna: User) -> TokenReader:
    created: TokenReader = await request.param(service, anna)
    return created


async def test_a_token_signed_again_as_it_was_is_good(token_reader: TokenReader) -> None:
    assert success_body(await token_reader.show(await token_reader.forged()))


async def test_ui_16_alg_none_is_refused_in_every_spelling(token_reader: TokenReader) -> None:
    for alg in ("none", "None", "NONE", "nOnE", ""):
        token = await token_reader.forged(alg=alg)
        for other in (token, token.rpartition(".")[0] + ".", token.rpartition(".")[0]):
            await token_reader.refuses(other)


def public_forms(private: RSAPrivateKey) -> Iterator[bytes]:
    public = private.public_key()
    for form in (PublicFormat.SubjectPublicKeyInfo, PublicFormat.PKCS1):
        pem = public.public_bytes(Encoding.PEM, form)
        yield from (pem, pem.strip(), public.public_bytes(Encoding.DER, form))


async def test_ui_17_a_public_key_is_no_hmac_secret(service: RunningService, token_reader: TokenReader) -> None:
    known = service.services.keys.keyring.signing_key(KeyPurpose.TOKENS, Algorithm.RS256, service.clock.now()).private
    secrets = [
        form
        for private in (token_reader.private, known)
        if isinstance(private, RSAPrivateKey)
        for form in public_forms(private)
    ]
    for alg, digest in (("HS256", "sha256"), ("HS384", "sha384"), ("HS512", "sha512")):
        message = (await token_reader.forged(alg=alg)).rpartition(".")[0]
        for secret in secrets:
            await token_reader.refuses(f"{message}.{base64url(hmac.digest(secret, message.encode(), digest))}")


async def test_ui_18_a_strange_kid_is_refused(token_reader: TokenReader) -> None:
    for kid in ("../../dev/null", "' OR 1=1--", ["k1"], {"k": 1}, "k" * 8_000, "a\0b"):
        await token_reader.refuses(await token_reader.forged(kid=kid))


async def test_ui_20_ui_21_whatever_asks_us_to_do_something_is_refused(token_reader: TokenReader) -> None:
    for header in (
        *({"jwk": {"kty": "oct", "k": "AA"}}, {"jku": "http://127.0.0.1:1/"}, {"x5u": "http://127.0.0.1:1/"}),
        *({"x5c": ["AA"]}, {"crit": ["exp"]}, {"crit": ["bork"]}, {"b64": False}, {"cty": "JWT"}, {"zip": "DEF"}),
        *({"typ": "at+jwt"}, {"typ": "JWS"}),
    ):
        await token_reader.refuses(await token_reader.forged(**header))


async def test_ui_23_oversized_and_misshapen_tokens_are_refused(token_reader: TokenReader) -> None:
    token = await token_reader.forged()
    head, payload, signature = token.split(".")
    for other in (
        *(f"{'A' * 20_000}.{payload}.{signature}", f"{head}.{'A' * 20_000}.{signature}", "." * 10_000),
        *(f"{token}.{payload}.{signature}", f"{token}A", f"{token}=", f"{head}.{payload}.{signature}."),
        json.dumps({"payload": payload, "protected": head, "signature": signature}),
    ):
        await token_reader.refuses(other)


async def test_ui_24_a_token_ends_on_its_second(service: RunningService, token_reader: TokenReader) -> None:
    now = service.clock.now()
    for end in (now - 1, now):
        await token_reader.refuses(await token_reader.forged({"exp": end}))
    assert success_body(await token_reader.show(await token_reader.forged({"exp": now + 1})))
    for odd in ("9999999999", 1.5e9, True, None, 10**400):
        await token_reader.refuses(await token_reader.forged({"exp": odd}))
    await token_reader.refuses(await token_reader.forged({"iat": now + 61}))
