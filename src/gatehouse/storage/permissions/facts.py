"""Read facts and models for decisions (PermissionStore)."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, Text, bindparam, exists, func, select, union_all

from gatehouse.accounts.bans.model import DigestKind
from gatehouse.accounts.model import User
from gatehouse.permissions.model.condition import ConditionSubject
from gatehouse.permissions.model.facts import ApplicationState, Facts
from gatehouse.permissions.model.objects import ObjectFacts
from gatehouse.permissions.model.service_account import ServiceAccount
from gatehouse.storage.epoch import USER_REV
from gatehouse.storage.keys import KEYS_VERSION
from gatehouse.storage.objects.reading import ASKED_OBJECTS, PLACE_OF_OBJECT, object_columns, object_facts_from
from gatehouse.storage.permissions.central import (
    add_email_secret,
    all_email_secrets,
    has_email_secret,
    install_central,
    login_section,
    remove_email_secret,
    root_roles,
)
from gatehouse.storage.permissions.grant_keys import granting_projects, model_version
from gatehouse.storage.permissions.project_models import projects_by_id
from gatehouse.storage.permissions.record_checks import IS_OWNER
from gatehouse.storage.permissions.row_readers import (
    Cells,
    bans_from_document,
    columns,
    end_of,
    holdings_of,
    records_from_row,
)
from gatehouse.storage.permissions.schemas import application_models
from gatehouse.storage.permissions.service_accounts import ACCOUNT_COLUMNS, account_from_cells
from gatehouse.storage.runner import SqlStore, cached_read, read, snapshot_read, write
from gatehouse.storage.statements import (
    InNumberList,
    InStringList,
    JoinedLines,
    Row,
    RowsAsJson,
    Statement,
    Verb,
    split_lines,
)
from gatehouse.storage.tables.accounts import ban_digests, passkeys, totp_factors, user_purchases, user_tags, users
from gatehouse.storage.tables.permissions import application_schemas, applications, role_assignments, scope_records
from gatehouse.storage.tables.projects import group_members, projects, service_accounts

NO_PROJECTS: Final[Mapping[int, frozenset[str]]] = {}
NO_VERSIONS: Final[Mapping[str, int]] = {}
_PERSON: Final = columns(
    users,
    *("user_id", "login", "login_key", "email_verified", "phone_verified"),
    *("email_code", "phone_code", "blocked", "bans"),
)
_APPLICATIONS = (
    select(
        RowsAsJson(
            *columns(applications, "application_id", "project_id", "removed", "version"),
            application_schemas.c.version,
        )
    )
    .join(application_schemas, application_schemas.c.application_id == applications.c.application_id)
    .where(InNumberList(applications.c.application_id, "applications"))
)


def _select_facts(user_id: ColumnElement[str]) -> Select[Any]:
    """Select what a person has, in one statement, so that it is consistent with the versions in the same row."""
    owned = columns(role_assignments, "project_id", "expired", "ttl")
    asked: Mapping[str, Select[Any]] = {
        "passkeys": select(func.count()).where(passkeys.c.user_id == user_id),
        "tags": select(JoinedLines(user_tags.c.tag)).where(user_tags.c.user_id == user_id),
        "purchases": select(JoinedLines(user_purchases.c.purchase)).where(user_purchases.c.user_id == user_id),
        "groups": select(JoinedLines(group_members.c.group_id)).where(group_members.c.user_id == user_id),
        "owns": select(RowsAsJson(*owned)).where(role_assignments.c.user_id == user_id, IS_OWNER),
        "account": select(RowsAsJson(*ACCOUNT_COLUMNS)).where(service_accounts.c.user_id == user_id),
    }
    return select(
        *_PERSON,
        USER_REV.label("rev"),
        exists().where(totp_factors.c.user_id == user_id).label("has_totp"),
        exists().where(ban_digests.c.kind == DigestKind.DEVICE.value).label("device_bans"),
        *(query.scalar_subquery().label(name) for name, query in asked.items()),
        *holdings_of(user_id),
        _APPLICATIONS.scalar_subquery().label("applications"),
        KEYS_VERSION,
    )


def _mentioned_projects(user_id: ColumnElement[str], *others: Select[Any]) -> Select[Any]:
    """Select the projects that the rows of the facts mention (Facts.projects), with the versions of their models."""
    mentions = (
        select(applications.c.project_id).where(InNumberList(applications.c.application_id, "applications")),
        select(service_accounts.c.project_id).where(service_accounts.c.user_id == user_id),
        *(
            select(table.c.project_id).where(
                table.c.user_id == user_id,
                InNumberList(table.c.application_id, "applications"),
                table.c.project_id != "",  # most: the whole application
            )
            for table in (role_assignments, scope_records)
        ),
        *others,
    )
    mentioned = union_all(*mentions).subquery()
    return select(RowsAsJson(mentioned.c.project_id, model_version(mentioned.c.project_id)))


def _with_projects(user_id: ColumnElement[str], *others: Select[Any]) -> Statement:
    return Statement(
        lambda: (
            _select_facts(user_id)
            .add_columns(
                granting_projects(user_id).scalar_subquery().label("granting"),
                _mentioned_projects(user_id, *others).scalar_subquery().label("mentioned"),
            )
            .where(users.c.user_id == user_id)
        )
    )


_USER_ID: Final = bindparam("user_id", type_=Text())
FACTS = _with_projects(_USER_ID)
FACTS_WITH_PROJECTS = _with_projects(
    _USER_ID, select(projects.c.project_id).where(InStringList(projects.c.project_id, "projects"))
)
FACTS_WITH_OBJECTS = Statement(
    lambda: (
        _select_facts(_USER_ID)
        .add_columns(
            granting_projects(_USER_ID).scalar_subquery().label("granting"),
            _mentioned_projects(
                _USER_ID,
                select(projects.c.project_id).where(InStringList(projects.c.project_id, "projects")),
                select(PLACE_OF_OBJECT).where(*ASKED_OBJECTS),
            )
            .scalar_subquery()
            .label("mentioned"),
            *object_columns(_USER_ID),
        )
        .where(users.c.user_id == _USER_ID)
    )
)
FACTS_OF_MANY = Statement(
    lambda: _select_facts(users.c.user_id).where(InStringList(users.c.user_id, "ids")).order_by(users.c.user_id)
)


def facts(user_id: str, application_ids: tuple[int, ...], project_ids: tuple[str, ...] = ()) -> Verb[Facts | None]:
    asked: dict[str, object] = {"user_id": user_id, "applications": application_ids}
    rows = yield FACTS_WITH_PROJECTS(**asked, projects=project_ids) if project_ids else FACTS(**asked)
    return _facts_with_projects(rows[0], application_ids, project_ids) if rows else None


def _facts_with_projects(row: Row, application_ids: Collection[int], project_ids: Collection[str]) -> Facts:
    granting = defaultdict[int, set[str]](set)
    versions = dict.fromkeys(project_ids, 0)
    versions.update((project_id, version) for project_id, version in row.mentioned or () if version)
    for application_id, project_id, version in row.granting or ():
        if version:
            granting[application_id].add(project_id)
            versions[project_id] = version
    by_application = {application_id: frozenset(granting_ids) for application_id, granting_ids in granting.items()}
    return _facts(row, application_ids, granting=by_application, versions=versions)


def facts_with_objects(
    user_id: str,
    application_ids: tuple[int, ...],
    application_id: int,
    keys: tuple[str, ...],
    projects: tuple[str, ...],
) -> Verb[tuple[Facts, ObjectFacts] | None]:
    """The facts with objects of one of the applications: one statement, so of one state."""
    rows = yield FACTS_WITH_OBJECTS(
        user_id=user_id,
        applications=application_ids,
        projects=projects,
        objects_of=application_id,
        object_keys=keys,
    )
    if not rows:
        return None
    return _facts_with_projects(rows[0], application_ids, projects), object_facts_from(rows[0])


def facts_of_many(user_ids: Collection[str], application_ids: Collection[int]) -> Verb[Sequence[Facts]]:
    """Return facts by user id, without users that do not exist, and without their projects."""
    rows = yield FACTS_OF_MANY(ids=sorted(user_ids), applications=sorted(application_ids))
    return [_facts(row, application_ids) for row in rows]


def _facts(
    row: Row,
    application_ids: Collection[int],
    *,
    granting: Mapping[int, frozenset[str]] = NO_PROJECTS,
    versions: Mapping[str, int] = NO_VERSIONS,
) -> Facts:
    return Facts(
        subject=_subject(row),
        login=row.login,
        blocked=row.blocked,
        rev=row.rev,
        has_strong_factor=bool(row.has_totp) or row.passkeys > 0,
        groups=split_lines(row.groups),
        owns={project_id: end_of(expired, ttl) for project_id, expired, ttl in row.owns or ()},
        service_account=_account(row.account or ()),
        records=records_from_row(row, row.user_id, application_ids),
        applications={cells[0]: _state(cells) for cells in row.applications or ()},
        granting=granting,
        project_versions=versions,
        keys_version=row.keys_version,
        bans=bans_from_document(row.bans),
        device_bans=bool(row.device_bans),
    )


def _subject(row: Row) -> ConditionSubject:
    domain = (row.login_key or "").rpartition("@")[2] if row.email_verified else ""
    return ConditionSubject(
        user_id=row.user_id,
        domain=domain or None,
        tags=split_lines(row.tags) | _kept_tags(row),
        purchases=split_lines(row.purchases),
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
        phone_code=row.phone_code,
        sealed_totp=b"" if row.has_totp else None,
        passkeys=row.passkeys,
    ).system_tags


def _account(rows: Collection[Cells]) -> ServiceAccount | None:
    for cells in rows:
        return account_from_cells(cells)
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


class PermissionStorage(SqlStore):
    install_central = write(install_central)
    _cached_facts = cached_read(facts)
    _cached_facts_with_objects = cached_read(facts_with_objects)
    application_models = snapshot_read(application_models)
    projects = snapshot_read(projects_by_id)
    login_section = read(login_section)
    has_email_secret = read(has_email_secret)
    add_email_secret = write(add_email_secret)
    email_secrets = read(all_email_secrets)
    remove_email_secret = write(remove_email_secret)
    root_roles = read(root_roles)

    async def facts_with_objects(
        self,
        user_id: str,
        application_ids: Collection[int],
        application_id: int,
        keys: Collection[str],
        project_ids: Collection[str] = (),
    ) -> tuple[Facts, ObjectFacts] | None:
        return await self._cached_facts_with_objects(
            user_id, tuple(sorted(application_ids)), application_id, tuple(sorted(keys)), tuple(sorted(project_ids))
        )

    async def facts(
        self, user_id: str, application_ids: Collection[int], project_ids: Collection[str] = ()
    ) -> Facts | None:
        return await self._cached_facts(user_id, tuple(sorted(application_ids)), tuple(sorted(project_ids)))
