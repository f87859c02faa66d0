"""Find the programs that tests run and pip does not lock: PostgreSQL, Chromium, PgBouncer, nginx, libfaketime.

Standard library only: `tools/test_deps.py` uses it before anything is installed.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOWNLOADS: Final = ROOT / ".test-deps"
DEBIAN_SERVERS: Final = Path("/usr/lib/postgresql")  # one directory per version, none of them on PATH
OLDEST_POSTGRES: Final = 15
HEADLESS_CHROMIUM: Final = "chromium-headless-shell"  # takes half the CPU time of a whole browser
CHROMIUM_NAMES: Final = (
    *(HEADLESS_CHROMIUM, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
)
VERSION_TIMEOUT: Final = 30  # seconds for `--version`


def find_postgres(debian: Path = DEBIAN_SERVERS, downloads: Path = DOWNLOADS) -> Path | None:
    """Return the directory with `initdb` and `postgres` of a supported version."""
    return next((candidate for candidate in postgres_candidates(debian, downloads) if is_postgres(candidate)), None)


def postgres_candidates(debian: Path, downloads: Path) -> Iterator[Path]:
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(on_path).resolve().parent
    yield from sorted(debian.glob("*/bin"), reverse=True)
    yield from sorted(downloads.glob("postgres/*/pginstall*/bin"), reverse=True)


def is_postgres(directory: Path) -> bool:
    if not (directory / "initdb").is_file():
        return False
    version = re.search(r"\d+", version_of(directory / "postgres"))
    return version is not None and int(version[0]) >= OLDEST_POSTGRES


def find_headless_chromium() -> Path | None:
    program = shutil.which(HEADLESS_CHROMIUM)
    return None if program is None else Path(program)


def find_chromium(downloads: Path = DOWNLOADS) -> Path | None:
    """Return a Chromium that starts: Ubuntu's `chromium-browser` only points to a snap."""
    installed = [Path(path) for name in CHROMIUM_NAMES if (path := shutil.which(name)) is not None]
    places = [*installed, downloads / "chromium" / "chromium"]
    return next((candidate for candidate in places if version_of(candidate)), None)


def find_pgbouncer() -> Path | None:
    # Debian installs it in a directory that only root has on PATH.
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
    return None if program is None else Path(program)


def find_nginx() -> Path | None:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    return None if program is None else Path(program)


def find_nginx_lua(downloads: Path = DOWNLOADS) -> Path | None:
    """Return where nginx's Lua module is unpacked, with its libraries."""
    home = downloads / "nginx-lua"
    has_module = (home / "usr" / "lib" / "nginx" / "modules" / "ngx_http_lua_module.so").is_file()
    return home if has_module and find_nginx() is not None else None


def find_caddy(downloads: Path = DOWNLOADS) -> Path | None:
    program = shutil.which("caddy") or shutil.which("caddy", path=str(downloads / "caddy" / "usr" / "bin"))
    return None if program is None else Path(program)


def find_prometheus(downloads: Path = DOWNLOADS) -> Path | None:
    program = shutil.which("prometheus") or shutil.which("prometheus", path=str(downloads / "prometheus/usr/bin"))
    return None if program is None else Path(program)


def find_go_tool(name: str, downloads: Path = DOWNLOADS) -> Path | None:
    """Return a program of tests/docs/tools/go.mod, or one that is installed."""
    program = shutil.which(name, path=str(downloads / "go-tools")) or shutil.which(name)
    return None if program is None else Path(program)


def find_faketime() -> Path | None:
    """Return the library that, preloaded, gives a program a different time."""
    return next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)


def find_callgrind_control() -> Path | None:
    """Return the program that talks to a program that valgrind runs."""
    program = shutil.which("callgrind_control")
    return None if program is None or shutil.which("valgrind") is None else Path(program)


def version_of(program: Path) -> str:
    """Return what `--version` prints, or "" if the program is missing or does not run."""
    try:
        answer = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True, timeout=VERSION_TIMEOUT
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.strip()
