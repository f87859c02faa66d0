"""No statement reads a whole table that grows, except those with a reason (goal P14).

Every statement of the package is planned on both databases, with the statistics of full tables and of a backlog.
"""

import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

import apsw

from gatehouse.storage import audit
from gatehouse.storage.database import open_storage
from gatehouse.storage.permissions import facts as permission_facts
from gatehouse.storage.permissions import grant_keys, groups, project_models, structure
from gatehouse.storage.sqlite.connection import connect
from gatehouse.storage.sqlite.runner import sqlite_path
from gatehouse.storage.statements import DatabaseKind, Statement
from tests.support.postgres_session import postgres_session
from tests.support.query_plans import compiled_for, fill_tables, postgres_scans, prepare_plans, sqlite_scans

# They have a few rows for the installation, its processes or its administrators.
SMALL: Final = frozenset(
    {
        *("installation", "installation_epoch", "nodes", "signing_keys", "stored_settings"),
        "audit_refusals",  # capped: the oldest go first
        "webhooks",  # WEBHOOKS_MOST
    }
)
# What may read a table that grows, or an index from one end to the other, and why.
READ_WHOLE: Final[Mapping[str, Collection[str]]] = {
    "a backup, an export or a check of everything, by the operator": (
        *("accounts.bans.ALL_ACTIVE_BANS", "accounts.users.ALL_USERS", "backup.TABLES"),
        *("app.rewrapping.SEALED_COLUMNS", "oauth.clients.ALL_CLIENTS", "oauth.clients.ALL_SECRETS"),
        *("inspection.DECLARED_RESOURCES", "inspection.ENTRIES", "inspection.PROTECTED_SITES"),
        *("inspection.ROLES", "inspection.SCHEMAS", "permissions.keys.ALL_ACCESS_KEYS"),
        *("oauth.clients.REMOVED_CLIENT_IDS", "permissions.keys.ALL_CUSTOM_KEYS", "provision.ALL_HELD"),
        *("permissions.applications.USED_IDS", "permissions.project_models.ALL_PROJECTS"),
        *("permissions.schemas.ALL_MODELS", "permissions.schemas.ALL_ROLES"),
        "permissions.service_accounts.ALL_ACCOUNTS",
    ),
    "a list or search of the console: as many as administrators have made": (
        "admin.applications.APPLICATION_LIST",
        *("admin.home.COUNTS", "admin.own_permissions.CONDITIONAL_GROUPS", "admin.own_permissions.CONDITIONAL_ROLES"),
        *("admin.people.APPLICATIONS_BY_NAME", "admin.projects.APPLICATIONS_WITH_SERVICE_META"),
        *("admin.projects.PROJECT_LIST", "admin.roles.APPLICATIONS", "admin.roles.ROLE_LIST"),
        *("admin.search.FIND_APPLICATIONS", "admin.search.FIND_GROUPS", "admin.search.FIND_PROJECTS"),
        *("admin.search.FIND_CLIENTS", "admin.search.FIND_ROLES"),
    ),
    "along an index, up to a limit": (
        *("installation.ANY_PASSKEY", "admin.people_list.PROVIDERS", "admin.people_search.LAST_SEARCHED"),
        *("audit.CHAIN_END", "audit.NEWEST_RECORDS", "audit.UNSEALED", "epoch.HIGHEST_CLIENT_REV"),
        *("epoch.HIGHEST_USER_REV", "forward_auth.FIND_OTHER_APPLICATION", "webhooks.DUE_WEBHOOKS"),
    ),
    "everyone, by a list of a thousand at most": ("admin.assignments.PEOPLE_LISTS",),
    "an application is created or changed, or a request names one by its address": (
        *("oauth.apis.API_BY_RESOURCE", "permissions.applications.COUNT_APPLICATIONS_WITH_SITES"),
        *("permissions.applications.FIND_ERASED_RESOURCE", "permissions.applications.FIND_SAME_RESOURCE"),
    ),
    "a project, an application, a person or a guest ends": (
        *("accounts.erasure.DROP_TRACES", "accounts.erasure.DROP_USER_DATA"),
        "accounts.guest_upgrades.MOVE_CREDENTIALS",
        *("permissions.full_removal.COUNTS", "permissions.full_removal.DROP_HELD"),
        "objects.endings.DROP_IN_PLACE",
        *("permissions.full_removal.DROP_IN_APPLICATIONS", "permissions.full_removal.FORGET_APPLICATION"),
        *("permissions.full_removal.DROP_INVITATIONS", "permissions.full_removal.DROP_OF_CLIENTS"),
        *("personal_data.FAIL_ORPHANED_CALLS", "personal_data.WITH_SOURCES"),
    ),
    "what waits to be sent, or is deleted soon": (
        *("accounts.bans.DROP_ENDED_BANS_OF_ERASED", "accounts.bans.DROP_ENDED_DIGESTS"),
        *("admin.settings.OUTBOX_LIST", "gamesessions.DROP_WATCHERS_OF_NODE", "mail.COUNT_OUTBOX"),
        *("mail.DROP_OLD_MAILS", "oauth.clients.DELETE_UNUSED", "oauth.logout_calls.ALL_CALLS"),
        *("oauth.logout_calls.DROP_OLD_CALLS", "personal_data.DROP_ENDED_CALLS"),
        *("personal_data.DROP_EXPIRED_LEASES", "webhooks.DROP_EXCESS_DELIVERIES"),
    ),
    "SQLite makes a list of the removed projects and accounts, for limits of seats and for administrators": (
        *("accounts.users.LOCK_ADMINISTRATORS", "accounts.users.REMAINING_ADMINISTRATORS"),
        *("permissions.record_checks.COUNT_HOLDERS", "permissions.record_checks.COUNT_HOLDERS_OF"),
        "permissions.record_checks.PERMANENT_ADMINISTRATORS",
    ),
}
MAY_READ_WHOLE: Final = frozenset(name for names in READ_WHOLE.values() for name in names)
# They run in one transaction with a statement that switches plans off.
PLANNED_AFTER: Final = {
    "audit.PLACE_EVENTS": audit.LOCK_CHAIN,
    "audit.UNSEALED": audit.READ_BY_INDEX,
    "audit.UNSEALED_AFTER": audit.READ_BY_INDEX,
}
BACKLOG: Final = "UPDATE audit_events SET place = NULL WHERE place > 20"


async def test_only_listed_statements_read_a_whole_table_that_grows(
    migrated_sqlite_url: str, migrated_postgres_url: str
) -> None:
    reading: set[str] = set()
    statements = compiled_for(DatabaseKind.SQLITE)
    connection = connect(sqlite_path(migrated_sqlite_url))
    connection.execute("PRAGMA synchronous = OFF")
    for insert in fill_tables():
        connection.execute(insert.replace("AS bytea", "AS blob"))
    for change in ("SELECT 1", BACKLOG):
        connection.execute(change)
        connection.execute("ANALYZE")
        reading |= {name for name, one in statements if sqlite_scans(connection, one) - SMALL}
    connection.close()
    async with postgres_session(migrated_postgres_url) as session:
        await prepare_plans(session)
        for insert in fill_tables():
            await session.execute(insert)
        statements = compiled_for(DatabaseKind.POSTGRES)
        for change in ("SELECT 1", BACKLOG):
            await session.execute(change)
            await session.execute("ANALYZE")
            for name, one in statements:
                if await postgres_scans(session, one, after=PLANNED_AFTER.get(name)) - SMALL:
                    reading.add(name)
    assert sorted(reading - MAY_READ_WHOLE) == []
    assert sorted(MAY_READ_WHOLE - reading) == []


def scanned_tables(connection: apsw.Connection, statement: Statement, large: frozenset[str]) -> set[str]:
    compiled = statement.compile_for(DatabaseKind.SQLITE)
    try:
        plan = connection.execute(
            f"EXPLAIN QUERY PLAN {compiled.sql}", [None] * len(compiled.parameter_order)
        ).fetchall()
    except apsw.SQLError:  # only for PostgreSQL
        return set()
    return {line[3].split()[1] for line in plan if line[3].startswith("SCAN ")} & large


def test_every_statement_of_the_package_is_planned() -> None:
    command = [sys.executable, "-m", "tests.support.statement_coverage"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() == ""


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
