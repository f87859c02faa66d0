import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from joserfc import jwt as other_peoples
from joserfc.jwk import RSAKey

from gatehouse.client.credentials import AccessKey, PermissionQuery, ServiceKey, sign_request
from gatehouse.client.transport import ServerAddress, parse_base_url
from gatehouse.kernel.digests import hmac_sha256
from tests.support.clock import MovableClock
from tests.support.keys import NOW
from tests.support.tokens import application_private_key

BASE = "https://sso.example"


def pem() -> str:
    private = application_private_key()
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def a_question(**changes: object) -> PermissionQuery:
    wanted = {"base_url": BASE, "application_id": 50001, "jwt": "a.b.c", "now": NOW, **changes}
    return PermissionQuery(**wanted)  # type: ignore[arg-type]


def test_a_signature_is_over_method_path_query_and_body() -> None:
    message = b'POST\n/api/x\nip=192.0.2.7&ts=1\n{"a":1}'
    created = sign_request("k", "POST", "/api/x", query="ip=192.0.2.7&ts=1", body=b'{"a":1}')
    assert created == hmac_sha256(b"k", message).hex()


def test_an_access_key_is_sent_only_when_there_is_no_address_to_sign() -> None:
    key = AccessKey("k" * 64)
    plain = key.build_request(a_question())
    assert plain.headers["Authorization"] == f"Bearer {'k' * 64}"
    assert json.loads(plain.body)["jwt"] == "a.b.c"
    signed = key.build_request(a_question(address="192.0.2.7"))
    assert signed.headers["Authorization"] == "Bearer a.b.c"
    assert (json.loads(signed.body)["ip"], json.loads(signed.body)["ts"]) == ("192.0.2.7", NOW)
    assert signed.headers["Signature"] == sign_request(
        "k" * 64, "POST", "/api/permissions/meta/data", body=signed.body
    )
    assert "k" * 64 not in str(signed.headers)
    assert "k" * 64 not in repr(key)


def test_a_service_jwt_is_read_by_other_peoples_libraries() -> None:
    key = ServiceKey(50001, "kid", pem(), clock=MovableClock())
    read = other_peoples.decode(key.jwt(BASE), RSAKey.import_key(pem()))
    assert read.header == {"alg": "RS256", "kid": "kid", "typ": "JWT"}
    claims = {"iss": "50001", "aud": BASE, "iat": NOW, "exp": NOW + 300, "typ": "service_jwt", "kid": "kid"}
    assert read.claims == claims
    assert "PRIVATE" not in repr(key)


async def test_service_jwt_is_reused_for_four_minutes() -> None:
    clock = MovableClock()
    key = ServiceKey(50001, "kid", pem(), clock=clock)

    def service_jwt_header() -> str:
        return key.build_request(a_question()).headers["Service-Jwt"]

    first = service_jwt_header()
    await clock.advance(239)
    assert service_jwt_header() == first
    await clock.advance(1)
    second = service_jwt_header()
    assert second != first
    clock.set_back(100)
    assert service_jwt_header() not in (first, second)  # a token from the future would be refused


def test_another_kind_of_key_is_refused() -> None:
    private = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(TypeError):
        ServiceKey(50001, "kid", private.decode()).jwt(BASE)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("https://sso.example", ServerAddress(secure=True, host="sso.example", port=443)),
        ("https://sso.example:8443", ServerAddress(secure=True, host="sso.example", port=8443)),
        ("http://localhost:8080", ServerAddress(secure=False, host="localhost", port=8080)),
        ("http://[::1]:8080", ServerAddress(secure=False, host="::1", port=8080)),
    ],
)
def test_a_base_url_says_what_to_connect_to(text: str, place: ServerAddress) -> None:
    assert parse_base_url(text) == place


@pytest.mark.parametrize(
    "text",
    [
        "http://sso.example",
        "http://localhost.evil.example",
        "https://sso.example/",
        "https://sso.example/path",
        "https://user@sso.example",
        "https://sso.example?x",
        "https://sso.example#x",
        "https://sso.example\n",
        "https://SSO.example",
        "ftp://sso.example",
        "sso.example",
        "",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        parse_base_url(text)
