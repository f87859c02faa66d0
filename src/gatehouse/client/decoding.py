"""Parses the text of a token as strictly as the service itself; nothing is verified yet."""

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Final, Never

import msgspec

from gatehouse.client.errors import Unauthenticated

MAX_TOKEN: Final = 16_384  # characters
DOTS: Final = 2  # header.payload.signature
# Any other asks the reader to do something: fetch a key, know an extension, unpack (checklist UI-20, UI-21).
HEADER_MEMBERS: Final = frozenset({"alg", "kid", "typ"})
KID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedJws:
    kid: str
    payload: dict[str, object]
    signing_input: bytes
    signature: bytes


def decode_jws(token: str, *, typ: str = "JWT") -> DecodedJws:
    """Raise Unauthenticated unless this is one compact JWS with RS256 in its one canonical spelling."""
    if len(token) > MAX_TOKEN or not token.isascii() or token.count(".") != DOTS:
        raise Unauthenticated("not a compact JWS")
    signing_input, _, signature = token.encode().rpartition(b".")
    first, _, second = signing_input.partition(b".")
    try:
        header, payload = decode_object(decode_base64url(first)), decode_object(decode_base64url(second))
        refuse_header(header, typ)
        return DecodedJws(
            kid=kid_of(header, payload),
            payload=payload,
            signing_input=signing_input,
            signature=decode_base64url(signature),
        )
    except (ValueError, RecursionError) as error:
        raise Unauthenticated(str(error)) from None


def refuse_header(header: dict[str, object], typ: str) -> None:
    if not header.keys() <= HEADER_MEMBERS:
        raise ValueError("a header field that is not accepted")
    if header.get("alg") != "RS256" or header.get("typ", "JWT") != typ:
        raise ValueError("wrong alg or typ for this class of token")


def kid_of(header: dict[str, object], payload: dict[str, object]) -> str:
    """Return the kid from the header or the payload; if both have one they must be equal (R2)."""
    kid = header.get("kid", payload.get("kid"))
    if not isinstance(kid, str) or KID.fullmatch(kid) is None:
        raise ValueError("kid is missing or malformed")
    if payload.get("kid", kid) != kid:
        raise ValueError("two different kids")
    return kid


def encode_base64url(raw: bytes) -> bytes:
    return urlsafe_b64encode(raw).rstrip(b"=")


def decode_base64url(text: bytes) -> bytes:
    """Raise ValueError for padding, junk and loose bits, all of which the standard decoder accepts (RFC 7515 §2)."""
    raw = urlsafe_b64decode(text + b"=" * (-len(text) % 4))
    if encode_base64url(raw) != text:
        raise ValueError("not canonical base64url")
    return raw


def decode_object(raw: bytes) -> dict[str, object]:
    """Raise ValueError for duplicates, fractions, NaN, NUL and lone surrogates at any depth."""
    if b"\\u0000" in raw:
        raise ValueError("NUL in a string")
    value = json.loads(
        raw.decode(), object_pairs_hook=reject_duplicates, parse_float=reject_number, parse_constant=reject_number
    )
    msgspec.json.encode(value)  # the standard decoder accepts lone surrogates; they fail here
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - about what was sent, not about our types
    return value


def reject_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a duplicate field")
    return members


def reject_number(_number: str) -> Never:
    raise ValueError("an invalid number")
