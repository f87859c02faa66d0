"""A signer, a verifier and a valid example of every class of token; and functions to forge tokens."""

import json
from base64 import b64encode
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gatehouse.keys.encoding import encode_base64url
from gatehouse.keys.key_objects import HmacKey, PrivateKey
from gatehouse.keys.keyring import Keyring, open_key
from gatehouse.keys.model import KeyAlgorithm, KeyPurpose
from gatehouse.tokens.claims import (
    Claims,
    ExchangedIdClaims,
    ExchangedUserClaims,
    ForwardAuthClaims,
    GeneratedServiceClaims,
    IdClaims,
    OidcIdClaims,
    OutboundServiceClaims,
    RefreshClaims,
    ServiceAccountClaims,
    StaticServiceClaims,
    UserJwtClaims,
)
from gatehouse.tokens.rsa_signatures import ThreadedSignatures
from gatehouse.tokens.signer import Signer, sign_inline
from gatehouse.tokens.verifier import ApplicationPublicKey, TokenVerifier
from tests.support.clock import MovableClock
from tests.support.keys import NOW, KeysInMemory, a_keyring, first_keys, key_of, master_keys

ISSUER = "https://sso.example"
APPLICATION = 50001
APPLICATION_KID = "a1b2c3d4e5f6"
PERSON = {
    "uid": "1234567890",
    "sub": "1234567890",
    "nick": "Änna",
    "slt": "salt",
    "loc": "",
    "tgs": "staff,2step",
    "cntry": "DE",
    "lng": "de",
    "rev": 3,
}
TIMES = {"iat": NOW, "exp": NOW + 300}

C = TypeVar("C", bound=Claims)
Members = Mapping[str, object]

EXAMPLES: Mapping[type[Claims], Members] = {
    UserJwtClaims: PERSON | TIMES | {"iss": ISSUER, "auth": "login", "fac": "f" * 64},
    ExchangedUserClaims: PERSON | TIMES | {"iss": ISSUER, "auth": "openid", "azp": "web", "gid": "g1"},
    IdClaims: TIMES | {"iss": ISSUER, "sub": "1234567890", "aud": (ISSUER, "web"), "azp": "web", "nonce": "n"},
    OidcIdClaims: TIMES | {"iss": ISSUER, "sub": "1234567890", "aud": "web", "at_hash": "h", "nonce": "n"},
    ExchangedIdClaims: TIMES | {"iss": ISSUER, "sub": "1234567890", "aud": (ISSUER,)},
    RefreshClaims: TIMES
    | {"iss": ISSUER, "sub": "1234567890", "aud": (ISSUER, "web"), "azp": "web", "scopes": "openid", "jti": "j"},
    StaticServiceClaims: TIMES | {"iss": ISSUER, "aud": str(APPLICATION), "jti": "j"},
    GeneratedServiceClaims: TIMES | {"iss": str(APPLICATION), "aud": ISSUER},
    ForwardAuthClaims: TIMES | {"iss": ISSUER, "aud": "https://wiki.example", "sub": "1", "nick": "Rea"},
    OutboundServiceClaims: TIMES | {"iss": ISSUER, "aud": "https://shop.example", "jti": "j"},
    ServiceAccountClaims: TIMES
    | {"iss": ISSUER, "uid": "1234567890", "sub": "1234567890", "nick": "ci", "rev": 0, "jti": "j"},
}
OUTBOUND = (ForwardAuthClaims, OutboundServiceClaims)
CLASSES = tuple(kind for kind in EXAMPLES if kind not in OUTBOUND)  # those the service accepts


@lru_cache
def application_private_key() -> RSAPrivateKey:
    return generate_private_key(65537, 2048)


class OneApplicationKeys:
    """The keys of application 50001, and a count of lookups."""

    def __init__(self) -> None:
        self.lookups = 0

    async def find_public_key(self, kid: str) -> ApplicationPublicKey | None:
        self.lookups += 1
        if kid != APPLICATION_KID:
            return None
        return ApplicationPublicKey(application_id=APPLICATION, public=application_private_key().public_key())


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSetup:
    clock: MovableClock
    store: KeysInMemory
    keyring: Keyring
    signer: Signer
    verifier: TokenVerifier
    applications: OneApplicationKeys


async def token_setup(executor: ThreadPoolExecutor) -> TokenSetup:
    clock, store, applications = MovableClock(), KeysInMemory(first_keys()), OneApplicationKeys()
    keyring = await a_keyring(store, clock)
    return TokenSetup(
        clock=clock,
        store=store,
        keyring=keyring,
        signer=Signer(keyring=keyring, clock=clock, rsa=ThreadedSignatures(executor)),
        verifier=TokenVerifier(issuer=ISSUER, keyring=keyring, application_keys=applications, clock=clock),
        applications=applications,
    )


def example_claims(kind: type[C], **changes: object) -> C:
    return msgspec.convert({**EXAMPLES[kind], **changes}, kind)


def kid_for(kind: type[Claims]) -> str:
    return APPLICATION_KID if kind is GeneratedServiceClaims else key_of(kind.purpose, kind.algs[0]).kid


def private_for(kind: type[Claims]) -> PrivateKey | HmacKey:
    """The key that correctly signs the class: a token signed with it must still have valid contents."""
    if kind is GeneratedServiceClaims:
        return application_private_key()
    return private_of(kind.purpose, kind.algs[0])


def private_of(purpose: KeyPurpose, alg: KeyAlgorithm) -> PrivateKey | HmacKey:
    return open_key(key_of(purpose, alg), master_keys()).private


def header_for(kind: type[Claims]) -> dict[str, object]:
    return {"alg": str(kind.algs[0]), "kid": kid_for(kind), "typ": "JWT"}


def payload_for(kind: type[Claims]) -> dict[str, object]:
    payload: dict[str, object] = json.loads(msgspec.json.encode(example_claims(kind)))
    return payload | {"kid": kid_for(kind)} if kind.repeats_kid else payload


def forge(kind: type[Claims], header: Members | bytes | None = None, payload: Members | bytes | None = None) -> str:
    """Make a token with the right signature for its class and any contents."""
    message = unsigned_token(
        header_for(kind) if header is None else header, payload_for(kind) if payload is None else payload
    )
    return with_signature(message, signature_by(private_for(kind), message))


def unsigned_token(header: Members | bytes, payload: Members | bytes) -> str:
    return f"{segment(header)}.{segment(payload)}"


def with_signature(message: str, signature: bytes) -> str:
    return f"{message}.{encode_base64url(signature).decode()}"


def segment(content: Members | bytes) -> str:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return encode_base64url(raw).decode()


def signature_by(private: PrivateKey | HmacKey, message: str) -> bytes:
    if isinstance(private, RSAPrivateKey):
        return private.sign(message.encode(), PKCS1v15(), SHA256())
    return sign_inline(private, message.encode())


# A game with its own key pair: the public key is registered, the private key signs (interface §4.3).


def application_public_key() -> str:
    key = application_private_key().public_key()
    return b64encode(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()


def sign_as_application(message: bytes) -> str:
    """The value of the `Request-Sign` header."""
    return b64encode(application_private_key().sign(message, PKCS1v15(), SHA256())).decode()
