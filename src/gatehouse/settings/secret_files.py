"""Files with secrets: read only when private to their owner, and created private."""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

DEV_KEY_FILE: Final = "dev.key"
GROUP_AND_WORLD: Final = 0o077  # every permission of group and world
WORLD: Final = 0o007
MAX_FILE_BYTES: Final = 65_536  # bytes


def path_exists(path: Path) -> bool:
    """Unlike `Path.exists`, return False also for a path without permission."""
    try:
        path.lstat()
    except OSError:
        return False
    return True


class FilePrivacy(Struct, frozen=True, kw_only=True):
    """How private a file with a secret has to be (checklist OP-01)."""

    strict: bool  # outside --dev
    credentials: Path | None = None  # the directory of systemd's LoadCredential=

    def exposure(self, path: Path, status: os.stat_result) -> str:
        """Return how others could read or replace the file; empty when they cannot."""
        # systemd grants access by an ACL, whose mask looks like a group permission; the directory keeps others out.
        is_credential = path.parent == self.credentials
        mode = stat.S_IMODE(status.st_mode)
        if self.strict and mode & (WORLD if is_credential else GROUP_AND_WORLD):
            return f"is accessible to other users (mode {mode:04o}): run chmod 600"
        if self.strict and not is_credential and os.geteuid() != 0 and status.st_uid not in (0, os.geteuid()):
            return "belongs to another user: run chown"
        return ""


def read_private(path: Path, privacy: FilePrivacy) -> str:
    """Return the text of a file without its last newline; raise ValueError when the file is not private."""
    try:
        # Non-blocking: a pipe in place of the file must not block the start.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from error
    with open(descriptor, "rb") as file:  # noqa: PTH123 - the descriptor whose status is judged is the one read
        refuse_exposed(path, os.fstat(descriptor), privacy)
        content = file.read(MAX_FILE_BYTES + 1)
    return decode_text(path, content)


def refuse_exposed(path: Path, status: os.stat_result, privacy: FilePrivacy) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path} is not a file")
    complaint = privacy.exposure(path, status)
    if complaint:
        raise ValueError(f"{path} {complaint}")


def decode_text(path: Path, content: bytes) -> str:
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"{path} is larger than {MAX_FILE_BYTES} bytes")
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} contains non-ASCII characters") from error
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise ValueError(f"{path} is empty")
    return text


def write_if_missing(path: Path, text: str) -> None:
    """Write the file, private to its owner, unless it exists; raise ValueError on failure."""
    try:
        if not path_exists(path):
            write_atomically(path, f"{text}\n")
    except OSError as error:
        raise ValueError(f"cannot create {path}: {error.strerror}") from error


def write_atomically(path: Path, text: str) -> None:
    """Link the file into place when complete: of two concurrent commands one creates it and both read the same."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}-", encoding="ascii") as draft:
        draft.write(text)
        draft.flush()
        os.fsync(draft.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(draft.name)
