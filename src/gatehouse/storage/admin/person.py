"""Reads what the console shows of one person (admin/model/people.py)."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Select, Table, Text, and_, bindparam, func, or_, select

from gatehouse.accounts.model import ADMINISTRATOR, CENTRAL
from gatehouse.admin.model.names import NamedApplication
from gatehouse.admin.model.paging import Page, Wanted
from gatehouse.admin.model.people import (
    ListedIn,
    PersonBreaks,
    Side,
    Standing,
    Written,
    WrittenEntries,
    WrittenRole,
)
from gatehouse.audit.events import Event
from gatehouse.audit.model import Record
from gatehouse.storage.admin.searching import Listing
from gatehouse.storage.permissions.held import UNEXPIRED
from gatehouse.storage.permissions.owners import OWNED, owners_of
from gatehouse.storage.statements import EMPTY, AnyOf, Row, Statement, Verb
from gatehouse.storage.tables.accounts import sessions
from gatehouse.storage.tables.applications import applications, roles
from gatehouse.storage.tables.audit import audit_events
from gatehouse.storage.tables.oauth import grants
from gatehouse.storage.tables.projects import group_members, groups, projects, service_accounts
from gatehouse.storage.tables.user_records import role_assignments, scope_records, user_records

OF: Final = bindparam("of", type_=Text())
_NOW: Final = bindparam("now", type_=BigInteger())

STANDING = Statement(
    select(
        select(func.max(sessions.c.seen_at)).where(sessions.c.user_id == OF).scalar_subquery().label("seen_at"),
        select(func.max(audit_events.c.at))
        .where(
            audit_events.c.subject == OF,
            or_(audit_events.c.event == Event.SIGNED_IN.value, audit_events.c.event == Event.LOGGED_IN.value),
        )
        .scalar_subquery()
        .label("signed_in_at"),
        select(func.count())
        .where(
            role_assignments.c.application_id == CENTRAL,
            role_assignments.c.role_key == ADMINISTRATOR,
            role_assignments.c.user_id == OF,
            role_assignments.c.project_id == "",
            UNEXPIRED,
        )
        .scalar_subquery()
        .label("administers"),
        select(service_accounts.c.project_id)
        .where(service_accounts.c.user_id == OF)
        .scalar_subquery()
        .label("project_id"),
    )
)
APPLICATIONS = Statement(
    select(applications.c.application_id, applications.c.name)
    .where(applications.c.removed.is_(False))
    .order_by(applications.c.application_id != CENTRAL, func.lower(applications.c.name))
)
GROUPS = Statement(
    select(
        groups.c.group_id,
        groups.c.title.label("group"),
        projects.c.project_id,
        projects.c.title.label("project"),
    )
    .join(group_members, group_members.c.group_id == groups.c.group_id)
    .join(projects, projects.c.project_id == groups.c.project_id)
    .where(group_members.c.user_id == OF)
    .order_by(projects.c.title, groups.c.title)
)


def _placed(table: Table, *columns: ColumnElement[Any]) -> Select[Any]:
    """What is written at a place, with the names of its application and project."""
    return (
        select(
            table.c.application_id,
            applications.c.name.label("application"),
            table.c.project_id,
            func.coalesce(projects.c.title, "").label("project"),
            table.c.resource_kind,
            table.c.resource_id,
            *columns,
        )
        .join(applications, applications.c.application_id == table.c.application_id)
        .outerjoin(projects, projects.c.project_id == table.c.project_id)
        .where(table.c.user_id == OF)
        .order_by(applications.c.name, table.c.application_id, table.c.project_id, table.c.resource_kind)
    )


ROLES = Statement(
    _placed(
        role_assignments,
        roles.c.name.label("role"),
        role_assignments.c.expired.label("ends_at"),
        role_assignments.c.ttl,
    )
    .join(
        roles,
        and_(
            roles.c.application_id == role_assignments.c.application_id,
            roles.c.role_key == role_assignments.c.role_key,
        ),
    )
    .order_by(role_assignments.c.resource_id, role_assignments.c.position)
)
ENTRIES_BELOW = Statement(
    _placed(scope_records)
    .where(or_(scope_records.c.private_data != EMPTY, scope_records.c.public_data != EMPTY))
    .order_by(scope_records.c.resource_id)
)
ENTRIES = Statement(
    select(user_records.c.application_id, applications.c.name.label("application"))
    .join(applications, applications.c.application_id == user_records.c.application_id)
    .where(
        user_records.c.user_id == OF,
        or_(user_records.c.private_data != EMPTY, user_records.c.public_data != EMPTY),
    )
    .order_by(applications.c.name, user_records.c.application_id)
)


def _records(*where: ColumnElement[bool]) -> Listing:
    return Listing(
        select(audit_events).where(*where).order_by(audit_events.c.at.desc(), audit_events.c.record_id),
        counted=select(func.count().label("total")).select_from(audit_events).where(*where),
        searched=False,
    )


ACTIVITY: Final = {
    Side.ABOUT: _records(audit_events.c.subject == OF),
    Side.BY: _records(audit_events.c.actor == OF, audit_events.c.actor != audit_events.c.subject),
}
BREAKS = Statement(
    select(
        select(func.count()).where(role_assignments.c.user_id == OF, UNEXPIRED).scalar_subquery().label("roles"),
        select(func.count()).where(group_members.c.user_id == OF).scalar_subquery().label("groups"),
        select(func.count(grants.c.client_id.distinct()))
        .where(grants.c.user_id == OF, grants.c.revoked_at == 0, grants.c.ends_at > _NOW)
        .scalar_subquery()
        .label("clients"),
        select(func.count())
        .where(sessions.c.user_id == OF, sessions.c.ends_at > _NOW, sessions.c.idle_ends_at > _NOW)
        .scalar_subquery()
        .label("sessions"),
    )
)
TITLES = Statement(select(projects.c.title).where(AnyOf(projects.c.project_id, "ids")).order_by(projects.c.title))


def standing(user_id: str, now: int) -> Verb[Standing]:
    (row,) = yield STANDING(of=user_id, now=now)
    return Standing(
        seen_at=max(row.seen_at or 0, row.signed_in_at or 0),
        administers=bool(row.administers),
        project_id=row.project_id or "",
    )


def applications_by_name() -> Verb[Sequence[NamedApplication]]:
    return [NamedApplication(**row._asdict()) for row in (yield APPLICATIONS())]


def written(user_id: str) -> Verb[Written]:
    given = yield ROLES(of=user_id)
    at_root = yield ENTRIES(of=user_id)
    below = yield ENTRIES_BELOW(of=user_id)
    listed = yield GROUPS(of=user_id)
    return Written(
        roles=[WrittenRole(**row._asdict()) for row in given],
        entries=[*map(_at_root, at_root), *(WrittenEntries(**row._asdict()) for row in below)],
        groups=[ListedIn(**row._asdict()) for row in listed],
    )


def _at_root(row: Row) -> WrittenEntries:
    return WrittenEntries(**row._asdict(), project_id="", project="", resource_kind="", resource_id="")


def activity(user_id: str, side: Side, wanted: Wanted) -> Verb[Page[Record]]:
    return ACTIVITY[side].page(wanted, lambda row: Record(**row._asdict()), of=user_id)


def breaks(user_id: str, now: int) -> Verb[PersonBreaks]:
    (row,) = yield BREAKS(of=user_id, now=now)
    owned = {one.project_id for one in (yield OWNED(user_id=user_id, now=now))}
    owners = yield from owners_of(owned, now)
    alone = sorted(project_id for project_id in owned if owners.get(project_id, frozenset()) <= {user_id})
    titles = [one.title for one in (yield TITLES(ids=alone))]
    return PersonBreaks(**row._asdict(), sole_owner_of=titles)
