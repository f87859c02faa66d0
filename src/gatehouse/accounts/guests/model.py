"""Guests, and what they prove: that they have a device key."""

from enum import StrEnum
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec import Struct

from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import BadInput, Refused
from gatehouse.keys.model import BadPublicKey
from gatehouse.keys.rsa_public_keys import decode_key_text

GUEST_ISSUER: Final = "guest"  # of the identities of guests; the issuer of a provider is an address
GUEST_NAME: Final = "Guest"  # begins the nick of a new one
KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
MAX_KEY_LENGTH: Final = 100  # characters
CHALLENGE_SECONDS: Final = 120


class ChallengeIntent(StrEnum):
    """What the signature of a challenge is for; one challenge never stands in for the other."""

    SIGN_IN = "guest"
    UPGRADE = "upgrade"


class GuestsOff(Refused):
    public = "Guests are turned off for this installation or application."


class DeviceProofRefused(Refused):
    """The challenge was used, has expired or is of another kind, or the key did not sign it; all look alike."""

    public = "The challenge or its signature is invalid. Ask for a new challenge."


class GuestPolicy(Struct, frozen=True, kw_only=True):
    """What the operator allows."""

    enabled: bool
    application_ids: frozenset[int]  # that guests may sign in to; all if empty
    created_per_hour: int  # by one source
    total_per_hour: int  # created by all sources; proof of work is required from half of it on
    idle_days: int  # after which a guest is erased; 0 for never

    def admits(self, application_ids: tuple[int, ...]) -> bool:
        """Whether guests may sign in to these applications; with a list, a login that names none may not."""
        if not self.enabled:
            return False
        return not self.application_ids or (
            bool(application_ids) and self.application_ids.issuperset(application_ids)
        )


class DeviceProof(Struct, frozen=True, kw_only=True):
    """What a game sends; nothing is checked yet."""

    device_key: str
    challenge: str
    signature: str
    puzzle: str = ""  # with its solution: proof of work, for a new guest
    solution: str = ""


class DeviceKey(Struct, frozen=True):
    """An Ed25519 public key, 32 bytes."""

    raw: bytes

    @property
    def subject(self) -> str:
        """The subject of the guest's identity."""
        return sha256(self.raw).hex()

    def has_signed(self, text: str, signature: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, text.encode())
        except (InvalidSignature, ValueError):
            return False
        return True


def read_device_key(text: str) -> DeviceKey:
    """Read 32 bytes in base64 or base64url. Raises BadInput."""
    return DeviceKey(_decode("device_key", text, KEY_BYTES, "an Ed25519 public key"))


def read_signature(text: str) -> bytes:
    return _decode("signature", text, SIGNATURE_BYTES, "an Ed25519 signature")


def _decode(name: str, text: str, length: int, what: str) -> bytes:
    try:
        raw = decode_key_text(text) if len(text) <= MAX_KEY_LENGTH else b""
    except BadPublicKey:
        raw = b""
    if len(raw) != length:
        raise BadInput(f"{name} must be {what}: {length} bytes in base64")
    return raw
