"""Migrations run once, in one transaction, and the schema is never newer than the code (checklist OP-09)."""

import asyncio
import re
import shutil
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Connection, create_engine, insert, inspect, select, text
from sqlalchemy.exc import DBAPIError, SAWarning
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from gatehouse.accounts.model import ProvidedLabels
from gatehouse.oauth.store import RotationOutcome
from gatehouse.storage import migrations
from gatehouse.storage.database import connect_storage, open_storage
from gatehouse.storage.migrations import HEAD, MigrationFailed, SchemaBehind, SchemaTooNew, run_in_child
from gatehouse.storage.migrations.__main__ import upgrade
from gatehouse.storage.tables.every_table import metadata
from tests.support.builders import NOW, a_client, a_record, a_user, an_identity
from tests.support.database_contents import dump_database, open_services_on
from tests.support.oauth import a_grant
from tests.support.permission_builders import create_application
from tests.support.processes import DidNotStart, Node, free_port
from tests.support.service import FAST_SETTINGS

T = TypeVar("T")
NEWER: Final = "9999"
EXPRESSIONS: Final = {
    str(index.name)
    for table in metadata.tables.values()
    for index in table.indexes
    if not all(isinstance(expression, Column) for expression in index.expressions)
}
MIGRATING: Final = """
import sys
from gatehouse.storage.migrations.__main__ import upgrade
upgrade(sys.argv[1])  # another one, to have everything loaded
print("ready", flush=True)
upgrade(sys.stdin.readline().strip())
"""
BROKEN: Final = """
from alembic import op
revision = "{revision}"
down_revision = "{before}"

def upgrade():
    op.execute("CREATE TABLE half_done (id INTEGER)")
    op.execute("INSERT INTO half_done VALUES (1)")
    op.execute("this is no SQL")
"""


async def run_on(url: str, work: Callable[[Connection], T]) -> T:
    """Run on a SQLAlchemy connection; nothing else in this process may have the file open."""
    if url.startswith("sqlite:"):
        engine = create_engine(url, poolclass=NullPool)
        with engine.begin() as connection:
            return work(connection)
    there = create_async_engine("postgresql+asyncpg://", poolclass=NullPool, connect_args={"dsn": url})
    async with there.begin() as connection:
        return await connection.run_sync(work)


def tables(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names())


def differences(connection: Connection) -> list[object]:
    """The differences that alembic finds; expression indexes, which it cannot read back, are compared by name."""
    options = {"compare_type": True, "compare_server_default": True, "include_object": is_readable}
    context = MigrationContext.configure(connection, opts=options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* expression-based index", UserWarning)
        warnings.filterwarnings("ignore", ".* expression-based index", SAWarning)
        changes = compare_metadata(context, metadata)
    listed = {"sqlite": "SELECT name FROM sqlite_master", "postgresql": "SELECT indexname FROM pg_indexes"}
    there = set(connection.execute(text(listed[connection.dialect.name])).scalars())
    return [*changes, *(EXPRESSIONS - there)]


def is_readable(_made: object, name: str | None, kind: str, _reflected: object, _other: object) -> bool:
    return kind != "index" or name not in EXPRESSIONS


def become_newer(connection: Connection) -> None:
    connection.execute(text("UPDATE alembic_version SET version_num = :newer"), {"newer": NEWER})


async def revision_of(url: str) -> str:
    async with connect_storage(url) as storage:
        return await storage.runner.revision()


async def test_a_migrated_database_is_what_the_tables_say(migrated_url: str) -> None:
    assert await run_on(migrated_url, tables) == {*metadata.tables, "alembic_version"}
    assert await run_on(migrated_url, differences) == []


async def downgrade(url: str, revision: str) -> None:
    """Replace the database by one of an earlier revision with the same rows, without the columns it does not have."""
    rows = await run_on(url, remove_all_tables)
    await asyncio.to_thread(upgrade, url, revision=revision)
    await run_on(url, partial(insert_rows, rows))


def remove_all_tables(connection: Connection) -> dict[str, list[dict[str, object]]]:
    rows = {
        table.name: [dict(row._mapping) for row in connection.execute(select(table))]
        for table in metadata.sorted_tables
    }
    metadata.drop_all(connection)
    connection.execute(text("DROP TABLE alembic_version"))
    return rows


def insert_rows(rows: dict[str, list[dict[str, object]]], connection: Connection) -> None:
    for name, found in rows.items():
        if found and inspect(connection).has_table(name):
            known = {column["name"] for column in inspect(connection).get_columns(name)}
            kept = [{field: value for field, value in row.items() if field in known} for row in found]
            connection.execute(insert(metadata.tables[name]).values(kept))


async def test_tk_90_grants_made_before_they_named_their_last_attempt_are_refreshed_after_it(
    migrated_url: str,
) -> None:
    async with open_storage(migrated_url, migrate=False) as storage:
        user = a_user()
        await storage.accounts.create_user(user, a_record())
        await storage.clients.create_client(a_client(), a_record())
        await storage.grants.create_grant(a_grant(grant_id="g1", user_id=user.user_id, rev=user.rev), a_record())
    await downgrade(migrated_url, "0002")
    async with open_storage(migrated_url, migrate=True) as storage:
        holder = await storage.grants.find_live_grant("g1", NOW)
        assert holder is not None
        assert holder.grant.attempt == ""
        rotated = await storage.grants.rotate("g1", 0, NOW, kid="key", grace=0, reused=a_record)
        assert (rotated.outcome, rotated.generation) == (RotationOutcome.ROTATED, 1)
    assert await run_on(migrated_url, differences) == []


@pytest.mark.parametrize(("count", "stored"), [(0, {}), (1, {}), (2, {"forward_auth.require_application": False})])
async def test_proxies_need_not_name_the_application_where_two_had_sites_before(
    count: int, stored: dict[str, object], migrated_url: str
) -> None:
    async with open_storage(migrated_url, migrate=False) as storage:
        for number in range(count):
            sites = {f"https://{name}{number}.example": "a" for name in ("wiki", "docs")}
            await create_application(storage, name=f"Application {number}", protected_sites=sites)
    await downgrade(migrated_url, "0031")
    async with open_storage(migrated_url, migrate=True) as storage:
        found = await storage.settings.read_all()
        assert {name: setting.value for name, setting in found.items()} == stored


async def test_registered_addresses_that_were_verified_count_as_proved(migrated_url: str) -> None:
    origins = {
        "1": ("registered", True, "proved"),
        "2": ("registered", False, "registered"),
        "3": ("imported", True, "imported"),
    }
    async with open_storage(migrated_url, migrate=False) as storage:
        for user_id, (joined, is_verified, _) in origins.items():
            fields = {"meta": {"joined": joined, "a": "b"}, "email_verified": is_verified}
            login = f"user{user_id}@studio.example"
            await storage.accounts.create_user(a_user(user_id=user_id, login=login, **fields), a_record())
    await downgrade(migrated_url, "0036")
    async with open_storage(migrated_url, migrate=True) as storage:
        for user_id, (_, _, expected) in origins.items():
            assert (await storage.accounts.user(user_id)).meta == {"joined": expected, "a": "b"}


async def test_origins_of_clients_of_earlier_versions_are_found(migrated_url: str) -> None:
    async with open_storage(migrated_url, migrate=False) as storage:
        for number in range(3):
            client = a_client(f"c{number}", origins=("https://spa.example", f"https://{number}.example"))
            await storage.clients.create_client(client, a_record())
        await storage.clients.remove_client("c2", a_record())
    await downgrade(migrated_url, "0047")
    async with open_storage(migrated_url, migrate=True) as storage:
        for origin, expected in (("spa", True), ("0", True), ("1", True), ("2", False)):
            assert await storage.clients.is_registered_origin(f"https://{origin}.example") is expected
    assert await run_on(migrated_url, differences) == []


async def test_id_14_labels_of_earlier_versions_get_the_source_that_set_them(migrated_url: str) -> None:
    """The newest identity at the provider whose rule names them; what no rule names was set by people."""
    users = [a_user(tags=frozenset({"artist", "vip"}), purchases=frozenset({"steam:480", "dlc"})) for _ in range(2)]
    others = a_user(tags=frozenset({"artist"}))
    rules = {"google": ProvidedLabels(tags={"artist": True}, purchases=frozenset({"steam:480"}))}
    async with open_storage(migrated_url, migrate=False) as storage:
        for user in users:
            await storage.profile.create_with_identity(
                user, an_identity(user.user_id, f"{user.user_id} a"), a_record()
            )
            newest = an_identity(user.user_id, f"{user.user_id} b", used_at=NOW + 1)
            await storage.profile.link_identity(newest, a_record(), (), rev=0)
        await storage.accounts.create_user(others, a_record())
    await downgrade(migrated_url, "0039")
    async with open_storage(migrated_url, migrate=True) as storage:
        while await storage.profile.find_sources(rules):
            pass
        for user in users:
            found = await storage.accounts.user(user.user_id)
            assert [found.tags, found.provided_tags, found.service_tags] == [{"vip"}, {"artist"}, {"linked_google"}]
            assert [found.purchases, found.provided_purchases] == [{"dlc"}, {"steam:480"}]
            labels = (await storage.profile.account_details(user.user_id, NOW)).labels
            assert {(one.subject, one.kept) for one in labels} == {
                (f"{user.user_id} b", True),
                (f"{user.user_id} b", False),
            }
        assert (await storage.accounts.user(others.user_id)).tags == {"artist"}
        await storage.accounts.set_labels(users[0].user_id, a_record(), tags=frozenset({"artist"}))
        assert not await storage.profile.find_sources(rules)  # once only
        assert (await storage.accounts.user(users[0].user_id)).tags == {"artist"}
    assert await run_on(migrated_url, differences) == []


async def test_the_history_is_one_line_of_numbered_revisions_that_ends_where_the_code_does() -> None:
    history = ScriptDirectory(str(Path(migrations.__file__).parent))
    revisions = [script.revision for script in history.walk_revisions()]
    assert history.get_heads() == [HEAD]
    assert revisions == sorted(revisions, reverse=True)
    assert all(re.fullmatch(r"\d{4}", revision) for revision in revisions)


async def test_op_09_of_many_who_migrate_at_once_one_does_and_all_succeed(database_url: str, tmp_path: Path) -> None:
    children = [await about_to_migrate(tmp_path / f"{number}.db") for number in range(3)]
    outputs = await asyncio.gather(*(child.communicate(database_url.encode()) for child in children))
    assert [child.returncode for child in children] == [0, 0, 0], outputs
    assert await revision_of(database_url) == HEAD


async def about_to_migrate(other: Path) -> asyncio.subprocess.Process:
    """A process that has loaded everything and waits for the database URL."""
    command = [sys.executable, "-c", MIGRATING, f"sqlite:///{other}"]
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    assert child.stdout is not None
    assert await child.stdout.readline() == b"ready\n"
    return child


async def test_op_09_two_nodes_that_start_together_on_nothing_are_one_service(
    postgres_url: str, tmp_path: Path
) -> None:
    first = Node(data=tmp_path, database_url=postgres_url, environment=FAST_SETTINGS)
    environment = {**FAST_SETTINGS, "GATEHOUSE__SERVER__BASE_URL": first.address}
    second = Node(data=tmp_path, database_url=postgres_url, environment=environment)
    try:
        await asyncio.gather(asyncio.to_thread(first.start), asyncio.to_thread(second.start))
        assert (first.terminate(), second.terminate()) == (0, 0)
    finally:
        first.kill()
        second.kill()
    async with open_services_on(postgres_url, tmp_path) as services:
        lines = [key.line for key in (await services.storage.keys.load_keys()).keys]
        assert len(lines) == len(set(lines)) > 0


async def test_op_09_a_newer_schema_is_refused_and_left_alone(migrated_url: str, tmp_path: Path) -> None:
    async with open_storage(migrated_url, migrate=False):
        pass  # switches SQLite's file to the service's mode
    await run_on(migrated_url, become_newer)
    before = dump_database(migrated_url)
    for migrate in (True, False):
        with pytest.raises(SchemaTooNew, match=NEWER):
            async with open_storage(migrated_url, migrate=migrate):
                pass
    node = Node(data=tmp_path, database_url=migrated_url, environment=FAST_SETTINGS)
    with pytest.raises(DidNotStart, match="upgrade Gatehouse"):
        await asyncio.to_thread(node.start)
    assert node.process.wait() == 1
    assert dump_database(migrated_url) == before


async def test_an_older_schema_is_left_alone_by_anyone_who_may_not_migrate(database_url: str) -> None:
    with pytest.raises(SchemaBehind, match="gatehouse migrate"):
        async with open_storage(database_url, migrate=False):
            pass
    assert await run_on(database_url, tables) == set()


async def test_op_09_r_22_a_failing_migration_leaves_an_empty_database_empty(
    database_url: str, tmp_path: Path
) -> None:
    with pytest.raises(DBAPIError, match="this is no SQL"):
        await asyncio.to_thread(upgrade, database_url, versions=broken_history(tmp_path))
    assert await run_on(database_url, tables) == set()
    assert await revision_of(database_url) == ""


async def test_op_09_r_22_a_failing_migration_leaves_the_schema_before_it(migrated_url: str, tmp_path: Path) -> None:
    with pytest.raises(DBAPIError, match="this is no SQL"):
        await asyncio.to_thread(upgrade, migrated_url, versions=broken_history(tmp_path))
    assert await run_on(migrated_url, differences) == []
    assert await revision_of(migrated_url) == HEAD


def create_foreign_table(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE users (name TEXT)"))


async def test_failed_migration_reports_its_cause_in_one_line(database_url: str) -> None:
    await run_on(database_url, create_foreign_table)
    with pytest.raises(MigrationFailed, match=r"users.*already exists"):
        await run_in_child(database_url)
    assert await run_on(database_url, tables) == {"users"}


def broken_history(tmp_path: Path) -> Path:
    """Our revisions, and one more that fails halfway."""
    versions = tmp_path / "versions"
    shutil.copytree(Path(migrations.__file__).parent / "versions", versions)
    (versions / "broken.py").write_text(BROKEN.format(revision=f"{int(HEAD) + 1:04}", before=HEAD))
    return versions


async def test_a_database_that_cannot_be_migrated_is_named_without_its_password() -> None:
    with pytest.raises(MigrationFailed) as error:
        await run_in_child(f"postgresql://anna:hunter2@127.0.0.1:{free_port()}/gatehouse")
    assert "Connect call failed" in str(error.value)
    assert "hunter2" not in str(error.value)
