"""A disk under SQLite that a test can watch, break and block: a SQLite VFS over the default one.

It shows what killing a process cannot: the kernel keeps what a killed process has written; only the order of writes
and syncs tells what a power cut would leave.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw

TIMEOUT: Final = 30.0  # seconds
ORDINARY: Final = "unix"

Name = str | apsw.URIFilename | None


class FaultyDisk(apsw.VFS):
    """While it is registered, apsw opens every file of this process on it."""

    def __init__(self) -> None:
        self.done: list[str] = []  # "write db-wal", "sync db-wal", in the order they reached the disk
        self.write_failure: type[apsw.Error] | None = None
        self.read_failure: type[apsw.Error] | None = None
        self.read_failed = threading.Event()
        self._syncing = threading.Event()
        self._may_sync = threading.Event()
        self._may_sync.set()
        super().__init__("watched", ORDINARY, makedefault=True)

    def xOpen(self, name: Name, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's names
        return FaultyFile(self, name, flags)

    @contextmanager
    def hold_syncs(self) -> Iterator[None]:
        """Block every sync that begins inside until the block ends."""
        self._syncing.clear()
        self._may_sync.clear()
        try:
            yield
        finally:
            self._may_sync.set()

    def wait_until_syncing(self) -> None:
        assert self._syncing.wait(TIMEOUT), "no sync has begun"

    def on_read(self) -> None:
        if self.read_failure is not None:
            self.read_failed.set()
            raise self.read_failure("made by a test")

    def on_write(self, kind: str) -> None:
        if self.write_failure is not None:
            raise self.write_failure("made by a test")
        self.done.append(f"write {kind}")

    def on_sync(self, kind: str) -> None:
        self._syncing.set()
        assert self._may_sync.wait(TIMEOUT), "the test did not release the sync"
        self.done.append(f"sync {kind}")


class FaultyFile(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: Name, flags: list[int]) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        self._disk = disk
        self._kind = Path(path).suffix.removeprefix(".")
        super().__init__(ORDINARY, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._disk.on_read()
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.on_write(self._kind)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.on_sync(self._kind)
        super().xSync(flags)
