"""Public keys of clients that prove themselves with private_key_jwt: a JWK set, read strictly (RFC 7517, 7518)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey, EllipticCurvePublicNumbers
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers

from gatehouse.keys.base64url import decode_base64url
from gatehouse.keys.errors import BadPublicKey
from gatehouse.keys.model import Algorithm
from gatehouse.keys.public_keys import refuse_weak_rsa_key
from gatehouse.oauth.errors import BadClient

MAX_KEYS: Final = 8
MAX_CHARACTERS: Final = 2_048
P256_BYTES: Final = 32
ED25519_BYTES: Final = 32
PRIVATE_MEMBERS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})  # RFC 7518 §6

PublicKey: TypeAlias = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey
Text = Annotated[str, msgspec.Meta(max_length=MAX_CHARACTERS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientKey:
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


class ClientJwkSet(msgspec.Struct, frozen=True, kw_only=True):
    keys: tuple[RsaJwk | EcJwk | OkpJwk, ...]


def parse_client_keys(jwks: Mapping[str, object]) -> tuple[ClientKey, ...]:
    """Every key of the set; none for an empty one. Raises BadClient with words for whoever wrote it."""
    if not jwks:
        return ()
    refuse_private_keys(jwks.get("keys"))
    try:
        written = msgspec.convert(jwks, ClientJwkSet)
        found = tuple(map(client_key_of, written.keys))
    except (msgspec.ValidationError, BadPublicKey, ValueError) as error:
        raise BadClient(f"jwks: {error}", field="jwks") from None
    if not 0 < len(found) <= MAX_KEYS:
        raise BadClient(f"jwks must have 1 to {MAX_KEYS} keys", field="jwks")
    if len({key.kid for key in found}) < len(found):
        raise BadClient("jwks: several keys need different kids", field="jwks")
    return found


def refuse_private_keys(keys: object) -> None:
    """Before anything else looks at it: a private half is neither kept nor quoted."""
    if isinstance(keys, list | tuple) and any(PRIVATE_MEMBERS & set(key) for key in keys if isinstance(key, Mapping)):
        raise BadClient("jwks contains a private key; keep it secret and register the public key", field="jwks")


def client_key_of(jwk: RsaJwk | EcJwk | OkpJwk) -> ClientKey:
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
    return ClientKey(kid=jwk.kid, alg=alg, public=public)


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
