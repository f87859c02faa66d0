"""Digests and comparisons of secrets, in constant time."""

import hashlib
import hmac
from collections.abc import Iterable
from typing import Final, TypeAlias

HMAC_BLOCK: Final = 64  # bytes of a block of SHA-256
INNER_PAD: Final = bytes(byte ^ 0x36 for byte in range(256))  # RFC 2104 §2
OUTER_PAD: Final = bytes(byte ^ 0x5C for byte in range(256))
SecretPair: TypeAlias = tuple[str | bytes, str | bytes]  # what was given, and what is expected


def sha256(text: str | bytes) -> bytes:
    return hashlib.sha256(as_bytes(text)).digest()


def hmac_sha256(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


class HmacSha256:
    """HMAC-SHA256 with one key, whose two states are prepared: half the cost of `hmac_sha256` (RFC 2104 §4)."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        block = (key if len(key) <= HMAC_BLOCK else sha256(key)).ljust(HMAC_BLOCK, b"\0")
        self._inner = hashlib.sha256(block.translate(INNER_PAD))
        self._outer = hashlib.sha256(block.translate(OUTER_PAD))

    def digest(self, message: bytes) -> bytes:
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()


def constant_time_equal(value: str | bytes, expected: str | bytes) -> bool:
    """Compare in constant time.

    The texts are encoded first: `hmac.compare_digest` raises on non-ASCII text, so a caller could cause a 500.
    """
    return hmac.compare_digest(as_bytes(value), as_bytes(expected))


def first_equal(pairs: Iterable[SecretPair]) -> int | None:
    """Return the number of the first pair that is equal; None if none is.

    Every pair is compared, in constant time: the time does not say which of several secrets was given.
    """
    index: int | None = None
    for number, (value, expected) in enumerate(pairs):
        if constant_time_equal(value, expected) and index is None:
            index = number
    return index


def as_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
