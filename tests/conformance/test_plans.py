"""No statement scans a large table, except the few that are about everyone (goal P14).

SQLite reports its plan in words, and plans an empty table like a full one; it has the same indexes as PostgreSQL.
"""

from pathlib import Path
from typing import Final

import apsw

from gatehouse.storage.database import open_storage
from gatehouse.storage.permissions import project_models
from gatehouse.storage.sqlite.connection import connect
from gatehouse.storage.sqlite.runner import sqlite_path
from gatehouse.storage.statements import DatabaseKind, Statement
from tests.support.statement_coverage import all_statements

LARGE: Final = frozenset(
    {
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
    "permissions.full_removal.COUNTS",  # a project or an application is deleted
    "permissions.full_removal.DROP_HELD",
    "permissions.full_removal.DROP_IN_APPLICATIONS",
    "provision.ALL_HELD",  # an export
    "accounts.erasure.DROP_TRACES",  # a person is deleted
    "accounts.guest_upgrades.DROP_TRACES",  # once per guest; it scans only what lives for minutes
    "promotion.RAISE_ALL",  # runs for up to an hour
    "promotion.SPEND_ALL",
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
