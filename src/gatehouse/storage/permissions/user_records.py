"""Stores user records, and checks that projects have the resources that records name."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Table, and_, bindparam, delete, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.errors import UserNotFound
from gatehouse.audit.model import AuditRecord
from gatehouse.permissions.errors import ApplicationNotFound, Malformed
from gatehouse.permissions.model.facts import NO_HOLDINGS, ScopeHoldings, UserRecord
from gatehouse.permissions.model.rules import ROOT, ResourceKind, Scope
from gatehouse.permissions.store import Change, EditResult
from gatehouse.storage.audit import add_audit_records
from gatehouse.storage.permissions.project_models import projects_by_id
from gatehouse.storage.permissions.record_checks import (
    LOCK_OWNER_ROLE,
    LOCK_ROLES,
    RecordChange,
    lock_if_administrator_lost,
    owned_projects,
    owners_of,
    refuse_full_roles,
    refuse_no_administrator,
    refuse_ownerless,
    refuse_service_owner,
    seats_taken,
)
from gatehouse.storage.permissions.row_readers import (
    ASSIGNMENT_COLUMNS,
    ENTRY_COLUMNS,
    Cells,
    holdings_statement,
    records_by_user,
    scopes_by_application,
)
from gatehouse.storage.permissions.structure import LOCK_SCHEMA_SHARED, lock_structure_shared
from gatehouse.storage.runner import SqlStore, heavy_write, snapshot_read
from gatehouse.storage.statements import InStringList, Row, RowsAsJson, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.permissions import role_assignments, scope_records, user_records


def refuse_foreign_resources(steps: Iterable[RecordChange]) -> Verb[None]:
    """Raise Malformed for a new entry on a resource that is not the project's.

    Existing entries may be saved again (R6).
    """
    fresh = dict.fromkeys(
        scope
        for step in steps
        for scope, holdings in step.after.scopes.items()
        if scope.kind is not None and gains_something(step.before.scopes.get(scope, NO_HOLDINGS), holdings)
    )
    models = (yield from projects_by_id({scope.project_id for scope in fresh})) if fresh else {}
    for scope in fresh:
        model = models.get(scope.project_id)
        if model is None or not model.has_scope(scope):
            raise Malformed(f"project {scope.project_id} has no {scope.kind} with the ID {scope.resource_id}")


def gains_something(before: ScopeHoldings, after: ScopeHoldings) -> bool:
    """Whether the change adds or changes an entry; entries on a removed resource may still be removed one by one."""
    trees = ((before.private_data, after.private_data), (before.public_data, after.public_data))
    return bool(set(after.roles) - set(before.roles)) or any(new and new != old for old, new in trees)


# Stores what users have in applications (UserRecordStore).


_THIS_RECORD = (user_records.c.application_id == bindparam("application"), user_records.c.user_id == bindparam("of"))

LOCK_USERS_SHARED = Statement(
    lambda: (
        select(users.c.user_id)
        .where(InStringList(users.c.user_id, "ids"))
        .order_by(users.c.user_id)
        .with_for_update(read=True, key_share=True)  # the lock prevents only the deletion of the users
    )
)
# Locks the record until the commit and increments its version: the first step of every change.
TOUCH_RECORD = Statement(
    lambda: (
        insert(user_records)
        .values(
            application_id=bindparam("application_id"),
            user_id=bindparam("user_id"),
            **{name: bindparam(name) for name in ("login", "private_data", "public_data", "secret_data")},
            version=1,
        )
        .on_conflict_do_update(
            index_elements=["application_id", "user_id"], set_={"version": user_records.c.version + 1}
        )
    )
)
BLANK_RECORD: dict[str, object] = {"login": {}, "private_data": {}, "public_data": {}, "secret_data": {}}
UPDATE_RECORD = Statement(
    lambda: update(user_records).where(*_THIS_RECORD).values({name: bindparam(name) for name in BLANK_RECORD})
)
DROP_ASSIGNMENTS = Statement(
    lambda: delete(role_assignments).where(
        role_assignments.c.application_id == bindparam("application"), role_assignments.c.user_id == bindparam("of")
    )
)
DROP_ENTRIES = Statement(
    lambda: delete(scope_records).where(
        scope_records.c.application_id == bindparam("application"), scope_records.c.user_id == bindparam("of")
    )
)
DROP_HOLDINGS_ON = Statement.for_each(
    (role_assignments, scope_records),
    lambda table: (
        delete(table)
        .where(
            InStringList(table.c.project_id, "projects"),
            table.c.resource_kind == bindparam("kind"),
            table.c.resource_id == bindparam("resource"),
        )
        .returning(table.c.application_id, table.c.user_id)
    ),
)
INSERT_ASSIGNMENT = Statement(lambda: insert(role_assignments))
INSERT_ENTRY = Statement(lambda: insert(scope_records))
NEXT_POSITION = Statement(
    lambda: select((func.coalesce(func.max(role_assignments.c.position), 0) + 1).label("position")).where(
        role_assignments.c.application_id == bindparam("application"),
        role_assignments.c.user_id == bindparam("user_id"),
        role_assignments.c.project_id == "",
    )
)
ASSIGN_ROLE = Statement(lambda: insert(role_assignments).on_conflict_do_nothing())


RECORDS_OF = holdings_statement(
    lambda table: (table.c.application_id == bindparam("application"), InStringList(table.c.user_id, "users"))
)


def _in_project(table: Table) -> ColumnElement[bool]:
    return and_(table.c.application_id == bindparam("application"), table.c.project_id == bindparam("project"))


_VERSIONS = select(RowsAsJson(user_records.c.user_id, user_records.c.version)).where(
    user_records.c.application_id == bindparam("application"),
    or_(
        *(
            exists().where(table.c.user_id == user_records.c.user_id, _in_project(table))
            for table in (role_assignments, scope_records)
        )
    ),
)
RECORDS_IN_PROJECT = Statement(  # one statement, so that all rows are consistent
    lambda: select(
        _VERSIONS.scalar_subquery().label("versions"),
        select(RowsAsJson(*ENTRY_COLUMNS)).where(_in_project(scope_records)).scalar_subquery().label("entries"),
        select(RowsAsJson(*ASSIGNMENT_COLUMNS))
        .where(_in_project(role_assignments))
        .scalar_subquery()
        .label("assignments"),
    )
)


def edit_record(application_id: int, user_id: str, change: Change[UserRecord], now: int) -> Verb[UserRecord]:
    edited = yield from edit_records(application_id, {user_id: change}, now)
    return edited[0]


def edit_records(
    application_id: int,
    changes: Mapping[str, Change[UserRecord]],
    now: int,
    *,
    new_roles: AbstractSet[str] = frozenset(),
) -> Verb[Sequence[UserRecord]]:
    """Edit records, in the order of user ids, in which rows are locked; for every verb that changes what users hold.

    `new_roles`: keys of roles whose limit is not checked, because they are created together with these holders.
    """
    yield from lock_structure_shared()
    if not (yield LOCK_SCHEMA_SHARED(application=application_id)):
        raise ApplicationNotFound
    steps: list[RecordChange] = []
    entries: list[AuditRecord] = []
    for before in (yield from lock_records(application_id, sorted(changes))):
        edited = changes[before.user_id](before)
        step = RecordChange(before, _versioned_record(edited.state, before))
        yield from refuse_service_owner(step)
        steps.append(step)
        entries.extend(edited.records)
    yield from refuse_foreign_resources(steps)
    yield from _write_checked(application_id, steps, now, new_roles)
    yield from add_audit_records(entries)
    return [step.after for step in steps]


def add_holdings(records: Iterable[UserRecord], now: int) -> Verb[None]:
    """Add these assignments to the users' records, each written once; part of verbs that create something."""
    by_place: dict[int, dict[str, UserRecord]] = {}
    for record in records:
        people = by_place.setdefault(record.application_id, {})
        people[record.user_id] = (
            _merge_records(people[record.user_id], record) if record.user_id in people else record
        )
    for application_id in sorted(by_place):
        changes = {user_id: _add_change(record) for user_id, record in by_place[application_id].items()}
        yield from edit_records(application_id, changes, now)


def _add_change(addition: UserRecord) -> Change[UserRecord]:
    return lambda before: EditResult(_merge_records(before, addition), ())


def _merge_records(record: UserRecord, addition: UserRecord) -> UserRecord:
    return replace(
        record,
        login=addition.login or record.login,
        secret_data=addition.secret_data or record.secret_data,
        scopes={**record.scopes, **addition.scopes},
    )


def lock_records(application_id: int, user_ids: Sequence[str]) -> Verb[Sequence[UserRecord]]:
    """Return the records, locked until the commit; their versions are already incremented."""
    if len((yield LOCK_USERS_SHARED(ids=user_ids))) < len(user_ids):
        raise UserNotFound
    yield from touch_records((application_id, user_id) for user_id in user_ids)
    rows = yield RECORDS_OF(application=application_id, users=user_ids)
    touched = records_by_user(rows[0])
    return [
        replace(touched[application_id, user_id], version=touched[application_id, user_id].version - 1)
        for user_id in user_ids
    ]


def touch_record(application_id: int, user_id: str) -> Verb[None]:
    """Increment the version; every write of an assignment or entry must, because caches compare it."""
    yield TOUCH_RECORD(application_id=application_id, user_id=user_id, **BLANK_RECORD)


def drop_holdings_on(kind: ResourceKind, resource_id: str, projects: Collection[str]) -> Verb[None]:
    """Delete what people hold on a resource that is removed from these projects (R5)."""
    taken: list[Row] = []
    for drop in DROP_HOLDINGS_ON:
        taken += yield drop(kind=kind.value, resource=resource_id, projects=sorted(projects))
    yield from touch_records((row.application_id, row.user_id) for row in taken)


def touch_records(written: Iterable[tuple[int, str]]) -> Verb[None]:
    yield TOUCH_RECORD.bulk(
        [{"application_id": number, "user_id": user_id, **BLANK_RECORD} for number, user_id in sorted(set(written))]
    )


def _versioned_record(state: UserRecord, before: UserRecord) -> UserRecord:
    """Return the edited record with its own id and version, which an edit cannot change."""
    return replace(
        state,
        application_id=before.application_id,
        user_id=before.user_id,
        scopes={scope: holdings for scope, holdings in state.scopes.items() if not holdings.is_empty},
        version=before.version + 1,
    )


def _write_checked(
    application_id: int, steps: Sequence[RecordChange], now: int, new_roles: AbstractSet[str]
) -> Verb[None]:
    taken = yield from seats_taken(application_id, steps, now)
    limited = {role: seats for role, seats in taken.items() if role not in new_roles}
    lost = {
        project for step in steps for project, _ in owned_projects(step.before, now) - owned_projects(step.after, now)
    }
    if lost:
        yield LOCK_OWNER_ROLE()
    unseats = yield from lock_if_administrator_lost(steps, now)
    if limited:
        yield LOCK_ROLES(application=application_id, keys=sorted(limited))
    owned = (yield from owners_of(lost, now)) if lost else {}
    yield from _write_changes(steps)
    yield from refuse_full_roles(application_id, limited, now)
    if owned:
        yield from refuse_ownerless(owned.keys(), now)
    if unseats:
        yield from refuse_no_administrator()


def _write_changes(steps: Sequence[RecordChange]) -> Verb[None]:
    yield UPDATE_RECORD.bulk(
        [
            {
                **_key_of(after),
                "login": after.login,
                "secret_data": after.secret_data,
                "private_data": after.root.private_data,
                "public_data": after.root.public_data,
            }
            for after in (step.after for step in steps)
        ]
    )
    for rows_of, drop, insert_row in (
        (_assignment_rows, DROP_ASSIGNMENTS, INSERT_ASSIGNMENT),
        (_entry_rows, DROP_ENTRIES, INSERT_ENTRY),
    ):
        changed = [step.after for step in steps if rows_of(step.before) != rows_of(step.after)]
        if changed:
            yield drop.bulk([_key_of(after) for after in changed])
            yield insert_row.bulk([row for after in changed for row in rows_of(after)])


def _key_of(record: UserRecord) -> dict[str, object]:
    return {"application": record.application_id, "of": record.user_id}


def _assignment_rows(record: UserRecord) -> list[dict[str, object]]:
    return [
        {
            **_scope_columns(record, scope),
            "role_key": assignment.role,
            "position": position,
            "expired": assignment.end.expired,
            "ttl": assignment.end.ttl,
        }
        for scope, holdings in record.scopes.items()
        for position, assignment in enumerate(holdings.roles, start=1)
    ]


def _entry_rows(record: UserRecord) -> list[dict[str, object]]:
    return [
        {**_scope_columns(record, scope), "private_data": holdings.private_data, "public_data": holdings.public_data}
        for scope, holdings in record.scopes.items()
        if scope != ROOT and (holdings.private_data or holdings.public_data)
    ]


def _scope_columns(record: UserRecord, scope: Scope) -> dict[str, object]:
    return {
        "application_id": record.application_id,
        "user_id": record.user_id,
        "project_id": scope.project_id,
        "resource_kind": scope.kind or "",
        "resource_id": scope.resource_id,
    }


def assign_root_role(application_id: int, user_id: str, role_key: str) -> Verb[None]:
    """Assign a role at the root; part of verbs that create an administrator."""
    yield from touch_record(application_id, user_id)
    rows = yield NEXT_POSITION(application=application_id, user_id=user_id)
    yield ASSIGN_ROLE(
        application_id=application_id,
        user_id=user_id,
        project_id="",
        resource_kind="",
        resource_id="",
        role_key=role_key,
        position=rows[0].position,
        expired=0,
        ttl=0,
    )


def records_in_project(application_id: int, project_id: str) -> Verb[Sequence[UserRecord]]:
    rows = yield RECORDS_IN_PROJECT(application=application_id, project=project_id)
    versions: dict[str, int] = dict(rows[0].versions or ())
    entries, assignments = _by_user(rows[0].entries), _by_user(rows[0].assignments)
    return [
        UserRecord(
            application_id=application_id,
            user_id=user_id,
            scopes=scopes_by_application(entries[user_id], assignments[user_id])[application_id],
            version=versions.get(user_id, 0),
        )
        for user_id in sorted(entries.keys() | assignments.keys())
    ]


def _by_user(rows: Sequence[Cells] | None) -> defaultdict[str, list[Cells]]:
    by_user: defaultdict[str, list[Cells]] = defaultdict(list)
    for cells in rows or ():
        by_user[cells[-1]].append(cells)
    return by_user


class UserRecordStorage(SqlStore):
    edit_record = heavy_write(edit_record)
    records_in_project = snapshot_read(records_in_project)
