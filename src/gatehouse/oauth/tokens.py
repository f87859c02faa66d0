"""Access tokens: opaque to clients, stored nowhere (docs/decisions/0016-access-tokens-are-not-stored.md).

    version 1 | grant id 16 | later scopes 1 | end 4 | scopes 1 | distrusted 3 | serial 5 | HMAC-SHA256, its first 24

`distrusted` is the number of signing keys that were distrusted when the token was made; after one more it is invalid.

A token that programs can act with has version 4, and after its serial the places of the scopes it carries for them
among those of its grant, one bit for each.
A token that decodes here was made by this service; the caller must still check that its grant is live.
"""

import secrets
from collections.abc import Collection, Iterable
from functools import cache
from typing import Final

from msgspec import Struct

from gatehouse.kernel.digests import HmacSha256, constant_time_equal
from gatehouse.keys.encoding import decode_base64url, encode_base64url
from gatehouse.oauth.model import SCOPES

VERSION: Final = b"\x02"
VERSION_WITH_PLACES: Final = b"\x04"
GRANT_BYTES: Final = 16
END_BYTES: Final = 4  # until 2106
DISTRUSTED_BYTES: Final = 3
SERIAL_BYTES: Final = 5  # so that two tokens of the same second differ
MAC_BYTES: Final = 24
# The scopes stand in the byte before the end and in the one behind it: tokens of before, with eight scopes, have a
# longer end there, whose first byte is zero.
BODY_BYTES: Final = len(VERSION) + GRANT_BYTES + 1 + END_BYTES + 1 + DISTRUSTED_BYTES + SERIAL_BYTES
MAX_PLACES_BYTES: Final = 20  # more than the scopes of a grant
MAX_CHARACTERS: Final = (BODY_BYTES + MAX_PLACES_BYTES + MAC_BYTES) * 4 // 3 + 1
# A new scope is appended to SCOPES, because live tokens contain the positions of the others.
SCOPE_BITS: Final = {scope: 1 << place for place, scope in enumerate(SCOPES)}


class AccessToken(Struct, frozen=True, kw_only=True):
    grant_id: str
    scopes: frozenset[str]
    ends_at: int
    distrust_count: int
    places: frozenset[int] = frozenset()  # of the scopes of its grant that programs can act with


@cache
def scopes_in(bits: int) -> frozenset[str]:
    return frozenset(scope for scope, bit in SCOPE_BITS.items() if bits & bit)


class AccessTokens:
    def __init__(self, key: bytes) -> None:
        self._hmac = HmacSha256(key)

    def encode(
        self,
        grant_id: str,
        scopes: Iterable[str],
        ends_at: int,
        *,
        distrust_count: int,
        places: Collection[int] = (),
    ) -> str:
        later_scopes, first_scopes = divmod(sum(SCOPE_BITS[scope] for scope in set(scopes)), 256)
        body = b"".join(
            (
                VERSION_WITH_PLACES if places else VERSION,
                bytes.fromhex(grant_id),
                later_scopes.to_bytes(),
                ends_at.to_bytes(END_BYTES),
                first_scopes.to_bytes(),
                distrust_count.to_bytes(DISTRUSTED_BYTES),
                secrets.token_bytes(SERIAL_BYTES),
                encode_places(places),
            )
        )
        return encode_base64url(body + self._mac(body)).decode()

    def decode(self, token: str) -> AccessToken | None:
        """Read a token of this service in its canonical form; its end is not checked."""
        raw = decode_access_token(token)
        if raw is None or not constant_time_equal(raw[-MAC_BYTES:], self._mac(raw[:-MAC_BYTES])):
            return None
        grant_id, later_scopes, rest = raw[1 : 1 + GRANT_BYTES], raw[1 + GRANT_BYTES], raw[2 + GRANT_BYTES :]
        first_scopes, rest_of_body = rest[END_BYTES], rest[END_BYTES + 1 :]
        return AccessToken(
            grant_id=grant_id.hex(),
            ends_at=int.from_bytes(rest[:END_BYTES]),
            scopes=scopes_in(later_scopes << 8 | first_scopes),
            distrust_count=int.from_bytes(rest_of_body[:DISTRUSTED_BYTES]),
            places=decode_places(raw[BODY_BYTES:-MAC_BYTES]),
        )

    def _mac(self, body: bytes) -> bytes:
        return self._hmac.digest(body)[:MAC_BYTES]


def encode_places(places: Collection[int]) -> bytes:
    bits = sum(1 << place for place in set(places))
    return bits.to_bytes((bits.bit_length() + 7) // 8)


def decode_places(raw: bytes) -> frozenset[int]:
    bits = int.from_bytes(raw)
    return frozenset(place for place in range(bits.bit_length()) if bits >> place & 1)


def decode_access_token(token: str) -> bytes | None:
    """Return the bytes of a text that has the form of an access token."""
    if len(token) > MAX_CHARACTERS or not token.isascii():
        return None
    try:
        raw = decode_base64url(token.encode())
    except ValueError:
        return None
    places_bytes = len(raw) - BODY_BYTES - MAC_BYTES
    is_plain = raw.startswith(VERSION) and places_bytes == 0
    has_places = raw.startswith(VERSION_WITH_PLACES) and 0 < places_bytes <= MAX_PLACES_BYTES
    return raw if is_plain or has_places else None
