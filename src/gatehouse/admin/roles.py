"""Roles of every application as the console lists them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from sqlalchemy import BigInteger, Boolean, bindparam, distinct, func, or_, select

from gatehouse.admin.names import NamedApplication
from gatehouse.admin.paging import Page, PagedList, PageRequest, contains_search
from gatehouse.admin.visibility import applications_in
from gatehouse.fields.derive import copy_as
from gatehouse.permissions.documents.conditions import stored_condition
from gatehouse.permissions.model.condition import Condition
from gatehouse.permissions.model.role import ConditionMode
from gatehouse.storage.permissions.row_readers import HOLDS_SEAT
from gatehouse.storage.runner import SqlStore, read, snapshot_read
from gatehouse.storage.statements import InNumberList, Row, Statement, Verb
from gatehouse.storage.tables.permissions import applications, role_assignments, roles
from gatehouse.storage.tables.projects import project_services, projects


class RoleVisibility(Struct, frozen=True, kw_only=True):
    """The applications whose roles the viewer sees."""

    everything: bool = False
    named: frozenset[int] = frozenset()  # names and descriptions only
    readable: frozenset[int] = frozenset()  # everything
    editable: frozenset[int] = frozenset()

    def may_read(self, application_id: int) -> bool:
        return self.everything or application_id in self.readable

    @property
    def may_save(self) -> bool:
        return self.everything or bool(self.editable)


class RoleListItem(Struct, frozen=True, kw_only=True):
    application_id: int
    application: str
    name: str
    description: str
    protected: bool
    default: bool
    condition: Condition | None
    condition_mode: ConditionMode
    user_limit: int
    holders: int  # people it is assigned to now, anywhere in the application
    readable: bool  # whether the viewer sees more than name and description


MAX_APPLICATIONS: Final = 1_000
_ALL: Final = bindparam("everything", type_=Boolean())
_ONE_APPLICATION: Final = bindparam("one", type_=BigInteger())
_WHERE: Final = (
    applications.c.application_id == roles.c.application_id,
    applications.c.removed.is_(False),
    or_(_ALL, InNumberList(roles.c.application_id, "applications")),
    or_(_ONE_APPLICATION == 0, roles.c.application_id == _ONE_APPLICATION),
    contains_search(roles.c.name, roles.c.description, applications.c.name),
)
_COUNT_HOLDERS: Final = select(func.count(distinct(role_assignments.c.user_id))).where(
    role_assignments.c.application_id == roles.c.application_id,
    role_assignments.c.role_key == roles.c.role_key,
    HOLDS_SEAT,
)

ROLE_LIST = PagedList(
    select(
        roles.c.application_id,
        applications.c.name.label("application"),
        roles.c.name,
        roles.c.description,
        roles.c.protected,
        roles.c.is_default,
        roles.c.condition,
        roles.c.condition_mode,
        roles.c.user_limit,
        _COUNT_HOLDERS.scalar_subquery().label("holders"),
    )
    .where(*_WHERE)
    .order_by(applications.c.name, roles.c.application_id, roles.c.role_key),
    counted=select(func.count().label("total")).select_from(roles).join(applications, _WHERE[0]).where(*_WHERE[1:]),
)
APPLICATIONS = Statement(
    lambda: (
        select(applications.c.application_id, applications.c.name)
        .where(
            applications.c.removed.is_(False), or_(_ALL, InNumberList(applications.c.application_id, "applications"))
        )
        .order_by(applications.c.name, applications.c.application_id)
        .limit(MAX_APPLICATIONS)
    )
)


def list_roles(
    visibility: RoleVisibility, page_request: PageRequest, *, application_id: int, now: int
) -> Verb[Page[RoleListItem]]:
    """Return a page of roles by application and name; an `application_id` of 0 means all applications."""
    return ROLE_LIST.read_page(
        page_request,
        partial(_list_item, visibility),
        everything=visibility.everything,
        applications=sorted(visibility.named),
        one=application_id,
        row_params={"now": now},
    )


def _list_item(visibility: RoleVisibility, row: Row) -> RoleListItem:
    return copy_as(
        RoleListItem,
        row,
        default=row.is_default,
        condition=None if row.condition is None else stored_condition(row.condition),
        condition_mode=ConditionMode(row.condition_mode),
        readable=visibility.may_read(row.application_id),
    )


def role_applications(visibility: RoleVisibility, *, editable: bool) -> Verb[Sequence[NamedApplication]]:
    """Return the applications whose roles the viewer sees, or may edit, by name; the first thousand."""
    among = visibility.editable if editable else visibility.named
    rows = yield APPLICATIONS(everything=visibility.everything, applications=sorted(among))
    return [NamedApplication(**row._asdict()) for row in rows]


_GRANTS_IN_LIVE_PROJECTS: Final = (
    project_services.c.project_id == projects.c.project_id,
    project_services.c.application_id == bindparam("application", type_=BigInteger()),
    project_services.c.group_id != "",
    projects.c.removed.is_(False),
)
GRANTED_ROLES: Final = Statement(
    lambda: select(project_services.c.project_id, project_services.c.roles).where(*_GRANTS_IN_LIVE_PROJECTS)
)
GRANTING_PROJECTS: Final = Statement(
    lambda: select(projects.c.project_id, projects.c.title).distinct().where(*_GRANTS_IN_LIVE_PROJECTS)
)
TITLE_OF_PROJECT: Final = Statement(lambda: select(projects.c.title).where(projects.c.project_id == bindparam("of")))


def count_granting_projects(application_id: int, role_key: str) -> Verb[int]:
    """How many projects give the role to one of their groups, or take it from one."""
    rows = yield GRANTED_ROLES(application=application_id)
    return len({row.project_id for row in rows if role_key in row.roles})


def projects_of_application(application_id: int, home: str) -> Verb[Mapping[str, str]]:
    """Return titles by ID: of the project that the application belongs to, and of those that grant roles of it."""
    rows = yield GRANTING_PROJECTS(application=application_id)
    own = yield TITLE_OF_PROJECT(of=home)
    return dict(sorted({row.project_id: row.title for row in rows}.items() | {(home, row.title) for row in own}))


class RoleListStore(SqlStore):
    roles = snapshot_read(list_roles)
    count_granting_projects = snapshot_read(count_granting_projects)
    projects_of_application = snapshot_read(projects_of_application)
    applications = read(role_applications)
    applications_in_projects = read(applications_in)
