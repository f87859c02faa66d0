"""Which applications a project connects, and which of their roles it gives to groups or takes from them (R5)."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import bindparam, delete, insert, select, update

from gatehouse.permissions.errors import RoleNotFound, VersionConflict
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.project import GrantAction, GroupGrant
from gatehouse.storage.permissions.held import Cells, columns
from gatehouse.storage.permissions.record_checks import ROLES_BY_KEY
from gatehouse.storage.permissions.structure_version import begin_structure_change
from gatehouse.storage.statements import RowsAsJson, Statement, Verb, decode_document
from gatehouse.storage.tables.projects import project_services, projects

ServiceGrants = Mapping[int, tuple[GroupGrant, ...]]

SERVICE_COLUMNS: Final = columns(
    project_services, "application_id", "position", "group_id", "roles", "action", "project_id"
)
SERVICES_OF_APPLICATION = Statement(
    select(RowsAsJson(*SERVICE_COLUMNS).label("rows")).where(
        project_services.c.application_id == bindparam("application")
    )
)
INSERT_SERVICE = Statement(insert(project_services))
DROP_SERVICES = Statement(delete(project_services).where(project_services.c.project_id == bindparam("of")))
DROP_SERVICES_OF_APPLICATION = Statement(
    delete(project_services).where(
        project_services.c.project_id == bindparam("of"),
        project_services.c.application_id == bindparam("application"),
    )
)
TOUCH_PROJECT = Statement(
    update(projects).where(projects.c.project_id == bindparam("of")).values(version=projects.c.version + 1)
)


def services_from_cells(rows: Iterable[Cells]) -> ServiceGrants:
    """The grants of one project, in their order; an application that is connected and grants nothing has none."""
    found: defaultdict[int, list[GroupGrant]] = defaultdict(list)
    for application_id, _, group_id, roles, action, _ in sorted(rows, key=lambda cells: (cells[0], cells[1])):
        grants = found[application_id]
        if group_id:
            grants.append(
                GroupGrant(group_id=group_id, roles=tuple(decode_document(roles)), action=GrantAction(action))
            )
    return {application_id: tuple(grants) for application_id, grants in found.items()}


def insert_services(project_id: str, services: ServiceGrants) -> Verb[None]:
    yield INSERT_SERVICE.bulk(
        [row for number, grants in services.items() for row in _service_rows(project_id, number, grants)]
    )


def replace_services(project_id: str, services: ServiceGrants) -> Verb[None]:
    yield DROP_SERVICES(of=project_id)
    yield from insert_services(project_id, services)


def refuse_unknown_roles(before: ServiceGrants, after: ServiceGrants) -> Verb[None]:
    """Whoever edits has looked at the roles; one that is gone or protected all the same became so meanwhile."""
    for application_id, grants in after.items():
        named = _role_keys(grants) - _role_keys(before.get(application_id, ()))
        if not named:
            continue
        rows = yield ROLES_BY_KEY(application=application_id, keys=sorted(named))
        if gone := sorted(named - {row.role_key for row in rows}):
            raise RoleNotFound(", ".join(gone))
        if shut := sorted(row.role_key for row in rows if row.protected):
            raise VersionConflict(f"protected now: {', '.join(shut)}")


def connecting_projects(application_id: int) -> Verb[frozenset[str]]:
    """Ids of the projects that connect the application, whether they grant anything of it or not."""
    found = yield SERVICES_OF_APPLICATION(application=application_id)
    return frozenset(cells[-1] for cells in found[0].rows or ())


def strip_roles(application_id: int, keys: Collection[str]) -> Verb[None]:
    """Take roles that end, or that no project may give any more, out of every grant.

    Before anything else about the roles is written: whoever edits a project waits for the structure, and
    finds them gone.
    """
    if not keys or application_id == CENTRAL_ID:  # which nothing connects
        return
    yield from begin_structure_change()
    found = yield SERVICES_OF_APPLICATION(application=application_id)
    by_project: defaultdict[str, list[Cells]] = defaultdict(list)
    for cells in found[0].rows or ():
        by_project[cells[-1]].append(cells)
    for project_id, rows in sorted(by_project.items()):
        before = services_from_cells(rows)[application_id]
        after = tuple(_without_roles(before, keys))
        if after != before:
            yield DROP_SERVICES_OF_APPLICATION(of=project_id, application=application_id)
            yield from insert_services(project_id, {application_id: after})
            yield TOUCH_PROJECT(of=project_id)


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
