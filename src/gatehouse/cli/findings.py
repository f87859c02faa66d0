"""What `gatehouse doctor` finds without the database: settings that carry a risk, files others can read, space."""

import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from gatehouse.cli.opening import sqlite_file
from gatehouse.settings import LoadedSettings
from gatehouse.settings.files import DEV_KEY_FILE, GROUP_AND_WORLD, path_exists
from gatehouse.settings.grammar import is_loopback

MEBIBYTE: Final = 2**20
SPACE_WANTED: Final = 1024 * MEBIBYTE
SPACE_NEEDED: Final = 100 * MEBIBYTE
WIDE_PREFIX: Final = 8  # bits; a network wider than this is no network of one's own


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    level: Level
    topic: str
    text: str  # what is so, and how to mend it


def ok(topic: str, text: str) -> Finding:
    return Finding(level=Level.OK, topic=topic, text=text)


def warn(topic: str, text: str) -> Finding:
    return Finding(level=Level.WARN, topic=topic, text=text)


def bad(topic: str, text: str) -> Finding:
    return Finding(level=Level.BAD, topic=topic, text=text)


def about_settings(loaded: LoadedSettings) -> Iterator[Finding]:
    risks = [*address_risks(loaded), *risky_choices(loaded)]
    yield from (warn("settings", risk) for risk in risks)
    if not risks:
        yield ok("settings", "no risky settings")


def address_risks(loaded: LoadedSettings) -> Iterator[str]:
    server, operations = loaded.settings.server, loaded.settings.operations
    if loaded.dev:
        yield "--dev is only for development on this machine"
    if not is_loopback(server.host) and not server.trusted_proxies:
        yield (
            f"the service listens on {server.host} but trusts no proxy; TLS must be terminated before it: set "
            "server.trusted_proxies, or listen on 127.0.0.1"
        )
    if any(network.prefixlen < WIDE_PREFIX for network in server.trusted_proxies):
        yield "server.trusted_proxies trusts most of the internet to set the client IP: list only your proxies"
    if operations.bind and not is_loopback(operations.bind.rpartition(":")[0].strip("[]")):
        yield f"operations.bind exposes metrics to everyone who can reach {operations.bind}: use a private network"


def risky_choices(loaded: LoadedSettings) -> Iterator[str]:
    settings = loaded.settings
    if not settings.rates.enabled:
        yield "rates.enabled is off: requests are not rate limited"
    if any(network.prefixlen < WIDE_PREFIX for network in settings.outbound.allow):
        yield "outbound.allow permits almost every address, including private ones: list only what must be reachable"
    if settings.tokens.jwt_without_factor:
        yield "tokens.jwt_without_factor issues JWTs to game clients that are not bound to a device"
    if settings.log.level == "debug":
        yield "log.level is debug, which produces large logs"


def about_files(loaded: LoadedSettings) -> Iterator[Finding]:
    exposed = [path for path in paths_to_check(loaded) if is_exposed(path)]
    for path in exposed:
        mode = stat.S_IMODE(path.stat().st_mode)
        yield warn("files", f"{path} is accessible to other users (mode {mode:04o}): run chmod go-rwx")
    if not exposed:
        yield ok("files", "the data directory is private")


def paths_to_check(loaded: LoadedSettings) -> Iterator[Path]:
    """Files need no look where nobody gets into their directory."""
    database = sqlite_file(loaded)
    for directory in dict.fromkeys([loaded.data, *([database.parent] if database else [])]):
        if path_exists(directory) and is_exposed(directory):
            yield directory
            yield from (path for path in secrets_in(directory, database) if path_exists(path))


def secrets_in(directory: Path, database: Path | None) -> list[Path]:
    files = [directory / DEV_KEY_FILE]
    if database is not None and database.parent == directory:
        files += [database, Path(f"{database}-wal")]
    return files


def is_exposed(path: Path) -> bool:
    return bool(path.stat().st_mode & GROUP_AND_WORLD)


def about_space(loaded: LoadedSettings) -> Iterator[Finding]:
    database = sqlite_file(loaded)
    place = database.parent if database else loaded.data
    if not path_exists(place):
        return
    free = shutil.disk_usage(place).free
    text = f"{free // MEBIBYTE:,} MiB free in {place}"
    if free < SPACE_NEEDED:
        yield bad("disk", f"{text}: free up space, writes will fail soon")
    elif free < SPACE_WANTED:
        yield warn("disk", f"{text}: free up space")
    else:
        yield ok("disk", text)
