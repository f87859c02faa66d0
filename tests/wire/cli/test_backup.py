"""`gatehouse backup` and `restore`, from each database to the other."""

import asyncio
import gzip
import json
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gatehouse import __version__
from gatehouse.kernel.digests import hmac_sha256, sha256
from gatehouse.storage.backup import dump_rows
from gatehouse.storage.database import open_storage
from gatehouse.storage.migrations import HEAD
from gatehouse.storage.sqlite.runner import serve_lock
from gatehouse.storage.statements import Notification, Verb
from tests.support.builders import ORIGIN, RECORDER
from tests.support.command_line import CommandLine, InstallationPaths, execute_statements
from tests.support.postgres import database_name

MASTER = "GATEHOUSE__SECURITY__MASTER_KEY"
OTHER_KEY = "9b1fe07c43d5aa2867f09e3c11d84b6e5a70cf2294be638d0d7715e8fa92c35b"
BOB = ("--login", "bob@studio.example", "--nick", "Bob", "--no-password")
Contents = dict[str, list[dict[str, object]]]


def contents(url: str) -> Contents:
    tables: Contents = {}

    def put(table: str, rows: Any) -> None:
        tables.setdefault(table, []).extend(row._asdict() for row in rows)

    async def read() -> None:
        async with open_storage(url, migrate=False) as storage:
            await storage.runner.snapshot_read(partial(dump_rows, put))

    asyncio.run(read())
    return tables


def refuse_someone(url: str) -> None:
    refusal = RECORDER.refusal("game.poll", ORIGIN, reason="no", subject="a-gsid")

    async def refuse() -> None:
        async with open_storage(url, migrate=False) as storage:
            await storage.audit.add_refusal(refusal, max_refusals=1_000)

    asyncio.run(refuse())


@pytest.fixture
def filled_installation(gatehouse: CommandLine, installation: InstallationPaths) -> CommandLine:
    """An installation with data in most tables."""
    gatehouse("user", "create", *BOB)
    gatehouse("client", "create", "web", "--name", "Web shop", "--profile", "native", "--redirect-host", "localhost")
    gatehouse("admin", "setup-link")
    gatehouse("key", "rotate", "--alg", "ES256")
    refuse_someone(installation.url)
    refuse_someone(installation.url)
    return gatehouse


@pytest.fixture
def other_installation(
    filled_installation: CommandLine, installation: InstallationPaths, tmp_path: Path, request: pytest.FixtureRequest
) -> InstallationPaths:
    """A second machine with the master key, and an empty database of the other kind."""
    filled_installation("key", "list")
    kind = "postgres" if installation.url.startswith("sqlite:") else "sqlite"
    key = (installation.data / "dev.key").read_text().strip()
    url: str = request.getfixturevalue(f"{kind}_url")
    return InstallationPaths(data=tmp_path / "elsewhere", url=url, environment={MASTER: key})


def without_fence_columns(tables: Contents) -> Contents:
    """The columns that a restore does not change."""
    left = {"users": {"rev"}, "clients": {"rev"}, "once": {"taken_at"}, "projects": {"model_version"}}
    records = [record for record in tables["audit_events"] if record["event"] != "installation.restored"]
    plain = {**tables, "audit_events": records, "installation_epoch": []}
    return {
        table: [{name: value for name, value in row.items() if name not in left.get(table, ())} for row in rows]
        for table, rows in plain.items()
    }


def test_a_backup_of_one_database_restores_to_the_other_and_back(
    installation: InstallationPaths,
    filled_installation: CommandLine,
    other_installation: InstallationPaths,
    tmp_path: Path,
) -> None:
    there, back = tmp_path / "there.gz", tmp_path / "back.gz"
    created = filled_installation.json("backup", there)
    before = contents(installation.url)
    assert created["rows"] == sum(map(len, before.values()))
    assert stat.S_IMODE(there.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.glob(".there*")] == []
    gatehouse = other_installation.command_line()
    assert gatehouse.json("restore", there)["rows"] == created["rows"]
    restored = contents(other_installation.url)
    assert without_fence_columns(restored) == without_fence_columns(before)
    assert gatehouse.json("audit", "verify")["problems"] == []
    assert gatehouse.json("key", "list") == filled_installation.json("key", "list")
    refuse_someone(other_installation.url)  # the database's sequences continue
    gatehouse("client", "rotate-secret", "web")
    gatehouse("backup", back)
    after = contents(other_installation.url)
    assert "the database is not empty" in filled_installation.expect_failure("restore", back)
    assert "All tokens issued before now are rejected" in filled_installation("restore", back, "--replace")
    assert without_fence_columns(contents(installation.url)) == without_fence_columns(after)
    assert len(after["audit_refusals"]) == 3


def test_r_23_what_ended_after_the_backup_stays_ended_and_the_log_shows_the_cut(
    installation: InstallationPaths, filled_installation: CommandLine, tmp_path: Path
) -> None:
    """R-23."""
    file = tmp_path / "backup.gz"
    gatehouse = filled_installation
    [link] = contents(installation.url)["once"]
    assert link["taken_at"] == 0
    gatehouse("backup", file)
    gatehouse("user", "block", "bob@studio.example")
    blocked = gatehouse.facts("user", "show", "bob@studio.example")
    gatehouse("user", "unblock", "bob@studio.example")
    free = gatehouse.facts("user", "show", "bob@studio.example")
    gatehouse("restore", file, "--replace")
    after = contents(installation.url)
    [bob] = after["users"]
    [ended] = after["installation_epoch"]
    assert max(bob["rev"], ended["epoch"]) > int(free["rev"]) > int(blocked["rev"])
    assert gatehouse.facts("user", "show", "bob@studio.example")["rev"] == str(ended["epoch"])
    [link] = after["once"]
    assert link["taken_at"] == 0
    assert link["epoch"] < ended["epoch"]
    [record] = gatehouse.json("audit", "show", "--event", "installation.restored")
    assert ended["epoch"] >= record["at"] * 1_000
    assert record["details"]["backup_made_at"] <= record["at"]
    gatehouse("restore", file, "--replace")
    assert contents(installation.url)["installation_epoch"][0]["epoch"] >= ended["epoch"]


def change_backup(file: Path, to: Path, change: Callable[[list[Any]], None]) -> Path:
    with gzip.open(file, "rt") as packed:
        lines = [json.loads(line) for line in packed]
    change(lines)
    with gzip.open(to, "wt") as packed:
        packed.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    return to


def add_administrator(lines: list[Any]) -> None:
    """Add an administrator and a matching checksum: all that is possible without the master key."""
    rows = next(line for line in lines if line.get("table") == "role_assignments")["rows"]
    rows.append([1, "6666666666", "", "", "", "administrator", 1, 0, 0])
    lines[-1]["counts"]["role_assignments"] += 1
    body = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines[:-1])
    lines[-1]["sha256"] = sha256(body).hex()
    lines[-1]["mac"] = hmac_sha256(bytes(32), sha256(body)).hex()


def test_a_backup_that_is_not_to_be_believed_changes_nothing(
    installation: InstallationPaths, filled_installation: CommandLine, tmp_path: Path
) -> None:
    gatehouse = filled_installation
    gatehouse(
        "admin", "create", "--login", "a@x.example", "--nick", "A", "--password-stdin", stdin="correct horse battery"
    )
    file = tmp_path / "backup.gz"
    gatehouse("backup", file)
    gatehouse("user", "create", "--login", "later@studio.example", "--nick", "Later", "--no-password")
    before = contents(installation.url)
    whole = file.read_bytes()

    def restore_failure(content: Path | bytes) -> str:
        if isinstance(content, bytes):
            (tmp_path / "damaged.gz").write_bytes(content)
            content = tmp_path / "damaged.gz"
        return gatehouse.expect_failure("restore", content, "--replace")

    def changed_file(change: Callable[[list[Any]], None]) -> Path:
        return change_backup(file, tmp_path / "changed.gz", change)

    assert "cannot read" in restore_failure(whole[: len(whole) // 2])
    assert "cannot read" in restore_failure(b"something else")
    assert "Error" in restore_failure(bytes([*whole[:200], whole[200] ^ 1, *whole[201:]]))
    assert "the end of the backup is missing" in restore_failure(changed_file(lambda lines: lines.pop()))
    assert "unexpected data after" in restore_failure(changed_file(lambda lines: lines.append(lines[-1])))
    assert "the checksum of the backup is wrong" in restore_failure(changed_file(lambda lines: lines.pop(1)))
    assert "not written by the installation" in restore_failure(changed_file(add_administrator))
    assert f"schema revision 0000, Gatehouse {__version__} has {HEAD}" in restore_failure(
        changed_file(lambda lines: lines[0].update(revision="0000"))
    )
    assert f"restore it with Gatehouse {__version__}" in restore_failure(
        changed_file(lambda lines: lines[0].update(format=2))
    )
    assert "needs master key" in gatehouse.expect_failure(
        "restore", file, "--replace", environment={MASTER: OTHER_KEY}
    )
    assert contents(installation.url) == before


def test_r_23_nothing_is_restored_under_a_running_service(
    installation: InstallationPaths, filled_installation: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "backup.gz"
    filled_installation("backup", file)
    before = contents(installation.url)
    if installation.url.startswith("sqlite:"):
        with serve_lock(installation.url.removeprefix("sqlite:///")):
            assert "is in use by a running service: stop it first" in filled_installation.expect_failure(
                "restore", file, "--replace"
            )
    else:
        asyncio.run(restored_beside_another(installation, filled_installation, file))
    assert contents(installation.url) == before


async def restored_beside_another(installation: InstallationPaths, gatehouse: CommandLine, file: Path) -> None:
    notified = asyncio.Event()
    async with open_storage(installation.url, migrate=False) as storage:
        storage.runner.listen("keys", lambda _: notified.set())
        await storage.runner.write(call_endpoint)
        await notified.wait()  # that, or the notification that it listens only now, as every process gets it
        output = await asyncio.to_thread(gatehouse.expect_failure, "restore", file, "--replace")
        assert "another Gatehouse process is connected" in output


def call_endpoint() -> Verb[None]:
    yield Notification("keys", "")


def test_restoring_takes_the_role_that_owns_the_tables(
    migrated_postgres_url: str, gatehouse_elsewhere: CommandLine, tmp_path: Path
) -> None:
    role = f"limited_{database_name(migrated_postgres_url)}"
    execute_statements(
        migrated_postgres_url,
        [
            f"CREATE ROLE {role} LOGIN",
            f"GRANT USAGE ON SCHEMA public TO {role}",
            f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO {role}",
        ],
    )
    file = tmp_path / "backup.gz"
    gatehouse_elsewhere("backup", file)
    limited = {"GATEHOUSE__DATABASE__URL": migrated_postgres_url.replace("postgres@", f"{role}@")}
    try:
        output = gatehouse_elsewhere.expect_failure("restore", file, environment=limited)
        assert "restoring needs the database role that owns the tables" in output
        assert "this database role can change" not in gatehouse_elsewhere.run("doctor", environment=limited).out
        assert contents(migrated_postgres_url) == {}
    finally:
        execute_statements(migrated_postgres_url, [f"DROP OWNED BY {role}", f"DROP ROLE {role}"])


@pytest.fixture
def gatehouse_elsewhere(tmp_path: Path, migrated_sqlite_url: str) -> CommandLine:
    commands = InstallationPaths(data=tmp_path / "sqlite", url=migrated_sqlite_url).command_line()
    commands("key", "list")
    return commands


def test_a_backup_never_overwrites_and_is_never_made_of_nothing(gatehouse: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "backup.gz"
    assert "never used by a service" in gatehouse.expect_failure("backup", file)
    gatehouse("key", "list")
    file.write_text("mine")
    assert "already exists" in gatehouse.expect_failure("backup", file)
    assert file.read_text() == "mine"
    assert "No such file" in gatehouse.expect_failure("backup", tmp_path / "none" / "backup.gz")
    elsewhere = {"GATEHOUSE__DATABASE__URL": f"sqlite:///{tmp_path}/typo.db"}
    assert "no database" in gatehouse.expect_failure("backup", tmp_path / "b.gz", environment=elsewhere)
    assert not (tmp_path / "typo.db").exists()


def test_someone_who_watches_sees_how_far_it_is(
    installation: InstallationPaths, filled_installation: CommandLine, tmp_path: Path
) -> None:
    filled_installation("key", "list")
    output, shown = installation.run_in_terminal("backup", tmp_path / "b.gz")
    assert "Backing up, rows" in shown
    assert "Backed up" in output
