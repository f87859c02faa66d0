"""Operation: secrets at rest, backups, a database that goes down, administrator recovery (checklist OP)."""

import ast
import asyncio
import gzip
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import asyncpg
import click
import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from gatehouse.accounts.administration import Administration
from gatehouse.app.services import open_services
from gatehouse.cli import COMMANDS, main
from gatehouse.kernel.clock import SystemClock
from gatehouse.keys.key_objects import HmacKey, PrivateKey
from gatehouse.settings.entries import ALL_SETTINGS
from gatehouse.storage.archive import Archive
from gatehouse.storage.backup import TABLES, dump_rows
from tests.support.builders import ORIGIN
from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.find_programs import ROOT
from tests.support.postgres import PostgresCluster
from tests.support.processes import GATEHOUSE_COMMAND, Node, WatchedProcess
from tests.support.tls import NO_TRUST_STORE

MASTER: Final = "GATEHOUSE__SECURITY__MASTER_KEY"
UNLIMITED: Final = {"GATEHOUSE__RATES__ENABLED": "false"}
TEST_PACKAGES: Final = {"tests", "pytest", "hypothesis", "unittest"}
PASSWORD: Final = "correct horse battery"
TOTP: Final = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
PUBLIC: Final = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
ANNA: Final = ("--login", "anna@studio.example", "--nick", "Anna")


@pytest.fixture
def installation(migrated_url: str, tmp_path: Path) -> InstallationPaths:
    return InstallationPaths(data=tmp_path / "data", url=migrated_url)


@pytest.fixture
def gatehouse(installation: InstallationPaths) -> CommandLine:
    return installation.command_line()


# -- OP-03 ----------------------------------------------------------------------------------------------


def private_forms(key: PrivateKey | HmacKey) -> Iterator[bytes]:
    """Every form in which the private key could be stored: DER, PEM, its numbers, and their base64."""
    for raw in private_numbers(key):
        yield from (raw, urlsafe_b64encode(raw).rstrip(b"="), b64encode(raw).rstrip(b"="), raw.hex().encode())
    if isinstance(key, HmacKey):
        return
    der = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    yield der
    yield pem.split(b"\n")[1]


def private_numbers(key: PrivateKey | HmacKey) -> list[bytes]:
    if isinstance(key, HmacKey):
        return [key.secret]
    if isinstance(key, RSAPrivateKey):
        numbers = key.private_numbers()
        return [
            number.to_bytes((number.bit_length() + 7) // 8, "big") for number in (numbers.d, numbers.p, numbers.q)
        ]
    if isinstance(key, EllipticCurvePrivateKey):
        return [key.private_numbers().private_value.to_bytes(32, "big")]
    return [key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())]


async def read_secrets_and_rows(installation: InstallationPaths) -> tuple[list[PrivateKey | HmacKey], bytes, bytes]:
    """The private keys, the instance key, and all values of all rows."""
    contents = bytearray()

    def put(_table: str, rows: Any) -> None:
        for row in rows:
            for value in row:
                contents.extend((value if isinstance(value, bytes) else str(value).encode()) + b"\n")

    async with open_services(installation.load_settings(), clock=SystemClock(), serving=False) as services:
        await services.storage.runner.snapshot_read(partial(dump_rows, put))
        keyring, now = services.keys.keyring, services.clock.now()
        keys = (await services.storage.keys.load_keys()).keys
        opened = [await keyring.verification_key(key.purpose, key.kid, now) for key in keys]
        return [key.private for key in opened if key is not None], services.core.instance_key, bytes(contents)


async def files_of(installation: InstallationPaths, cluster_data: Path | None) -> bytes:
    """Every file on the disk except the master key."""
    if cluster_data is None:
        directory = Path(installation.url.removeprefix("sqlite:///")).parent
    else:
        directory = cluster_data / "base" / str(await read_checkpoint(installation.url))
    paths = {path for top in (directory, installation.data) for path in top.rglob("*") if path.is_file()}
    return b"\n".join(path.read_bytes() for path in sorted(paths) if path.name != "dev.key")


async def read_checkpoint(url: str) -> int:
    connection = await asyncpg.connect(url)
    await connection.execute("CHECKPOINT")
    oid: int = await connection.fetchval("SELECT oid FROM pg_database WHERE datname = current_database()")
    await connection.close()
    return oid


async def test_op_03_no_private_key_or_secret_lies_in_the_clear(
    installation: InstallationPaths, gatehouse: CommandLine, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    link = gatehouse("admin", "setup-link").strip()
    gatehouse("admin", "create", *ANNA, "--password-stdin", stdin=PASSWORD)
    client_secret = gatehouse.json(
        "client", "create", "web", "--name", "Shop", "--profile", "native", "--redirect-host", "localhost"
    )["client_secret"]
    users = tmp_path / "users.yaml"
    users.write_text(f"users: [{{login: bob@studio.example, nick: Bob, totp_secret: {TOTP}}}]")
    gatehouse("apply", users)
    users.unlink()
    gatehouse("key", "rotate")
    gatehouse("user", "token", "anna@studio.example", "--factor", "f")
    gatehouse("backup", installation.data / "backup.gz")

    on_sqlite = installation.url.startswith("sqlite:")
    cluster = None if on_sqlite else request.getfixturevalue("postgres_cluster").data
    keys, instance_key, rows = await read_secrets_and_rows(installation)
    everywhere = (
        rows + await files_of(installation, cluster) + gzip.decompress((installation.data / "backup.gz").read_bytes())
    )
    assert len(keys) == 10
    pair = next(key for key in keys if not isinstance(key, HmacKey))
    for value in (b"anna@studio.example", pair.public_key().public_bytes(*PUBLIC), b"argon2id"):
        assert value in everywhere, "the scan finds a value that is stored"
    assert b"PRIVATE KEY" not in everywhere
    for key in keys:
        assert not any(form in everywhere for form in private_forms(key))
    master = (installation.data / "dev.key").read_text().strip()
    for secret in (client_secret, link.rpartition("=")[2], PASSWORD, TOTP, master):
        assert secret.encode() not in everywhere
    for form in (instance_key, b64encode(instance_key), instance_key.hex().encode()):
        assert form not in everywhere


# -- OP-05 ----------------------------------------------------------------------------------------------


class Load:
    """Create accounts as fast as the database accepts them, until stopped."""

    def __init__(self, installation: InstallationPaths) -> None:
        self._installation = installation
        self._stop = False
        self.enough = asyncio.Event()
        self.acknowledged: list[str] = []

    async def run(self) -> None:
        async with open_services(self._installation.load_settings(), clock=SystemClock(), serving=False) as services:
            await asyncio.gather(*(self._create(services.accounts.administration, line) for line in range(4)))

    def stop(self) -> None:
        self._stop = True

    async def _create(self, administration: Administration, line: int) -> None:
        number = 0
        while not self._stop:
            number += 1
            login = f"user-{line}-{number}@studio.example"
            user = await administration.create(login=login, nick="U", password=None, origin=ORIGIN)
            self.acknowledged.append(user.user_id)
            if len(self.acknowledged) >= 300:
                self.enough.set()


def read_backup(file: Path) -> dict[str, list[dict[str, object]]]:
    rows: dict[str, list[dict[str, object]]] = {name: [] for name in TABLES}
    for chunk in Archive(file).chunks():
        rows[chunk.table] += [TABLES[chunk.table].fields(row) for row in chunk.rows]
    return rows


@pytest.fixture
def other_installation(
    installation: InstallationPaths, gatehouse: CommandLine, tmp_path: Path, request: pytest.FixtureRequest
) -> InstallationPaths:
    """A second machine with the master key and an empty database of the other kind."""
    gatehouse("key", "list")
    kind = "postgres" if installation.url.startswith("sqlite:") else "sqlite"
    key = (installation.data / "dev.key").read_text().strip()
    url: str = request.getfixturevalue(f"{kind}_url")
    return InstallationPaths(data=tmp_path / "elsewhere", url=url, environment={MASTER: key})


async def test_op_05_a_backup_under_load_restores_all_that_was_acknowledged_and_revives_nothing(
    installation: InstallationPaths, gatehouse: CommandLine, other_installation: InstallationPaths, tmp_path: Path
) -> None:
    file = tmp_path / "backup.gz"
    load = Load(installation)
    with Node(data=installation.data, environment=installation.settings) as node:
        link = gatehouse("admin", "setup-link").strip().partition("?")[2]
        keys = (await ask(node, "/proxy/oauth/keys")).json()
        assert (await ask(node, f"/setup?{link}")).status_code == 200
        working = asyncio.create_task(load.run())
        enough = asyncio.create_task(load.enough.wait())
        await asyncio.wait({working, enough}, return_when=asyncio.FIRST_COMPLETED)
        before = list(load.acknowledged)
        await asyncio.to_thread(gatehouse, "backup", file)
        during = len(load.acknowledged)
        load.stop()
        await working
    assert during > len(before), "no account was created during the backup"
    rows = read_backup(file)
    users = {str(user["user_id"]) for user in rows["users"]}
    created = [record["subject"] for record in rows["audit_events"] if record["event"] == "user.created"]
    assert set(before) <= users
    assert users == {row["user_id"] for row in rows["user_ids"]} == set(created), "the backup is not one snapshot"
    assert len(users) == len(created)

    gatehouse("user", "block", before[0])
    revoked = int(gatehouse.facts("user", "show", before[0])["rev"])
    gatehouse("user", "unblock", before[0])
    there = other_installation.command_line()
    await asyncio.to_thread(there, "restore", file)
    with Node(data=other_installation.data, environment=other_installation.settings) as node:
        assert (await ask(node, "/readyz")).status_code == 200
        assert (await ask(node, "/proxy/oauth/keys")).json() == keys
        assert (await ask(node, f"/setup?{link}")).status_code == 403, "a restored setup link must not work"
        assert int(there.facts("user", "show", before[0])["rev"]) > revoked
        assert there.json("audit", "verify")["problems"] == []
        assert there.json("user", "show", before[-1])["user_id"] == before[-1]


async def ask(node: Node, path: str) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=10, verify=NO_TRUST_STORE) as client:
        return await client.get(f"{node.address}{path}")


# -- OP-08 ----------------------------------------------------------------------------------------------


async def wait_for_status(node: Node, path: str, status: int) -> None:
    async with asyncio.timeout(30), httpx2.AsyncClient(timeout=10, verify=NO_TRUST_STORE) as client:
        while (await client.get(f"{node.address}{path}")).status_code != status:
            continue


async def test_op_08_without_its_database_the_service_is_alive_not_ready_and_recovers_alone(tmp_path: Path) -> None:
    with PostgresCluster() as cluster:
        installation = InstallationPaths(data=tmp_path, url=cluster.create_database_sync(), environment=UNLIMITED)
        with Node(data=installation.data, environment=installation.settings) as node:
            gatehouse = installation.command_line()
            assert gatehouse("healthcheck", "--port", str(node.port)) == "ready\n"
            for mode in ("fast", "immediate"):
                cluster.stop(mode)
                await wait_for_status(node, "/readyz", 503)
                assert (await ask(node, "/healthz")).status_code == 200
                assert (await ask(node, "/proxy/oauth/keys")).status_code == 200, "cached data was not served"
                assert "HTTP 503" in gatehouse.expect_failure("healthcheck", "--port", str(node.port))
                assert "cannot reach PostgreSQL" in gatehouse.expect_failure("key", "list")
                cluster.start()
                await wait_for_status(node, "/readyz", 200)
            assert gatehouse("healthcheck", "--port", str(node.port)) == "ready\n"


# -- OP-12 ----------------------------------------------------------------------------------------------


async def test_op_12_an_administrator_is_made_offline_on_record_and_closes_setup(
    installation: InstallationPaths, gatehouse: CommandLine
) -> None:
    link = gatehouse("admin", "setup-link").strip().partition("?")[2]
    administrator = gatehouse.json("admin", "create", *ANNA, "--password-stdin", stdin=PASSWORD)
    assert gatehouse.facts("user", "show", administrator["user_id"])["roles"] == "administrator"
    [record] = gatehouse.json("audit", "show", "--subject", administrator["user_id"])
    assert (record["event"], record["details"]) == ("user.created", {"administrator": True})
    assert record["actor"].startswith("cli:")
    assert len(gatehouse.json("audit", "show", "--event", "setup.closed")) == 1
    assert "create another with `gatehouse admin create`" in gatehouse.expect_failure("admin", "setup-link")

    with Node(data=installation.data, environment=installation.settings) as node:
        assert (await ask(node, f"/setup?{link}")).status_code == 403
        assert not any("setup?token" in line for line in node.process.stdout)
        second = ("--login", "eve@studio.example", "--nick", "Eve")
        other = gatehouse.json("admin", "create", *second, "--password-stdin", stdin=PASSWORD)
    assert gatehouse.facts("user", "show", other["user_id"])["roles"] == "administrator"
    assert len(gatehouse.json("audit", "show", "--event", "setup.closed")) == 1


def test_op_12_of_many_administrators_made_at_once_each_is_one_and_setup_closes_once(
    installation: InstallationPaths, gatehouse: CommandLine
) -> None:
    """Run several processes at once."""
    gatehouse("admin", "setup-link")
    password = installation.data / "password"
    password.write_text(PASSWORD)
    options = ["--password-file", str(password), "--nick", "Anna", "--dev", "--data", str(installation.data)]
    racers = [
        WatchedProcess(
            [*GATEHOUSE_COMMAND, "admin", "create", "--login", f"anna{number % 2}@studio.example", *options],
            environment=installation.settings,
        )
        for number in range(4)
    ]
    assert sorted(racer.wait() for racer in racers) == [0, 0, 1, 1], "each login must have its own account"
    assert all("already exists" in racer.output() for racer in racers if racer.wait())
    assert len(gatehouse.json("audit", "show", "--event", "user.created")) == 2
    assert len(gatehouse.json("audit", "show", "--event", "setup.closed")) == 1


# -- OP-13 ----------------------------------------------------------------------------------------------

SUSPICIOUS: Final = ("debug", "fault", "test", "mock", "simulate_", "unsafe", "insecure", "skip")


def options_of(command: click.Command) -> Iterator[click.Parameter]:
    yield from command.params
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            subcommand = command.get_command(click.Context(command), name)
            assert subcommand is not None
            yield from options_of(subcommand)


def test_op_13_no_command_option_or_setting_is_for_testing() -> None:
    options = list(options_of(main))
    commands = set(COMMANDS) - {"test"}  # which tests an installation's permissions and changes nothing
    named = {str(name) for option in options for name in (option.name, *option.opts)} | commands | set(ALL_SETTINGS)
    assert not [name for name in named if any(word in name.lower().replace("default", "") for word in SUSPICIOUS)]
    hidden = {option.name for option in options if isinstance(option, click.Option) and option.hidden}
    assert hidden == {"worker"}, "the supervisor's own"


def test_op_13_the_source_knows_nothing_of_tests() -> None:
    texts = {path: path.read_text() for path in (ROOT / "src").rglob("*.py")}
    for path in (path for path, text in texts.items() if any(package in text for package in TEST_PACKAGES)):
        for node in ast.walk(ast.parse(texts[path])):
            names = imported_modules(node)
            assert not {name.partition(".")[0] for name in names} & TEST_PACKAGES, path


def imported_modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


async def test_op_13_no_debug_switch_is_taken_and_no_test_endpoint_is_there(
    installation: InstallationPaths, gatehouse: CommandLine
) -> None:
    for variable in ("GATEHOUSE__SERVER__DEBUG", "GATEHOUSE__DEBUG", "GATEHOUSE__TEST__CLOCK"):
        assert "unknown setting" in gatehouse.expect_failure("key", "list", environment={variable: "1"}, code=78)
    switches: Mapping[str, str] = {"DEBUG": "1", "GATEHOUSE_DEBUG": "1", "STARLETTE_DEBUG": "1", **UNLIMITED}
    with Node(data=installation.data, environment={**installation.settings, **switches}) as node:
        for path in ("/debug", "/test", "/__debug__/", "/_test/clock", "/proxy/api/test"):
            assert (await ask(node, path)).status_code == 404
        async with httpx2.AsyncClient(verify=NO_TRUST_STORE) as client:
            broken = await client.post(f"{node.address}/setup", data={"token": ["a", "b"]})
        assert broken.status_code < 500
        assert "Traceback" not in broken.text
        documented = (await ask(node, "/openapi.json")).json()["paths"]
    assert not [path for path in documented if any(word in path.lower() for word in SUSPICIOUS)]
