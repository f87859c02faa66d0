"""Keeps applications with their schemas and roles (ApplicationStore)."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import bindparam, case, delete, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import Record
from gatehouse.permissions.errors import ApplicationNotFound, NameTaken, ProjectNotFound
from gatehouse.permissions.model.application import FIRST_GENERATED_ID, Application
from gatehouse.permissions.model.application_key import KeySource
from gatehouse.permissions.model.application_limits import refuse_too_large
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.schema import ApplicationSchema
from gatehouse.permissions.model.scope import ResourceKind
from gatehouse.permissions.store import Change, NewApplication
from gatehouse.storage.audit import record
from gatehouse.storage.permissions.application_rows import WHOLE, application_of, key_columns
from gatehouse.storage.permissions.grants import connecting
from gatehouse.storage.permissions.record_checks import holders_of, role_holders
from gatehouse.storage.permissions.records import give, take_from_all
from gatehouse.storage.permissions.schema_versions import forget_versions
from gatehouse.storage.permissions.schemas import edit_schema, insert_schema
from gatehouse.storage.permissions.structure_version import change_structure, hold_structure_alone
from gatehouse.storage.runner import Stored, heavy_act, look, survey
from gatehouse.storage.statements import AnyOf, Statement, Verb
from gatehouse.storage.tables.applications import application_ids, application_keys, applications
from gatehouse.storage.tables.projects import projects

_HIGHEST = func.coalesce(func.max(application_ids.c.application_id), 0)
_NEXT = case((_HIGHEST < FIRST_GENERATED_ID, literal(FIRST_GENERATED_ID)), else_=_HIGHEST + 1)
RESERVE_NEXT = Statement(  # without a WHERE SQLite would take ON for the beginning of a join
    insert(application_ids)
    .from_select(["application_id"], select(_NEXT).where(application_ids.c.application_id > 0))
    .on_conflict_do_nothing()
    .returning(application_ids.c.application_id)
)
SPENT = Statement(select(application_ids.c.application_id))
RESERVE = Statement(insert(application_ids).on_conflict_do_nothing().returning(application_ids.c.application_id))

_FIXED: Final = frozenset({"application_id", "created_at", "version"})
_CHANGEABLE: Final = tuple(column.name for column in applications.c if column.name not in _FIXED)
_THIS = applications.c.application_id == bindparam("of")

INSERT_APPLICATION = Statement(insert(applications).on_conflict_do_nothing().returning(applications.c.application_id))
UPDATE_APPLICATION = Statement(
    update(applications)
    .where(_THIS)
    .values({name: bindparam(name) for name in _CHANGEABLE} | {"version": applications.c.version + 1})
)
HOLD_APPLICATION = Statement(select(applications.c.application_id).where(_THIS).with_for_update())
HOLD_PROJECT = Statement(select(projects.c.removed).where(projects.c.project_id == bindparam("of")).with_for_update())
NAMESAKE = Statement(
    select(applications.c.application_id).where(
        applications.c.project_id == bindparam("project"),
        applications.c.name == bindparam("name"),
        applications.c.removed.is_(False),
        applications.c.application_id != bindparam("but"),
    )
)
APPLICATION = Statement(select(*WHOLE).where(_THIS))
IN_PROJECTS = Statement(
    select(*WHOLE)
    .where(AnyOf(applications.c.project_id, "projects"), applications.c.removed.is_(False))
    .order_by(applications.c.application_id)
)
INSERT_KEY = Statement(insert(application_keys))
DROP_SERVICE_KEY = Statement(
    delete(application_keys).where(
        application_keys.c.application_id == bindparam("of"),
        application_keys.c.source == KeySource.SERVICE_META.value,
    )
)


def application(application_id: int) -> Verb[Application]:
    rows = yield APPLICATION(of=application_id)
    if not rows:
        raise ApplicationNotFound
    return application_of(rows[0])


def applications_in(project_ids: Collection[str]) -> Verb[Sequence[Application]]:
    rows = yield IN_PROJECTS(projects=sorted(project_ids))
    return [application_of(row) for row in rows]


def create_application(new: Callable[[int], tuple[NewApplication, Sequence[Record]]]) -> Verb[Application]:
    yield from hold_structure_alone()
    made, entries = new((yield from reserve_next_id()))
    yield from add_application(made)
    for entry in entries:
        yield from record(entry)
    return made.application


def add_application(new: NewApplication) -> Verb[None]:
    """Part of verbs that make applications; they hold the structure, and the id is reserved already.

    Raises NameTaken, ProjectNotFound, ApplicationTooLarge.
    """
    its_roles = {role.key: role for role in new.roles}
    refuse_too_large(ApplicationModel(application=new.application, schema=new.schema, roles=its_roles))
    if new.application.project_id is not None:
        yield from change_structure()
        if not (yield HOLD_PROJECT(of=new.application.project_id)):
            raise ProjectNotFound
    yield from insert_application(new.application, new.schema, new.roles)
    if new.creator is not None:
        yield from give([new.creator], new.application.created_at)


def reserve_next_id() -> Verb[int]:
    while True:
        rows = yield RESERVE_NEXT()
        if rows:  # else somebody took it meanwhile; there is a higher one by now
            return int(rows[0].application_id)


def spent_ids() -> Verb[frozenset[int]]:
    rows = yield SPENT()
    return frozenset(row.application_id for row in rows)


def reserve_id(application_id: int) -> Verb[bool]:
    """Spend a certain id; False when it was spent before."""
    return bool((yield RESERVE(application_id=application_id)))


def insert_application(one: Application, schema: ApplicationSchema, its_roles: Iterable[Role]) -> Verb[None]:
    fields = {"application_id": one.application_id, "created_at": one.created_at, "version": one.version}
    if not (yield INSERT_APPLICATION(**_columns(one), **fields)):
        raise NameTaken(one.name)
    yield from _put_service_key(one)
    yield from insert_schema(one.application_id, schema, its_roles)


def edit_application(application_id: int, change: Change[Application]) -> Verb[Application]:
    yield from hold_structure_alone()
    if not (yield HOLD_APPLICATION(of=application_id)):
        raise ApplicationNotFound
    before = yield from application(application_id)
    edited = change(before)
    after = replace(
        edited.state,
        application_id=application_id,
        created_at=before.created_at,
        version=before.version + 1,
    )
    yield from _refuse_namesake(after)
    yield UPDATE_APPLICATION(of=application_id, **_columns(after))
    if after.service_key != before.service_key:
        yield DROP_SERVICE_KEY(of=application_id)
        yield from _put_service_key(after)
    yield from _leave_project(before, after)
    if after.removed and not before.removed:
        yield from forget_versions(application_id)
    for entry in edited.records:
        yield from record(entry)
    return after


def _leave_project(before: Application, after: Application) -> Verb[None]:
    """Nobody keeps what was held on it in the project that it left; of a removed one not as a service either (R5)."""
    resource = str(after.application_id)
    if _standing(after) == _standing(before):
        return
    yield from change_structure()
    if before.project_id is not None and (after.removed or after.project_id != before.project_id):
        yield from take_from_all(ResourceKind.APPLICATION, resource, [before.project_id])
    if after.removed:
        connected = yield from connecting(after.application_id)
        yield from take_from_all(ResourceKind.SERVICE, resource, connected)


def _standing(one: Application) -> tuple[object, ...]:
    """What a structure tells of it: whose it is, and who may connect it."""
    return one.project_id, one.removed, one.is_published


def _refuse_namesake(one: Application) -> Verb[None]:
    """Names of one project are given while its row is held: none is taken between looking and writing."""
    if one.project_id is None:
        return
    if not (yield HOLD_PROJECT(of=one.project_id)):
        raise ProjectNotFound
    if not one.removed and (yield NAMESAKE(project=one.project_id, name=one.name, but=one.application_id)):
        raise NameTaken(one.name)


def _put_service_key(one: Application) -> Verb[None]:
    if one.service_key is not None:
        yield INSERT_KEY(**key_columns(one.service_key))


class ApplicationStorage(Stored):
    application = look(application)
    applications_in = look(applications_in)
    create_application = heavy_act(create_application)
    edit_application = heavy_act(edit_application)
    edit_schema = heavy_act(edit_schema)
    role_holders = survey(role_holders)
    holders_of = look(holders_of)


def _columns(one: Application) -> dict[str, object]:
    return {name: getattr(one, name) for name in _CHANGEABLE}
