"""Access tokens: opaque to clients, stored nowhere (docs/decisions/0016-access-tokens-are-not-stored.md).

    version 1 | grant id 16 | end 5 | scopes 1 | distrusted 3 | serial 5 | HMAC-SHA256, its first 24 bytes

`distrusted` is how many signing keys had been distrusted when it was made: after one more it is good no longer.
Only we made whatever reads here; whether its grant is alive is for the caller to ask next.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gatehouse.kernel.digests import constant_time_equal, hmac_sha256
from gatehouse.keys.base64url import decode_base64url, encode_base64url
from gatehouse.oauth.model import SCOPES

VERSION: Final = b"\x02"
GRANT_BYTES: Final = 16
END_BYTES: Final = 5
DISTRUSTED_BYTES: Final = 3
SERIAL_BYTES: Final = 5  # so that no two tokens of one second are the same text
MAC_BYTES: Final = 24
BODY_BYTES: Final = len(VERSION) + GRANT_BYTES + END_BYTES + 1 + DISTRUSTED_BYTES + SERIAL_BYTES
TOKEN_CHARACTERS: Final = (BODY_BYTES + MAC_BYTES) * 4 // 3 + 1
# A new scope is appended to SCOPES: the places of the others are in tokens that live.
SCOPE_BITS: Final = {scope: 1 << place for place, scope in enumerate(SCOPES)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    grant_id: str
    scopes: frozenset[str]
    ends_at: int
    distrust_count: int


class AccessTokens:
    def __init__(self, key: bytes) -> None:
        self._key = key

    def encode(self, grant_id: str, scopes: Iterable[str], ends_at: int, *, distrust_count: int) -> str:
        body = b"".join(
            (
                VERSION,
                bytes.fromhex(grant_id),
                ends_at.to_bytes(END_BYTES),
                sum(SCOPE_BITS[scope] for scope in set(scopes)).to_bytes(),
                distrust_count.to_bytes(DISTRUSTED_BYTES),
                secrets.token_bytes(SERIAL_BYTES),
            )
        )
        return encode_base64url(body + self._mac(body)).decode()

    def decode(self, token: str) -> AccessToken | None:
        """What it says, if it is ours, in its one spelling; its end is told, not judged."""
        raw = decode_access_token(token)
        if raw is None or not constant_time_equal(raw[BODY_BYTES:], self._mac(raw[:BODY_BYTES])):
            return None
        grant_id, rest = raw[1 : 1 + GRANT_BYTES], raw[1 + GRANT_BYTES :]
        bits, rest_of_body = rest[END_BYTES], rest[END_BYTES + 1 :]
        return AccessToken(
            grant_id=grant_id.hex(),
            ends_at=int.from_bytes(rest[:END_BYTES]),
            scopes=frozenset(scope for scope, bit in SCOPE_BITS.items() if bits & bit),
            distrust_count=int.from_bytes(rest_of_body[:DISTRUSTED_BYTES]),
        )

    def _mac(self, body: bytes) -> bytes:
        return hmac_sha256(self._key, body)[:MAC_BYTES]


def decode_access_token(token: str) -> bytes | None:
    """The bytes of something that has the form of our tokens."""
    if len(token) > TOKEN_CHARACTERS or not token.isascii():
        return None
    try:
        raw = decode_base64url(token.encode())
    except ValueError:
        return None
    return raw if len(raw) == BODY_BYTES + MAC_BYTES and raw.startswith(VERSION) else None
