"""Stores projects (ProjectStore)."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace
from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.audit.model import AuditRecord
from gatehouse.permissions.errors import LimitReached, NameTaken
from gatehouse.permissions.model.facts import ProjectModel, UserRecord
from gatehouse.permissions.model.project import Project
from gatehouse.permissions.model.rules import ResourceKind, Scope
from gatehouse.permissions.store import Change, MembershipChange, NewApplication
from gatehouse.storage.audit import add_audit_records
from gatehouse.storage.permissions.applications import insert_application, reserve_id, reserve_next_id
from gatehouse.storage.permissions.connections import insert_services, refuse_unknown_roles, replace_services
from gatehouse.storage.permissions.grant_keys import update_grant_keys
from gatehouse.storage.permissions.project_models import live_project_id, live_project_ids, project_by_name
from gatehouse.storage.permissions.structure import (
    begin_project_change,
    lock_names,
    lock_structure,
    lock_structure_shared,
)
from gatehouse.storage.permissions.user_records import add_holdings, edit_records
from gatehouse.storage.runner import SqlStore, heavy_write, read
from gatehouse.storage.statements import InStringList, Statement, Verb
from gatehouse.storage.tables.projects import project_names, projects

_FIXED_COLUMNS: Final = frozenset({"project_id", "author", "created_at", "version", "model_version"})
_CHANGEABLE_COLUMNS: Final = tuple(column.name for column in projects.c if column.name not in _FIXED_COLUMNS)
_OWN_COLUMNS: Final = tuple(name for name in _CHANGEABLE_COLUMNS if name != "allowed_domains")

INSERT_PROJECT = Statement(lambda: insert(projects).on_conflict_do_nothing().returning(projects.c.project_id))
UPDATE_PROJECT = Statement(
    lambda: (
        update(projects)
        .where(projects.c.project_id == bindparam("of"))
        .values({name: bindparam(name) for name in _CHANGEABLE_COLUMNS} | {"version": projects.c.version + 1})
    )
)
FIND_SAME_TITLE = Statement(
    lambda: select(projects.c.project_id).where(
        InStringList(projects.c.title_key, "title_keys"), projects.c.project_id != bindparam("but")
    )
)
NAMES_TAKEN = Statement(
    lambda: select(project_names.c.name).where(
        InStringList(project_names.c.name, "names"), project_names.c.project_id != bindparam("but")
    )
)
INSERT_NAME = Statement(lambda: insert(project_names))
DROP_ALIASES = Statement(
    lambda: delete(project_names).where(project_names.c.project_id == bindparam("of"), project_names.c.position > 0)
)
_COUNT_AUTHORED = select(func.count().label("projects")).where(projects.c.author == bindparam("author"))
COUNT_EVER_AUTHORED = Statement(lambda: _COUNT_AUTHORED)
COUNT_AUTHORED = Statement(lambda: _COUNT_AUTHORED.where(projects.c.removed.is_(False)))


def publish_project(
    project: Project,
    new: NewApplication | None,
    limit: int | None,
    users: Sequence[UserRecord],
    records: Callable[[int], Sequence[AuditRecord]],
) -> Verb[Project]:
    yield from lock_structure()
    yield from _refuse_over_limit(limit, project.author)
    application_id = yield from _application_id(new)
    made = replace(project, application_id=application_id or project.application_id)
    yield from add_project(made)
    people = list(users)
    if new is not None:
        numbered = _with_reserved_id(new, application_id)
        yield from insert_application(numbered.application, numbered.schema, numbered.roles)
        people += [numbered.creator] if numbered.creator is not None else []
    yield from add_holdings([_with_application_id(application_id, person) for person in people], project.created_at)
    yield from add_audit_records(records(application_id))
    return made


def add_project(made: Project) -> Verb[None]:
    """Insert a project; part of verbs that have locked the structure. Raises NameTaken."""
    yield from _refuse_taken_names(made)
    fields = {"author": made.author, "created_at": made.created_at, "version": made.version, "model_version": 1}
    if not (yield INSERT_PROJECT(**_project_columns(made), **fields, project_id=made.project_id)):
        raise NameTaken(made.title)
    yield INSERT_NAME(name=made.project_id, project_id=made.project_id, position=0)
    yield from _put_aliases(made)
    yield from refuse_unknown_roles({}, made.settings.services)
    yield from insert_services(made.project_id, made.settings.services)


def _refuse_over_limit(limit: int | None, author: str) -> Verb[None]:
    """Refuse one project too many; removed projects count until they are fully removed (R5)."""
    if limit is not None and (yield COUNT_EVER_AUTHORED(author=author))[0].projects >= limit:
        raise LimitReached(f"{author} may have {limit} projects")


def _application_id(new: NewApplication | None) -> Verb[int]:
    if new is None:
        return 0
    asked = new.application.application_id
    if not asked:
        return (yield from reserve_next_id())
    yield from reserve_id(asked)
    return asked


def _with_reserved_id(new: NewApplication, application_id: int) -> NewApplication:
    return replace(
        new,
        application=replace(new.application, application_id=application_id),
        schema=replace(new.schema, application_id=application_id),
        roles=[replace(role, application_id=application_id) for role in new.roles],
    )


def _with_application_id(application_id: int, record: UserRecord) -> UserRecord:
    """Replace application 0 by the id of the new application, wherever the project refers to it."""
    return replace(
        record,
        application_id=record.application_id or application_id,
        scopes={
            Scope(scope.project_id, scope.kind, str(application_id))
            if scope.kind is ResourceKind.APPLICATION and scope.resource_id == "0"
            else scope: holdings
            for scope, holdings in record.scopes.items()
        },
    )


def count_authored_projects(user_id: str) -> Verb[int]:
    rows = yield COUNT_AUTHORED(author=user_id)
    return int(rows[0].projects)


def edit_project(project_id: str, change: Change[ProjectModel]) -> Verb[ProjectModel]:
    yield from lock_structure_shared()
    before = yield from lock_project(project_id)
    edited = change(before)
    after = yield from write_project(before, edited.state.project)
    yield from add_audit_records(edited.records)
    return after


def edit_members(project_id: str, change: MembershipChange, now: int) -> Verb[ProjectModel]:
    after = yield from edit_project(project_id, change.project)
    yield from edit_records(CENTRAL_APPLICATION, change.users, now)
    return after


def lock_project(name: str) -> Verb[ProjectModel]:
    """Return the project with its groups, locked until the commit; it begins to change. Raises ProjectNotFound."""
    yield from begin_project_change(name)
    return (yield from project_by_name(name))


def write_project(before: ProjectModel, state: Project) -> Verb[ProjectModel]:
    """Write a project; part of verbs that have locked it. Raises NameTaken."""
    was = before.project
    after = replace(
        state,
        project_id=was.project_id,
        author=was.author,
        created_at=was.created_at,
        version=was.version + 1,
    )
    if (after.title_key, after.aliases) != (was.title_key, was.aliases):
        yield from lock_names()
    yield from _refuse_taken_names(after, was)
    yield UPDATE_PROJECT(of=after.project_id, **_project_columns(after))
    if after.aliases != was.aliases:
        yield DROP_ALIASES(of=after.project_id)
        yield from _put_aliases(after)
    if after.settings.services != was.settings.services:
        yield from refuse_unknown_roles(was.settings.services, after.settings.services)
        yield from replace_services(after.project_id, after.settings.services)
        yield from update_grant_keys([after.project_id])
    return replace(before, project=after)


def _refuse_taken_names(project: Project, was: Project | None = None) -> Verb[None]:
    """Refuse a name that looks like an id, alias or title of another project, current or former (PR-04).

    Names of a deleted project stay taken, its id among them, so a new project starts without names (R5).
    """
    names = [project.project_id, *project.aliases]
    titled = was is None or project.title_key != was.title_key
    but = "" if was is None else was.project_id
    taken = yield NAMES_TAKEN(names=[*names, project.title_key] if titled else names, but=but)
    if taken or len(set(names)) != len(names):
        raise NameTaken(", ".join(row.name for row in taken))
    if (yield FIND_SAME_TITLE(title_keys=[project.title_key, *_new_aliases(project, was)], but=project.project_id)):
        raise NameTaken(project.title)


def _new_aliases(project: Project, was: Project | None) -> list[str]:
    return [alias for alias in project.aliases if was is None or alias not in was.aliases]


def _put_aliases(project: Project) -> Verb[None]:
    yield INSERT_NAME.bulk(
        [
            {"name": alias, "project_id": project.project_id, "position": position}
            for position, alias in enumerate(project.aliases, start=1)
        ]
    )


class ProjectStorage(SqlStore):
    project = read(project_by_name)
    live_project_id = read(live_project_id)
    live_project_ids = read(live_project_ids)
    publish_project = heavy_write(publish_project)
    count_authored_projects = read(count_authored_projects)
    edit_project = heavy_write(edit_project)
    edit_members = heavy_write(edit_members)


def _project_columns(project: Project) -> dict[str, object]:
    return {name: getattr(project, name) for name in _OWN_COLUMNS} | {
        "allowed_domains": project.settings.allowed_domains
    }
