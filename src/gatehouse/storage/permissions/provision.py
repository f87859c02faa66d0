"""The permission model as configuration files see it and change it (provision/store.py)."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TypeVar, assert_never

from sqlalchemy import ColumnElement, Table, select, union

from gatehouse.permissions.documents.limits import refuse_groups
from gatehouse.permissions.errors import GroupsFull, Malformed, VersionConflict
from gatehouse.permissions.model.access_key import AccessKey
from gatehouse.permissions.model.application import CENTRAL_ID, Application
from gatehouse.permissions.model.application_key import ApplicationKey
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.schema_version import Tally
from gatehouse.permissions.model.user_record import UserRecord
from gatehouse.permissions.store import Change, Edited, NewApplication
from gatehouse.provision.model import (
    Act,
    AddApplication,
    AddGroup,
    AddProject,
    AddPublicKey,
    AddServiceAccount,
    ChangeApplication,
    ChangeGroup,
    ChangeProject,
    ChangeRecords,
    ChangeSchema,
    ChangeServiceAccount,
    PutAccessKey,
    RemoveGroup,
    Scope,
    World,
    WorldAct,
)
from gatehouse.storage.permissions import service_accounts
from gatehouse.storage.permissions.applications import (
    add_application,
    edit_application,
    reserve_id,
    spent_ids,
)
from gatehouse.storage.permissions.groups import create_group, delete_group, edit_group
from gatehouse.storage.permissions.held import ASSIGNMENT_COLUMNS, ENTRY_COLUMNS, columns, records_in
from gatehouse.storage.permissions.keys import (
    add_access_key,
    add_application_key,
    all_access_keys,
    all_custom_keys,
    delete_access_key,
)
from gatehouse.storage.permissions.projects import add_project, edit_project
from gatehouse.storage.permissions.records import edit_records
from gatehouse.storage.permissions.schemas import all_models, edit_schema
from gatehouse.storage.permissions.structure_version import change_structure
from gatehouse.storage.permissions.structures import all_projects, group, projects_of
from gatehouse.storage.statements import AnyOf, Row, RowsAsJson, Statement, Verb
from gatehouse.storage.tables.projects import project_names, projects
from gatehouse.storage.tables.user_records import role_assignments, scope_records, user_records

T = TypeVar("T")

_RECORD_COLUMNS = columns(
    user_records, "application_id", "login", "secret_data", "private_data", "public_data", "version", "user_id"
)
_PROJECTS = union(
    select(project_names.c.project_id).where(AnyOf(project_names.c.name, "names")),
    select(projects.c.project_id).where(AnyOf(projects.c.title_key, "names")),
).subquery()


def _inside(table: Table) -> ColumnElement[bool]:
    return table.c.project_id.in_(select(_PROJECTS.c.project_id))


MEMBERS = Statement(
    select(
        union(
            *(
                select(table.c.user_id).where(table.c.application_id == CENTRAL_ID, _inside(table))
                for table in (role_assignments, scope_records)
            )
        )
        .subquery()
        .c.user_id
    )
)


def _rows(*conditions: Mapping[Table, ColumnElement[bool]]) -> Statement:
    """Everything held, in one row; of one user after another when they are put in order."""
    chosen = [
        select(RowsAsJson(*cells))
        .where(*(condition[table] for condition in conditions))
        .scalar_subquery()
        .label(name)
        for name, table, cells in (
            ("records", user_records, _RECORD_COLUMNS),
            ("entries", scope_records, ENTRY_COLUMNS),
            ("assignments", role_assignments, ASSIGNMENT_COLUMNS),
        )
    ]
    return Statement(select(*chosen))


ALL_HELD = _rows()
HELD_BY = _rows({table: AnyOf(table.c.user_id, "users") for table in (user_records, scope_records, role_assignments)})


# -- reading ------------------------------------------------------------------------------------------


def read_world(scope: Scope) -> Verb[World]:
    """What is in scope, as of the moment of the transaction around it."""
    if not scope.world:
        return World()
    accounts = yield from service_accounts.all_accounts()
    access_keys = yield from all_access_keys()
    public_keys = yield from all_custom_keys()
    return World(
        projects=(yield from all_projects()),
        applications=(yield from all_models()),
        spent_application_ids=(yield from spent_ids()),
        access_keys=_by_application(access_keys),
        public_keys=_by_application(public_keys),
        service_accounts={account.user_id: account for account in accounts},
        records=(yield from _records(scope)),
    )


K = TypeVar("K", AccessKey, ApplicationKey)


def _by_application(keys: Iterable[K]) -> dict[int, tuple[K, ...]]:
    found: defaultdict[int, list[K]] = defaultdict(list)
    for key in keys:
        found[key.application_id].append(key)
    return {number: tuple(one) for number, one in found.items()}


def _records(scope: Scope) -> Verb[Mapping[tuple[int, str], UserRecord]]:
    if scope.all_records:
        rows = yield ALL_HELD()
    else:
        members = yield MEMBERS(names=sorted(scope.member_projects))
        rows = yield HELD_BY(users=sorted(scope.record_users | {row.user_id for row in members}))
    return _records_in(rows[0])


def _records_in(row: Row) -> dict[tuple[int, str], UserRecord]:
    """The user's id is the last cell of every row."""
    by_user: dict[str, dict[str, list[object]]] = {}
    for name in ("records", "entries", "assignments"):
        for cells in getattr(row, name) or ():
            kept = by_user.setdefault(cells[-1], {"records": [], "entries": [], "assignments": []})
            kept[name].append(cells[:-1] if name == "records" else cells)
    found: dict[tuple[int, str], UserRecord] = {}
    for user_id, held in sorted(by_user.items()):
        numbers = {cells[0] for name in held for cells in held[name]}  # type: ignore[index]
        record = row._make([held["records"], held["entries"], held["assignments"]])
        for number, one in records_in(record, user_id, sorted(numbers)).items():
            found[number, user_id] = one
    return found


# -- changing -----------------------------------------------------------------------------------------


def roles_made(acts: Iterable[Act]) -> Mapping[int, AbstractSet[str]]:
    """Keys of the roles that a file makes: whoever it names has a seat, whatever the limit.

    So an export is taken of a role whose limit was lowered below the number of its users (R5, R7).
    """
    made: defaultdict[int, set[str]] = defaultdict(set)
    for one in acts:
        match one:
            case AddApplication(model):
                made[model.application.application_id] |= model.roles.keys()
            case ChangeSchema(before, after):
                made[after.application.application_id] |= after.roles.keys() - before.roles.keys()
    return made


def projects_with_groups(acts: Iterable[Act]) -> frozenset[str]:
    """Ids of the projects of which a file makes or changes groups."""
    return frozenset(
        group.project_id
        for one in acts
        if isinstance(one, AddGroup | ChangeGroup)
        for group in [one.group if isinstance(one, AddGroup) else one.after]
    )


def refuse_overfull(before: Mapping[str, ProjectModel], named: Collection[str]) -> Verb[None]:
    """Once all is done: groups may come before others go. Raises GroupsFull, Malformed, each naming the project."""
    after = yield from projects_of(named)
    for project_id, model in sorted(after.items()):
        had = before[project_id].groups.values() if project_id in before else ()
        try:
            refuse_groups(had, model.groups.values())
        except (GroupsFull, Malformed) as error:
            raise type(error)(f"project {project_id}: {error}") from None


def run_permission_write(one: WorldAct, now: int, by: str, made: Mapping[int, AbstractSet[str]]) -> Verb[None]:
    """Part of the verb that carries a file out. Raises VersionConflict for what is no longer as it was read."""
    match one:
        case AddProject() | ChangeProject() | AddGroup() | ChangeGroup() | RemoveGroup():
            yield from _change_structure(one)
        case AddApplication() | ChangeApplication() | ChangeSchema() | PutAccessKey() | AddPublicKey():
            yield from _change_application(one, by)
        case ChangeRecords(before, after):
            changes = {kept.user_id: _if_same(kept, wanted) for kept, wanted in zip(before, after, strict=True)}
            number = before[0].application_id
            yield from edit_records(number, changes, now, founded=made.get(number, frozenset()))
        case AddServiceAccount(account):
            yield from service_accounts.create(account, (), ())
        case ChangeServiceAccount(kept, account):
            yield from service_accounts.change(kept, account, now)
        case _:
            assert_never(one)


def _change_structure(one: AddProject | ChangeProject | AddGroup | ChangeGroup | RemoveGroup) -> Verb[None]:
    match one:
        case AddProject(project):
            yield from change_structure()
            yield from add_project(project)
        case ChangeProject(before, after):

            def change(state: ProjectModel) -> Edited[ProjectModel]:
                _refuse_changed(state.project, before)
                return Edited(replace(state, project=after), ())

            yield from edit_project(before.project_id, change)
        case AddGroup(new):
            yield from create_group(new, ())
        case ChangeGroup(old, wanted):
            yield from edit_group(old.group_id, _if_same(old, wanted))
        case RemoveGroup(gone):
            yield from _remove_group(gone)
        case _:
            assert_never(one)


def _remove_group(gone: Group) -> Verb[None]:
    yield from change_structure()
    _refuse_changed((yield from group(gone.group_id)), gone)
    yield from delete_group(gone.group_id, ())


def _change_application(
    one: AddApplication | ChangeApplication | ChangeSchema | PutAccessKey | AddPublicKey, by: str
) -> Verb[None]:
    match one:
        case AddApplication(model):
            if not (yield from reserve_id(model.application.application_id)):
                raise VersionConflict(f"the ID {model.application.application_id} was used in the meantime")
            roles = tuple(model.roles.values())
            yield from add_application(
                NewApplication(application=model.application, schema=model.schema, roles=roles)
            )
        case ChangeApplication(before, after):
            yield from edit_application(before.application_id, _if_same(before, after))
        case ChangeSchema(kept, wanted, changes):
            yield from edit_schema(kept.application.application_id, _schema_change(kept, wanted, changes), actor=by)
        case PutAccessKey(old, key):
            if old is not None:
                yield from delete_access_key(old.application_id, old.key_id, ())
            yield from add_access_key(key, ())
        case AddPublicKey(public):
            yield from add_application_key(public, ())
        case _:
            assert_never(one)


def _schema_change(
    before: ApplicationModel, after: ApplicationModel, changes: Sequence[Tally]
) -> Change[ApplicationModel]:
    def change(state: ApplicationModel) -> Edited[ApplicationModel]:
        _refuse_changed(state.schema, before.schema)
        if {key: _timeless(role) for key, role in state.roles.items()} != {
            key: _timeless(role) for key, role in before.roles.items()
        }:
            raise VersionConflict
        return Edited(after, (), changes)

    return change


Versioned = TypeVar("Versioned", Application, Group, UserRecord)


def _if_same(before: Versioned, after: Versioned) -> Change[Versioned]:
    def change(state: Versioned) -> Edited[Versioned]:
        _refuse_changed(state, before)
        return Edited(after, ())

    return change


def _refuse_changed(state: object, before: object) -> None:
    """What matters is what it says: an earlier step of the same file may have given it another version."""
    if _timeless(state) != _timeless(before):
        raise VersionConflict


def _timeless(one: T) -> T:
    return replace(one, version=0)  # type: ignore[type-var]
