"""Build the container image and start it: `make container-test`, as root on Debian with podman, buildah and runc.

The base is made by debootstrap, so that no registry of images is needed; users build on the official Python image.
One node runs on SQLite, then two on PostgreSQL behind nginx, with the flags of the compose files: read-only, without
capabilities, as an unprivileged user. Nodes are killed, and nothing that was acknowledged may be missing.
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2
from tests.support.browser import PASSWORD
from tests.support.nginx import nginx_proxy, proxy_address
from tests.support.postgres import PostgresCluster
from tests.support.processes import LOOPBACK, free_port

from tools.debian import make_root
from tools.install import CouldNotGet
from tools.repository import ROOT

RELEASE: Final = "trixie"  # Python 3.13
PACKAGES: Final = "ca-certificates,python3,python3-pip,python3-venv"
PROGRAMS: Final = ("podman", "buildah", "runc", "debootstrap", "nginx")
BASE: Final = "localhost/gatehouse-base"
IMAGE: Final = "localhost/gatehouse-test"
HARDENED: Final = (
    *("--runtime", "runc", "--network", "host", "--read-only", "--cap-drop", "ALL"),
    *("--security-opt", "no-new-privileges", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=512:512"),
)
LARGEST: Final = 150  # megabytes, compressed
MEGABYTE: Final = 10**6
USER: Final = 10001
READY_SECONDS: Final = 60.0
GLANCE: Final = 0.1
OK: Final = 200
SIGN_INS: Final = 40
ANNA: Final = "anna@studio.example"


class ContainerProblem(Exception):
    """Says what went wrong."""


def say(text: str) -> None:
    print(f"container-test: {text}", flush=True)


def run(command: Sequence[str | Path], *, cwd: Path = ROOT) -> str:
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise ContainerProblem(f"{' '.join(map(str, command[:3]))}: {(ended.stdout + ended.stderr)[-1500:]}")
    return ended.stdout.strip()


def make_base(workshop: Path) -> None:
    """Import a minimal Debian with Python."""
    if subprocess.run(["podman", "image", "exists", BASE], check=False).returncode == 0:
        return
    root = workshop / "root"
    make_root(root, RELEASE, PACKAGES)
    (root / "usr/bin/python").symlink_to("python3")
    shutil.rmtree(root / "var/cache/apt")
    shutil.rmtree(root / "var/lib/apt/lists")
    run(["tar", "--create", "--file", workshop / "base.tar", "--directory", root, "."])
    run(["podman", "import", workshop / "base.tar", BASE])


def build_image(workshop: Path) -> None:
    """Build deploy/Dockerfile around a wheel of this tree."""
    context = workshop / "context"
    shutil.copytree(ROOT / "deploy", context / "deploy")
    shutil.copy(ROOT / "requirements.txt", context)
    run([sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", context / "dist"])
    command = ["buildah", "build", "--isolation", "chroot", "--network", "host", "--format", "docker"]
    run(
        [*command, "--build-arg", f"PYTHON_IMAGE={BASE}", "--file", "deploy/Dockerfile", "--tag", IMAGE, "."],
        cwd=context,
    )


def check_image(workshop: Path) -> None:
    image = json.loads(run(["podman", "image", "inspect", IMAGE]))[0]
    if image["Config"]["User"] != f"{USER}:{USER}" or not image.get("Healthcheck"):
        raise ContainerProblem(f"the image has no user or no health check: {image}")
    archive = workshop / "image.tar.gz"
    with archive.open("wb") as file:
        saving = subprocess.Popen(["podman", "save", IMAGE], stdout=subprocess.PIPE)
        subprocess.run(["gzip", "-6"], stdin=saving.stdout, stdout=file, check=True)
        if saving.wait():
            raise ContainerProblem("podman save failed")
    size = archive.stat().st_size / MEGABYTE
    archive.unlink()
    say(f"the image has {size:.0f} MB, compressed, on Debian's Python")
    if size > LARGEST:
        raise ContainerProblem(f"the image has {size:.0f} MB, more than {LARGEST}")
    for program in ("gcc", "cc", "make"):
        found = subprocess.run(
            ["podman", "run", "--rm", *HARDENED, "--entrypoint", "which", IMAGE, program],
            capture_output=True,
            check=False,
        )
        if found.returncode == 0:
            raise ContainerProblem(f"the image contains {program}")


@dataclass(slots=True)
class Container:
    """One node in a container."""

    data: Path
    port: int
    environment: Mapping[str, str]
    name: str = ""

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def start(self) -> None:
        self.name = f"gatehouse-test-{secrets.token_hex(4)}"
        serve = ["serve", "--host", LOOPBACK, "--port", str(self.port), "--data", "/data"]
        run(["podman", "run", "--detach", "--name", self.name, *self._options(), IMAGE, *serve])
        wait_until_ready(self)

    def gatehouse(self, *arguments: str) -> str:
        return run(["podman", "run", "--rm", *self._options(), IMAGE, *arguments, "--data", "/data"])

    def _options(self) -> list[str]:
        variables = [part for name, value in self.environment.items() for part in ("--env", f"{name}={value}")]
        return [*HARDENED, "--volume", f"{self.data}:/data", *variables]

    def is_healthy(self) -> bool:
        checked = subprocess.run(
            ["podman", "exec", self.name, "gatehouse", "healthcheck", "--port", str(self.port)],
            capture_output=True,
            check=False,
        )
        return checked.returncode == 0

    def stop(self) -> None:
        run(["podman", "stop", "--time", "40", self.name])
        self.remove()

    def kill(self) -> None:
        run(["podman", "kill", self.name])
        self.remove()

    def remove(self) -> None:
        subprocess.run(["podman", "rm", "--force", self.name], capture_output=True, check=False)

    def log(self) -> str:
        logs = subprocess.run(["podman", "logs", self.name], capture_output=True, text=True, check=False)
        return (logs.stdout + logs.stderr)[-1500:]


def wait_until_ready(container: Container) -> None:
    ends = time.monotonic() + READY_SECONDS
    while time.monotonic() < ends:
        try:
            if httpx2.get(f"{container.address}/readyz").status_code == OK:
                return
        except httpx2.TransportError:
            pass
        time.sleep(GLANCE)
    raise ContainerProblem(f"the container is not ready: {container.log()}")


@contextmanager
def running(*containers: Container) -> Iterator[None]:
    try:
        for container in containers:
            container.start()
        yield
    finally:
        for container in containers:
            container.remove()


def owned_directory(path: Path) -> Path:
    path.mkdir(mode=0o700)
    os.chown(path, USER, USER)
    return path


def create_anna(container: Container) -> None:
    password = container.data / "password"
    password.write_text(PASSWORD)
    os.chown(password, USER, USER)
    who = ("--login", ANNA, "--nick", "Anna", "--password-file", "/data/password")
    container.gatehouse("admin", "create", *who)


def sign_in(client: httpx2.Client, times: int) -> int:
    """Return how many sign-ins the service acknowledged."""
    count = 0
    for _ in range(times):
        try:
            response = client.post("/proxy/api/login", json={"login": ANNA, "password": PASSWORD})
        except httpx2.TransportError:
            continue
        count += response.status_code == OK and response.json()["status"] == "OK"
    return count


def check_nothing_lost(container: Container, acknowledged: int) -> None:
    shown = container.gatehouse("audit", "show", "--event", "login.done", "--limit", "10000", "--json")
    stored = shown.count('"login.done"')
    if stored < acknowledged:
        raise ContainerProblem(f"{acknowledged} sign-ins were acknowledged, {stored} are stored")
    container.gatehouse("audit", "verify")


def settings() -> dict[str, str]:
    return {
        "GATEHOUSE__SECURITY__MASTER_KEY": secrets.token_hex(32),
        "GATEHOUSE__SERVER__BASE_URL": "https://id.example.org",
        "GATEHOUSE__RATES__ENABLED": "false",
        "GATEHOUSE__PASSWORDS__MEMORY_KIB": "19456",  # sign-ins are counted here, not hashes
        "GATEHOUSE__PASSWORDS__TIME_COST": "2",
    }


def check_one_node(workshop: Path) -> None:
    node = Container(data=owned_directory(workshop / "sqlite"), port=free_port(), environment=settings())
    node.gatehouse("migrate")
    create_anna(node)
    with running(node), httpx2.Client(base_url=node.address) as client:
        if not node.is_healthy():
            raise ContainerProblem("the health check fails")
        acknowledged = sign_in(client, SIGN_INS)
        node.kill()
        node.start()
        acknowledged += sign_in(client, 1)
        node.stop()
    check_nothing_lost(node, acknowledged)
    say(f"one node on SQLite: killed and restarted, {acknowledged} acknowledged sign-ins are there")


def check_two_nodes(workshop: Path) -> None:
    with PostgresCluster(durable=True) as cluster:
        base_url, port = proxy_address()
        environment = {
            **settings(),
            "GATEHOUSE__DATABASE__URL": cluster.create_database_sync(),
            "GATEHOUSE__SERVER__BASE_URL": base_url,
            "GATEHOUSE__SERVER__TRUSTED_PROXIES": LOOPBACK,
        }
        first, second = (
            Container(data=owned_directory(workshop / name), port=free_port(), environment=environment)
            for name in ("node1", "node2")
        )
        first.gatehouse("migrate")
        create_anna(first)
        nodes = [f"{LOOPBACK}:{node.port}" for node in (first, second)]
        with running(first, second), nginx_proxy(port, nodes) as proxy:
            with httpx2.Client(base_url=proxy.base_url, verify=proxy.trust) as client:
                acknowledged = sign_in(client, SIGN_INS)
                first.kill()
                survived = sign_in(client, SIGN_INS)
                if survived < SIGN_INS - 2:
                    raise ContainerProblem(f"with one node killed only {survived} of {SIGN_INS} sign-ins worked")
            second.stop()
        check_nothing_lost(second, acknowledged + survived)
    say(f"two nodes on PostgreSQL: one killed, {survived} of {SIGN_INS} sign-ins went on, none is lost")


def main() -> int:
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        say(f"needs root, and: apt-get install {' '.join(missing or PROGRAMS)}")
        return 1
    with tempfile.TemporaryDirectory(prefix="gatehouse-container-") as folder:
        workshop = Path(folder)
        try:
            say("making the base image")
            make_base(workshop)
            say("building the image")
            build_image(workshop)
            check_image(workshop)
            check_one_node(workshop)
            check_two_nodes(workshop)
        except (ContainerProblem, CouldNotGet) as problem:
            say(f"FAILED: {problem}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
