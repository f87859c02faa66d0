"""`Request-Sign`: RSA with SHA-256 over the request's body, by a registered key (interface §4.3, R1, R4)."""

from base64 import b64decode
from functools import lru_cache

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from gatehouse.keys.model import BadPublicKey
from gatehouse.keys.rsa_public_keys import MAX_KEY_CHARACTERS, parse_rsa_public_key
from gatehouse.tokens.rsa_signatures import RS256_PADDING, SHA_256


def is_signed_request(signature: str, body: bytes, public_key: str) -> bool:
    """Whether the body was signed by the key; base64 and base64url are both accepted."""
    key, signature_bytes = cached_rsa_key(public_key), decode_signature(signature)
    if key is None or signature_bytes is None:
        return False
    try:
        key.verify(signature_bytes, body, RS256_PADDING, SHA_256)
    except InvalidSignature:
        return False
    return True


def is_same_key(key_text: str, public_key: str) -> bool:
    """Whether two texts are the same key; the second one, which is untrusted, is not cached."""
    if len(key_text) > MAX_KEY_CHARACTERS:
        return False
    try:
        return parse_rsa_public_key(key_text) == cached_rsa_key(public_key)
    except BadPublicKey:
        return False


@lru_cache(maxsize=1_024)
def cached_rsa_key(public_key: str) -> RSAPublicKey | None:
    """Return the key, or None if today's rules refuse it. Cached and never invalid, because parsing is pure."""
    try:
        return parse_rsa_public_key(public_key)
    except BadPublicKey:
        return None


def decode_signature(signature: str) -> bytes | None:
    standard = signature.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except ValueError:
        return None
