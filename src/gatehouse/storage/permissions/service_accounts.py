"""Stores service accounts (ServiceAccountStore)."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import fields
from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import AccountKind, User
from gatehouse.audit.model import AuditRecord
from gatehouse.permissions.errors import NameTaken, ProjectNotFound, VersionConflict
from gatehouse.permissions.model.facts import UserRecord
from gatehouse.permissions.model.service_account import CHANGEABLE_ACCOUNT_FIELDS, ServiceAccount
from gatehouse.storage.accounts.sessions import raise_rev
from gatehouse.storage.accounts.users import insert_user
from gatehouse.storage.audit import add_audit_records
from gatehouse.storage.permissions.row_readers import Cells, columns
from gatehouse.storage.permissions.structure import lock_structure_shared
from gatehouse.storage.permissions.user_records import add_holdings
from gatehouse.storage.rows import column_values
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.statements import RowsAsJson, Statement, Verb, decode_document
from gatehouse.storage.tables.projects import projects, service_accounts

_COLUMN_NAMES: Final = tuple(field.name for field in fields(ServiceAccount))
ACCOUNT_COLUMNS: Final = columns(service_accounts, *_COLUMN_NAMES)

ACCOUNTS_OF_PROJECT = Statement(
    lambda: select(RowsAsJson(*ACCOUNT_COLUMNS).label("rows")).where(
        service_accounts.c.project_id == bindparam("project")
    )
)
LOCK_PROJECT_SHARED = Statement(
    lambda: (
        select(projects.c.project_id)
        .where(projects.c.project_id == bindparam("of"), projects.c.removed.is_(False))
        .with_for_update(read=True)
    )
)
ALL_ACCOUNTS = Statement(lambda: select(RowsAsJson(*ACCOUNT_COLUMNS).label("rows")))
_CHANGEABLE_COLUMNS: Final = tuple(field.name for field in CHANGEABLE_ACCOUNT_FIELDS)
UPDATE_ACCOUNT = Statement(
    lambda: (
        update(service_accounts)
        .where(service_accounts.c.user_id == bindparam("of"), service_accounts.c.version == bindparam("seen"))
        .values({name: bindparam(name) for name in _CHANGEABLE_COLUMNS} | {"version": service_accounts.c.version + 1})
        .returning(service_accounts.c.user_id)
    )
)
INSERT_ACCOUNT = Statement(
    lambda: insert(service_accounts).on_conflict_do_nothing().returning(service_accounts.c.user_id)
)
REVOKE_ACCOUNT = Statement(
    lambda: (
        update(service_accounts)
        .where(service_accounts.c.user_id == bindparam("of"))
        .values(revoked=True, version=service_accounts.c.version + 1)
        .returning(service_accounts.c.version)
    )
)


def service_accounts_of(project_id: str) -> Verb[Sequence[ServiceAccount]]:
    rows = yield ACCOUNTS_OF_PROJECT(project=project_id)
    return sorted((account_from_cells(cells) for cells in rows[0].rows or ()), key=lambda account: account.name)


def all_service_accounts() -> Verb[Sequence[ServiceAccount]]:
    rows = yield ALL_ACCOUNTS()
    return sorted(
        (account_from_cells(cells) for cells in rows[0].rows or ()),
        key=lambda account: (account.project_id, account.name),
    )


def update_service_account(before: ServiceAccount, after: ServiceAccount, now: int) -> Verb[None]:
    """Update a service account; a revoked one loses its token.

    Part of verbs that change one. Raises VersionConflict.
    """
    values = {name: getattr(after, name) for name in _CHANGEABLE_COLUMNS}
    if not (yield UPDATE_ACCOUNT(of=before.user_id, seen=before.version, **values)):
        raise VersionConflict
    if after.revoked and not before.revoked:
        yield from raise_rev(before.user_id, keep=None, now=now)


def create_service_account(
    account: ServiceAccount, holdings: Sequence[UserRecord], records: Sequence[AuditRecord]
) -> Verb[None]:
    yield from lock_structure_shared()
    if not (yield LOCK_PROJECT_SHARED(of=account.project_id)):
        raise ProjectNotFound
    yield from insert_user(
        User(
            user_id=account.user_id,
            kind=AccountKind.SERVICE,
            login=None,
            nick=account.name,
            reg_time=account.created_at,
        )
    )
    if not (yield INSERT_ACCOUNT(**column_values(account))):
        raise NameTaken(account.name)
    yield from add_holdings(holdings, account.created_at)
    yield from add_audit_records(records)


def revoke_service_account(
    user_id: str, now: int, records: Sequence[AuditRecord], *, seen: int | None = None
) -> Verb[None]:
    rows = yield REVOKE_ACCOUNT(of=user_id)
    if not rows:
        raise UserNotFound
    if seen is not None and rows[0].version != seen + 1:
        raise VersionConflict(f"revoked from version {seen}, but version {rows[0].version - 1} is stored")
    yield from raise_rev(user_id, keep=None, now=now)
    yield from add_audit_records(records)


class ServiceAccountStorage(SqlStore):
    service_accounts = read(service_accounts_of)
    create_service_account = write(create_service_account)
    revoke_service_account = write(revoke_service_account)


def account_from_cells(cells: Cells) -> ServiceAccount:
    values = dict(zip(_COLUMN_NAMES, cells, strict=True))
    ip_ranges = tuple(decode_document(values["ip_ranges"]))
    return ServiceAccount(**{**values, "ip_ranges": ip_ranges, "revoked": bool(values["revoked"])})
