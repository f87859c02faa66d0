"""Checks of the database for `gatehouse doctor`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Text, bindparam, or_, select, text, type_coerce

from gatehouse.permissions.model.application import ProtectedSite
from gatehouse.permissions.model.rules import RESERVED_SEGMENTS, RuleSection
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables import metadata
from gatehouse.storage.tables.installation import audit_events, audit_seals
from gatehouse.storage.tables.permissions import (
    application_schemas,
    protected_sites,
    roles,
    scope_records,
    user_records,
)

MAX_RECORDS: Final = 1_000  # records with something that looks like a reserved name
AUDIT_TABLES: Final = (audit_events.name, audit_seals.name)  # what a serving role should only be able to add to

JOURNAL_MODE = Statement(text("PRAGMA journal_mode"))
SYNCHRONOUS = Statement(text("PRAGMA synchronous"))
QUICK_CHECK = Statement(text("PRAGMA quick_check(5)"))
SQLITE_INDICES = Statement(text("SELECT name FROM sqlite_master WHERE type = 'index'"))

POSTGRES_SETTINGS = Statement(
    text(
        "SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'), "
        "current_setting('full_page_writes')"
    )
)
POSTGRES_INDICES = Statement(text("SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()"))
MAY_REWRITE = {
    table: Statement(
        text(f"SELECT has_table_privilege('{table}', 'UPDATE') OR has_table_privilege('{table}', 'DELETE')")
    )
    for table in AUDIT_TABLES
}

SCHEMAS = Statement(
    select(
        *(application_schemas.c[name] for name in ("application_id", "private_data", "public_data")),
    ).order_by(application_schemas.c.application_id)
)
PROTECTED_SITES = Statement(select(protected_sites).order_by(protected_sites.c.origin))
ROLES = Statement(
    select(roles.c.application_id, roles.c.name, roles.c.meta).order_by(roles.c.application_id, roles.c.role_key)
)
ENTRIES = tuple(  # only documents that contain one of the names are read
    Statement(
        select(*(table.c[name] for name in ("application_id", "user_id", "private_data", "public_data")))
        .where(
            or_(
                *(
                    type_coerce(table.c[section.value], Text).like(bindparam(name, type_=Text()))
                    for section in RuleSection
                    for name in sorted(RESERVED_SEGMENTS)
                )
            )
        )
        .order_by(table.c.application_id, table.c.user_id)
        .limit(bindparam("read"))
    )
    for table in (user_records, scope_records)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SQLiteState:
    journal_mode: str
    synchronous: int
    damage: tuple[str, ...]
    missing_indices: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresState:
    version: str
    fsync: str
    synchronous_commit: str
    full_page_writes: str
    rewritable: tuple[str, ...]  # audit tables this role may change
    missing_indices: frozenset[str]


def find_reserved_names(most: int) -> Verb[Sequence[str]]:
    """Describe stored rules whose names are reserved now; at most `most` of them."""
    found: list[str] = []
    for row in (yield SCHEMAS()):
        where = f"the schema of application {row.application_id}"
        found += _describe_reserved(where, row.private_data, row.public_data)
    for row in (yield ROLES()):
        where = f"the role {row.name} of application {row.application_id}"
        found += _describe_reserved(where, row.meta.get("private_data", {}), row.meta.get("public_data", {}))
    for table in ENTRIES:
        for row in (yield table(read=MAX_RECORDS, **{name: f'%"{name}"%' for name in sorted(RESERVED_SEGMENTS)})):
            where = f"the record of user {row.user_id} in application {row.application_id}"
            found += _describe_reserved(where, row.private_data, row.public_data)
    return found[:most]


def _describe_reserved(where: str, private: Mapping[str, object], public: Mapping[str, object]) -> Iterator[str]:
    for section, tree in ((RuleSection.PRIVATE, private), (RuleSection.PUBLIC, public)):
        for name in sorted(RESERVED_SEGMENTS & tree.keys()):
            yield f"{section}.{name} in {where}"


def all_protected_sites() -> Verb[Sequence[ProtectedSite]]:
    rows = yield PROTECTED_SITES()
    return [ProtectedSite(**row._asdict()) for row in rows]


def sqlite_state() -> Verb[SQLiteState]:
    journal_mode = yield JOURNAL_MODE()
    synchronous = yield SYNCHRONOUS()
    damage = yield QUICK_CHECK()
    indices = yield SQLITE_INDICES()
    return SQLiteState(
        journal_mode=journal_mode[0][0],
        synchronous=synchronous[0][0],
        damage=tuple(row[0] for row in damage if row[0] != "ok"),
        missing_indices=expected_indices() - {row[0] for row in indices},
    )


def postgres_state() -> Verb[PostgresState]:
    settings = yield POSTGRES_SETTINGS()
    version, fsync, synchronous_commit, full_page_writes = settings[0]
    indices = yield POSTGRES_INDICES()
    rewritable = []
    for table, may_rewrite in MAY_REWRITE.items():
        if (yield may_rewrite())[0][0]:
            rewritable.append(table)
    return PostgresState(
        version=version,
        fsync=fsync,
        synchronous_commit=synchronous_commit,
        full_page_writes=full_page_writes,
        rewritable=tuple(rewritable),
        missing_indices=expected_indices() - {row[0] for row in indices},
    )


def expected_indices() -> frozenset[str]:
    return frozenset(str(index.name) for table in metadata.sorted_tables for index in table.indexes)
