"""Reads what somebody sees (admin/model/sight.py)."""

from collections.abc import Collection

from sqlalchemy import bindparam, select

from gatehouse.storage.runner import Stored, look
from gatehouse.storage.statements import EMPTY, AnyOf, Statement, Verb
from gatehouse.storage.tables.applications import applications
from gatehouse.storage.tables.user_records import user_records

OWN_APPLICATIONS = Statement(
    select(user_records.c.application_id).where(
        user_records.c.user_id == bindparam("user_id"), user_records.c.secret_data != EMPTY
    )
)

IN_PROJECTS = Statement(
    select(applications.c.application_id).where(
        AnyOf(applications.c.project_id, "projects"), applications.c.removed.is_(False)
    )
)


def own_applications(user_id: str) -> Verb[Collection[int]]:
    return [row.application_id for row in (yield OWN_APPLICATIONS(user_id=user_id))]


def applications_in(projects: Collection[str]) -> Verb[Collection[int]]:
    return [row.application_id for row in (yield IN_PROJECTS(projects=sorted(projects)))]


class SightStorage(Stored):
    own_applications = look(own_applications)
    applications_in = look(applications_in)
