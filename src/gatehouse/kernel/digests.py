"""Digests and comparisons of secrets, in constant time."""

import hashlib
import hmac


def sha256(text: str | bytes) -> bytes:
    return hashlib.sha256(as_bytes(text)).digest()


def hmac_sha256(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def constant_time_equal(given: str | bytes, expected: str | bytes) -> bool:
    """Compare in constant time.

    The texts are encoded first: `hmac.compare_digest` raises on non-ASCII text, so a caller could cause a 500.
    """
    return hmac.compare_digest(as_bytes(given), as_bytes(expected))


def as_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
