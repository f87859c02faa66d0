"""Tokens of foreign issuers: parsed with the header members that others use, and verified with their keys."""

from collections.abc import Collection
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256, SHA384

from gatehouse.keys.jwk_parsing import ForeignAlgorithm
from gatehouse.keys.key_objects import PublicKey
from gatehouse.tokens.claims import InvalidToken
from gatehouse.tokens.verifier import (
    MAX_ACCEPTED_TOKEN,
    CompactJws,
    ParsedJws,
    decode_object,
    decode_segment,
    der_signature,
    is_signed_by,
)

MAX_KEY_ID: Final = 255  # characters
PS256_PADDING: Final = PSS(mgf=MGF1(SHA256()), salt_length=PSS.DIGEST_LENGTH)
ES384_SIGNATURE: Final = ECDSA(SHA384())
P384_BYTES: Final = 48


def parse_foreign_jws(token: str, *, refused: Collection[str] = ("crit",)) -> ParsedJws:
    """Parse a foreign token: other header members than ours are common, and none of them is used.

    Raises InvalidToken, also for a header with a refused member.
    """
    if len(token) > MAX_ACCEPTED_TOKEN or not token.isascii() or token.count(".") != 2:  # noqa: PLR2004
        raise InvalidToken("not a compact JWS")
    signing_input, _, signature = token.encode().rpartition(b".")
    first, _, second = signing_input.partition(b".")
    header = decode_object(decode_segment(first))
    for name in refused:
        if name in header:
            raise InvalidToken(f"the header has {name}")
    kid = header.get("kid")
    return ParsedJws(
        alg=str(header.get("alg")),
        kid=kid if isinstance(kid, str) and len(kid) <= MAX_KEY_ID else "",
        typ=str(header.get("typ", "JWT")),
        payload=decode_object(decode_segment(second)),
        signing_input=signing_input,
        signature=decode_segment(signature),
    )


def is_signed_with(jws: CompactJws, public: PublicKey) -> bool:
    """Whether the key signed it with the algorithm of its header; the caller checked that the key is for that."""
    try:
        match jws.alg, public:
            case ForeignAlgorithm.PS256, RSAPublicKey():
                public.verify(jws.signature, jws.signing_input, PS256_PADDING, SHA256())
            case ForeignAlgorithm.ES384, EllipticCurvePublicKey():
                public.verify(der_signature(jws.signature, P384_BYTES), jws.signing_input, ES384_SIGNATURE)
            case _:
                return is_signed_by(jws, public)
    except InvalidSignature:
        return False
    return True
