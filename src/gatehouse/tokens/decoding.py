"""The text of a token, taken apart strictly: nothing is believed yet, and nothing sloppy gets through."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Never

import msgspec

from gatehouse.keys.base64url import decode_base64url
from gatehouse.tokens.errors import InvalidToken

MAX_ACCEPTED_TOKEN: Final = 16_384  # characters (S-05)
# Any other asks us to do something: fetch a key, know an extension, unpack (checklist UI-20, UI-21).
HEADER_MEMBERS: Final = frozenset({"alg", "kid", "typ"})
HEADER_CACHE_SIZE: Final = 32  # few keys sign at a time; what strangers send soon falls out again
KID_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedJws:
    alg: str
    kid: str
    payload: dict[str, object]
    signing_input: bytes
    signature: bytes


def parse_jws(token: str) -> ParsedJws:
    """Raise InvalidToken unless this is one compact JWS in its one canonical spelling."""
    if len(token) > MAX_ACCEPTED_TOKEN:
        raise InvalidToken("longer than any valid token")
    if not token.isascii() or token.count(".") != 2:  # noqa: PLR2004 - header.payload.signature
        raise InvalidToken("not a compact JWS")
    signing_input, _, signature = token.encode().rpartition(b".")
    first, _, second = signing_input.partition(b".")
    header, payload = read_header(first), decode_object(decode_segment(second))
    return ParsedJws(
        alg=str(header.get("alg")),
        kid=kid_of(header, payload),
        payload=payload,
        signing_input=signing_input,
        signature=decode_segment(signature),
    )


@lru_cache(maxsize=HEADER_CACHE_SIZE)
def read_header(segment: bytes) -> Mapping[str, object]:
    """Raise InvalidToken for a header that asks for more than we do."""
    header = decode_object(decode_segment(segment))
    if not header.keys() <= HEADER_MEMBERS:
        raise InvalidToken("a header field that is not accepted")
    if header.get("typ", "JWT") != "JWT":
        raise InvalidToken("the header's typ is not JWT")
    return header


def kid_of(header: Mapping[str, object], payload: dict[str, object]) -> str:
    """From the header, else from the payload (R2); when both have one they must agree."""
    kid = header.get("kid", payload.get("kid"))
    if not isinstance(kid, str) or KID_PATTERN.fullmatch(kid) is None:
        raise InvalidToken("kid is missing or malformed")
    if payload.get("kid", kid) != kid:
        raise InvalidToken("two different kids")
    return kid


def decode_segment(segment: bytes) -> bytes:
    try:
        return decode_base64url(segment)
    except ValueError:
        raise InvalidToken("not canonical base64url") from None


def decode_object(raw: bytes) -> dict[str, object]:
    """Decode a JSON object; duplicates, fractions, NaN, NUL and lone surrogates are refused at any depth."""
    if b"\\u0000" in raw:
        raise InvalidToken("NUL in a string")
    try:
        value = json.loads(
            raw.decode(),
            object_pairs_hook=refuse_duplicate_members,
            parse_float=refuse_number,
            parse_constant=refuse_number,
        )
        msgspec.json.encode(value)  # the standard decoder lets lone surrogates pass; they fail here
    except (ValueError, RecursionError):
        raise InvalidToken("not valid JSON") from None
    if not isinstance(value, dict):
        raise InvalidToken("not a JSON object")
    return value


def refuse_duplicate_members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a duplicate field")
    return members


def refuse_number(number: str) -> Never:
    raise ValueError(f"{number} is not an accepted number")
