"""Reads what decisions are made from (PermissionStore)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, Text, bindparam, exists, func, select

from gatehouse.accounts.model import User
from gatehouse.permissions.model.condition import Subject
from gatehouse.permissions.model.facts import ApplicationState, Facts
from gatehouse.permissions.model.service_account import ServiceAccount
from gatehouse.storage.keys import KEYS_VERSION
from gatehouse.storage.permissions import structure_version
from gatehouse.storage.permissions.central import (
    add_email_secret,
    all_email_secrets,
    install,
    knows_email_secret,
    login_section,
    remove_email_secret,
    root_roles,
)
from gatehouse.storage.permissions.held import Cells, columns, end_of, held_of, records_in
from gatehouse.storage.permissions.owners import OWNING
from gatehouse.storage.permissions.schemas import application_models
from gatehouse.storage.permissions.service_accounts import ACCOUNT_COLUMNS, account_of
from gatehouse.storage.permissions.structures import structure
from gatehouse.storage.runner import Stored, act, look, recall, survey
from gatehouse.storage.statements import AnyOf, Lines, OneOfNumbers, Row, RowsAsJson, Statement, Verb, lines_of
from gatehouse.storage.tables.accounts import passkeys, totp_factors, user_purchases, user_tags, users
from gatehouse.storage.tables.applications import application_schemas, applications
from gatehouse.storage.tables.projects import group_members, service_accounts
from gatehouse.storage.tables.user_records import role_assignments

_PERSON: Final = columns(
    users,
    *("user_id", "login", "login_key", "email_verified", "phone_verified", "email_code", "blocked", "rev"),
)
_APPLICATIONS = (
    select(
        RowsAsJson(
            *columns(applications, "application_id", "project_id", "removed", "version"),
            application_schemas.c.version,
        )
    )
    .join(application_schemas, application_schemas.c.application_id == applications.c.application_id)
    .where(OneOfNumbers(applications.c.application_id, "applications"))
)


def _facts_of(him: ColumnElement[str]) -> Select[Any]:
    """One statement, so all of one moment: nothing in it is older or newer than the versions it names."""
    owned = columns(role_assignments, "project_id", "expired", "ttl")
    asked: Mapping[str, Select[Any]] = {
        "passkeys": select(func.count()).where(passkeys.c.user_id == him),
        "tags": select(Lines(user_tags.c.tag)).where(user_tags.c.user_id == him),
        "purchases": select(Lines(user_purchases.c.purchase)).where(user_purchases.c.user_id == him),
        "groups": select(Lines(group_members.c.group_id)).where(group_members.c.user_id == him),
        "owns": select(RowsAsJson(*owned)).where(role_assignments.c.user_id == him, OWNING),
        "account": select(RowsAsJson(*ACCOUNT_COLUMNS)).where(service_accounts.c.user_id == him),
    }
    return select(
        *_PERSON,
        exists().where(totp_factors.c.user_id == him).label("has_totp"),
        *(one.scalar_subquery().label(name) for name, one in asked.items()),
        *held_of(him),
        _APPLICATIONS.scalar_subquery().label("applications"),
        structure_version.VERSION.label("structure"),
        KEYS_VERSION,
    )


_HIM: Final = bindparam("user_id", type_=Text())
FACTS = Statement(_facts_of(_HIM).where(users.c.user_id == _HIM))
FACTS_OF_MANY = Statement(_facts_of(users.c.user_id).where(AnyOf(users.c.user_id, "ids")).order_by(users.c.user_id))


def facts(user_id: str, application_ids: tuple[int, ...]) -> Verb[Facts | None]:
    rows = yield FACTS(user_id=user_id, applications=application_ids)
    return _facts(rows[0], application_ids) if rows else None


def facts_of_many(user_ids: Collection[str], application_ids: Collection[int]) -> Verb[Sequence[Facts]]:
    """By id; those that do not exist are left out."""
    rows = yield FACTS_OF_MANY(ids=sorted(user_ids), applications=sorted(application_ids))
    return [_facts(row, application_ids) for row in rows]


def _facts(row: Row, application_ids: Collection[int]) -> Facts:
    return Facts(
        subject=_subject(row),
        login=row.login,
        blocked=row.blocked,
        rev=row.rev,
        has_strong_factor=bool(row.has_totp) or row.passkeys > 0,
        groups=lines_of(row.groups),
        owns={project_id: end_of(expired, ttl) for project_id, expired, ttl in row.owns or ()},
        service_account=_account(row.account or ()),
        records=records_in(row, row.user_id, application_ids),
        applications={cells[0]: _state(cells) for cells in row.applications or ()},
        structure=row.structure,
        keys_version=row.keys_version,
    )


def _subject(row: Row) -> Subject:
    domain = (row.login_key or "").rpartition("@")[2] if row.email_verified else ""
    return Subject(
        user_id=row.user_id,
        domain=domain or None,
        tags=lines_of(row.tags) | _kept_tags(row),
        purchases=lines_of(row.purchases),
    )


def _kept_tags(row: Row) -> frozenset[str]:
    return User(
        user_id=row.user_id,
        login=None,
        nick="",
        reg_time=0,
        email_verified=row.email_verified,
        phone_verified=row.phone_verified,
        email_code=row.email_code,
        sealed_totp=b"" if row.has_totp else None,
        passkeys=row.passkeys,
    ).kept_tags


def _account(rows: Collection[Cells]) -> ServiceAccount | None:
    for cells in rows:
        return account_of(cells)
    return None


def _state(cells: Cells) -> ApplicationState:
    application_id, project_id, removed, version, schema_version = cells
    return ApplicationState(
        application_id=application_id,
        project_id=project_id,
        removed=bool(removed),
        version=version,
        schema_version=schema_version,
    )


class PermissionStorage(Stored):
    install = act(install)
    _facts = recall(facts)
    application_models = survey(application_models)
    structure = survey(structure)
    login_section = look(login_section)
    knows_email_secret = look(knows_email_secret)
    add_email_secret = act(add_email_secret)
    email_secrets = look(all_email_secrets)
    remove_email_secret = act(remove_email_secret)
    root_roles = look(root_roles)

    async def facts(self, user_id: str, application_ids: Collection[int]) -> Facts | None:
        return await self._facts(user_id, tuple(sorted(application_ids)))
