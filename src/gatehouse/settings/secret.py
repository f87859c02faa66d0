"""Text that must not be shown: it appears in no repr, no log line, no error and no encoding."""

import os
import re
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MASK: Final = "********"
SECRET_PARAMETER: Final = re.compile(r"([?&][a-z_]*(?:password|passphrase)=)[^&]*", re.ASCII)


class Secret:
    """Falsy when none was given. A plain class, because encoders know how to take dataclasses apart."""

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the code that works with it."""
        return self._text

    @property
    def masked(self) -> str:
        """What people may see of it."""
        return MASK if self._text else ""

    @property
    def is_masked(self) -> bool:
        return self.masked != self._text  # no secret is tested here: one side is the mask

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.masked!r})"


class DatabaseUrl(Secret):
    """A database address; only its password is hidden."""

    __slots__ = ()

    @property
    def masked(self) -> str:
        scheme, mark, rest = self._text.partition("://")
        # From the right: a password with a raw "@" or "/" in it is wrong, and must be hidden all the same.
        login, at, place = rest.rpartition("@")
        user, colon, _ = login.partition(":")
        return SECRET_PARAMETER.sub(rf"\1{MASK}", f"{scheme}{mark}{user}{colon and ':' + MASK}{at}{place}")

    @property
    def is_sqlite(self) -> bool:
        return self._text.startswith("sqlite:")


# Files that hold secrets: read only when nobody else can read them, made so that nobody else can.


DEV_KEY_FILE: Final = "dev.key"
GROUP_AND_WORLD: Final = 0o077  # every permission of group and world
WORLD: Final = 0o007
MAX_FILE_BYTES: Final = 65_536  # bytes


def path_exists(path: Path) -> bool:
    """Unlike `Path.exists`, False also for a path one may not look at."""
    try:
        path.lstat()
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePrivacy:
    """How private a file with a secret in it has to be (checklist OP-01)."""

    strict: bool  # outside --dev
    credentials: Path | None = None  # where systemd puts what LoadCredential= names

    def exposure(self, path: Path, status: os.stat_result) -> str:
        """How others could read or replace the file; empty when they cannot."""
        # systemd lets the service in by an access list, whose mask looks like a permission of the group;
        # what keeps everybody else out is the directory.
        is_credential = path.parent == self.credentials
        mode = stat.S_IMODE(status.st_mode)
        if self.strict and mode & (WORLD if is_credential else GROUP_AND_WORLD):
            return f"is accessible to other users (mode {mode:04o}): run chmod 600"
        if self.strict and not is_credential and os.geteuid() != 0 and status.st_uid not in (0, os.geteuid()):
            return "belongs to another user: run chown"
        return ""


def read_private(path: Path, privacy: FilePrivacy) -> str:
    """The text of a file without its last line end; raises ValueError for a file unfit to hold a secret."""
    try:
        # Not blocking: a pipe put in the file's place must not hang the start.
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
    """Write the file whole, for its owner only, unless it is there already; raise ValueError if it cannot be."""
    try:
        if not path_exists(path):
            write_atomically(path, f"{text}\n")
    except OSError as error:
        raise ValueError(f"cannot create {path}: {error.strerror}") from error


def write_atomically(path: Path, text: str) -> None:
    """Linked into place when complete: of two commands started together one makes it, both read the same."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}-", encoding="ascii") as draft:
        draft.write(text)
        draft.flush()
        os.fsync(draft.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(draft.name)
