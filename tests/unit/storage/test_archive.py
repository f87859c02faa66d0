"""A backup file is complete, or refused."""

import gzip
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from gatehouse.storage.archive import (
    Archive,
    ArchiveEnd,
    ArchiveRows,
    ArchiveWriter,
    BackupDamaged,
    BackupForeign,
    FileExists,
    Manifest,
    create_file_atomically,
    refuse_wrong_mac,
)

KEY = b"k" * 32
MANIFEST = Manifest(
    format=1,
    gatehouse="1.0",
    revision="0001",
    created_at=1_800_000_000,
    base_url="https://login.studio.example",
    master_key="id",
    instance_key="sealed",
    tables={"users": ("user_id", "blocked", "digest"), "empty": ("id",)},
)
ANNA = ("1000000001", True, b"\x00\xff")
BOB = ("1000000002", False, None)


def write_archive(path: Path, manifest: Manifest = MANIFEST) -> ArchiveEnd:
    with create_file_atomically(path) as file:
        writer = ArchiveWriter(file, manifest)
        writer.write_rows("users", [ANNA])
        writer.write_rows("users", [BOB])
        return writer.close(KEY)


def read(path: Path) -> tuple[list[ArchiveRows], ArchiveEnd]:
    chunks = Archive(path).chunks()
    rows = []
    while True:
        try:
            rows.append(next(chunks))
        except StopIteration as end:
            return rows, end.value


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "backup.gz"


def test_archive_reads_back_what_was_written(file: Path) -> None:
    closing = write_archive(file)
    chunks, read_closing = read(file)
    assert Archive(file).manifest() == MANIFEST
    assert [chunk.rows for chunk in chunks] == [
        (("1000000001", True, "AP8="),),
        (("1000000002", False, None),),
    ]
    assert read_closing == closing
    assert closing.counts == {"users": 2, "empty": 0}
    refuse_wrong_mac(closing, KEY)


def test_the_file_is_its_owners_and_has_its_name_only_when_whole(file: Path) -> None:
    with create_file_atomically(file) as out:
        out.write(b"half")
        assert not file.exists()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["backup.gz"]


def test_a_backup_that_fails_leaves_nothing_and_overwrites_nothing(file: Path) -> None:
    with pytest.raises(OSError, match="full"), create_file_atomically(file):
        raise OSError("the disk is full")
    assert list(file.parent.iterdir()) == []
    file.write_text("mine")
    with pytest.raises(FileExists), create_file_atomically(file):
        pytest.fail("nothing may be written")
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[:-1],  # the end is missing
        lambda lines: lines[:1] + lines[2:],  # a chunk is missing
        lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],  # two are swapped
        lambda lines: [*lines, lines[-1]],
        lambda lines: [*lines, b"x"],
        lambda lines: lines[1:],
        lambda lines: [lines[0], *lines],
        lambda lines: [line.replace(b"true", b"false") for line in lines],
        lambda lines: [line.replace(b'"users":2', b'"users":3') for line in lines],
        lambda lines: [line.replace(b'"table":"users"', b'"table":"roles"') for line in lines],
        lambda lines: [line.replace(b',"AP8="', b"") for line in lines],
        lambda lines: [line.replace(b'"AP8="', b"[]") for line in lines],
        lambda lines: [lines[0], b"\xff\n", *lines[1:]],
        lambda _: [],
        lambda _: [b"{}\n"],
    ],
)
def test_a_file_that_was_changed_is_not_believed(file: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    write_archive(file)
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    assert change(lines) != lines
    file.write_bytes(gzip.compress(b"".join(change(lines))))
    with pytest.raises(BackupDamaged):
        read(file)


@pytest.mark.parametrize("part", [0, 1, 9, 20, 60, 99])
def test_a_file_that_was_cut_off_is_not_believed(file: Path, part: int) -> None:
    write_archive(file)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) * part // 100])
    with pytest.raises(BackupDamaged):
        read(file)


def test_every_flipped_bit_in_an_archive_is_detected(file: Path) -> None:
    write_archive(file)
    plain = gzip.decompress(file.read_bytes())
    for position in range(len(plain)):
        flipped = plain[:position] + bytes([plain[position] ^ 1 << position % 8]) + plain[position + 1 :]
        file.write_bytes(gzip.compress(flipped, 1))
        with pytest.raises((BackupDamaged, BackupForeign)):
            refuse_wrong_mac(read(file)[1], KEY)


def test_a_backup_of_a_later_format_names_the_version_that_reads_it(file: Path) -> None:
    write_archive(
        file, Manifest(**{name: getattr(MANIFEST, name) for name in MANIFEST.__struct_fields__} | {"format": 2})
    )
    with pytest.raises(BackupForeign, match=r"restore it with Gatehouse 1\.0"):
        Archive(file).manifest()


def test_backup_closed_with_another_key_is_refused(file: Path) -> None:
    closing = write_archive(file)
    with pytest.raises(BackupDamaged, match="not written by the installation"):
        refuse_wrong_mac(closing, b"another key".ljust(32))


def test_archive_reports_read_progress(file: Path) -> None:
    write_archive(file)
    progress: list[int] = []
    for _ in Archive(file).chunks(progress.append):
        pass
    assert progress[-1] == Archive(file).size
