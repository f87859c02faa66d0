"""Open a file of any format: its ID, its number of rows and the rows."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from gatehouse.accounts.importing.lines import read_csv, read_jsonl
from gatehouse.accounts.importing.model import FileRow, ImportFormat
from gatehouse.accounts.importing.vendors import FirebaseHashConfig, read_auth0, read_firebase, read_keycloak

READ_BYTES: Final = 2**20
ID_DIGITS: Final = 16  # of the digest of a file, in hex


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFile:
    import_id: str  # made from the content: the same file continues the same import
    total: int  # rows, to show progress; with lines an estimate
    rows: Iterator[FileRow]


def open_import_file(
    file: BinaryIO, source: ImportFormat, *, hash_config: FirebaseHashConfig | None = None
) -> ImportFile:
    """Read the file once for its ID and size. The rows are read lazily; BadImportFile may be raised by either."""
    digest, lines = hashlib.sha256(source.value.encode()), 0
    while block := file.read(READ_BYTES):
        digest.update(block)
        lines += block.count(b"\n")
    file.seek(0)
    total: int | None = None
    match source:
        case ImportFormat.CSV:
            rows, total = read_csv(file), max(lines - 1, 1)
        case ImportFormat.JSONL:
            rows = read_jsonl(file)
        case ImportFormat.KEYCLOAK:
            total, rows = read_keycloak(file)
        case ImportFormat.AUTH0:
            total, rows = read_auth0(file)
        case ImportFormat.FIREBASE:
            total, rows = read_firebase(file, hash_config)
    return ImportFile(
        import_id=digest.hexdigest()[:ID_DIGITS], total=max(lines, 1) if total is None else total, rows=rows
    )
