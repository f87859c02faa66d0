"""Seals the audit log of a storage without a service; every process has the same keys."""

from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gatehouse.audit.head import HeadCodec
from gatehouse.audit.sealer import Sealer
from gatehouse.keys.sealing import MasterKeys
from gatehouse.storage.database import Storage
from tests.support.builders import AUDIT_KEY, NOW, RECORDER
from tests.support.clock import MovableClock


class FixedKey:
    def __init__(self) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(bytes(32))

    def sign(self, message: bytes) -> tuple[str, bytes]:
        return "k1", self._key.sign(message)

    async def is_valid_signature(self, kid: str, message: bytes, signature: bytes) -> bool:
        try:
            self._key.public_key().verify(signature, message)
        except InvalidSignature:
            return False
        return kid == "k1"


KEY: Final = FixedKey()
BOX: Final = HeadCodec(MasterKeys(bytes(range(1, 33))))


def sealer(storage: Storage, clock: MovableClock | None = None) -> Sealer:
    return Sealer(
        store=storage.audit,
        key=KEY,
        head_codec=BOX,
        recorder=RECORDER,
        mac_key=AUDIT_KEY,
        clock=clock or MovableClock(NOW),
    )
