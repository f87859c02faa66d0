"""The secrets of deploy/compose.yaml, and the two database roles they belong to (defaults S-29)."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest

from gatehouse.keys.sealing import parse_master_key
from gatehouse.settings.grammar import database_url
from tests.support.capabilities import POSTGRES, require_program
from tests.support.command_line import InstallationPaths
from tests.support.packaging import DEPLOY, NODES, SERVICES, read_compose, user_of
from tests.support.postgres import PostgresCluster
from tests.support.processes import LOOPBACK


def make_secrets(directory: Path, *host: str) -> dict[str, str]:
    subprocess.run([DEPLOY / "make-secrets.sh", directory, *host], capture_output=True, check=True)
    return {path.name: path.read_text() for path in directory.iterdir()}


def test_the_secrets_that_compose_wants_are_made_for_one_reader_each(tmp_path: Path) -> None:
    secrets = make_secrets(tmp_path)
    brought = {"tls_certificate", "tls_key"}  # provided by the operator
    assert secrets.keys() == (read_compose()["secrets"].keys() | read_compose(NODES)["secrets"].keys()) - brought
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in secrets} == {0o400}
    assert len(set(secrets.values())) == len(secrets)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the owner of files")
def test_each_secret_belongs_to_the_user_of_its_containers(tmp_path: Path) -> None:
    make_secrets(tmp_path)
    for name in SERVICES:
        wanted = read_compose()["services"][name]["secrets"]
        assert {(tmp_path / secret).stat().st_uid for secret in wanted} == {user_of(name)}


def test_the_service_accepts_the_secrets(tmp_path: Path) -> None:
    secrets = make_secrets(tmp_path)
    parse_master_key(secrets["master_key"])
    for name in ("owner_url", "runtime_url", "nodes_url"):
        database_url(secrets[name].strip())


def test_making_secrets_again_replaces_none_and_mends_what_is_missing(tmp_path: Path) -> None:
    first = make_secrets(tmp_path)
    (tmp_path / "runtime_url").unlink()
    assert make_secrets(tmp_path) == first


def test_a_database_server_of_ones_own_gets_two_passwords_and_addresses_that_name_it(tmp_path: Path) -> None:
    secrets = make_secrets(tmp_path, "db1.example.org")
    assert secrets.keys() == {"owner_password", "runtime_password", "owner_url", "runtime_url"}
    for role, name in (("gatehouse_owner", "owner"), ("gatehouse", "runtime")):
        password = secrets[f"{name}_password"].strip()
        assert secrets[f"{name}_url"].strip() == f"postgresql://{role}:{password}@db1.example.org/gatehouse"
    seen = {(stat.S_IMODE(path.stat().st_mode), path.stat().st_uid) for path in tmp_path.iterdir()}
    assert seen == {(0o400, os.geteuid())}


def psql(url: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    program = require_program(POSTGRES) / "psql"
    command = [program, "--no-psqlrc", "--quiet", url, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=check)


def test_no_database_role_is_created_without_a_password(tmp_path: Path) -> None:
    roles = [f"--set=secrets={tmp_path}", f"--file={DEPLOY / 'postgresql-roles.sql'}"]
    with PostgresCluster() as cluster:
        psql(cluster.url(), "--command=CREATE DATABASE gatehouse")
        for name in ("owner_password", "runtime_password"):
            make_secrets(tmp_path)
            (tmp_path / name).unlink()
            missing = psql(cluster.url("gatehouse"), *roles, check=False)
            (tmp_path / name).write_text("\n")
            empty = psql(cluster.url("gatehouse"), *roles, check=False)
            (tmp_path / name).unlink()
            assert (missing.returncode, empty.returncode) == (3, 3)  # psql's exit code after an error
            assert "no roles were made" in missing.stderr
        created = psql(cluster.url(), "--tuples-only", "--command=SELECT 1 FROM pg_roles WHERE rolname ~ 'gatehouse'")
    assert created.stdout.strip() == ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """A database with the serving role's access, and the statements that ran too early."""

    runtime_url: str
    before_migration: str
    before_grants: str


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Roles]:
    """A database set up as docs/operations/postgresql.md says."""
    secrets, data = tmp_path_factory.mktemp("secrets"), tmp_path_factory.mktemp("data")
    make_secrets(secrets)
    with PostgresCluster() as cluster:
        address = f"{LOOPBACK}:{cluster.port}/gatehouse"
        psql(cluster.url(), "--command=CREATE DATABASE gatehouse")
        psql(cluster.url("gatehouse"), f"--set=secrets={secrets}", f"--file={DEPLOY / 'postgresql-roles.sql'}")
        owner, runtime = f"postgresql://gatehouse_owner@{address}", f"postgresql://gatehouse@{address}"
        gatehouse = InstallationPaths(data=data, url=runtime).command_line()
        before_migration = gatehouse.expect_failure("admin", "setup-link")
        migration = [sys.executable, "-m", "gatehouse.storage.migrations"]
        subprocess.run(migration, input=owner.encode(), check=True)
        before_grants = gatehouse.expect_failure("admin", "setup-link")
        psql(owner, "--set=ON_ERROR_STOP=1", f"--file={DEPLOY / 'postgresql-grants.sql'}")
        yield Roles(runtime_url=runtime, before_migration=before_migration, before_grants=before_grants)


@pytest.fixture(scope="module")
def runtime_url(roles: Roles) -> str:
    return roles.runtime_url


def test_a_serving_role_that_comes_too_early_is_told_what_is_to_be_done_first(roles: Roles) -> None:
    assert "run `gatehouse migrate` as the role that owns the schema" in roles.before_migration
    assert "run deploy/postgresql-grants.sql as the role that owns them" in roles.before_grants


async def attempt(url: str, statements: Sequence[str]) -> None:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            for statement in statements:
                await connection.execute(statement)
    finally:
        await connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_events SET event = 'another'",
        "UPDATE audit_events SET commitment = ''",
        "DELETE FROM audit_events",
        "TRUNCATE audit_events",
        "UPDATE audit_seals SET link = ''",
        "DELETE FROM audit_seals",
        "UPDATE audit_refusals SET reason = 'another'",
        "UPDATE alembic_version SET version_num = '9999'",
        "CREATE TABLE mine (id int)",
        "CREATE TEMPORARY TABLE mine (id int)",
        "DROP TABLE users",
        "ALTER TABLE audit_events DISABLE TRIGGER ALL",
    ],
)
async def test_the_serving_role_can_rewrite_neither_history_nor_schema(runtime_url: str, statement: str) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await attempt(runtime_url, [statement])


async def test_the_serving_role_can_do_its_work(runtime_url: str) -> None:
    event = "INSERT INTO audit_events (record_id, at, event, actor, subject, request_id, details, commitment, mac)"
    refusal = "INSERT INTO audit_refusals (record_id, at, event, reason, subject, request_id, details, personal)"
    await attempt(
        runtime_url,
        [
            f"{event} VALUES ('r', 1, '', '', '', '', '{{}}', '', '')",
            "UPDATE audit_events SET place = 1 WHERE record_id = 'r' AND place IS NULL",
            "UPDATE audit_events SET personal = NULL, salt = NULL WHERE subject = ''",
            "INSERT INTO audit_seals (place, at, link, kid, signature) VALUES (1, 1, '', '', '')",
            f"{refusal} VALUES ('f', 1, '', '', '', '', '{{}}', '{{}}')",
            "DELETE FROM audit_refusals WHERE position <= 1",
            "INSERT INTO user_ids (user_id) VALUES ('1')",
            "SELECT version_num FROM alembic_version",
            "SELECT pg_notify('gatehouse', 'hello')",
            "LISTEN gatehouse",
        ],
    )
