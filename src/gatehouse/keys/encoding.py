"""Base64url without padding, in its one canonical spelling.

The standard decoder drops characters it does not know and ignores loose bits at the end, so that one signature has
many spellings; comparing a round trip accepts exactly one (RFC 7515 §2).
"""

from binascii import a2b_base64, b2a_base64
from typing import Final

TO_URL_ALPHABET: Final = bytes.maketrans(b"+/", b"-_")
FROM_URL_ALPHABET: Final = bytes.maketrans(b"-_", b"+/")


def encode_base64url(raw: bytes) -> bytes:
    return b2a_base64(raw, newline=False).translate(TO_URL_ALPHABET).rstrip(b"=")


def decode_base64url(text: bytes) -> bytes:
    """Return the bytes; raise ValueError for padding, junk or loose bits."""
    raw = a2b_base64(text.translate(FROM_URL_ALPHABET) + b"=" * (-len(text) % 4))
    if encode_base64url(raw) != text:
        raise ValueError("not canonical base64url")
    return raw
