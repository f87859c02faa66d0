"""Counts distinct values in little space, and merges such counts.

A sketch holds the smallest digests of the values (bottom-k). Up to SKETCH_SIZE values it is exact; beyond that it
estimates from how dense the smallest ones are, with an error of about 4 percent.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from gatehouse.kernel.digests import hmac_sha256

SKETCH_SIZE: Final = 512
DIGEST_BYTES: Final = 8
DIGEST_RANGE: Final = 2 ** (8 * DIGEST_BYTES)

Sketch = Sequence[int]  # ascending


def sketch_digest(key: bytes, value: str) -> int:
    """Keyed, so that a sketch does not tell what was counted."""
    return int.from_bytes(hmac_sha256(key, value.encode())[:DIGEST_BYTES], "big")


def merge_sketches(sketches: Iterable[Iterable[int]]) -> Sketch:
    merged: list[int] = []
    for sketch in sketches:
        merged = sorted({*merged, *sketch})[:SKETCH_SIZE]
    return merged


def count_distinct(sketch: Sketch) -> int:
    if len(sketch) < SKETCH_SIZE:
        return len(sketch)
    return round((SKETCH_SIZE - 1) * DIGEST_RANGE / sketch[-1])


def encode_sketch(sketch: Sketch) -> bytes:
    return b"".join(digest.to_bytes(DIGEST_BYTES, "big") for digest in sketch)


def decode_sketch(data: bytes) -> Sketch:
    return [int.from_bytes(data[at : at + DIGEST_BYTES], "big") for at in range(0, len(data), DIGEST_BYTES)]
