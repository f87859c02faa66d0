"""Stores which applications a project connects, and which of their roles it gives to or takes from groups (R5)."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace
from sqlalchemy import bindparam, delete, insert, select

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.permissions.errors import RoleNotFound, VersionConflict
from gatehouse.permissions.model.project import GrantAction, GroupGrant
from gatehouse.storage.permissions.grant_keys import update_grant_keys
from gatehouse.storage.permissions.project_models import SERVICE_COLUMNS, ServiceGrants, services_from_cells
from gatehouse.storage.permissions.record_checks import ROLES_BY_KEY
from gatehouse.storage.permissions.row_readers import Cells
from gatehouse.storage.permissions.structure import LOCK_SCHEMA_SHARED, touch_project
from gatehouse.storage.statements import RowsAsJson, Statement, Verb
from gatehouse.storage.tables.projects import project_services

SERVICES_OF_APPLICATION = Statement(
    lambda: select(RowsAsJson(*SERVICE_COLUMNS).label("rows")).where(
        project_services.c.application_id == bindparam("application")
    )
)
INSERT_SERVICE = Statement(lambda: insert(project_services))
DROP_SERVICES = Statement(lambda: delete(project_services).where(project_services.c.project_id == bindparam("of")))
DROP_SERVICES_OF_APPLICATION = Statement(
    lambda: delete(project_services).where(
        project_services.c.project_id == bindparam("of"),
        project_services.c.application_id == bindparam("application"),
    )
)


def insert_services(project_id: str, services: ServiceGrants) -> Verb[None]:
    yield INSERT_SERVICE.bulk(
        [row for number, grants in services.items() for row in _service_rows(project_id, number, grants)]
    )


def replace_services(project_id: str, services: ServiceGrants) -> Verb[None]:
    yield DROP_SERVICES(of=project_id)
    yield from insert_services(project_id, services)


def refuse_unknown_roles(before: ServiceGrants, after: ServiceGrants) -> Verb[None]:
    """Refuse unknown or protected roles; the edit has checked them, but a role may have changed since.

    They stay as they are until the commit.
    """
    for application_id, grants in sorted(after.items()):
        named = _role_keys(grants) - _role_keys(before.get(application_id, ()))
        if not named:
            continue
        yield LOCK_SCHEMA_SHARED(application=application_id)
        rows = yield ROLES_BY_KEY(application=application_id, keys=sorted(named))
        if gone := sorted(named - {row.role_key for row in rows}):
            raise RoleNotFound(", ".join(gone))
        if shut := sorted(row.role_key for row in rows if row.protected):
            raise VersionConflict(f"protected now: {', '.join(shut)}")


def connecting_projects(application_id: int) -> Verb[frozenset[str]]:
    """Return the ids of the projects that connect the application, even if they grant nothing of it."""
    services = yield SERVICES_OF_APPLICATION(application=application_id)
    return frozenset(cells[-1] for cells in services[0].rows or ())


def strip_roles(application_id: int, keys: Collection[str]) -> Verb[None]:
    """Remove roles that are deleted, or that no project may grant any more, from every grant.

    The caller has locked the structure. A concurrent edit of a project waits for it and then no longer finds them.
    """
    if application_id == CENTRAL_APPLICATION:  # which nothing connects
        return
    services = yield SERVICES_OF_APPLICATION(application=application_id)
    regrouped: list[str] = []
    by_project: defaultdict[str, list[Cells]] = defaultdict(list)
    for cells in services[0].rows or ():
        by_project[cells[-1]].append(cells)
    for project_id, rows in sorted(by_project.items()):
        before = services_from_cells(rows)[application_id]
        after = tuple(_without_roles(before, keys))
        if after != before:
            yield DROP_SERVICES_OF_APPLICATION(of=project_id, application=application_id)
            yield from insert_services(project_id, {application_id: after})
            yield from touch_project(project_id)
            if {grant.group_id for grant in before} != {grant.group_id for grant in after}:
                regrouped.append(project_id)
    yield from update_grant_keys(regrouped)


def _without_roles(grants: Iterable[GroupGrant], keys: Collection[str]) -> Iterable[GroupGrant]:
    for grant in grants:
        left = tuple(role for role in grant.roles if role not in keys)
        if left:
            yield replace(grant, roles=left)


def _role_keys(grants: Iterable[GroupGrant]) -> set[str]:
    return {role for grant in grants for role in grant.roles}


def _service_rows(project_id: str, application_id: int, grants: Sequence[GroupGrant]) -> Iterable[dict[str, object]]:
    connected = {"project_id": project_id, "application_id": application_id}
    if not grants:
        yield {**connected, "position": 0, "group_id": "", "roles": (), "action": GrantAction.GRANT}
    for position, grant in enumerate(grants, start=1):
        yield {
            **connected,
            "position": position,
            "group_id": grant.group_id,
            "roles": grant.roles,
            "action": grant.action,
        }
