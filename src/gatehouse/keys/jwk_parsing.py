"""Public keys in JWK format (RFC 7517, 7518): those of clients, providers and platforms."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, SECP384R1, EllipticCurvePublicNumbers
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

from gatehouse.keys.encoding import decode_base64url
from gatehouse.keys.key_objects import PublicKey
from gatehouse.keys.model import Algorithm, BadPublicKey
from gatehouse.keys.rsa_public_keys import refuse_weak_rsa_key

MAX_CHARACTERS: Final = 2_048
P256_BYTES: Final = 32
P384_BYTES: Final = 48
ED25519_BYTES: Final = 32
FOR_SIGNATURES: Final = "sig"

Text = Annotated[str, msgspec.Meta(max_length=MAX_CHARACTERS)]


class KeyOfSet(msgspec.Struct, frozen=True, kw_only=True):
    kid: str  # empty when the set names none
    alg: Algorithm
    public: PublicKey


class ForeignAlgorithm(StrEnum):
    """The algorithms that issuers of workload identities sign with (R11)."""

    RS256 = "RS256"
    PS256 = "PS256"
    ES256 = "ES256"
    ES384 = "ES384"
    EDDSA = "EdDSA"


class ForeignKey(msgspec.Struct, frozen=True, kw_only=True):
    kid: str  # empty when the set names none
    algs: tuple[ForeignAlgorithm, ...]  # one, unless a set does not say which one an RSA key is for
    public: PublicKey

    def may_sign(self, *, alg: str, kid: str) -> bool:
        """Whether it is for the algorithm, and has the key ID if both have one."""
        return alg in self.algs and (not kid or not self.kid or self.kid == kid)


class RsaJwk(msgspec.Struct, frozen=True, kw_only=True, tag_field="kty", tag="RSA"):
    n: Text
    e: Text
    kid: Text = ""
    use: Text = FOR_SIGNATURES
    alg: Text = ""


class EcJwk(msgspec.Struct, frozen=True, kw_only=True, tag_field="kty", tag="EC"):
    crv: Text
    x: Text
    y: Text
    kid: Text = ""
    use: Text = FOR_SIGNATURES
    alg: Text = ""


class OkpJwk(msgspec.Struct, frozen=True, kw_only=True, tag_field="kty", tag="OKP"):
    crv: Text
    x: Text
    kid: Text = ""
    use: Text = FOR_SIGNATURES
    alg: Text = ""


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
    if jwk.use != FOR_SIGNATURES:
        raise BadPublicKey("a key must be for signatures (use: sig)")
    match jwk:
        case RsaJwk():
            alg, public = Algorithm.RS256, rsa_key(jwk)
        case EcJwk():
            alg, public = Algorithm.ES256, ec_key(jwk)
        case OkpJwk():
            alg, public = Algorithm.EDDSA, ed25519_key(jwk)
    if jwk.alg not in ("", alg.value):
        raise BadPublicKey(f"the alg of this key must be {alg.value}")
    return KeyOfSet(kid=jwk.kid, alg=alg, public=public)


def foreign_keys(keys: Iterable[object], *, use: str) -> Iterator[ForeignKey]:
    """Return the keys of a foreign set for that use that this service can verify with; others are left out."""
    for key in keys:
        try:
            jwk = msgspec.convert(key, Jwk)
            if jwk.use == use:
                yield parse_foreign_key(jwk)
        except (msgspec.ValidationError, BadPublicKey, ValueError):
            continue


def parse_foreign_key(jwk: Jwk) -> ForeignKey:
    algs: tuple[ForeignAlgorithm, ...]
    match jwk:
        case RsaJwk():
            algs, public = (ForeignAlgorithm.RS256, ForeignAlgorithm.PS256), rsa_key(jwk)
        case EcJwk(crv="P-384"):
            algs, public = (ForeignAlgorithm.ES384,), p384_key(jwk)
        case EcJwk():
            algs, public = (ForeignAlgorithm.ES256,), ec_key(jwk)
        case OkpJwk():
            algs, public = (ForeignAlgorithm.EDDSA,), ed25519_key(jwk)
    if jwk.alg not in ("", *algs):
        raise BadPublicKey(f"the alg of this key must be {' or '.join(algs)}")
    return ForeignKey(kid=jwk.kid, algs=tuple(alg for alg in algs if jwk.alg in ("", alg)), public=public)


def rsa_key(jwk: RsaJwk) -> PublicKey:
    key = RSAPublicNumbers(decode_number(jwk.e), decode_number(jwk.n)).public_key()
    refuse_weak_rsa_key(key)
    return key


def ec_key(jwk: EcJwk) -> PublicKey:
    if jwk.crv != "P-256":
        raise BadPublicKey("the curve of an EC key must be P-256")
    return EllipticCurvePublicNumbers(*point_of(jwk, P256_BYTES), SECP256R1()).public_key()


def p384_key(jwk: EcJwk) -> PublicKey:
    return EllipticCurvePublicNumbers(*point_of(jwk, P384_BYTES), SECP384R1()).public_key()


def point_of(jwk: EcJwk, length: int) -> tuple[int, int]:
    return int.from_bytes(decode_exact(jwk.x, length)), int.from_bytes(decode_exact(jwk.y, length))


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
