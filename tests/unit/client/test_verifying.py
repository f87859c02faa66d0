"""The client library verifies tokens as the service does: both refuse the same forgeries."""

from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import msgspec
import pytest

from gatehouse.client.errors import Unauthenticated, Unavailable
from gatehouse.client.published_keys import PublishedKeyCache, parse_keys
from gatehouse.client.transport import Reply, Request
from gatehouse.client.verification import UserJwtVerifier
from gatehouse.keys.jwks import base64url_number, jwks_document
from gatehouse.tokens.claims import Claims, InvalidToken, UserJwtClaims
from tests.support.clock import MovableClock
from tests.support.keys import NOW, first_keys
from tests.support.tokens import (
    APPLICATION,
    CLASSES,
    ISSUER,
    TokenSetup,
    forge,
    header_for,
    payload_for,
    token_setup,
    unsigned_token,
    with_signature,
)

HEADER = header_for(UserJwtClaims)
PAYLOAD = payload_for(UserJwtClaims)


@dataclass
class KeyService:
    """A service that publishes its keys, and counts requests."""

    body: bytes = field(default_factory=lambda: jwks_document(key for key in first_keys() if key.public).body)
    status: int = 200
    asked: int = 0

    async def send(self, request: Request) -> Reply:
        assert request.path == "/api/permissions/keys"
        self.asked += 1
        if self.status == 0:
            raise Unavailable("silent")
        return Reply(status=self.status, body=self.body)

    async def close(self) -> None:
        pass


@dataclass(frozen=True)
class Pair:
    """The client's verifier and the service's, with the same keys and the same time."""

    service: KeyService
    client: UserJwtVerifier
    tokens: TokenSetup

    async def refuse(self, token: str) -> None:
        with pytest.raises(InvalidToken):
            await self.tokens.verifier.verify(token, UserJwtClaims)
        with pytest.raises(Unauthenticated):
            await self.client.verify(token, factor=None, address=None)

    async def accept(self, token: str) -> None:
        await self.tokens.verifier.verify(token, UserJwtClaims)
        await self.client.verify(token, factor=None, address=None)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    with ThreadPoolExecutor(1) as executor:
        tokens, service = await token_setup(executor), KeyService()
        keys = PublishedKeyCache(transport=service, clock=tokens.clock)
        client = UserJwtVerifier(issuer=ISSUER, application_id=APPLICATION, keys=keys, clock=tokens.clock)
        yield Pair(service=service, client=client, tokens=tokens)


def without_member(members: Mapping[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in members.items() if key != name}


@pytest.mark.parametrize(
    "header",
    [
        HEADER | {"alg": "none"},
        HEADER | {"alg": "HS256"},
        HEADER | {"alg": "ES256"},
        HEADER | {"alg": "rs256"},
        HEADER | {"alg": ["RS256"]},
        without_member(HEADER, "alg"),
        HEADER | {"typ": "at+jwt"},
        HEADER | {"typ": None},
        HEADER | {"kid": "unknown"},
        HEADER | {"kid": ""},
        HEADER | {"kid": "../key"},
        HEADER | {"kid": 1},
        HEADER | {"crit": ["exp"]},
        HEADER | {"jwk": {}},
        HEADER | {"jku": "https://else.example/keys"},
        HEADER | {"x5u": "https://else.example/keys"},
        HEADER | {"zip": "DEF"},
        HEADER | {"b64": True},
        b'{"alg":"RS256","alg":"RS256"}',
        b"[]",
        b"",
        b'{"alg":"RS256","typ":"JWT","kid":"\\ud800"}',
    ],
)
async def test_client_and_service_refuse_the_same_headers(pair: Pair, header: Mapping[str, object] | bytes) -> None:
    await pair.refuse(forge(UserJwtClaims, header=header))


@pytest.mark.parametrize(
    "payload",
    [
        PAYLOAD | {"typ": "service_account"},
        PAYLOAD | {"typ": None},
        PAYLOAD | {"kid": "other"},
        PAYLOAD | {"iss": ISSUER + "/"},
        PAYLOAD | {"iss": [ISSUER]},
        PAYLOAD | {"exp": NOW},
        PAYLOAD | {"exp": NOW + 0.5},
        PAYLOAD | {"exp": str(NOW + 300)},
        PAYLOAD | {"exp": 2**53},
        PAYLOAD | {"exp": True},
        PAYLOAD | {"iat": NOW + 61},
        PAYLOAD | {"iat": -1},
        PAYLOAD | {"sub": "1234567891"},
        PAYLOAD | {"uid": "", "sub": ""},
        PAYLOAD | {"auth": "guess"},
        PAYLOAD | {"fip": "10.0.0.0/8"},
        *(without_member(PAYLOAD, name) for name in ("exp", "iat", "iss", "uid", "sub", "slt", "auth")),
    ],
)
async def test_client_and_service_refuse_the_same_payloads(pair: Pair, payload: Mapping[str, object]) -> None:
    await pair.refuse(forge(UserJwtClaims, payload=payload))


async def test_client_and_service_accept_valid_tokens(pair: Pair) -> None:
    await pair.accept(forge(UserJwtClaims))
    await pair.accept(forge(UserJwtClaims, header={"alg": "RS256"}))
    await pair.accept(forge(UserJwtClaims, payload=PAYLOAD | {"iat": NOW + 60}))


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind is not UserJwtClaims])
async def test_no_other_token_class_is_accepted(pair: Pair, kind: type[Claims]) -> None:
    await pair.refuse(forge(kind))


async def test_client_and_service_accept_only_one_token_encoding(pair: Pair) -> None:
    token = forge(UserJwtClaims)
    message, _, signature = token.rpartition(".")
    others = [
        token + "=",
        token + "\n",
        " " + token,
        token + ".",
        message,
        message + ".",
        f"{message}.{signature[:-1]}",
        f"{message}.{signature[:-1]}{chr(ord(signature[-1]) + 1)}",
        with_signature(unsigned_token(HEADER, PAYLOAD | {"uid": "1", "sub": "1"}), b""),
        "ä" + token,
        "x" * 20_000,
    ]
    for other in others:
        await pair.refuse(other)


async def test_a_member_of_a_newer_service_does_no_harm(pair: Pair) -> None:
    token = forge(UserJwtClaims, payload=PAYLOAD | {"new": 1})
    user = await pair.client.verify(token, factor=None, address=None)
    assert (user.user_id, user.tags, user.claims["new"]) == ("1234567890", {"staff", "2step"}, 1)


async def test_tk_31_tags_that_the_token_leaves_out_are_not_taken_for_none(pair: Pair) -> None:
    for members, omitted in (({"tgs": "", "tgs_omitted": True}, True), ({"tgs": ""}, False)):
        user = await pair.client.verify(forge(UserJwtClaims, payload=PAYLOAD | members), factor=None, address=None)
        assert (user.tags, user.tags_omitted) == (frozenset(), omitted)


async def test_made_up_keys_are_looked_for_once_in_five_seconds(pair: Pair) -> None:
    for made_up in range(20):
        with pytest.raises(Unauthenticated):
            await pair.client.verify(
                forge(UserJwtClaims, header=HEADER | {"kid": f"k{made_up}"}, payload=without_member(PAYLOAD, "kid")),
                factor=None,
                address=None,
            )
    assert pair.service.asked == 1
    await pair.tokens.clock.advance(5)
    await pair.accept(forge(UserJwtClaims))
    assert pair.service.asked == 1
    with pytest.raises(Unauthenticated):
        await pair.client.verify(
            forge(UserJwtClaims, header=HEADER | {"kid": "x"}, payload=without_member(PAYLOAD, "kid")),
            factor=None,
            address=None,
        )
    assert pair.service.asked == 2


@pytest.mark.parametrize(
    ("status", "body"), [(0, b""), (500, b""), (200, b"nonsense"), (200, b'{"keys":1}'), (304, b"")]
)
async def test_keys_that_cannot_be_read_are_no_verdict_and_never_replace_known_ones(status: int, body: bytes) -> None:
    clock, service = MovableClock(), KeyService()
    good, kid = service.body, str(HEADER["kid"])
    service.body, service.status = body, status
    keys = PublishedKeyCache(transport=service, clock=clock)
    with pytest.raises(Unavailable):
        await keys.find_key(kid)
    await clock.advance(5)
    service.body, service.status = good, 200
    assert await keys.find_key(kid)
    await clock.advance(300)
    service.body, service.status = body, status
    assert await keys.find_key(kid)
    with pytest.raises(Unavailable):
        await keys.find_key("another")
    assert service.asked == 3


def a_key_set(*, n: int = 2**2047 + 1, e: int = 65_537, use: str = "sig") -> bytes:
    numbers = {"n": base64url_number(n), "e": base64url_number(e)}
    return msgspec.json.encode({"keys": [{"kty": "RSA", "kid": "a", "use": use, "alg": "RS256", **numbers}]})


def test_only_strong_rsa_signing_keys_are_accepted() -> None:
    assert set(parse_keys(KeyService().body)) == {HEADER["kid"]}
    assert set(parse_keys(a_key_set())) == {"a"}
    assert parse_keys(a_key_set(use="enc")) == {}
    for weak in (a_key_set(n=2**1023 + 1), a_key_set(n=2**8192 + 1), a_key_set(e=3), a_key_set(e=2**65 + 1)):
        with pytest.raises(Unavailable):
            parse_keys(weak)
