"""Deletes a project or an application permanently, with everything that belongs to it (FullRemovalStore).

Only the reservations stay: the project's id and aliases, the ids and API resources of its
applications, the ids of its service accounts and clients.
None of them is ever reused (R5). Game sessions and pending sign-ins expire by themselves.
"""

from collections.abc import Callable, Sequence
from typing import Final

from sqlalchemy import ColumnElement, Select, Table, Text, bindparam, delete, func, null, or_, select, union, update

from gatehouse.accounts.model import AccountKind
from gatehouse.audit.model import AuditRecord
from gatehouse.images.model import application_logo_owner, client_logo_owner
from gatehouse.permissions.errors import ProjectNotRemoved
from gatehouse.permissions.model.objects import Holder, HolderKind
from gatehouse.permissions.model.project import ErasureCounts, Project
from gatehouse.permissions.model.rules import ResourceKind
from gatehouse.storage.accounts.bans import copy_active_bans
from gatehouse.storage.accounts.erasure import DROP_USER_DATA
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.images import remove_image
from gatehouse.storage.objects.endings import drop_holder, drop_objects_in, drop_objects_of
from gatehouse.storage.permissions.project_models import project_by_name
from gatehouse.storage.permissions.projects import lock_project
from gatehouse.storage.permissions.structure import lock_structure
from gatehouse.storage.permissions.user_records import touch_records
from gatehouse.storage.runner import SqlStore, snapshot_read, write
from gatehouse.storage.statements import InNumberList, InStringList, Row, Statement, Verb
from gatehouse.storage.tables.accounts import ban_digests, bans, login_tokens, users
from gatehouse.storage.tables.invitations import access_invitations
from gatehouse.storage.tables.oauth import (
    client_origins,
    client_secrets,
    clients,
    consents,
    device_requests,
    grants,
    logout_calls,
    pushed_requests,
)
from gatehouse.storage.tables.permissions import (
    access_keys,
    application_ids,
    application_keys,
    application_schemas,
    applications,
    email_secrets,
    protected_sites,
    role_assignments,
    roles,
    schema_versions,
    scope_records,
    service_tokens,
    user_records,
)
from gatehouse.storage.tables.personal_data import gdpr_calls
from gatehouse.storage.tables.projects import (
    grant_keys,
    group_members,
    groups,
    project_services,
    projects,
    service_accounts,
)

_THIS_PROJECT: Final = bindparam("project", type_=Text())
KEY_TABLES: Final = (access_keys, application_keys, service_tokens, email_secrets)
HOLDING_TABLES: Final = (role_assignments, scope_records)
APPLICATION_TABLES: Final = (
    *(*KEY_TABLES, protected_sites, application_schemas, schema_versions, roles),
    *(user_records, *HOLDING_TABLES, login_tokens, gdpr_calls, grant_keys),
)


def _in_applications(table: Table) -> ColumnElement[bool]:
    return InNumberList(table.c.application_id, "applications")


def _on_project(table: Table) -> ColumnElement[bool]:
    """Select what is held in the project, or in another project on one of its applications as a service."""
    named = (ResourceKind.APPLICATION.value, ResourceKind.SERVICE.value)
    resource = or_(*(table.c.resource_kind == kind for kind in named)) & InStringList(
        table.c.resource_id, "resources"
    )
    return or_(table.c.project_id == _THIS_PROJECT, resource)


def _count(query: Select[tuple[object, ...]], name: str) -> ColumnElement[int]:
    return select(func.count()).select_from(query.subquery()).scalar_subquery().label(name)


# -- what there is ------------------------------------------------------------------------------------

APPLICATIONS = Statement(
    lambda: (
        select(applications.c.application_id)
        .where(applications.c.project_id == _THIS_PROJECT)
        .order_by(applications.c.application_id)
    )
)
HOLD_APPLICATIONS = Statement(
    lambda: (
        select(applications.c.application_id)
        .where(applications.c.project_id == _THIS_PROJECT)
        .order_by(applications.c.application_id)
        .with_for_update()
    )
)
_ACCOUNTS = select(service_accounts.c.user_id).where(service_accounts.c.project_id == _THIS_PROJECT)
_RECORD_USERS = union(
    *(select(table.c.user_id).where(or_(_on_project(table), _in_applications(table))) for table in HOLDING_TABLES),
    select(user_records.c.user_id).where(_in_applications(user_records)),
).subquery()
COUNTS = Statement(
    lambda: select(
        _count(select(roles.c.role_key).where(_in_applications(roles)), "roles"),
        _count(select(clients.c.client_id).where(_in_applications(clients), clients.c.removed.is_(False)), "clients"),
        *(_count(select(table.c.application_id).where(_in_applications(table)), table.name) for table in KEY_TABLES),
        _count(select(groups.c.group_id).where(groups.c.project_id == _THIS_PROJECT), "groups"),
        _count(_ACCOUNTS, "service_accounts"),
        _count(select(_RECORD_USERS.c.user_id).where(_RECORD_USERS.c.user_id.not_in(_ACCOUNTS)), "people"),
        _count(
            select(project_services.c.project_id, project_services.c.application_id)
            .where(_in_applications(project_services), project_services.c.project_id != _THIS_PROJECT)
            .distinct(),
            "connections",
        ),
    )
)


def project_contents(project_id: str) -> Verb[ErasureCounts]:
    """Raises ProjectNotFound, ProjectNotRemoved."""
    its = _require_removed((yield from project_by_name(project_id)).project)
    return (yield from _count_contents(its, _application_ids((yield APPLICATIONS(project=its.project_id)))))


def _require_removed(project: Project) -> Project:
    if not project.removed:
        raise ProjectNotRemoved
    return project


def _application_ids(rows: Sequence[Row]) -> list[int]:
    return [row.application_id for row in rows]


def _count_contents(project: Project, its: Sequence[int]) -> Verb[ErasureCounts]:
    (row,) = yield COUNTS(project=project.project_id, applications=its, resources=[str(number) for number in its])
    counts = row._asdict()
    keys = sum(counts.pop(table.name) for table in KEY_TABLES)
    return ErasureCounts(
        project_id=project.project_id, title=project.title, applications=len(its), keys=keys, **counts
    )


# -- removal -----------------------------------------------------------------------------------------

ACCOUNTS = Statement(lambda: _ACCOUNTS.order_by(service_accounts.c.user_id))
DROP_ACCOUNT = Statement(
    lambda: delete(users).where(users.c.user_id == bindparam("of"), users.c.kind == AccountKind.SERVICE.value)
)
# The row of a client stays with its id alone, so that nothing issued to it is ever valid for another client.
EMPTY_CLIENTS = Statement(
    lambda: (
        update(clients)
        .where(_in_applications(clients))
        .values(
            {column: [] for column in ("redirect_hosts", "redirect_uris", "post_logout_uris", "origins")}
            | dict.fromkeys(("name", "backchannel_logout_uri", "client_uri", "policy_uri", "tos_uri", "logo"), "")
            | {"jwks": {}, "workload_identities": [], "claims": {}, "application_id": null()}
            | {"removed": True, "version": clients.c.version + 1}
        )
        .returning(clients.c.client_id)
    )
)
DROP_OF_CLIENTS = Statement.for_each(
    (client_secrets, client_origins, grants, consents, device_requests, pushed_requests, logout_calls),
    lambda table: delete(table).where(InStringList(table.c.client_id, "clients")),
)
DROP_IN_APPLICATIONS = Statement.for_each(
    APPLICATION_TABLES, lambda table: delete(table).where(_in_applications(table))
)
DROP_HELD = Statement.for_each(
    HOLDING_TABLES,
    lambda table: delete(table).where(_on_project(table)).returning(table.c.application_id, table.c.user_id),
)
CONNECTED = select(project_services.c.project_id).where(_in_applications(project_services))
TOUCH_CONNECTED = Statement(
    lambda: (
        update(projects)
        .where(projects.c.project_id.in_(CONNECTED), projects.c.project_id != _THIS_PROJECT)
        .values(version=projects.c.version + 1, model_version=projects.c.model_version + 1)
    )
)
FORGET_APPLICATION = Statement(
    lambda: update(projects).where(_in_applications(projects)).values(application_id=null())
)
DROP_CONNECTIONS = Statement(
    lambda: delete(project_services).where(
        or_(project_services.c.project_id == _THIS_PROJECT, _in_applications(project_services))
    )
)
_ITS_BANS = or_(bans.c.project_id == _THIS_PROJECT, _in_applications(bans))
DROP_DIGESTS_OF_BANS = Statement(
    lambda: delete(ban_digests).where(ban_digests.c.ban_id.in_(select(bans.c.ban_id).where(_ITS_BANS)))
)
DROP_BANS = Statement(lambda: delete(bans).where(_ITS_BANS).returning(bans.c.user_id))
DROP_INVITATIONS = Statement(
    lambda: delete(access_invitations).where(
        or_(
            access_invitations.c.invited_into == _THIS_PROJECT,
            access_invitations.c.project_id == _THIS_PROJECT,
            _in_applications(access_invitations),
        )
    )
)
RESERVE_RESOURCES = Statement(
    lambda: (
        update(application_ids)
        .where(_in_applications(application_ids))
        .values(
            api_resource=select(applications.c.api_resource)
            .where(applications.c.application_id == application_ids.c.application_id)
            .scalar_subquery()
        )
    )
)
DROP_APPLICATIONS = Statement(lambda: delete(applications).where(_in_applications(applications)))
_GROUPS = select(groups.c.group_id).where(groups.c.project_id == _THIS_PROJECT)
DROP_MEMBERS = Statement(lambda: delete(group_members).where(group_members.c.group_id.in_(_GROUPS)))
DROP_KEYS = Statement(lambda: delete(grant_keys).where(grant_keys.c.project_id == _THIS_PROJECT))
DROP_GROUPS = Statement(lambda: delete(groups).where(groups.c.project_id == _THIS_PROJECT))
DROP_PROJECT = Statement(lambda: delete(projects).where(projects.c.project_id == _THIS_PROJECT))


def erase_project(project_id: str, entry: Callable[[ErasureCounts], AuditRecord]) -> Verb[ErasureCounts]:
    yield from lock_structure()
    project = _require_removed((yield from lock_project(project_id)).project)
    its = _application_ids((yield HOLD_APPLICATIONS(project=project.project_id)))
    gone = yield from _count_contents(project, its)
    yield from _drop_accounts(project.project_id)
    yield from _drop_clients(its)
    for drop in DROP_IN_APPLICATIONS:
        yield drop(applications=its)
    yield from _drop_holdings(project.project_id, its)
    yield from drop_objects_of(its)
    yield from drop_objects_in(project.project_id)
    yield TOUCH_CONNECTED(project=project.project_id, applications=its)
    for drop in (DROP_CONNECTIONS, DROP_INVITATIONS):
        yield drop(project=project.project_id, applications=its)
    record = entry(gone)
    yield from _drop_bans(project.project_id, its, record.at)
    yield FORGET_APPLICATION(applications=its)
    yield RESERVE_RESOURCES(applications=its)
    yield DROP_APPLICATIONS(applications=its)
    for application_id in its:
        yield from remove_image(application_logo_owner(application_id))
    for drop in (DROP_KEYS, DROP_MEMBERS, DROP_GROUPS, DROP_PROJECT):
        yield drop(project=project.project_id)
    yield from add_audit_record(record)
    return gone


def _drop_bans(project_id: str, its: Sequence[int], now: int) -> Verb[None]:
    yield DROP_DIGESTS_OF_BANS(project=project_id, applications=its)
    for user_id in sorted({row.user_id for row in (yield DROP_BANS(project=project_id, applications=its))}):
        yield from copy_active_bans(user_id, now)


def _drop_accounts(project_id: str) -> Verb[None]:
    for account in (yield ACCOUNTS(project=project_id)):
        yield DROP_ACCOUNT(of=account.user_id)
        yield from drop_holder(Holder(HolderKind.USER, account.user_id))
        for drop in DROP_USER_DATA:
            yield drop(of=account.user_id)


def _drop_clients(its: Sequence[int]) -> Verb[None]:
    emptied = [row.client_id for row in (yield EMPTY_CLIENTS(applications=its))]
    for drop in DROP_OF_CLIENTS:
        yield drop(clients=emptied)
    for client_id in emptied:
        yield from remove_image(client_logo_owner(client_id))


def _drop_holdings(project_id: str, its: Sequence[int]) -> Verb[None]:
    """Delete what people hold on it in other applications, and increment the versions of these records."""
    taken: list[Row] = []
    for drop in DROP_HELD:
        taken += yield drop(project=project_id, resources=[str(number) for number in its])
    yield from touch_records((row.application_id, row.user_id) for row in taken)


class FullRemovalStorage(SqlStore):
    project_contents = snapshot_read(project_contents)
    erase_project = write(erase_project)
