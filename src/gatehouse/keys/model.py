"""A signing key and its four states."""

from dataclasses import dataclass, field
from enum import StrEnum


class Algorithm(StrEnum):
    """Supported signature algorithms; `none` and HMAC are not supported (R2)."""

    RS256 = "RS256"
    ES256 = "ES256"
    EDDSA = "EdDSA"


class KeyPurpose(StrEnum):
    """What a key may sign. A key of one purpose never verifies for another."""

    TOKENS = "tokens"  # published in the key set
    REFRESH = "refresh"  # only we verify refresh tokens, so its public half stays here (R2)
    AUDIT = "audit"


class KeyState(StrEnum):
    NEXT = "next"  # published, does not sign yet: verifiers get time to fetch it (S-06)
    SIGNING = "signing"
    VERIFYING = "verifying"  # signs no more; what it signed is still good
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class KeyLine:
    """The keys that succeed one another: at any time one of them signs."""

    purpose: KeyPurpose
    alg: Algorithm


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """Times are Unix seconds; an end of 0 is open."""

    kid: str
    alg: Algorithm
    purpose: KeyPurpose
    public: bytes  # SubjectPublicKeyInfo, DER
    sealed_private: bytes = field(repr=False)  # PKCS#8 DER, sealed for `sealed_for`
    created_at: int
    signs_from: int
    signs_until: int = 0
    verifies_until: int = 0

    @property
    def line(self) -> KeyLine:
        return KeyLine(self.purpose, self.alg)

    @property
    def sealed_for(self) -> str:
        """Binds the private half to its place: a record copied to another kid, or use, does not open."""
        return f"signing-key:{self.purpose}:{self.alg}:{self.kid}"


def is_distrusted(key: SigningKey) -> bool:
    """Whether an operator ended the key (`Manner.DISTRUST`): one that was replaced verifies longer than it signs."""
    return key.verifies_until != 0 and key.verifies_until == key.signs_until


def key_state(key: SigningKey, now: int) -> KeyState:
    if key.verifies_until and now >= key.verifies_until:
        return KeyState.RETIRED
    if now < key.signs_from:
        return KeyState.NEXT
    if key.signs_until and now >= key.signs_until:
        return KeyState.VERIFYING
    return KeyState.SIGNING
