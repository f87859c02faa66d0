"""Make one of the virtual environments, or leave it alone when it is up to date: `python3 tools/environment.py dev`.

Each purpose has an environment of its own, so that no command changes the packages under another that is running.
All of them run the source tree itself. The standard library is enough, and an older Python 3 is told that it is.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = {
    "run": (".venv", "requirements.txt"),
    "dev": (".venv-dev", "requirements-dev.txt"),
    "bench": (".venv-bench", "requirements-bench.txt"),
    "docs": (".venv-docs", "requirements-docs.txt"),
    "release": (".venv-release", "requirements-release.txt"),
}
OLDEST = (3, 11)
STAMP = ".installed"  # in the environment: the Python and the files it was made from, written last


def main(name: str) -> None:
    if sys.version_info < OLDEST:
        sys.exit(
            f"Gatehouse needs Python 3.11 or newer, this is {sys.version}. Use another one with: make "
            "PYTHON=python3.12 ..."
        )
    folder, requirements = ENVIRONMENTS[name]
    stamp = ROOT / folder / STAMP
    lock = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until this process ends: one installation at a time
    except BlockingIOError:
        say("waiting for another installation in this directory")
        fcntl.flock(lock, fcntl.LOCK_EX)
    wanted = [sys.version, digest_of(ROOT / requirements, ROOT / "pyproject.toml")]
    found = stamp.read_text().split("\0") if stamp.exists() else []
    if found == wanted:
        return
    install(ROOT / folder, ROOT / requirements, anew=found[:1] != wanted[:1], builds_alone=name in {"run", "docs"})
    stamp.write_text("\0".join(wanted))


def digest_of(*files: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def install(place: Path, requirements: Path, *, anew: bool, builds_alone: bool) -> None:
    """`builds_alone`: the build tools are not among the requirements, so pip gets them for the build only."""
    began = time.monotonic()
    say(f"installing {requirements.name} into {place.name}; about a minute, longer the first time")
    if place.is_symlink():
        sys.exit(f"gatehouse: {place} is a link; it would be emptied where it leads. Remove it first.")
    if anew:
        run(sys.executable, "-m", "venv", "--clear", place)
    quiet = [] if sys.stdout.isatty() else ["--quiet"]  # people see what pip fetches and builds
    pip = (place / "bin" / "python", "-m", "pip", "--disable-pip-version-check", *quiet, "install")
    run(*pip, "--require-hashes", "-r", requirements)
    run(*pip, "--no-deps", *([] if builds_alone else ["--no-build-isolation"]), "-e", ROOT)
    say(f"installed in {time.monotonic() - began:.0f} s")


def run(*command: "str | Path") -> None:
    ended = subprocess.run(command, check=False)
    if ended.returncode:
        sys.exit(ended.returncode)


def say(text: str) -> None:
    sys.stdout.write(f"gatehouse: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
