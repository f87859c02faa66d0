"""Get Godot 4 from a newer Debian than this machine may have: unpack its packages under .test-deps/.

apt verifies the signatures of the release. Godot runs with the C library of that release, through its own loader.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Final

from tests.interop.toolchains import GODOT_4_HOME
from tests.support.find_programs import DOWNLOADS

from tools.debian import debian_mirror
from tools.install import CouldNotGet, run

RELEASE: Final = "forky"  # the first release of Debian with Godot 4
PACKAGE: Final = "godot"
KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
DRAWING: Final = ("libllvm", "mesa-", "libz3-")  # without a display Godot draws nothing
CONFIGURATION: Final = """\
Dir::State "{home}/state";
Dir::State::status "{home}/state/status";
Dir::Cache "{home}/cache";
Dir::Etc::sourcelist "{home}/sources.list";
Dir::Etc::sourceparts "-";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
"""
LAUNCHER: Final = """\
#!/bin/sh
root=${0%/*}/root
libraries=$(echo "$root"/usr/lib/*-linux-gnu)
exec "$libraries"/ld-linux-*.so.* --library-path "$libraries:$libraries/pulseaudio" "$root/usr/bin/godot" "$@"
"""


def unpack_godot_4() -> None:
    if any(shutil.which(name) is None for name in ("apt-get", "dpkg")) or not KEYRING.is_file():
        raise CouldNotGet("needs apt-get, dpkg and Debian's keys")
    DOWNLOADS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DOWNLOADS) as directory:
        home = Path(directory)
        home.chmod(0o755)
        root = GODOT_4_HOME / "root"
        shutil.rmtree(GODOT_4_HOME, ignore_errors=True)
        root.mkdir(parents=True)
        for package in download_packages(home):
            if not package.name.startswith(DRAWING):
                run(["dpkg", "-x", str(package), str(root)])
    launcher = GODOT_4_HOME / "godot"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)


def download_packages(home: Path) -> list[Path]:
    """Download the package with everything it needs, as if nothing were installed."""
    for name in ("state/lists/partial", "cache/archives/partial"):
        (home / name).mkdir(parents=True)
    (home / "state" / "status").touch()
    (home / "sources.list").write_text(f"deb [signed-by={KEYRING}] {debian_mirror()} {RELEASE} main\n")
    configuration = home / "apt.conf"
    configuration.write_text(CONFIGURATION.format(home=home))
    for command in (["update"], ["install", "-y", "--download-only", PACKAGE]):
        run(["apt-get", "-qq", *command], environment={"APT_CONFIG": str(configuration)})
    return sorted((home / "cache" / "archives").glob("*.deb"))
