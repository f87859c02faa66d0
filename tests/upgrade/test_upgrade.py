"""Databases of earlier revisions upgrade at the next start, and everything in them still works."""

import asyncio
import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import httpx2
import pytest
from sqlalchemy import Connection, inspect, text

from gatehouse.admin.paging import PageRequest
from gatehouse.admin.schema_versions import SchemaVersionStore
from gatehouse.permissions.commands.app_schemas import role_document, schema_document
from gatehouse.storage.database import connect_storage
from gatehouse.storage.migrations import run_in_child
from gatehouse.storage.permissions.grant_keys import grant_keys_of
from gatehouse.storage.permissions.project_models import all_projects
from tests.conformance.test_migrations import differences, run_on
from tests.support.capabilities import POSTGRES, require_program
from tests.support.database_contents import read_all_tables
from tests.support.processes import Node, run_command
from tests.support.service import FAST_SETTINGS

KEPT: Final = Path(__file__).parent
REVISIONS: Final = sorted(path.name for path in KEPT.iterdir() if path.name.isdigit())
MODERATOR: Final = "noor.haddad@mail.example"
GAME: Final = 50_001
FACTOR: Final = "a device"
CLIENT: Final = "raiders-hub"
DOCUMENT: Final = "https://tools.example/client.json"
WITH_VERSIONS: Final = 50_002  # its schema was saved in 0001, which stored each version in full


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", "postgres"])
def stored_database(request: pytest.FixtureRequest, revision: str, tmp_path: Path) -> tuple[Path, str]:
    """A copy of the stored database, its data directory and its URL."""
    folder = KEPT / revision / request.param
    for name in ("dev.key", "demo-accounts.txt"):
        shutil.copy(folder / name, tmp_path)
    (tmp_path / "dev.key").chmod(0o600)
    if request.param == "sqlite":
        database = tmp_path / "gatehouse.db"
        database.write_bytes(gzip.decompress((folder / "gatehouse.db.gz").read_bytes()))
        return tmp_path, f"sqlite:///{database}"
    url: str = request.getfixturevalue("postgres_url")
    restore(url, folder / "dump.sql.gz")
    return tmp_path, url


def restore(url: str, dump: Path) -> None:
    psql = [
        require_program(POSTGRES) / "psql",
        "--quiet",
        "--no-psqlrc",
        "--set",
        "ON_ERROR_STOP=1",
        "--output",
        "/dev/null",
    ]
    subprocess.run([*psql, url], input=gzip.decompress(dump.read_bytes()), check=True)


def password_of(login: str, data: Path) -> str:
    match = re.search(rf"{re.escape(login)}\s+(\S+)$", (data / "demo-accounts.txt").read_text(), re.MULTILINE)
    assert match is not None
    return match[1]


async def test_kept_database_upgrades_and_its_people_sign_in(stored_database: tuple[Path, str]) -> None:
    data, url = stored_database
    with Node(data=data, database_url=url, environment=FAST_SETTINGS) as node:
        async with httpx2.AsyncClient(base_url=node.address) as client:
            login = {"login": MODERATOR, "password": password_of(MODERATOR, data), "factor": FACTOR}
            answer = (await client.post("/proxy/api/login", json=login)).json()
            assert answer["status"] == "OK", answer
            headers = {"authorization": f"Bearer {answer['jwt']}", "factor": FACTOR}
            question = {"action": "get", "application_id": GAME, "data": {"user_id": answer["user_id"]}}
            rules = (await client.post("/api/permissions/meta/data", json=question, headers=headers)).json()
            assert "private_data.user.kick" in rules["data"], rules
        assert node.terminate() == 0
    assert await run_on(url, differences) == []


async def test_log_of_a_kept_database_verifies_after_the_upgrade(stored_database: tuple[Path, str]) -> None:
    data, url = stored_database
    settings = {**FAST_SETTINGS, "GATEHOUSE__DATABASE__URL": url}
    with Node(data=data, database_url=url, environment=FAST_SETTINGS) as node:
        assert node.terminate() == 0
    result = await asyncio.to_thread(run_command, "audit", "verify", "--dev", "--data", data, environment=settings)
    assert result.startswith("Verified: ")


def whole_versions(connection: Connection) -> dict[int, dict[str, object]]:
    rows = connection.execute(
        text("SELECT * FROM schema_versions WHERE application_id = :of ORDER BY version"), {"of": WITH_VERSIONS}
    )
    return {row.version: {name: json.loads(getattr(row, name)) for name in PARTS} for row in rows}


PARTS: Final = ("login", "private_data", "public_data", "secret_data", "roles")


async def test_versions_of_a_schema_read_as_they_were_stored_whole(
    stored_database: tuple[Path, str], revision: str
) -> None:
    if revision != "0001":
        pytest.skip("later revisions store differences")
    _, url = stored_database
    before = await run_on(url, whole_versions)
    assert len(before) == 3
    await run_in_child(url)
    async with connect_storage(url) as storage:
        application = await storage.applications.application(WITH_VERSIONS)
        versions = SchemaVersionStore(storage.runner)
        past = {number: (await versions.version(application, number)).model for number in before}
        rows = (await versions.versions(WITH_VERSIONS, PageRequest())).rows
    assert {
        number: {**schema_document(model.schema), "roles": [role_document(role) for role in model.roles.values()]}
        for number, model in past.items()
    } == {number: {**parts, "objects": {}} for number, parts in before.items()}
    assert [(row.version, bool(row.changes)) for row in rows] == [(3, True), (2, True), (1, False)]


def roles_that_ban(connection: Connection) -> list[str]:
    rows = connection.execute(text("SELECT name, meta FROM roles WHERE application_id = 1 ORDER BY name"))
    return [row.name for row in rows if json.loads(row.meta)["private_data"].get("app", {}).get("can_ban")]


async def test_project_owners_of_a_kept_database_may_ban_from_applications(stored_database: tuple[Path, str]) -> None:
    _, url = stored_database
    assert await run_on(url, roles_that_ban) == []
    await run_in_child(url)
    assert await run_on(url, roles_that_ban) == ["project_owner"]


async def test_project_owners_and_object_managers_of_a_kept_database_manage_objects(
    stored_database: tuple[Path, str],
) -> None:
    def managing_roles(connection: Connection) -> list[str]:
        rows = connection.execute(text("SELECT name, meta FROM roles WHERE application_id = 1 ORDER BY name"))
        return [row.name for row in rows if "can_manage_objects" in row.meta]

    _, url = stored_database
    await run_in_child(url)
    assert await run_on(url, managing_roles) == ["object_manager", "project_owner"]


def add_client_of_document(connection: Connection) -> None:
    """A copy of the stored client, with the ID of a client that is known by its document."""
    names = [column["name"] for column in inspect(connection).get_columns("clients")]
    values = ", ".join(f"'{DOCUMENT}'" if name == "client_id" else name for name in names)
    connection.execute(text(f"INSERT INTO clients ({', '.join(names)}) SELECT {values} FROM clients"))  # noqa: S608


async def test_clients_of_a_kept_database_keep_email_and_profile_in_their_id_tokens(
    stored_database: tuple[Path, str],
) -> None:
    _, url = stored_database
    await run_on(url, add_client_of_document)
    await run_in_child(url)
    async with connect_storage(url) as storage:
        clients = {client.client_id: client.claims_in_id_token for client in await storage.clients.clients()}
    assert clients == {CLIENT: True, DOCUMENT: False}


async def test_keys_of_groups_are_stored_for_every_project_of_a_kept_database(
    stored_database: tuple[Path, str],
) -> None:
    """The demo's groups have members by list, tag, domain and purchase."""
    _, url = stored_database
    await run_in_child(url)
    async with connect_storage(url) as storage:
        models = await storage.runner.read(all_projects)
        stored = {tuple(row) for row in (await read_all_tables(storage))["grant_keys"]}
    assert stored
    assert stored == {(key, one, number) for one, model in models.items() for number, key in grant_keys_of(model)}
