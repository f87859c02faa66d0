"""Base64url without padding, in its one canonical spelling.

The standard decoder drops characters it does not know and ignores loose bits at the end, so that one signature has
many spellings; comparing a round trip accepts exactly one (RFC 7515 §2).
"""

from base64 import b64decode, b64encode
from binascii import a2b_base64, b2a_base64
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_private_key,
    load_der_public_key,
)

from gatehouse.keys.model import BadPublicKey

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


# Key objects of the three algorithms, and their bytes.


PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey | Ed25519PrivateKey
PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey


def public_der(key: PublicKey) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def public_pem(key: PublicKey) -> str:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def load_public(der: bytes) -> PublicKey:
    key = load_der_public_key(der)
    if not isinstance(key, PublicKey):
        raise ValueError("not a supported key")  # noqa: TRY004 - it is a value read from the store
    return key


def load_private(der: bytes) -> PrivateKey:
    """Load what was sealed here.

    The arithmetic of an RSA key is not checked again: it takes 60 ms, and the seal has already shown that
    these are the bytes that were generated.
    """
    key = load_der_private_key(der, None, unsafe_skip_rsa_key_validation=True)
    if not isinstance(key, PrivateKey):
        raise ValueError("not a supported key")  # noqa: TRY004 - it is a value read from the store
    return key


# RSA public keys handed in by applications and game clients (R4, checklist GS-08, AP-07).


MIN_RSA_BITS: Final = 2048
MAX_RSA_BITS: Final = 8192
MIN_EXPONENT: Final = 65_537
# With a public exponent as long as the modulus, one verification would cost as much as a signature.
MAX_EXPONENT_BITS: Final = 64
MAX_KEY_CHARACTERS: Final = 4_096  # characters; 8192 bits take 1,500 in PEM, and longer text is not parsed
PEM_LABELS: Final = ("PUBLIC KEY", "RSA PUBLIC KEY")  # SubjectPublicKeyInfo, PKCS#1


def parse_rsa_public_key(text: str) -> RSAPublicKey:
    """Read PEM, or DER in base64 or base64url; raise BadPublicKey with a text for the sender."""
    if len(text) > MAX_KEY_CHARACTERS:
        raise BadPublicKey(f"the key is longer than {MAX_KEY_CHARACTERS} characters")
    if "PRIVATE KEY" in text:
        raise BadPublicKey("this is a private key; keep it secret and send the public key")
    return rsa_public_key_from_der(decode_key_text(pem_body(text.strip())))


def rsa_public_key_from_der(der: bytes) -> RSAPublicKey:
    """Read SubjectPublicKeyInfo or PKCS#1, without anything before or after it."""
    try:
        key = load_der_public_key(der)
    except (ValueError, UnsupportedAlgorithm):
        raise BadPublicKey("not a public key in PEM or DER format") from None
    if not isinstance(key, RSAPublicKey):
        raise BadPublicKey("not an RSA key")
    refuse_weak_rsa_key(key)
    return key


def refuse_weak_rsa_key(key: RSAPublicKey) -> None:
    if not MIN_RSA_BITS <= key.key_size <= MAX_RSA_BITS:
        raise BadPublicKey(f"an RSA key must have {MIN_RSA_BITS} to {MAX_RSA_BITS} bits, not {key.key_size}")
    numbers = key.public_numbers()
    if numbers.n % 2 == 0:
        raise BadPublicKey("the modulus is even")
    if numbers.e % 2 == 0 or numbers.e < MIN_EXPONENT or numbers.e.bit_length() > MAX_EXPONENT_BITS:
        raise BadPublicKey(f"the exponent must be odd, at least {MIN_EXPONENT} and of at most 64 bits")


def pem_body(text: str) -> str:
    """Return the text between the two lines of one PEM block; text without them is returned unchanged."""
    for label in PEM_LABELS:
        begin, end = f"-----BEGIN {label}-----", f"-----END {label}-----"
        if text.startswith(begin) and text.endswith(end):
            return text[len(begin) : -len(end)]
    return text


def decode_key_text(text: str) -> bytes:
    compact = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        der = b64decode(compact + "=" * (-len(compact) % 4), validate=True)
    except ValueError:
        raise BadPublicKey("not a public key in PEM or DER format") from None
    if b64encode(der).decode().rstrip("=") != compact:
        raise BadPublicKey("the key is not canonical base64")
    return der
