"""Build the container image and start it: `make container-test`, as root on Debian with podman, buildah and runc.

The base is made by debootstrap, so that no registry of images is needed; users build on the official Python image.
One node runs on SQLite. Then the services of deploy/nodes/compose.yaml run, each read-only, without capabilities,
with the user, secrets, files and entry point that are named there: PostgreSQL, three nodes, nginx. Their network is
that of the machine, so each has a loopback address of its own. Nodes are killed, and nothing that was acknowledged
may be missing.
"""

import json
import os
import secrets
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
from tests.support.browser import PASSWORD
from tests.support.nginx import write_certificate
from tests.support.packaging import DEPLOY, NODES, read_compose, user_of
from tests.support.processes import LOOPBACK, free_port

from tools.debian import make_root
from tools.install import CouldNotGet
from tools.repository import ROOT

RELEASE: Final = "forky"  # Python 3.14
PACKAGES: Final = "ca-certificates,python3,python3-pip,python3-venv"
PROGRAMS: Final = ("podman", "buildah", "runc", "debootstrap")
BASE: Final = f"localhost/gatehouse-base-{RELEASE}"
IMAGE: Final = "localhost/gatehouse-test"
PEERS: Final = "localhost/gatehouse-peers"  # in the place of the PostgreSQL and nginx images
PEERS_FILE: Final = f"""\
FROM {BASE}
RUN apt-get update && apt-get install --yes --no-install-recommends postgresql nginx-light \\
    && usermod --non-unique --uid {user_of("db", NODES)} postgres \\
    && groupmod --non-unique --gid {user_of("db", NODES)} postgres \\
    && ln --symbolic --force /usr/lib/postgresql/*/bin/* /usr/local/bin
"""
SERVICES: Final[dict[str, dict[str, Any]]] = read_compose(NODES)["services"]
NODE_NAMES: Final = ("node1", "node2", "node3")
ADDRESSES: Final = {
    "db": "127.0.0.2",
    "standby": "127.0.0.2",
    **{name: f"127.0.0.1{number}" for number, name in enumerate(NODE_NAMES, start=1)},
}
PROXY_URL: Final = "https://localhost:8443"
HARDENED: Final = (
    *("--runtime", "runc", "--network", "host", "--read-only", "--cap-drop", "ALL"),
    *("--security-opt", "no-new-privileges", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=512:512"),
)
LARGEST: Final = 120  # megabytes, compressed
NOT_IN_SLIM: Final = ("usr/share/doc", "usr/share/locale", "usr/share/man", "var/cache/apt", "var/lib/apt/lists")
FORMAT_IN_ALL_LANGUAGES: Final = """
from datetime import UTC, datetime
from gatehouse.languages import LANGUAGES, format_clock, format_day, format_number, plural_category
when = datetime(2026, 3, 1, tzinfo=UTC)
for lang in LANGUAGES:
    print(format_day(lang, when), format_clock(lang, when), format_number(lang, 1_000), plural_category(lang, 2))
"""
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
    """Import a minimal Debian with Python, without what the official slim images leave out."""
    if subprocess.run(["podman", "image", "exists", BASE], check=False).returncode == 0:
        return
    root = workshop / "root"
    make_root(root, RELEASE, PACKAGES)
    (root / "usr/bin/python").symlink_to("python3")
    for folder in NOT_IN_SLIM:
        shutil.rmtree(root / folder)
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
    run(["podman", "run", "--rm", *HARDENED, "--entrypoint", "python", IMAGE, "-c", FORMAT_IN_ALL_LANGUAGES])
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
    """One node in a container; `options` are those of podman."""

    data: Path
    port: int
    environment: Mapping[str, str]
    host: str = LOOPBACK
    options: Sequence[str] = HARDENED
    name: str = ""

    @property
    def address(self) -> str:
        return f"http://{self.host}:{self.port}"

    def start(self) -> None:
        self.name = new_name()
        serve = ["serve", "--host", self.host, "--port", str(self.port), "--data", "/data"]
        run(["podman", "run", "--detach", "--name", self.name, *self._options(), IMAGE, *serve])
        wait_until_ready(self)

    def gatehouse(self, *arguments: str) -> str:
        return run(["podman", "run", "--rm", *self._options(), IMAGE, *arguments, "--data", "/data"])

    def _options(self) -> list[str]:
        return ["--volume", f"{self.data}:/data", *self.options, *variables(self.environment)]

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


def new_name() -> str:
    return f"gatehouse-test-{secrets.token_hex(4)}"


def variables(environment: Mapping[str, str]) -> list[str]:
    return [part for name, value in environment.items() for part in ("--env", f"{name}={value}")]


def wait_until_ready(container: Container) -> None:
    with httpx2.Client(base_url=container.address) as client:
        if not is_served(client):
            raise ContainerProblem(f"the container is not ready: {container.log()}")


def is_served(client: httpx2.Client) -> bool:
    """Wait until the service is ready; whether it is in time."""
    ends = time.monotonic() + READY_SECONDS
    while time.monotonic() < ends:
        try:
            if client.get("/readyz").status_code == OK:
                return True
        except httpx2.TransportError:
            pass
        time.sleep(GLANCE)
    return False


@contextmanager
def running(*containers: Container) -> Iterator[None]:
    try:
        for container in containers:
            container.start()
        yield
    finally:
        for container in containers:
            container.remove()


def owned_directory(path: Path, user: int = USER) -> Path:
    path.mkdir(mode=0o700)
    os.chown(path, user, user)
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


def build_peers(workshop: Path) -> None:
    (workshop / "Peers").write_text(PEERS_FILE)
    command = ["buildah", "build", "--isolation", "chroot", "--network", "host", "--format", "docker"]
    run([*command, "--file", workshop / "Peers", "--tag", PEERS, workshop / "context" / "dist"])


def service_options(name: str, workshop: Path) -> list[str]:
    """The options of podman for a service; a tmpfs is a directory of its user."""
    service, user = SERVICES[name], user_of(name, NODES)
    volumes = [f"{workshop / 'secrets' / secret}:/run/secrets/{secret}:ro" for secret in service["secrets"]]
    for volume in service.get("volumes", ()):
        source, target, *_ = volume.split(":")
        shared = (NODES / source).resolve() if source.startswith(".") else workshop / source
        if not shared.exists():
            owned_directory(shared, user)
        volumes.append(f"{shared}:{target}" + (":ro" if shared.is_file() else ""))
    temporary = {volume.partition(":")[0] for volume in service.get("tmpfs", ())} - {"/data"}  # a Container brings it
    volumes += [f"{owned_directory(workshop / new_name(), user)}:{target}" for target in sorted(temporary)]
    return [
        *(*HARDENED, "--user", f"{user}:{user}"),
        *(part for volume in volumes for part in ("--volume", volume)),
        *(part for host, address in ADDRESSES.items() for part in ("--add-host", f"{host}:{address}")),
    ]


@contextmanager
def started_peer(options: Sequence[str], *command: str) -> Iterator[str]:
    """Run PostgreSQL or nginx and give the container's name."""
    name = new_name()
    try:
        run(["podman", "run", "--detach", "--name", name, *options, PEERS, *command])
        yield name
    finally:
        subprocess.run(["podman", "rm", "--force", name], capture_output=True, check=False)


@contextmanager
def database(workshop: Path) -> Iterator[None]:
    """Run the service `db`, with what the entry point of the PostgreSQL image does at the first start."""
    options = [*service_options("db", workshop), "--env", "PGDATA=/var/lib/postgresql/data"]
    access = ["--username=postgres", "--pwfile=/run/secrets/postgres_password"]
    access += ["--auth-local=trust", "--auth-host=scram-sha-256"]
    run(["podman", "run", "--rm", *options, PEERS, "initdb", "--data-checksums", *access])
    command = [*SERVICES["db"]["command"], "-c", f"listen_addresses={ADDRESSES['db']}"]
    with started_peer(options, *command) as name:
        inside = ["podman", "exec", name]
        wait_for([*inside, "pg_isready", f"--host={ADDRESSES['db']}"])
        psql = [*inside, "psql", "--quiet", "--username=postgres"]
        run([*psql, "--command=CREATE DATABASE gatehouse"])
        run([*psql, "--dbname=gatehouse", "--file=/docker-entrypoint-initdb.d/10-roles.sql"])
        run([*inside, "sh", "/docker-entrypoint-initdb.d/20-replication.sh"])
        yield


def wait_for(command: Sequence[str]) -> None:
    ends = time.monotonic() + READY_SECONDS
    while subprocess.run(command, capture_output=True, check=False).returncode and time.monotonic() < ends:
        time.sleep(GLANCE)


def grant_access(workshop: Path) -> None:
    """Run the service `grants`."""
    program, *arguments = (word.replace("$$", "$") for word in SERVICES["grants"]["entrypoint"])
    run(["podman", "run", "--rm", *service_options("grants", workshop), PEERS, program, *arguments])


def deployed_node(name: str, workshop: Path) -> Container:
    environment = {key: value for key, value in SERVICES[name]["environment"].items() if "${" not in value}
    here = {"GATEHOUSE__SERVER__BASE_URL": PROXY_URL, "GATEHOUSE__SERVER__TRUSTED_PROXIES": LOOPBACK}
    tests = {key: value for key, value in settings().items() if "__RATES__" in key or "__PASSWORDS__" in key}
    return Container(
        data=owned_directory(workshop / name),
        port=8080,
        environment={**environment, **here, **tests},
        host=ADDRESSES.get(name, LOOPBACK),
        options=service_options(name, workshop),
    )


def check_several_nodes(workshop: Path) -> None:
    run([DEPLOY / "make-secrets.sh", workshop / "secrets"])
    trust = ssl.create_default_context(cadata=write_certificate(workshop / "secrets"))
    for name in ("tls_certificate", "tls_key"):
        os.chown(workshop / "secrets" / name, user_of("proxy", NODES), -1)
    with database(workshop):
        deployed_node("migrate", workshop).gatehouse("migrate")
        grant_access(workshop)
        first, *others = (deployed_node(name, workshop) for name in NODE_NAMES)
        create_anna(first)
        options = service_options("proxy", workshop)
        with running(first, *others), started_peer(options, *SERVICES["proxy"]["entrypoint"]):
            with httpx2.Client(base_url=PROXY_URL, verify=trust) as client:
                if not is_served(client):
                    raise ContainerProblem("nginx does not answer")
                acknowledged = sign_in(client, SIGN_INS)
                first.kill()
                survived = sign_in(client, SIGN_INS)
                if survived < SIGN_INS - 2:
                    raise ContainerProblem(f"with one node killed only {survived} of {SIGN_INS} sign-ins worked")
            for node in others:
                node.stop()
        check_nothing_lost(first, acknowledged + survived)
    say(f"three nodes, PostgreSQL and nginx: one killed, {survived} of {SIGN_INS} sign-ins went on, none is lost")


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
            say("building the image with PostgreSQL and nginx")
            build_peers(workshop)
            check_several_nodes(workshop)
        except (ContainerProblem, CouldNotGet) as problem:
            say(f"FAILED: {problem}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
