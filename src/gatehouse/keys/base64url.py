"""Base64url without padding, in its one canonical spelling.

The standard decoder drops characters it does not know and ignores loose bits at the end, so that one
signature has many spellings; a round trip leaves exactly one (RFC 7515 §2).
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode


def encode_base64url(raw: bytes) -> bytes:
    return urlsafe_b64encode(raw).rstrip(b"=")


def decode_base64url(text: bytes) -> bytes:
    """Return the bytes; raise ValueError for padding, junk or loose bits."""
    raw = urlsafe_b64decode(text + b"=" * (-len(text) % 4))
    if encode_base64url(raw) != text:
        raise ValueError("not canonical base64url")
    return raw
