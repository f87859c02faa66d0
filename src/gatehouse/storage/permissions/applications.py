"""Stores applications with their schemas and roles (ApplicationStore)."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from msgspec.structs import replace
from sqlalchemy import bindparam, case, delete, distinct, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import AuditRecord
from gatehouse.images.model import StoredImage, application_logo_owner
from gatehouse.permissions.documents.limits import refuse_too_large
from gatehouse.permissions.errors import ApplicationNotFound, NameTaken, ProjectNotFound, ResourceTaken, SiteTaken
from gatehouse.permissions.model.application import FIRST_GENERATED_ID, Application, KeySource
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import ResourceKind
from gatehouse.permissions.model.schema import ApplicationSchema
from gatehouse.permissions.store import Change, NewApplication
from gatehouse.storage.audit import add_audit_records
from gatehouse.storage.images import put_image, remove_image
from gatehouse.storage.permissions.connections import connecting_projects
from gatehouse.storage.permissions.record_checks import count_holders_of_roles, count_role_holders
from gatehouse.storage.permissions.row_readers import APPLICATION_COLUMNS, application_from_row, key_columns
from gatehouse.storage.permissions.schemas import RolesRemoved, delete_versions, edit_schema, insert_schema
from gatehouse.storage.permissions.structure import begin_project_change, lock_structure, touch_models
from gatehouse.storage.permissions.user_records import add_holdings, drop_holdings_on
from gatehouse.storage.runner import SqlStore, heavy_write, read, snapshot_read
from gatehouse.storage.statements import InStringList, Statement, Verb
from gatehouse.storage.tables.permissions import application_ids, application_keys, applications, protected_sites
from gatehouse.storage.tables.projects import projects

_HIGHEST = func.coalesce(func.max(application_ids.c.application_id), 0)
_NEXT = case((_HIGHEST < FIRST_GENERATED_ID, literal(FIRST_GENERATED_ID)), else_=_HIGHEST + 1)
RESERVE_NEXT_ID = Statement(  # without a WHERE, SQLite reads ON as part of a join
    lambda: (
        insert(application_ids)
        .from_select(["application_id"], select(_NEXT).where(application_ids.c.application_id > 0))
        .on_conflict_do_nothing()
        .returning(application_ids.c.application_id)
    )
)
USED_IDS = Statement(lambda: select(application_ids.c.application_id))
RESERVE_ID = Statement(
    lambda: (
        insert(application_ids)
        .values(application_id=bindparam("application_id"))
        .on_conflict_do_nothing()
        .returning(application_ids.c.application_id)
    )
)

_FIXED_COLUMNS: Final = frozenset({"application_id", "created_at", "version"})
_CHANGEABLE_COLUMNS: Final = tuple(column.name for column in applications.c if column.name not in _FIXED_COLUMNS)
_THIS_APPLICATION = applications.c.application_id == bindparam("of")

INSERT_APPLICATION = Statement(
    lambda: insert(applications).on_conflict_do_nothing().returning(applications.c.application_id)
)
UPDATE_APPLICATION = Statement(
    lambda: (
        update(applications)
        .where(_THIS_APPLICATION)
        .values({name: bindparam(name) for name in _CHANGEABLE_COLUMNS} | {"version": applications.c.version + 1})
    )
)
LOCK_APPLICATION = Statement(lambda: select(applications.c.application_id).where(_THIS_APPLICATION).with_for_update())
LOCK_PROJECT = Statement(
    lambda: select(projects.c.removed).where(projects.c.project_id == bindparam("of")).with_for_update()
)
FIND_SAME_NAME = Statement(
    lambda: select(applications.c.application_id).where(
        applications.c.project_id == bindparam("project"),
        applications.c.name == bindparam("name"),
        applications.c.removed.is_(False),
        applications.c.application_id != bindparam("but"),
    )
)
# Compared without case and final slash: two APIs that differ in nothing else would be taken for each other.
FIND_SAME_RESOURCE = Statement(
    lambda: select(applications.c.removed, applications.c.project_id).where(
        func.lower(func.rtrim(applications.c.api_resource, "/")) == bindparam("resource"),
        applications.c.application_id != bindparam("but"),
    )
)
FIND_ERASED_RESOURCE = Statement(
    lambda: select(application_ids.c.application_id).where(
        func.lower(func.rtrim(application_ids.c.api_resource, "/")) == bindparam("resource")
    )
)
APPLICATION_BY_ID = Statement(lambda: select(*APPLICATION_COLUMNS).where(_THIS_APPLICATION))
APPLICATIONS_IN_PROJECTS = Statement(
    lambda: (
        select(*APPLICATION_COLUMNS)
        .where(InStringList(applications.c.project_id, "projects"), applications.c.removed.is_(False))
        .order_by(applications.c.application_id)
    )
)
INSERT_KEY = Statement(lambda: insert(application_keys))
DROP_SERVICE_KEY = Statement(
    lambda: delete(application_keys).where(
        application_keys.c.application_id == bindparam("of"),
        application_keys.c.source == KeySource.SERVICE_META.value,
    )
)
INSERT_SITE = Statement(lambda: insert(protected_sites).on_conflict_do_nothing().returning(protected_sites.c.origin))
COUNT_APPLICATIONS_WITH_SITES = Statement(
    lambda: select(func.count(distinct(protected_sites.c.application_id)).label("total"))
)
DROP_SITES = Statement(lambda: delete(protected_sites).where(protected_sites.c.application_id == bindparam("of")))


def application_by_id(application_id: int) -> Verb[Application]:
    rows = yield APPLICATION_BY_ID(of=application_id)
    if not rows:
        raise ApplicationNotFound
    return application_from_row(rows[0])


def applications_in(project_ids: Collection[str]) -> Verb[Sequence[Application]]:
    rows = yield APPLICATIONS_IN_PROJECTS(projects=sorted(project_ids))
    return [application_from_row(row) for row in rows]


def create_application(new: Callable[[int], tuple[NewApplication, Sequence[AuditRecord]]]) -> Verb[Application]:
    yield from lock_structure()
    made, entries = new((yield from reserve_next_id()))
    yield from add_application(made)
    yield from _put_logo(made.application, made.logo, made.application.created_at)
    yield from add_audit_records(entries)
    return made.application


def add_application(new: NewApplication) -> Verb[None]:
    """Insert an application; part of verbs that create one. They have locked the structure and reserved the id.

    Raises NameTaken, ProjectNotFound, ApplicationTooLarge.
    """
    its_roles = {role.key: role for role in new.roles}
    refuse_too_large(ApplicationModel(application=new.application, schema=new.schema, roles=its_roles))
    if new.application.project_id is not None:
        yield from begin_project_change(new.application.project_id)
    yield from insert_application(new.application, new.schema, new.roles)
    if new.creator is not None:
        yield from add_holdings([new.creator], new.application.created_at)


def reserve_next_id() -> Verb[int]:
    while True:
        rows = yield RESERVE_NEXT_ID()
        if rows:  # otherwise another transaction took it, and the highest id is higher now
            return int(rows[0].application_id)


def used_application_ids() -> Verb[frozenset[int]]:
    rows = yield USED_IDS()
    return frozenset(row.application_id for row in rows)


def reserve_id(application_id: int) -> Verb[bool]:
    """Reserve this id; False when it was used before."""
    return bool((yield RESERVE_ID(application_id=application_id)))


def insert_application(application: Application, schema: ApplicationSchema, its_roles: Iterable[Role]) -> Verb[None]:
    yield from _refuse_taken_resource(application)
    fields = {
        "application_id": application.application_id,
        "created_at": application.created_at,
        "version": application.version,
    }
    if not (yield INSERT_APPLICATION(**_application_columns(application), **fields)):
        raise NameTaken(application.name)
    yield from _put_service_key(application)
    yield from _put_sites(application)
    yield from insert_schema(application.application_id, schema, its_roles)


def edit_application(
    application_id: int, change: Change[Application], logo: StoredImage | None = None
) -> Verb[Application]:
    yield from lock_structure()
    if not (yield LOCK_APPLICATION(of=application_id)):
        raise ApplicationNotFound
    before = yield from application_by_id(application_id)
    edited = change(before)
    after = replace(
        edited.state,
        application_id=application_id,
        created_at=before.created_at,
        version=before.version + 1,
        protected_sites={} if edited.state.removed else edited.state.protected_sites,
        logo="" if edited.state.removed else edited.state.logo,
    )
    yield from _refuse_taken_name(after)
    yield from _refuse_taken_resource(after, before)
    yield UPDATE_APPLICATION(of=application_id, **_application_columns(after))
    if after.service_key != before.service_key:
        yield DROP_SERVICE_KEY(of=application_id)
        yield from _put_service_key(after)
    if after.protected_sites != before.protected_sites:
        yield DROP_SITES(of=application_id)
        yield from _put_sites(after)
    if after.logo != before.logo or logo is not None:
        yield from _put_logo(after, logo, max((record.at for record in edited.records), default=0))
    yield from _drop_holdings_left_behind(before, after)
    if after.removed and not before.removed:
        yield from delete_versions(application_id)
    yield from add_audit_records(edited.records)
    return after


def _drop_holdings_left_behind(before: Application, after: Application) -> Verb[None]:
    """Delete what people hold on it in the project it left; if it was removed, on the service too (R5)."""
    resource = str(after.application_id)
    if _structure_state(after) == _structure_state(before):
        return
    yield from touch_models(
        after.application_id,
        {project_id for project_id in (before.project_id, after.project_id) if project_id is not None},
    )
    if before.project_id is not None and (after.removed or after.project_id != before.project_id):
        yield from drop_holdings_on(ResourceKind.APPLICATION, resource, [before.project_id])
    if after.removed:
        connected = yield from connecting_projects(after.application_id)
        yield from drop_holdings_on(ResourceKind.SERVICE, resource, connected)


def _structure_state(application: Application) -> tuple[object, ...]:
    """Return the application's part of the structure: its project, and who may connect it."""
    return application.project_id, application.removed, application.is_published


def _refuse_taken_name(application: Application) -> Verb[None]:
    """Refuse a name that is taken in the project.

    Its row is locked, so that the answer stays true until the write.
    """
    if application.project_id is None:
        return
    if not (yield LOCK_PROJECT(of=application.project_id)):
        raise ProjectNotFound
    if not application.removed and (
        yield FIND_SAME_NAME(project=application.project_id, name=application.name, but=application.application_id)
    ):
        raise NameTaken(application.name)


def _refuse_taken_resource(application: Application, before: Application | None = None) -> Verb[None]:
    """Refuse an API resource of another application; the structure is locked until the commit.

    That of a removed application stays with its project: people may have allowed clients access to it. An API that
    was declared when this was possible is not looked at until it changes.
    """
    if application.api_resource is None or application.removed:
        return
    if before is not None and (before.api, before.project_id) == (application.api, application.project_id):
        return
    key = application.api_resource.rstrip("/").lower()
    others = yield FIND_SAME_RESOURCE(resource=key, but=application.application_id)
    own_project = [other.removed and other.project_id == application.project_id is not None for other in others]
    if not all(own_project) or (yield FIND_ERASED_RESOURCE(resource=key)):
        raise ResourceTaken(application.api_resource)


def _put_logo(application: Application, logo: StoredImage | None, now: int) -> Verb[None]:
    """Store the new logo, if it is the one that the application names; delete the image of one that names none."""
    if not application.logo:
        yield from remove_image(application_logo_owner(application.application_id))
    elif logo is not None:
        yield from put_image(application_logo_owner(application.application_id), logo, now)


def _put_service_key(application: Application) -> Verb[None]:
    if application.service_key is not None:
        yield INSERT_KEY(**key_columns(application.service_key))


def _put_sites(application: Application) -> Verb[None]:
    """Insert the sites. Raises SiteTaken."""
    for origin, rule in application.protected_sites.items():
        if not (yield INSERT_SITE(origin=origin, application_id=application.application_id, rule=rule)):
            raise SiteTaken(origin)


def count_applications_with_sites() -> Verb[int]:
    (row,) = yield COUNT_APPLICATIONS_WITH_SITES()
    return int(row.total)


class ApplicationStorage(SqlStore):
    application = read(application_by_id)
    applications_in = read(applications_in)
    create_application = heavy_write(create_application)
    edit_application = heavy_write(edit_application)
    _edit_schema = heavy_write(edit_schema)
    count_applications_with_sites = read(count_applications_with_sites)
    count_role_holders = snapshot_read(count_role_holders)
    count_holders_of_roles = read(count_holders_of_roles)

    async def edit_schema(self, application_id: int, change: Change[ApplicationModel]) -> ApplicationModel:
        try:
            return await self._edit_schema(application_id, change)
        except RolesRemoved:
            return await self._edit_schema(application_id, change, may_remove=True)


def _application_columns(application: Application) -> dict[str, object]:
    return {name: getattr(application, name) for name in _CHANGEABLE_COLUMNS}
