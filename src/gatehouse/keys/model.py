"""Signing keys, their errors and their storage. No error contains key material."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from gatehouse.audit.model import AuditRecord
from gatehouse.fields.secrets import SecretBytes, SecretRecord
from gatehouse.kernel.errors import BadInput, Conflict, GatehouseError, Misconfigured, Unavailable


class WrongMasterKey(Misconfigured):
    """A record was sealed under a master key that was not given to this process."""

    public = "Stored secrets are encrypted with another master key."


class MasterKeyMissing(Unavailable):
    """The installation uses a master key that was not given to this process, which can only wait for a restart."""


class Tampered(GatehouseError):
    """A sealed record does not authenticate: damaged, moved to another place, or forged."""

    public = "A stored secret is damaged."


class KeysChanged(Conflict):
    """The stored keys are no longer the ones the decision was made from; nothing was written."""

    public = "The signing keys were changed in the meantime."


class RotationPending(Conflict):
    public = "A new key is already published and not active yet."


class NoSigningKey(Unavailable):
    """There is no usable key to sign with: not made yet, or refused because it is damaged."""


class BadPublicKey(BadInput):
    """The detail says what is wrong with the key, in words that are safe to show."""

    public = "The public key is not valid."


# A signing key and its four states.


class Algorithm(StrEnum):
    """Supported signature algorithms; `none` is not supported (R2)."""

    RS256 = "RS256"
    ES256 = "ES256"
    EDDSA = "EdDSA"


class MacAlgorithm(StrEnum):
    """A type of its own: nothing that has the choice of a signature algorithm can choose HMAC (R2)."""

    HS256 = "HS256"


KeyAlgorithm = Algorithm | MacAlgorithm


def key_algorithm(name: str) -> KeyAlgorithm:
    """Raise ValueError for an unknown name."""
    return MacAlgorithm.HS256 if name == MacAlgorithm.HS256 else Algorithm(name)


class KeyPurpose(StrEnum):
    """What a key may sign. A key of one purpose never verifies for another."""

    TOKENS = "tokens"  # published in the key set
    REFRESH = "refresh"  # only this service verifies refresh tokens, so it has secret keys (R2)
    AUDIT = "audit"


class KeyState(StrEnum):
    NEXT = "next"  # published, does not sign yet: verifiers get time to fetch it (S-06)
    SIGNING = "signing"
    VERIFYING = "verifying"  # does not sign any more; its signatures are still valid
    RETIRED = "retired"


class KeyLine(Struct, frozen=True):
    """The keys that succeed one another: at any time one of them signs."""

    purpose: KeyPurpose
    alg: KeyAlgorithm


REFRESH_KEYS: Final = KeyLine(KeyPurpose.REFRESH, MacAlgorithm.HS256)


class SigningKey(SecretRecord, frozen=True, kw_only=True):
    """Times are Unix seconds; an end of 0 is open."""

    kid: str
    alg: KeyAlgorithm
    purpose: KeyPurpose
    public: bytes  # SubjectPublicKeyInfo, DER; empty for a secret key
    sealed_private: SecretBytes  # PKCS#8 DER, or the secret key itself; sealed for `sealed_for`
    created_at: int
    signs_from: int
    signs_until: int = 0
    verifies_until: int = 0

    @property
    def line(self) -> KeyLine:
        """Its line. The keys of refresh tokens are one, although those made before HS256 are EdDSA."""
        return REFRESH_KEYS if self.purpose is KeyPurpose.REFRESH else KeyLine(self.purpose, self.alg)

    @property
    def sealed_for(self) -> str:
        """The purpose the private half is sealed for: a record copied to another kid or use does not open."""
        return f"signing-key:{self.purpose}:{self.alg}:{self.kid}"


def is_distrusted(key: SigningKey) -> bool:
    """Whether an operator ended the key: one that was replaced verifies longer than it signs."""
    return key.verifies_until != 0 and key.verifies_until == key.signs_until


def key_state(key: SigningKey, now: int) -> KeyState:
    if key.verifies_until and now >= key.verifies_until:
        return KeyState.RETIRED
    if now < key.signs_from:
        return KeyState.NEXT
    if key.signs_until and now >= key.signs_until:
        return KeyState.VERIFYING
    return KeyState.SIGNING


# Storage of keys.


class StoredKeys(Struct, frozen=True, kw_only=True):
    """All keys ever made, retired ones too, and the number of the save that left them like this."""

    version: int  # 0 before the first save; every save adds one
    keys: tuple[SigningKey, ...]


class KeyStore(Protocol):
    async def load_keys(self) -> StoredKeys:
        """Return the keys and their version as one consistent reading."""

    async def keys_version(self) -> int:
        """Return the version of the keys alone: one short read of what is committed now."""

    async def save_keys(self, keys: Sequence[SigningKey], *, seen: int, entry: AuditRecord) -> None:
        """Insert the keys whose kid is new, replace the others, raise the version, in one transaction.

        Only when the stored version still is `seen`; otherwise KeysChanged, and nothing is written: of two
        nodes that decide from one reading exactly one wins. Of a known kid only the sealed private half and
        the times may change; kids are never reused and rows never removed (R2). The audit entry commits with
        it.
        """
