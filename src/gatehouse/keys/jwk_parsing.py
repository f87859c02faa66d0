"""Public keys in JWK format (RFC 7517, 7518): those of clients, providers and platforms."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicNumbers
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

from gatehouse.keys.encoding import decode_base64url
from gatehouse.keys.key_objects import PublicKey
from gatehouse.keys.model import Algorithm, BadPublicKey
from gatehouse.keys.rsa_public_keys import refuse_weak_rsa_key

MAX_CHARACTERS: Final = 2_048
P256_BYTES: Final = 32
ED25519_BYTES: Final = 32

Text = Annotated[str, msgspec.Meta(max_length=MAX_CHARACTERS)]


class KeyOfSet(msgspec.Struct, frozen=True, kw_only=True):
    kid: str  # empty when the set names none
    alg: Algorithm
    public: PublicKey


class RsaJwk(msgspec.Struct, frozen=True, kw_only=True, tag_field="kty", tag="RSA"):
    n: Text
    e: Text
    kid: Text = ""
    use: Text = "sig"
    alg: Text = Algorithm.RS256.value


class EcJwk(msgspec.Struct, frozen=True, kw_only=True, tag_field="kty", tag="EC"):
    crv: Text
    x: Text
    y: Text
    kid: Text = ""
    use: Text = "sig"
    alg: Text = Algorithm.ES256.value


class OkpJwk(msgspec.Struct, frozen=True, kw_only=True, tag_field="kty", tag="OKP"):
    crv: Text
    x: Text
    kid: Text = ""
    use: Text = "sig"
    alg: Text = Algorithm.EDDSA.value


Jwk = RsaJwk | EcJwk | OkpJwk


def usable_keys(keys: Iterable[object]) -> Iterator[KeyOfSet]:
    """Return the keys of a foreign set that this service can verify with; others are left out."""
    for key in keys:
        try:
            yield parse_jwk(msgspec.convert(key, Jwk))
        except (msgspec.ValidationError, BadPublicKey, ValueError):
            continue


def matching_keys(keys: Iterable[KeyOfSet], *, alg: str, kid: str) -> list[KeyOfSet]:
    """Return the keys of that algorithm, and of that key id if both have one."""
    return [key for key in keys if key.alg == alg and (not kid or not key.kid or key.kid == kid)]


def parse_jwk(jwk: Jwk) -> KeyOfSet:
    if jwk.use != "sig":
        raise BadPublicKey("a key must be for signatures (use: sig)")
    match jwk:
        case RsaJwk():
            alg, public = Algorithm.RS256, rsa_key(jwk)
        case EcJwk():
            alg, public = Algorithm.ES256, ec_key(jwk)
        case OkpJwk():
            alg, public = Algorithm.EDDSA, ed25519_key(jwk)
    if jwk.alg != alg.value:
        raise BadPublicKey(f"the alg of this key must be {alg.value}")
    return KeyOfSet(kid=jwk.kid, alg=alg, public=public)


def rsa_key(jwk: RsaJwk) -> PublicKey:
    key = RSAPublicNumbers(decode_number(jwk.e), decode_number(jwk.n)).public_key()
    refuse_weak_rsa_key(key)
    return key


def ec_key(jwk: EcJwk) -> PublicKey:
    if jwk.crv != "P-256":
        raise BadPublicKey("the curve of an EC key must be P-256")
    x, y = (int.from_bytes(decode_exact(text, P256_BYTES)) for text in (jwk.x, jwk.y))
    return EllipticCurvePublicNumbers(x, y, SECP256R1()).public_key()


def ed25519_key(jwk: OkpJwk) -> PublicKey:
    if jwk.crv != "Ed25519":
        raise BadPublicKey("the curve of an OKP key must be Ed25519")
    return Ed25519PublicKey.from_public_bytes(decode_exact(jwk.x, ED25519_BYTES))


def decode_exact(text: str, length: int) -> bytes:
    raw = decode_base64url(text.encode())
    if len(raw) != length:
        raise BadPublicKey(f"a coordinate must have {length} bytes")
    return raw


def decode_number(text: str) -> int:
    return int.from_bytes(decode_base64url(text.encode()))
