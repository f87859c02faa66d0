"""Which applications are live: those that are not removed, in a project that is not removed or in none (R5)."""

from sqlalchemy import ColumnElement, Exists, and_, exists, or_

from gatehouse.storage.tables.applications import applications
from gatehouse.storage.tables.projects import projects

APPLICATIONS_WITH_PROJECT = applications.outerjoin(projects, projects.c.project_id == applications.c.project_id)
IS_LIVE_APPLICATION = and_(
    applications.c.removed.is_(False), or_(projects.c.removed.is_(None), projects.c.removed.is_(False))
)


def belongs_to_live_application(application_id: ColumnElement[int]) -> Exists:
    """Whether the row with this column belongs to a live one; by keys alone, so it adds no round trip and no scan."""
    return (
        exists()
        .select_from(APPLICATIONS_WITH_PROJECT)
        .where(applications.c.application_id == application_id, IS_LIVE_APPLICATION)
    )
