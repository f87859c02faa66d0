"""A very small disk, which a test fills and frees; only root may mount one."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.support.capabilities import SKIP_REASON

BLOCK: Final = b"\0" * 65_536
SPARE: Final = 4_096


class SmallDisk:
    def __init__(self, root: Path) -> None:
        self.root = root
        self._ballast = root / "ballast"

    def fill(self) -> None:
        """Fill it until not a byte can be written."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (len(BLOCK), SPARE, 1):
                try:
                    while file.write(BLOCK[:size]) == size:
                        pass
                except OSError:
                    continue

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


@contextmanager
def small_disk(root: Path, *, megabytes: int) -> Iterator[SmallDisk]:
    """A tmpfs, which is full like a real disk."""
    root.mkdir(exist_ok=True)
    if os.geteuid() != 0 or not mount_tmpfs(root, megabytes):
        pytest.skip(f"{SKIP_REASON}right to mount a small disk")
    try:
        yield SmallDisk(root)
    finally:
        subprocess.run(["umount", "--lazy", root], check=True)


def mount_tmpfs(root: Path, megabytes: int) -> bool:
    if shutil.which("mount") is None:
        return False
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0777", "small", str(root)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
