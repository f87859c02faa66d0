"""Key objects of the algorithms, and their bytes."""

from typing import Final

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_private_key,
    load_der_public_key,
)

from gatehouse.kernel.digests import HmacSha256

SECRET_KEY_BYTES: Final = 32  # R2


class HmacKey:
    """A secret key of HMAC-SHA256, which has no public half. Its repr does not show it."""

    __slots__ = ("_hmac", "secret")

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self._hmac = HmacSha256(secret)

    def sign(self, message: bytes) -> bytes:
        return self._hmac.digest(message)


PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey | Ed25519PrivateKey
PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey


def public_der(key: PublicKey) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def public_pem(key: PublicKey) -> str:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def load_public(der: bytes) -> PublicKey:
    key = load_der_public_key(der)
    if not isinstance(key, PublicKey):
        raise ValueError("not a supported key")  # noqa: TRY004 - it is a value read from the store
    return key


def load_private(der: bytes) -> PrivateKey:
    """Load what was sealed here.

    The arithmetic of an RSA key is not checked again: it takes 60 ms, and the seal has already shown that
    these are the bytes that were generated.
    """
    key = load_der_private_key(der, None, unsafe_skip_rsa_key_validation=True)
    if not isinstance(key, PrivateKey):
        raise ValueError("not a supported key")  # noqa: TRY004 - it is a value read from the store
    return key
