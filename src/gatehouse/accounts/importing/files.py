"""Open a file of any format: its ID, its number of rows and the rows."""

import hashlib
from collections.abc import Iterator
from typing import BinaryIO, Final

from msgspec import Struct

from gatehouse.accounts.importing.auth0 import read_auth0
from gatehouse.accounts.importing.dropped import DroppedParts
from gatehouse.accounts.importing.firebase import FirebaseHashConfig, read_firebase
from gatehouse.accounts.importing.keycloak import read_keycloak
from gatehouse.accounts.importing.lines import csv_says_verified, read_csv, read_jsonl
from gatehouse.accounts.importing.model import BadImportFile, EmailState, FileRow, ImportFormat

READ_BYTES: Final = 2**20
ID_DIGITS: Final = 16  # of the digest of a file, in hex

VERIFIED_MEMBERS: Final = (b'"email_verified"', b'"emailVerified"')
LONGEST_MEMBER: Final = max(map(len, VERIFIED_MEMBERS))
NOT_SAID: Final = "the file does not say whether emails are verified: choose verified or unverified"


class ImportFile(Struct, frozen=True, kw_only=True):
    import_id: str  # made from the content: the same file continues the same import
    total: int  # rows, to show progress; with lines an estimate
    rows: Iterator[FileRow]
    says_verified: bool = True  # which addresses are verified; True without addresses
    dropped: DroppedParts  # what is left out of the file, once the rows are read

    def email_state(self, answer: EmailState | None) -> EmailState:
        """Return what addresses are if a row does not say. Raises BadImportFile if no one said it (R10)."""
        if answer is None and not self.says_verified:
            raise BadImportFile(NOT_SAID)
        return answer or EmailState.UNVERIFIED


def open_import_file(
    file: BinaryIO,
    source: ImportFormat,
    *,
    hash_config: FirebaseHashConfig | None = None,
    roles_as_tags: bool = False,
) -> ImportFile:
    """Read the file once for its ID and size. The rows are read lazily; BadImportFile may be raised by either.

    `roles_as_tags`: of Keycloak.
    """
    dropped = DroppedParts()
    digest, lines, says, rest = hashlib.sha256(source.value.encode()), 0, False, b""
    while block := file.read(READ_BYTES):
        digest.update(block)
        lines += block.count(b"\n")
        says = says or any(name in rest + block for name in VERIFIED_MEMBERS)
        rest = block[-LONGEST_MEMBER:]
    file.seek(0)
    if source is ImportFormat.CSV:
        says = csv_says_verified(file)
        file.seek(0)
    total: int | None = None
    match source:
        case ImportFormat.CSV:
            rows, total = read_csv(file), max(lines - 1, 1)
        case ImportFormat.JSONL:
            rows = read_jsonl(file)
        case ImportFormat.KEYCLOAK:
            total, rows = read_keycloak(file, dropped, roles_as_tags=roles_as_tags)
        case ImportFormat.AUTH0:
            total, rows = read_auth0(file)
        case ImportFormat.FIREBASE:
            total, rows = read_firebase(file, hash_config)
    return ImportFile(
        import_id=digest.hexdigest()[:ID_DIGITS],
        total=max(lines, 1) if total is None else total,
        rows=rows,
        says_verified=says,
        dropped=dropped,
    )
