"""Make the root of a Debian release with debootstrap, from the mirror that this machine uses.

Standard library only.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Final

from tools.install import CouldNotGet, run

CERTIFICATES: Final = Path("usr/local/share/ca-certificates")
SETTINGS: Final = ("hosts", "pip.conf", "npmrc")  # in /etc
SCRIPT: Final = Path("/usr/share/debootstrap/scripts/sid")  # an old debootstrap knows no newer release, but makes it
START_NOTHING: Final = "#!/bin/sh\nexit 101\n"
TIMEOUT: Final = 1_800  # seconds


def debian_mirror() -> str:
    """The mirror that this machine uses."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=False
    )
    mirrors = [line for line in listed.stdout.split() if line.rstrip("/").endswith("/debian")]
    if not mirrors:
        raise CouldNotGet("this machine has no mirror of Debian")
    return mirrors[0]


def make_root(root: Path, release: str, packages: str) -> None:
    """Install the packages and what they need. The root trusts the certificates that this machine trusts."""
    made = root.with_name(f"{root.name}.part")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    command = ["debootstrap", "--variant=minbase", f"--include={packages}", release, str(made), debian_mirror()]
    run([*command, str(SCRIPT)], timeout=TIMEOUT)
    for file in ("/" / CERTIFICATES).glob("*.crt"):
        shutil.copy(file, made / CERTIFICATES)
    run(["chroot", str(made), "update-ca-certificates"])
    for name in SETTINGS:
        if Path("/etc", name).is_file():
            shutil.copy(Path("/etc", name), made / "etc")
    way = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=True)  # a proxy, …
    (made / "etc/apt/apt.conf.d/acquire").write_text(way.stdout)
    policy = made / "usr/sbin/policy-rc.d"
    policy.write_text(START_NOTHING)
    policy.chmod(0o755)
    made.rename(root)


def missing_packages(root: Path, packages: str) -> list[str]:
    """Return those of the packages that are not installed in the root."""
    stanzas = (root / "var/lib/dpkg/status").read_text(encoding="utf-8").split("\n\n")
    installed = {
        stanza.partition("\n")[0].removeprefix("Package: ")
        for stanza in stanzas
        if "\nStatus: install ok installed\n" in stanza
    }
    return [package for package in packages.split(",") if package not in installed]
