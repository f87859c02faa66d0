"""Reads in which applications somebody may hold something (admin/own_permissions.py)."""

from collections.abc import Sequence

from sqlalchemy import BigInteger, Text, bindparam, func, or_, select, union

from gatehouse.accounts.model import CENTRAL
from gatehouse.admin.model.names import NamedApplication
from gatehouse.storage.runner import Stored, look
from gatehouse.storage.statements import EMPTY, Statement, Verb
from gatehouse.storage.tables.applications import applications
from gatehouse.storage.tables.oauth import clients, consents
from gatehouse.storage.tables.projects import group_members, groups, project_services
from gatehouse.storage.tables.user_records import role_assignments, scope_records, user_records

_OF = bindparam("of", type_=Text())

CONCERNED = Statement(
    select(applications.c.application_id, applications.c.name)
    .where(
        applications.c.removed.is_(False),
        applications.c.application_id.in_(
            union(
                select(role_assignments.c.application_id).where(role_assignments.c.user_id == _OF),
                *(
                    select(table.c.application_id).where(
                        table.c.user_id == _OF, or_(table.c.private_data != EMPTY, table.c.public_data != EMPTY)
                    )
                    for table in (user_records, scope_records)
                ),
                select(project_services.c.application_id)
                .join(groups, groups.c.project_id == project_services.c.project_id)
                .join(group_members, group_members.c.group_id == groups.c.group_id)
                .where(group_members.c.user_id == _OF, project_services.c.group_id == groups.c.group_id),
                select(clients.c.application_id)
                .join(consents, consents.c.client_id == clients.c.client_id)
                .where(consents.c.user_id == _OF),
            )
        ),
    )
    .order_by(
        applications.c.application_id == CENTRAL, func.lower(applications.c.name), applications.c.application_id
    )
    .limit(bindparam("most", type_=BigInteger()))
)


def concerned(user_id: str, most: int) -> Verb[Sequence[NamedApplication]]:
    return [NamedApplication(**row._asdict()) for row in (yield CONCERNED(of=user_id, most=most))]


class ConcernStorage(Stored):
    concerned = look(concerned)
