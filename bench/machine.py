"""The machine of a run: figures of two machines, or of a busy one, cannot be compared."""

import json
import os
import platform
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import apsw
from cryptography.hazmat.backends.openssl import backend
from tests.interop.toolchains import (
    HYDRA_SOURCE,
    OPENFGA_SOURCE,
    PEER_LOCK,
    PYTHON_PEER_LOCK,
    find_hydra,
    find_keycloak,
    find_openfga,
    keycloak_version,
)
from tests.support.find_programs import find_postgres, version_of

PACKAGES: Final = ("gatehouse", "uvicorn", "starlette", "asyncpg", "cryptography")
OPTIMIZATIONS: Final = {"--enable-optimizations": "PGO", "--with-lto": "LTO"}
BUSY: Final = 0.5  # of the load, for each core


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    processor: str
    cores: int
    system: str
    python: str  # its version, and how it was built
    versions: dict[str, str]
    commit: str
    load: float  # over the last minute, before anything was measured

    @property
    def is_quiet(self) -> bool:
        return self.load < BUSY * self.cores


def this_machine() -> Machine:
    return Machine(
        processor=processor(),
        cores=len(os.sched_getaffinity(0)),
        system=platform.platform(),
        python=f"{platform.python_version()} ({python_build()})",
        versions=versions(),
        commit=commit(),
        load=os.getloadavg()[0],
    )


def python_build() -> str:
    """Return whether the interpreter was built with PGO and LTO, which take off a tenth of the time or more."""
    if is_packaged_by_debian():
        return "packaged by Debian, with PGO and LTO"
    configured = shlex.split(str(sysconfig.get_config_var("CONFIG_ARGS") or ""))
    chosen = [name for flag, name in OPTIMIZATIONS.items() if flag in configured]
    return f"configured with {' and '.join(chosen)}" if chosen else "configured without PGO and LTO"


def is_packaged_by_debian() -> bool:
    """Debian's packages do not say how they were built: PGO and LTO are flags of its build, not of `configure`."""
    package = Path(f"/usr/share/doc/python{sys.version_info.major}.{sys.version_info.minor}/changelog.Debian.gz")
    return sys.base_prefix == "/usr" and package.exists()


def versions() -> dict[str, str]:
    postgres = find_postgres()
    return {
        **{package: version(package) for package in PACKAGES},
        "SQLite": apsw.sqlite_lib_version(),
        "OpenSSL": backend.openssl_version_text(),
        "PostgreSQL": "" if postgres is None else version_of(postgres / "postgres"),
        **peers(),
    }


def peers() -> dict[str, str]:
    """The versions of the peers, from their lock files."""
    packages = json.loads(PEER_LOCK.read_text())["packages"]
    pinned = re.findall(r"^(django-oauth-toolkit|gunicorn)==(\S+)", PYTHON_PEER_LOCK.read_text(), re.MULTILINE)
    compared = [name for name in ("casbin", "cedarpy") if find_spec(name) is not None]
    return {
        "oidc-provider": packages["node_modules/oidc-provider"]["version"],
        **dict(pinned),
        **({} if find_keycloak() is None else {"Keycloak": keycloak_version()}),
        **({} if find_hydra() is None else {"Ory Hydra": go_version(HYDRA_SOURCE, "github.com/ory/hydra/v2")}),
        **({} if find_openfga() is None else {"OpenFGA": go_version(OPENFGA_SOURCE, "github.com/openfga/openfga")}),
        **{name: version(name) for name in compared},
    }


def go_version(source: Path, module: str) -> str:
    found = re.search(rf"^(?:require|\t)\s*{re.escape(module)} v(\S+)", (source / "go.mod").read_text(), re.MULTILINE)
    return "" if found is None else found[1]


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def commit() -> str:
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return described.stdout.strip()


@contextmanager
def on_core(number: int) -> Iterator[None]:
    """Pin what is started inside to that core, so that client and server do not compete for one."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(allowed)[number % len(allowed)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
