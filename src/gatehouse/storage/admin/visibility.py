"""Reads the applications a user sees (admin/visibility.py)."""

from collections.abc import Collection

from sqlalchemy import bindparam, select

from gatehouse.storage.runner import SqlStore, read
from gatehouse.storage.statements import EMPTY_DOCUMENT, InStringList, Statement, Verb
from gatehouse.storage.tables.permissions import applications, user_records

APPLICATIONS_WITH_OWN_SECRETS = Statement(
    select(user_records.c.application_id).where(
        user_records.c.user_id == bindparam("user_id"), user_records.c.secret_data != EMPTY_DOCUMENT
    )
)

APPLICATIONS_IN_PROJECTS = Statement(
    select(applications.c.application_id).where(
        InStringList(applications.c.project_id, "projects"), applications.c.removed.is_(False)
    )
)


def own_applications(user_id: str) -> Verb[Collection[int]]:
    return [row.application_id for row in (yield APPLICATIONS_WITH_OWN_SECRETS(user_id=user_id))]


def applications_in(projects: Collection[str]) -> Verb[Collection[int]]:
    return [row.application_id for row in (yield APPLICATIONS_IN_PROJECTS(projects=sorted(projects)))]


class VisibilityStorage(SqlStore):
    own_applications = read(own_applications)
    applications_in = read(applications_in)
