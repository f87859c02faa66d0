"""RSA public keys handed in by applications and game clients (R4, checklist GS-08, AP-07)."""

from base64 import b64decode, b64encode
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from gatehouse.keys.model import BadPublicKey

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
