"""Size limits of tokens: what does not fit is left out, and a claim marks that (R2, checklist TK-31).

Proxies and servers commonly read 8 KB of one header line, our own server 16 KB of all of them. Values that callers
and administrators set are limited when they are saved, so that a token at all of these limits still fits;
permissions and mapped claims are added only while there is room.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from gatehouse.tokens.claims import Claims, PersonClaims

MAX_ISSUED_TOKEN: Final = 8_000  # characters: 8 KB of a header line, less `Authorization: Bearer `
MAX_ID_TOKEN: Final = 6_144  # characters: it comes back as id_token_hint, in an address of at most 8 KB
MAX_PERM: Final = 6_144  # characters that `perm` takes in a token
# Bytes of JSON that one value takes in a payload, before base64.
MAX_TAG_BYTES: Final = 1_024
MAX_PUBLIC_KEY_BYTES: Final = 1_792  # an RSA key of 8192 bits takes 1,560 in PEM
MAX_NONCE_BYTES: Final = 2_048
# Characters beside the payload: the header, two dots, and the signature of the largest RSA key (R2: 3072 bits).
JWS_OVERHEAD: Final = 64 + 2 + 512
KID_PLACEHOLDER: Final = "0" * 12  # as long as every kid of this service

P = TypeVar("P", bound=PersonClaims)


def json_length(value: object) -> int:
    """Return the bytes of a value in a payload; of text without its quotes."""
    return len(msgspec.json.encode(value)) - (2 if isinstance(value, str) else 0)


def base64_length(length: int) -> int:
    return -(-length * 4 // 3)


def payload_bytes_left(claims: Claims, max_length: int) -> int:
    """Return the bytes of JSON that may still be added to the payload; negative when it is too long already."""
    payload = msgspec.structs.replace(claims, kid=KID_PLACEHOLDER) if claims.repeats_kid else claims
    return (max_length - JWS_OVERHEAD) * 3 // 4 - json_length(payload)


def tag_claims(tags: str) -> dict[str, Any]:
    """Return `tgs`.

    Tags from before the limit may be too long and are left out, because a part of them would be wrong.
    """
    return {"tgs": tags} if json_length(tags) <= MAX_TAG_BYTES else {"tgs": "", "tgs_omitted": True}


def without_long_perm(claims: P) -> P:
    """Return the claims with `perm_omitted` instead of a `perm` that is too long; readers then ask for it."""
    if claims.perm is None:
        return claims
    if base64_length(json_length(claims.perm)) <= MAX_PERM and payload_bytes_left(claims, MAX_ISSUED_TOKEN) >= 0:
        return claims
    return msgspec.structs.replace(claims, perm=None, perm_exp=None, perm_omitted=True)


def claims_that_fit(extra_claims: Mapping[str, object], bytes_left: int) -> Mapping[str, object]:
    """Return as many members as fit, the shortest first."""
    retained: dict[str, object] = {}
    for length, name in sorted((json_length({name: value}), name) for name, value in extra_claims.items()):
        bytes_left -= length - 1  # without braces, with a comma
        if bytes_left < 0:
            break
        retained[name] = extra_claims[name]
    return retained
