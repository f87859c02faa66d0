"""Keeps service accounts (ServiceAccountStore)."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import Kind, User
from gatehouse.audit.model import Record
from gatehouse.permissions.errors import NameTaken, ProjectNotFound, VersionConflict
from gatehouse.permissions.model.service_account import ServiceAccount
from gatehouse.permissions.model.user_record import UserRecord
from gatehouse.storage.accounts import add_user
from gatehouse.storage.audit import record
from gatehouse.storage.permissions.held import Cells, columns
from gatehouse.storage.permissions.records import give
from gatehouse.storage.permissions.structure_version import hold_structure
from gatehouse.storage.runner import Stored, act, look
from gatehouse.storage.sessions import raise_rev
from gatehouse.storage.statements import RowsAsJson, Statement, Verb, document_of
from gatehouse.storage.tables.projects import projects, service_accounts

_NAMES: Final = (
    *("user_id", "project_id", "name", "comment", "ip_ranges", "public_key", "created_by", "created_at"),
    *("jti", "revoked", "version"),
)
ACCOUNT_COLUMNS: Final = columns(service_accounts, *_NAMES)

OF_PROJECT = Statement(
    select(RowsAsJson(*ACCOUNT_COLUMNS).label("rows")).where(service_accounts.c.project_id == bindparam("project"))
)
HOLD_PROJECT = Statement(
    select(projects.c.project_id)
    .where(projects.c.project_id == bindparam("of"), projects.c.removed.is_(False))
    .with_for_update(read=True)
)
ALL = Statement(select(RowsAsJson(*ACCOUNT_COLUMNS).label("rows")))
_CHANGEABLE: Final = ("comment", "ip_ranges", "public_key", "revoked")
UPDATE = Statement(
    update(service_accounts)
    .where(service_accounts.c.user_id == bindparam("of"), service_accounts.c.version == bindparam("seen"))
    .values({name: bindparam(name) for name in _CHANGEABLE} | {"version": service_accounts.c.version + 1})
    .returning(service_accounts.c.user_id)
)
INSERT = Statement(insert(service_accounts).on_conflict_do_nothing().returning(service_accounts.c.user_id))
REVOKE = Statement(
    update(service_accounts)
    .where(service_accounts.c.user_id == bindparam("of"))
    .values(revoked=True, version=service_accounts.c.version + 1)
    .returning(service_accounts.c.version)
)


def of_project(project_id: str) -> Verb[Sequence[ServiceAccount]]:
    rows = yield OF_PROJECT(project=project_id)
    return sorted((account_of(cells) for cells in rows[0].rows or ()), key=lambda account: account.name)


def all_accounts() -> Verb[Sequence[ServiceAccount]]:
    rows = yield ALL()
    return sorted((account_of(cells) for cells in rows[0].rows or ()), key=lambda one: (one.project_id, one.name))


def change(before: ServiceAccount, after: ServiceAccount, now: int) -> Verb[None]:
    """Part of verbs that change an account; who is revoked holds no token any more. Raises VersionConflict."""
    fields = {name: getattr(after, name) for name in _CHANGEABLE}
    if not (yield UPDATE(of=before.user_id, seen=before.version, **fields)):
        raise VersionConflict
    if after.revoked and not before.revoked:
        yield from raise_rev(before.user_id, keep=None, now=now)


def create(account: ServiceAccount, holdings: Sequence[UserRecord], records: Sequence[Record]) -> Verb[None]:
    yield from hold_structure()
    yield from add_user(
        User(
            user_id=account.user_id,
            kind=Kind.SERVICE,
            login=None,
            nick=account.name,
            reg_time=account.created_at,
        )
    )
    if not (yield INSERT(**{name: getattr(account, name) for name in _NAMES})):
        raise NameTaken(account.name)
    yield from give(holdings, account.created_at)
    if not (yield HOLD_PROJECT(of=account.project_id)):
        raise ProjectNotFound
    for entry in records:
        yield from record(entry)


def revoke(user_id: str, now: int, records: Sequence[Record], *, seen: int | None = None) -> Verb[None]:
    rows = yield REVOKE(of=user_id)
    if not rows:
        raise UserNotFound
    if seen is not None and rows[0].version != seen + 1:
        raise VersionConflict(f"revoked from version {seen}, but version {rows[0].version - 1} is stored")
    yield from raise_rev(user_id, keep=None, now=now)
    for entry in records:
        yield from record(entry)


class ServiceAccountStorage(Stored):
    service_accounts = look(of_project)
    create_service_account = act(create)
    revoke_service_account = act(revoke)


def account_of(cells: Cells) -> ServiceAccount:
    fields = dict(zip(_NAMES, cells, strict=True))
    ip_ranges = tuple(document_of(fields["ip_ranges"]))
    return ServiceAccount(**{**fields, "ip_ranges": ip_ranges, "revoked": bool(fields["revoked"])})
