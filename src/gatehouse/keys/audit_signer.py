"""Signs the heads of the audit chain and verifies these signatures."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from gatehouse.kernel.clock import Clock
from gatehouse.keys.keyring import Keyring
from gatehouse.keys.model import Algorithm, KeyPurpose


class AuditSigner:
    def __init__(self, *, keyring: Keyring, clock: Clock) -> None:
        self._keyring = keyring
        self._clock = clock

    def sign(self, message: bytes) -> tuple[str, bytes]:
        key = self._keyring.signing_key(KeyPurpose.AUDIT, Algorithm.EDDSA, self._clock.now())
        assert isinstance(key.private, Ed25519PrivateKey)  # noqa: S101 - narrows the type
        return key.record.kid, key.private.sign(message)

    async def is_valid_signature(self, kid: str, message: bytes, signature: bytes) -> bool:
        key = await self._keyring.verification_key(KeyPurpose.AUDIT, kid, self._clock.now())
        if key is None or not isinstance(key.public, Ed25519PublicKey):
            return False
        try:
            key.public.verify(signature, message)
        except InvalidSignature:
            return False
        return True
