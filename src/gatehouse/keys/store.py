"""What this room needs kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gatehouse.audit.model import AuditRecord
from gatehouse.keys.model import SigningKey


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKeys:
    """All keys ever made, retired ones too, and the number of the save that left them like this."""

    version: int  # 0 before the first save; every save adds one
    keys: tuple[SigningKey, ...]


class KeyStore(Protocol):
    async def load_keys(self) -> StoredKeys:
        """Return the keys and their version as one consistent reading."""

    async def keys_version(self) -> int:
        """Return the version of the keys alone: one short read of what is committed now."""

    async def save_keys(self, keys: Sequence[SigningKey], *, seen: int, entry: AuditRecord) -> None:
        """Insert the keys whose kid is new, replace the others, raise the version: one atomic act.

        Only when the stored version still is `seen`; otherwise KeysChanged, and nothing is written: of two
        nodes that decide from one reading exactly one wins. Of a known kid only the sealed private half and
        the times may change; kids are never reused and rows never removed (R2). The audit entry commits with
        it.
        """
