"""No statement scans a large table, except the few that are about everyone (goal P14).

SQLite reports its plan in words, and plans an empty table like a full one; it has the same indexes as PostgreSQL.
"""

import re
from pathlib import Path
from typing import Final

import apsw

from gatehouse.storage.database import open_storage
from gatehouse.storage.permissions import facts as permission_facts
from gatehouse.storage.permissions import grant_keys, groups, project_models, structure
from gatehouse.storage.sqlite.connection import connect
from gatehouse.storage.sqlite.runner import sqlite_path
from gatehouse.storage.statements import DatabaseKind, Statement
from tests.support.postgres_session import postgres_session
from tests.support.statement_coverage import all_statements

LARGE: Final = frozenset(
    {
        "last_seen",
        *("users", "user_ids", "user_tags", "user_purchases", "user_records", "scope_records", "role_assignments"),
        *("sessions", "login_tokens", "once", "attempts", "interactions", "passkeys", "totp_factors"),
        *("recovery_codes", "consents", "grants", "game_sessions", "group_members", "audit_events"),
    }
)
ABOUT_EVERYBODY: Final = {
    "accounts.users.ALL_USERS",  # an export
    "admin.people_search.LAST_SEARCHED",  # along an index, up to a limit
    "inspection.ENTRIES",  # gatehouse doctor reads every document
    "audit.NEWEST_RECORDS",  # along an index, up to a limit
    "audit.UNSEALED",  # along the index of unsealed records, up to a limit
    "permissions.full_removal.COUNTS",  # a project or an application is deleted
    "permissions.full_removal.DROP_HELD",
    "permissions.full_removal.DROP_IN_APPLICATIONS",
    "provision.ALL_HELD",  # an export
    "accounts.erasure.DROP_TRACES",  # a person is deleted
    "accounts.guest_upgrades.DROP_TRACES",  # once per guest; it scans only what lives for minutes
}


def scanned_tables(connection: apsw.Connection, statement: Statement, large: frozenset[str] = LARGE) -> set[str]:
    compiled = statement.compile_for(DatabaseKind.SQLITE)
    try:
        plan = connection.execute(
            f"EXPLAIN QUERY PLAN {compiled.sql}", [None] * len(compiled.parameter_order)
        ).fetchall()
    except apsw.SQLError:  # only for PostgreSQL
        return set()
    return {line[3].split()[1] for line in plan if line[3].startswith("SCAN ")} & large


async def test_only_listed_statements_scan_a_large_table(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/plans.db"
    async with open_storage(url, migrate=True):
        pass
    connection = connect(sqlite_path(url))
    scanning = {name for name, statement in all_statements() if scanned_tables(connection, statement)}
    connection.close()
    assert scanning == ABOUT_EVERYBODY


async def test_a_project_is_read_without_looking_at_every_application(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/plans.db"
    async with open_storage(url, migrate=True):
        pass
    connection = connect(sqlite_path(url))
    for statement in (project_models.PROJECT_BY_NAME, project_models.PROJECTS_BY_ID):
        assert scanned_tables(connection, statement, frozenset({"applications", "project_services"})) == set()
    connection.close()


# Requests and changes of one project among thousands, with the statistics of full tables.

FEW_ROWS: Final = {
    "facts.FACTS": permission_facts.FACTS,
    "project_models.PROJECT_BY_NAME": project_models.PROJECT_BY_NAME,
    "structure.BEGIN_CHANGE": structure.BEGIN_CHANGE,
    "structure.TOUCH_PROJECT": structure.TOUCH_PROJECT,
    "grant_keys.READ_KEYS": grant_keys.READ_KEYS,
    "grant_keys.DROP_KEY": grant_keys.DROP_KEY,
    "grant_keys.GRANTED_TO": grant_keys.GRANTED_TO,
    "groups.PROJECT_OF_GROUP": groups.PROJECT_OF_GROUP,
}
FULL: Final = frozenset(
    {
        *("projects", "project_names", "project_services", "grant_keys", "groups", "group_members", "user_tags"),
        "role_assignments",
    }
)
NUMBERS: Final = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
FILL: Final = (
    (
        "INSERT INTO projects (project_id, title, title_key, description, tags, allowed_domains, allow, disallow,"
        " removed, author, created_at, version)"
        " SELECT 'p' || i, i, i, '', '[]', '[]', '[]', '[]', false, 'a', 0, 1 FROM n"
    ),
    "INSERT INTO project_names (name, project_id, position) SELECT 'p' || i, 'p' || i, 0 FROM n",
    (
        "INSERT INTO groups (group_id, project_id, title, title_key, description, tags, conditions, created_at,"
        " version) SELECT 'g' || i, 'p' || i, '', '', '', '[]', '[]', 0, 1 FROM n"
    ),
    "INSERT INTO group_members (group_id, user_id, position) SELECT 'g' || i, 'u' || i, 1 FROM n",
    (
        "INSERT INTO project_services (project_id, application_id, position, group_id, roles, action)"
        " SELECT 'p' || i, 50001, 1, 'g' || i, '[]', 'grant' FROM n"
    ),
    "INSERT INTO grant_keys (index_key, project_id, application_id) SELECT '50001:group:g' || i, 'p' || i, 1 FROM n",
    "INSERT INTO grant_keys (application_id, index_key, project_id) SELECT 50001, '50001:tag:vip', 'p' || i FROM n",
    "INSERT INTO user_tags (user_id, tag) SELECT 'u' || i, 'staff' FROM n",
    (
        "INSERT INTO role_assignments (application_id, user_id, project_id, resource_kind, resource_id, role_key,"
        " position, expired, ttl) SELECT 50001, 'u' || i, 'p' || i, '', '', 'reader', 1, 0, 0 FROM n"
    ),
)


async def test_what_concerns_one_project_or_person_is_read_by_index(migrated_sqlite_url: str) -> None:
    connection = connect(sqlite_path(migrated_sqlite_url))
    for insert in FILL:
        connection.execute(NUMBERS + insert)
    connection.execute("ANALYZE")
    plan = connection.execute(
        f"EXPLAIN QUERY PLAN {permission_facts.FACTS.for_sqlite.sql}",
        [None] * len(permission_facts.FACTS.for_sqlite.parameter_order),
    ).fetchall()
    assert any("grant_keys" in line[3] and "(index_key=?)" in line[3] for line in plan), plan
    scanned = {name: scanned_tables(connection, statement, FULL) for name, statement in FEW_ROWS.items()}
    connection.close()
    assert {name: tables for name, tables in scanned.items() if tables} == {}


async def test_what_concerns_one_project_or_person_is_read_by_index_on_postgresql(migrated_postgres_url: str) -> None:
    async with postgres_session(migrated_postgres_url) as session:
        for insert in FILL:
            await session.execute(NUMBERS + insert)
        await session.execute("ANALYZE")
        await session.execute("SET plan_cache_mode = force_generic_plan")
        for name, statement in FEW_ROWS.items():
            compiled = statement.for_postgres
            await session.execute(f"PREPARE one AS {compiled.sql}")
            values = ", ".join("NULL" for _ in compiled.parameter_order)
            plan = await session.fetch(f"EXPLAIN EXECUTE one{f' ({values})' if values else ''}")
            lines = [row[0] for row in plan]
            assert not [line for line in lines if re.search(rf"Seq Scan on ({'|'.join(FULL)})\b", line)], (
                name,
                lines,
            )
            await session.execute("DEALLOCATE one")
