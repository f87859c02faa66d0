"""The backup file: gzip, one JSON document per line, the same for both databases.

The first line describes the backup. The last line has the number of rows of each table and a digest over everything
before it; a file whose last line does not match is refused. The digest is also keyed with a key of the installation,
so that a backup cannot be forged or changed without the master key.
"""

import gzip
import hashlib
import os
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, TypeAlias

import msgspec

from gatehouse.kernel.digests import constant_time_equal, hmac_sha256
from gatehouse.kernel.errors import BadInput, Conflict

FORMAT: Final = 1
COMPRESSION: Final = 6

Value: TypeAlias = str | int | bool | None
OnProgress: TypeAlias = Callable[[int], object]


class BackupDamaged(BadInput):
    """The file is not a backup, not whole, or not what was written."""


class BackupForeign(BadInput):
    """The backup is valid, but not for this Gatehouse."""


class FileExists(Conflict):
    pass


class Manifest(msgspec.Struct, frozen=True, kw_only=True, tag="manifest", tag_field="line"):
    format: int
    gatehouse: str  # the version that wrote it
    revision: str  # of the schema
    created_at: int
    base_url: str
    master_key: str  # the id of the key that opens the secrets in it
    instance_key: str  # sealed with that key
    tables: dict[str, tuple[str, ...]]


class ArchiveRows(msgspec.Struct, frozen=True, kw_only=True, tag="rows", tag_field="line"):
    table: str
    rows: tuple[tuple[Value, ...], ...]  # bytes in base64


class ArchiveEnd(msgspec.Struct, frozen=True, kw_only=True, tag="end", tag_field="line"):
    counts: dict[str, int]
    sha256: str
    mac: str

    @property
    def total(self) -> int:
        return sum(self.counts.values())


ArchiveLine: TypeAlias = Manifest | ArchiveRows | ArchiveEnd
LINE_DECODER: Final[msgspec.json.Decoder[ArchiveLine]] = msgspec.json.Decoder(ArchiveLine)


class ArchiveWriter:
    def __init__(self, file: IO[bytes], manifest: Manifest) -> None:
        self._packed = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=COMPRESSION, mtime=manifest.created_at)
        self._digest = hashlib.sha256()
        self._counts = Counter(dict.fromkeys(manifest.tables, 0))
        self._write(manifest)

    def write_rows(self, table: str, rows: Sequence[Sequence[object]]) -> None:
        self._counts[table] += len(rows)
        self._write({"line": "rows", "table": table, "rows": rows})

    def close(self, mac_key: bytes) -> ArchiveEnd:
        digest = self._digest.digest()
        mac = hmac_sha256(mac_key, digest)
        closing = ArchiveEnd(counts=dict(self._counts), sha256=digest.hex(), mac=mac.hex())
        self._write(closing)
        self._packed.close()
        return closing

    def _write(self, line: object) -> None:
        text = msgspec.json.encode(line) + b"\n"
        self._digest.update(text)
        self._packed.write(text)


@contextmanager
def create_file_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Create a file that only its owner may read and that gets its name once it is complete and on the disk."""
    if os.path.lexists(path):
        raise FileExists(f"{path} already exists")
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # mode 0600
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            yield file
            file.flush()
            os.fsync(descriptor)
        Path(draft).rename(path)
        sync_directory(path.parent)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(draft).unlink()
        raise


def sync_directory(path: Path) -> None:
    """Sync the directory, so that the file name survives a power cut too."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Archive(msgspec.Struct, frozen=True):
    """A backup to be read."""

    path: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    def manifest(self) -> Manifest:
        for line in self._lines(lambda _: None):
            return _require_manifest(_decode_line(line))
        raise BackupDamaged(f"{self.path} is empty")

    def chunks(self, on_progress: OnProgress = lambda _: None) -> Generator[ArchiveRows, None, ArchiveEnd]:
        """Yield every chunk of rows, and at the end the last line after it was verified.

        Until then the rows cannot be trusted. `tell` is called with the number of bytes read.
        """
        digest = hashlib.sha256()
        counts: Counter[str] = Counter()
        lines = self._lines(on_progress)
        manifest_line = next(lines, b"")
        manifest = _require_manifest(_decode_line(manifest_line))
        counts.update(dict.fromkeys(manifest.tables, 0))
        digest.update(manifest_line)
        for line in lines:
            decoded = _decode_line(line)
            if isinstance(decoded, ArchiveEnd):
                _refuse_wrong_checksum(decoded, digest.digest(), counts)
                if next(lines, None) is not None:
                    raise BackupDamaged("unexpected data after the end of the backup")
                return decoded
            if isinstance(decoded, Manifest) or not _fits_tables(decoded, manifest.tables):
                raise BackupDamaged("the backup contains rows that do not match its tables")
            counts[decoded.table] += len(decoded.rows)
            digest.update(line)
            yield decoded
        raise BackupDamaged("the end of the backup is missing")

    def _lines(self, on_progress: OnProgress) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file, gzip.GzipFile(fileobj=file) as unpacked:
                for line in unpacked:
                    yield line
                    on_progress(file.tell())
        except (OSError, EOFError, zlib.error) as error:
            raise BackupDamaged(f"cannot read {self.path}: {error}") from error


def refuse_wrong_mac(closing: ArchiveEnd, mac_key: bytes) -> None:
    """Raise BackupDamaged unless the file was written by the installation that has this key."""
    expected = hmac_sha256(mac_key, bytes.fromhex(closing.sha256))
    if not constant_time_equal(expected.hex(), closing.mac):
        raise BackupDamaged("the backup was not written by the installation named in it")


def _decode_line(line: bytes) -> ArchiveLine:
    try:
        return LINE_DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BackupDamaged(f"invalid line in the backup: {error}") from error


def _require_manifest(line: ArchiveLine) -> Manifest:
    if not isinstance(line, Manifest):
        raise BackupDamaged("the backup has no manifest")
    if line.format != FORMAT:
        raise BackupForeign(
            f"the backup has format {line.format}, this Gatehouse supports {FORMAT}: restore it with Gatehouse "
            f"{line.gatehouse}, which wrote it"
        )
    return line


def _fits_tables(chunk: ArchiveRows, tables: Mapping[str, Sequence[str]]) -> bool:
    columns = tables.get(chunk.table)
    return columns is not None and all(len(row) == len(columns) for row in chunk.rows)


def _refuse_wrong_checksum(closing: ArchiveEnd, digest: bytes, counts: Counter[str]) -> None:
    if not constant_time_equal(digest.hex(), closing.sha256):
        raise BackupDamaged("the checksum of the backup is wrong: it was damaged or changed")
    if closing.counts != counts:
        raise BackupDamaged("the number of rows in the backup does not match its manifest")
