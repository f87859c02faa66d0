"""Reads in which applications a user may have permissions (admin/own_permissions.py)."""

from collections.abc import Mapping, Sequence

from sqlalchemy import BigInteger, Text, bindparam, func, literal_column, or_, select, union

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.admin.names import NamedApplication
from gatehouse.admin.own_permissions import ConditionalGrant
from gatehouse.permissions.documents.conditions import stored_condition
from gatehouse.permissions.model.rules import ConditionMode
from gatehouse.storage.runner import SqlStore, read, snapshot_read
from gatehouse.storage.statements import EMPTY_DOCUMENT, Row, Statement, Verb
from gatehouse.storage.tables.oauth import clients, consents
from gatehouse.storage.tables.permissions import (
    applications,
    group_members,
    groups,
    project_services,
    role_assignments,
    roles,
    scope_records,
    user_records,
)

_THIS_USER = bindparam("of", type_=Text())

APPLICATIONS_OF_USER = Statement(
    select(applications.c.application_id, applications.c.name)
    .where(
        applications.c.removed.is_(False),
        applications.c.application_id.in_(
            union(
                select(role_assignments.c.application_id).where(role_assignments.c.user_id == _THIS_USER),
                *(
                    select(table.c.application_id).where(
                        table.c.user_id == _THIS_USER,
                        or_(table.c.private_data != EMPTY_DOCUMENT, table.c.public_data != EMPTY_DOCUMENT),
                    )
                    for table in (user_records, scope_records)
                ),
                select(project_services.c.application_id)
                .join(groups, groups.c.project_id == project_services.c.project_id)
                .join(group_members, group_members.c.group_id == groups.c.group_id)
                .where(group_members.c.user_id == _THIS_USER, project_services.c.group_id == groups.c.group_id),
                select(clients.c.application_id)
                .join(consents, consents.c.client_id == clients.c.client_id)
                .where(consents.c.user_id == _THIS_USER),
            )
        ),
    )
    .order_by(
        applications.c.application_id == CENTRAL_APPLICATION,
        func.lower(applications.c.name),
        applications.c.application_id,
    )
    .limit(bindparam("most", type_=BigInteger()))
)


_MOST = bindparam("most", type_=BigInteger())
_BY_NAME = (func.lower(applications.c.name), applications.c.application_id)

# Roles and groups with conditions are few: all are read, and evaluated by the caller.
CONDITIONAL_ROLES = Statement(
    select(applications.c.application_id, applications.c.name, roles.c.condition)
    .join(applications, applications.c.application_id == roles.c.application_id)
    .where(
        roles.c.condition.is_not(None),
        roles.c.condition_mode == ConditionMode.GRANT.value,
        applications.c.removed.is_(False),
    )
    .order_by(*_BY_NAME, roles.c.role_key)
    .limit(_MOST)
)
CONDITIONAL_GROUPS = Statement(
    select(applications.c.application_id, applications.c.name, groups.c.conditions)
    .select_from(project_services)
    .join(groups, groups.c.group_id == project_services.c.group_id)
    .join(applications, applications.c.application_id == project_services.c.application_id)
    .where(
        groups.c.project_id == project_services.c.project_id,
        groups.c.conditions != literal_column("'[]'", Text),
        applications.c.removed.is_(False),
    )
    .order_by(*_BY_NAME, groups.c.group_id, project_services.c.position)
    .limit(_MOST)
)


def conditional_grants(most: int) -> Verb[Sequence[ConditionalGrant]]:
    by_roles = yield CONDITIONAL_ROLES(most=most)
    by_groups = yield CONDITIONAL_GROUPS(most=most)
    return [
        *(_conditional(row, [row.condition]) for row in by_roles),
        *(_conditional(row, [each["condition"] for each in row.conditions]) for row in by_groups),
    ]


def _conditional(row: Row, conditions: Sequence[Mapping[str, object]]) -> ConditionalGrant:
    return ConditionalGrant(
        application=NamedApplication(application_id=row.application_id, name=row.name),
        conditions=tuple(stored_condition(one) for one in conditions),
    )


def applications_of_user(user_id: str, most: int) -> Verb[Sequence[NamedApplication]]:
    return [NamedApplication(**row._asdict()) for row in (yield APPLICATIONS_OF_USER(of=user_id, most=most))]


class OwnPermissionsStorage(SqlStore):
    applications_of_user = read(applications_of_user)
    conditional_grants = snapshot_read(conditional_grants)
