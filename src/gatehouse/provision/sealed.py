"""Secrets inside an exported file: unreadable without the master key, and the same text every time.

Stored secrets are sealed with a random key each (keys/sealing.py), so two exports of one installation would
differ in every line. AES-SIV (RFC 5297) needs no randomness: an export kept under version control shows what
changed and nothing else. What it gives away is that a secret is the same as before.
"""

from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from gatehouse.kernel.errors import BadInput
from gatehouse.keys.base64url import decode_base64url, encode_base64url
from gatehouse.keys.errors import WrongMasterKey
from gatehouse.keys.sealing import MasterKeys

WRONG_MASTER_KEY: Final = "was encrypted with a master key that is not configured here"
WRONG_RECORD: Final = "was encrypted for another record, or is damaged"


class FileSeal:
    def __init__(self, masters: MasterKeys) -> None:
        self._masters = masters

    def seal(self, plain: str, *, purpose: str) -> str:
        """`purpose` names the record and the field: the text opens nowhere else."""
        key_id = self._masters.primary_id
        sealed = self._cipher(key_id).encrypt(plain.encode(), [purpose.encode()])
        return f"{key_id}.{encode_base64url(sealed).decode()}"

    def open(self, sealed: str, *, purpose: str) -> str:
        """Return the secret; raise BadInput in words that follow the name of the field."""
        key_id, _, text = sealed.partition(".")
        if not key_id:
            raise BadInput(WRONG_RECORD)
        try:
            cipher = self._cipher(key_id)
            return cipher.decrypt(decode_base64url(text.encode()), [purpose.encode()]).decode()
        except WrongMasterKey:
            raise BadInput(WRONG_MASTER_KEY) from None
        except (InvalidTag, ValueError):
            raise BadInput(WRONG_RECORD) from None

    def _cipher(self, key_id: str) -> AESSIV:
        halves = (self._masters.derive(f"provision/{half}", key_id=key_id) for half in ("mac", "encryption"))
        return AESSIV(b"".join(halves))
