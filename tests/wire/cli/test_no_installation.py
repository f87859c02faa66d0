"""Commands without an installation: a wrong --data is reported, and nothing is created."""

import stat
from pathlib import Path

import pytest

from gatehouse.storage.sqlite.connection import connect
from tests.support.command_line import InstallationPaths
from tests.support.processes import LOOPBACK, free_port

ADMINISTRATOR = ("--login", "anna@studio.example", "--nick", "Anna", "--password-stdin")
NEED_AN_INSTALLATION = [
    "audit verify",
    "audit show",
    "application versions 7",
    "check 7 anna rule.x",
    "client list",
    "explain 7 anna rule.x",
    "export",
    "key list",
    "key rewrap",
    "key rotate",
    "members 7 --rule rule.x",
    "project erase acme --yes",
    f"sample-app --port {free_port()}",
    "sample-game",
    "service-token 7",
    "user create --login bob@studio.example --nick Bob --no-password",
    "user show anna",
    "webhook list",
]


@pytest.fixture
def empty_installation(database_url: str, tmp_path: Path) -> InstallationPaths:
    """An empty database; for SQLite, none."""
    return InstallationPaths(data=tmp_path / "data", url=database_url)


def test_commands_that_need_an_installation_make_none(empty_installation: InstallationPaths, tmp_path: Path) -> None:
    gatehouse = empty_installation.command_line()
    for command in NEED_AN_INSTALLATION:
        finished = gatehouse.run(*command.split())
        assert finished.code in (1, 2), command
        assert finished.out == ""
        assert "check --data" in finished.err or "run gatehouse migrate" in finished.err, (command, finished.err)
        assert "Traceback" not in finished.err
    assert not list(tmp_path.glob("**/gatehouse.db*"))
    assert gatehouse.json("migrate")["before"] == "", "the PostgreSQL database must stay empty"


@pytest.mark.parametrize("command", ["apply -", "admin setup-link"])
def test_a_command_that_may_come_first_founds_the_installation(
    empty_installation: InstallationPaths, command: str
) -> None:
    gatehouse = empty_installation.command_line()
    gatehouse(*command.split(), stdin="users: []")
    assert gatehouse.json("audit", "verify")["problems"] == []


def test_the_first_administrator_may_be_made_before_the_first_start(empty_installation: InstallationPaths) -> None:
    gatehouse = empty_installation.command_line()
    gatehouse("admin", "create", *ADMINISTRATOR, stdin="correct-horse-battery")
    assert gatehouse.json("user", "show", "anna@studio.example")["nick"] == "Anna"


def test_a_new_sqlite_file_is_for_its_owner_only_and_an_old_one_keeps_its_mode(
    sqlite_url: str, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    gatehouse, file = InstallationPaths(data=tmp_path, url=sqlite_url).command_line(), tmp_path / "gatehouse.db"
    gatehouse("migrate")
    with connect(str(file)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = version_num")
        modes = {beside.name: stat.S_IMODE(beside.stat().st_mode) for beside in tmp_path.glob("gatehouse.db*")}
    assert modes == dict.fromkeys(["gatehouse.db", "gatehouse.db-shm", "gatehouse.db-wal"], 0o600)
    connection.close()
    file.chmod(0o640)
    gatehouse("key", "list")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_postgresql_that_is_away_or_refuses_is_named_without_its_password(
    postgres_url: str, tmp_path: Path
) -> None:
    away = f"postgresql://gatehouse:hunter2hunter2@{LOOPBACK}:{free_port()}/gatehouse"
    for url, what in ((away, "cannot reach PostgreSQL"), (f"{postgres_url}-not", "does not exist")):
        output = InstallationPaths(data=tmp_path / "data", url=url).command_line().expect_failure("key", "list")
        assert what in output
        assert f"database.url is {url.replace('hunter2hunter2', '********')}" in output
    assert "cannot reach" not in output, "the command must reach the database"
