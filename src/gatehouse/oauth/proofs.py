"""The proof of a native client, and that of whoever began an authorization: PKCE."""

import hashlib
import re
from typing import Final

from gatehouse.kernel.digests import as_bytes, constant_time_equal, sha256
from gatehouse.keys.base64url import encode_base64url

# The length of RFC 7636 §4.1. Its alphabet is smaller, but git-credential-oauth of Debian 12 sends plain base64.
VERIFIER_PATTERN: Final = re.compile(r"[!-~]{43,128}", re.ASCII)


def is_native_proof(given: str, redirect_uri: str, secret: bytes) -> bool:
    """Hex of SHA-1 over redirect_uri + client_secret, in either case (interface §5.1, R3)."""
    expected = hashlib.sha1(as_bytes(redirect_uri) + secret, usedforsecurity=False).hexdigest()
    return constant_time_equal(given.lower(), expected)


def matches_code_challenge(verifier: str, challenge: str) -> bool:
    """S256; a verifier where there was no challenge is refused too (checklist TK-26)."""
    if not challenge or not verifier:
        return not challenge and not verifier
    return VERIFIER_PATTERN.fullmatch(verifier) is not None and constant_time_equal(
        encode_base64url(sha256(verifier)), challenge
    )
