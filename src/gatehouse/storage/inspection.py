"""Checks of the database for `gatehouse doctor`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from sqlalchemy import BigInteger, Boolean, Text, bindparam, or_, select, text, type_coerce

from gatehouse.accounts.model import login_key
from gatehouse.permissions.model.protected_site import ProtectedSite
from gatehouse.permissions.model.rules import RESERVED_SEGMENTS, RuleSection
from gatehouse.storage.statements import DialectFunction, InStringList, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.audit import audit_events, audit_seals
from gatehouse.storage.tables.every_table import metadata
from gatehouse.storage.tables.permissions import (
    application_schemas,
    applications,
    protected_sites,
    roles,
    scope_records,
    user_records,
)

MAX_RECORDS: Final = 1_000  # records with something that looks like a reserved name
AUDIT_TABLES: Final = (audit_events.name, audit_seals.name)  # what a serving role should only be able to add to

JOURNAL_MODE = Statement(lambda: text("PRAGMA journal_mode"))
SYNCHRONOUS = Statement(lambda: text("PRAGMA synchronous"))
QUICK_CHECK = Statement(lambda: text("PRAGMA quick_check(5)"))
SQLITE_INDICES = Statement(lambda: text("SELECT name FROM sqlite_master WHERE type = 'index'"))

POSTGRES_SETTINGS = Statement(
    lambda: text(
        "SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'), "
        "current_setting('full_page_writes')"
    )
)
POSTGRES_INDICES = Statement(lambda: text("SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()"))
MAY_REWRITE = dict(
    zip(
        AUDIT_TABLES,
        Statement.for_each(
            AUDIT_TABLES,
            lambda table: text(
                f"SELECT has_table_privilege('{table}', 'UPDATE') OR has_table_privilege('{table}', 'DELETE')"
            ),
        ),
        strict=True,
    )
)

SCHEMAS = Statement(
    lambda: select(
        *(application_schemas.c[name] for name in ("application_id", "private_data", "public_data")),
    ).order_by(application_schemas.c.application_id)
)
DECLARED_RESOURCES = Statement(
    lambda: (
        select(*(applications.c[name] for name in ("application_id", "project_id", "removed", "api_resource")))
        .where(applications.c.api_resource.is_not(None))
        .order_by(applications.c.application_id)
    )
)
PROTECTED_SITES = Statement(lambda: select(protected_sites).order_by(protected_sites.c.origin))
ROLES = Statement(
    lambda: select(roles.c.application_id, roles.c.name, roles.c.meta).order_by(
        roles.c.application_id, roles.c.role_key
    )
)
ENTRIES = Statement.for_each(  # only documents that contain one of the names are read
    (user_records, scope_records),
    lambda table: (
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
    ),
)


class IsNotAscii(DialectFunction[bool]):
    """Whether a text has characters outside ASCII."""

    inherit_cache = True
    type = Boolean()
    on_postgres = "(octet_length({0}) <> char_length({0}))"
    on_sqlite = "(length(CAST({0} AS BLOB)) <> length({0}))"


# The canonical spelling is computed here; only an address with characters outside ASCII can have another one.
SPELLED_LOGINS = Statement(
    lambda: (
        select(users.c.user_id, users.c.login_key)
        .where(users.c.user_id > bindparam("last"), IsNotAscii(users.c.login_key))
        .order_by(users.c.user_id)
        .limit(bindparam("most", type_=BigInteger()))
    )
)
LOGIN_OWNERS = Statement(
    lambda: (
        select(users.c.user_id, users.c.login_key)
        .where(InStringList(users.c.login_key, "keys"))
        .order_by(users.c.user_id)
    )
)


class SQLiteState(Struct, frozen=True, kw_only=True):
    journal_mode: str
    synchronous: int
    damage: tuple[str, ...]
    missing_indices: frozenset[str]


class PostgresState(Struct, frozen=True, kw_only=True):
    version: str
    fsync: str
    synchronous_commit: str
    full_page_writes: str
    rewritable: tuple[str, ...]  # audit tables this role may change
    missing_indices: frozenset[str]


def find_reserved_names(most: int) -> Verb[Sequence[str]]:
    """Describe stored rules whose names are reserved now; at most `most` of them."""
    descriptions: list[str] = []
    for row in (yield SCHEMAS()):
        where = f"the schema of application {row.application_id}"
        descriptions += _describe_reserved(where, row.private_data, row.public_data)
    for row in (yield ROLES()):
        where = f"the role {row.name} of application {row.application_id}"
        descriptions += _describe_reserved(where, row.meta.get("private_data", {}), row.meta.get("public_data", {}))
    for table in ENTRIES:
        for row in (yield table(read=MAX_RECORDS, **{name: f'%"{name}"%' for name in sorted(RESERVED_SEGMENTS)})):
            where = f"the record of user {row.user_id} in application {row.application_id}"
            descriptions += _describe_reserved(where, row.private_data, row.public_data)
    return descriptions[:most]


def find_shared_logins(most: int) -> Verb[Sequence[tuple[str, ...]]]:
    """Return accounts whose addresses are one in the canonical spelling; at most `most` such groups."""
    accounts_by_key: dict[str, list[str]] = {}
    last, batch = "", MAX_RECORDS
    while batch == MAX_RECORDS and len(accounts_by_key) < most:
        rows = yield SPELLED_LOGINS(last=last, most=MAX_RECORDS)
        batch = len(rows)
        other = {row.user_id: login_key(row.login_key) for row in rows}
        respelled = {row.user_id: other[row.user_id] for row in rows if other[row.user_id] != row.login_key}
        for user_id, key in respelled.items():
            accounts_by_key.setdefault(key, []).append(user_id)
        last = rows[-1].user_id if rows else last
    for owner in (yield LOGIN_OWNERS(keys=sorted(accounts_by_key))) if accounts_by_key else ():
        accounts_by_key[owner.login_key].insert(0, owner.user_id)
    return [tuple(group) for group in accounts_by_key.values() if len(group) > 1][:most]


def _describe_reserved(where: str, private: Mapping[str, object], public: Mapping[str, object]) -> Iterator[str]:
    for section, tree in ((RuleSection.PRIVATE, private), (RuleSection.PUBLIC, public)):
        for name in sorted(RESERVED_SEGMENTS & tree.keys()):
            yield f"{section}.{name} in {where}"


class DeclaredResource(Struct, frozen=True, kw_only=True):
    """The API resource of an application, removed or not."""

    application_id: int
    project_id: str | None
    removed: bool
    api_resource: str


def declared_resources() -> Verb[Sequence[DeclaredResource]]:
    rows = yield DECLARED_RESOURCES()
    return [DeclaredResource(**row._asdict()) for row in rows]


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
