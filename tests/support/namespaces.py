"""Simulate machines with network namespaces on one bridge (Linux, root)."""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.capabilities import Capability, require_program

SUBNETS: Final = 200


@cache
def find_namespaces() -> Path | None:
    """Return an `ip` that can create namespaces here."""
    ip = shutil.which("ip", path="/sbin:/usr/sbin:/bin:/usr/bin")
    if ip is None or os.geteuid() != 0:
        return None
    name = f"gh{secrets.token_hex(4)}"
    created = subprocess.run([ip, "netns", "add", name], capture_output=True, check=False).returncode == 0
    if created:
        subprocess.run([ip, "netns", "del", name], check=True)
    return Path(ip) if created else None


NAMESPACES: Final = Capability(name="right to make network namespaces", find=find_namespaces, optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    address: str
    command: tuple[str, ...]  # prefix of every command to run there
    link: str = ""  # our end of its virtual cable

    def cut_link(self) -> None:
        """Cut the machine off without either side being notified."""
        subprocess.run([str(require_program(NAMESPACES)), "link", "set", self.link, "down"], check=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    here: str  # this machine's address in the network
    machines: tuple[Machine, ...]


@contextmanager
def machine_network(number: int) -> Iterator[Network]:
    """Create this many machines that can reach this one and each other, and nothing else."""
    ip = str(require_program(NAMESPACES))

    def run_ip(*words: str) -> None:
        subprocess.run([ip, *words], check=True, capture_output=True)

    mark, subnet = secrets.token_hex(3), f"10.213.{secrets.randbelow(SUBNETS)}"
    bridge, names = f"gh{mark}", [f"gh{mark}-{n}" for n in range(number)]
    run_ip("link", "add", bridge, "type", "bridge")
    try:
        run_ip("addr", "add", f"{subnet}.1/24", "dev", bridge)
        run_ip("link", "set", bridge, "up")
        for place, name in enumerate(names, start=2):
            run_ip("netns", "add", name)
            run_ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
            run_ip("link", "set", name, "master", bridge, "up")
            run_ip("-n", name, "addr", "add", f"{subnet}.{place}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                run_ip("-n", name, "link", "set", device, "up")
        yield Network(
            here=f"{subnet}.1",
            machines=tuple(
                Machine(address=f"{subnet}.{place}", command=(ip, "netns", "exec", name), link=name)
                for place, name in enumerate(names, start=2)
            ),
        )
    finally:
        for name in names:
            subprocess.run([ip, "netns", "del", name], check=False, capture_output=True)
        run_ip("link", "del", bridge)
