"""The way into a project's tabs: who may not view it comes no further."""

from collections.abc import Sequence
from typing import TypeVar

from starlette.requests import Request

from gatehouse.admin.model.paging import Page, Wanted
from gatehouse.permissions.commands.projects import Projects
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.rights.guard import About, Operation, is_open
from gatehouse.permissions.store import ProjectStore
from gatehouse.web.console.desk import Guest

T = TypeVar("T")


class ProjectDoor:
    def __init__(self, *, projects: Projects, store: ProjectStore) -> None:
        self._projects = projects
        self._store = store

    async def enter(self, request: Request, guest: Guest) -> ProjectModel:
        """The project with its groups. Raises NoRight."""
        project = await self._projects.get(guest.actor, request.path_params["project_id"])
        return await self._store.project(project.project_id)


def may(guest: Guest, operation: Operation, model: ProjectModel) -> bool:
    """Nothing is done in a project that is removed."""
    about = About(project_id=model.project.project_id)
    return not model.project.removed and is_open(guest.rights, operation, about)


def page_of(rows: Sequence[T], wanted: Wanted) -> Page[T]:
    """A page of a list that is read whole."""
    return Page(
        rows=rows[wanted.offset : wanted.offset + wanted.size],
        total=len(rows),
        number=wanted.page,
        size=wanted.size,
    )
