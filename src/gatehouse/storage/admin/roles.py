"""Lists roles (admin/model/roles.py)."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from sqlalchemy import BigInteger, Boolean, bindparam, distinct, func, or_, select

from gatehouse.admin.model.names import NamedApplication
from gatehouse.admin.model.paging import Page, Wanted
from gatehouse.admin.model.roles import RoleLine, RoleSight
from gatehouse.permissions.documents.conditions import stored_condition
from gatehouse.permissions.model.role import ConditionMode
from gatehouse.storage.admin.searching import Listing, found_in
from gatehouse.storage.permissions.held import HOLDS_SEAT
from gatehouse.storage.runner import Stored, look, survey
from gatehouse.storage.statements import AnyOf, OneOfNumbers, Row, Statement, Verb
from gatehouse.storage.tables.applications import applications, roles
from gatehouse.storage.tables.user_records import role_assignments

APPLICATIONS_MOST: Final = 1_000
_ALL: Final = bindparam("everything", type_=Boolean())
_ONE: Final = bindparam("one", type_=BigInteger())
_WHERE: Final = (
    applications.c.application_id == roles.c.application_id,
    applications.c.removed.is_(False),
    or_(_ALL, OneOfNumbers(roles.c.application_id, "applications")),
    or_(_ONE == 0, roles.c.application_id == _ONE),
    found_in(roles.c.name, roles.c.description, applications.c.name),
)
_HOLDERS: Final = select(func.count(distinct(role_assignments.c.user_id))).where(
    role_assignments.c.application_id == roles.c.application_id,
    role_assignments.c.role_key == roles.c.role_key,
    HOLDS_SEAT,
)

LINES = Listing(
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
        _HOLDERS.scalar_subquery().label("holders"),
    )
    .where(*_WHERE)
    .order_by(applications.c.name, roles.c.application_id, roles.c.role_key),
    counted=select(func.count().label("total")).select_from(roles).join(applications, _WHERE[0]).where(*_WHERE[1:]),
)
APPLICATIONS = Statement(
    select(applications.c.application_id, applications.c.name)
    .where(applications.c.removed.is_(False), or_(_ALL, OneOfNumbers(applications.c.application_id, "applications")))
    .order_by(applications.c.name, applications.c.application_id)
    .limit(APPLICATIONS_MOST)
)
OF_PROJECTS = Statement(
    select(applications.c.application_id).where(
        applications.c.removed.is_(False), AnyOf(applications.c.project_id, "projects")
    )
)


def listed(sight: RoleSight, wanted: Wanted, *, application_id: int, now: int) -> Verb[Page[RoleLine]]:
    return LINES.page(
        wanted,
        partial(_line, sight),
        everything=sight.everything,
        applications=sorted(sight.named),
        one=application_id,
        beside={"now": now},
    )


def _line(sight: RoleSight, row: Row) -> RoleLine:
    return RoleLine(
        application_id=row.application_id,
        application=row.application,
        name=row.name,
        description=row.description,
        protected=row.protected,
        default=row.is_default,
        condition=None if row.condition is None else stored_condition(row.condition),
        condition_mode=ConditionMode(row.condition_mode),
        user_limit=row.user_limit,
        holders=row.holders,
        readable=sight.reads(row.application_id),
    )


def named(sight: RoleSight, *, editable: bool) -> Verb[Sequence[NamedApplication]]:
    among = sight.editable if editable else sight.named
    rows = yield APPLICATIONS(everything=sight.everything, applications=sorted(among))
    return [NamedApplication(**row._asdict()) for row in rows]


def applications_of(project_ids: Sequence[str]) -> Verb[Sequence[int]]:
    return [row.application_id for row in (yield OF_PROJECTS(projects=sorted(project_ids)))]


class RoleListStorage(Stored):
    roles = survey(listed)
    applications = look(named)
    applications_of = look(applications_of)
