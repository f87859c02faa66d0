"""Run `make test` on other Pythons: `python3 -m tools.test_pythons 3.14 --make T=tests/unit`, as root on Debian.

Each Python is that of a Debian release. The release is installed once under .test-deps/ by debootstrap, packages that
it lacks later are added, and the last commit is tested in it. Mounts and processes are in namespaces, so that nothing
is left over however the run ends. Standard library only.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.find_programs import DOWNLOADS, ROOT

from tools.debian import make_root, missing_packages
from tools.install import CouldNotGet, run

RELEASES: Final = {"3.13": "trixie", "3.14": "forky"}
PACKAGES: Final = "ca-certificates,curl,git,iproute2,make,openssl,procps,python3,python3-venv"
PROGRAMS: Final = ("debootstrap", "git", "unshare")
TREE: Final = "gatehouse"  # in the root
PLACES: Final = {  # of the root, not of this machine
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "TMPDIR": "/tmp",  # noqa: S108
    "PIP_FIND_LINKS": "",
    "DEBIAN_FRONTEND": "noninteractive",
}
ENTER: Final = """
set -e
root=$1; shift
mount --bind "$root" "$root"  # `ip netns exec` needs / to be a mount
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
exec chroot "$root" "$@"
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pythons", nargs="*", default=list(RELEASES), metavar="PYTHON", help=" ".join(RELEASES))
    parser.add_argument("--make", nargs="*", default=[], metavar="NAME=VALUE", help="variables of `make test`")
    options = parser.parse_args()
    if unknown := set(options.pythons) - RELEASES.keys():
        parser.error(f"no Debian release with {', '.join(sorted(unknown))} is known")
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        say(f"needs root, and: apt-get install {' '.join(missing or PROGRAMS)}")
        return 1
    failed = [python for python in options.pythons if not run_suite(python, options.make)]
    if failed:
        say(f"FAILED on {', '.join(failed)}")
    return 1 if failed else 0


def run_suite(python: str, variables: list[str]) -> bool:
    root = DOWNLOADS / "roots" / RELEASES[python]
    try:
        if not root.is_dir():
            say(f"installing {RELEASES[python]} for Python {python}; some minutes")
            make_root(root, RELEASES[python], PACKAGES)
        install_missing(root)
        copy_last_commit(root / TREE)
    except CouldNotGet as trouble:
        say(f"COULD NOT INSTALL {RELEASES[python]}: {trouble}")
        return False
    say(f"testing on Python {python}")
    command = [*enter(root), "make", "-C", f"/{TREE}", "test", f"PYTHON=python{python}", *variables]
    environment = {**os.environ, **PLACES}  # noqa: TID251 - passed on
    return subprocess.run(command, env=environment, check=False).returncode == 0


def install_missing(root: Path) -> None:
    """Bring a root up to date that was made for a shorter list of packages."""
    missing = missing_packages(root, PACKAGES)
    if missing:
        say(f"adding {' '.join(missing)} to {root.name}")
        apt = [*enter(root), "apt-get", "--quiet"]
        run([*apt, "update"], environment=PLACES)
        run([*apt, "install", "--yes", "--no-install-recommends", *missing], environment=PLACES)


def enter(root: Path) -> list[str]:
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh", str(root)]


def copy_last_commit(tree: Path) -> None:
    """Check out the last commit; what earlier runs installed beside it stays."""
    git = ["git", "-C", str(tree)]
    tree.mkdir(exist_ok=True)
    run([*git, "init", "--quiet"])
    run([*git, "fetch", "--quiet", str(ROOT), "HEAD"])
    run([*git, "checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"])


def say(text: str) -> None:
    print(f"test-pythons: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
