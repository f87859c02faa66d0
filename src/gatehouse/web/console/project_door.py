"""The way into a project's tabs: who may not view it comes no further."""

from collections.abc import Sequence
from typing import TypeVar

from starlette.requests import Request

from gatehouse.admin.model.paging import Page, PageRequest
from gatehouse.permissions.commands.projects import ProjectCommands
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.permissions.store import ProjectStore
from gatehouse.web.console.desk import AdminRequest

T = TypeVar("T")


class ProjectLoader:
    def __init__(self, *, projects: ProjectCommands, store: ProjectStore) -> None:
        self._projects = projects
        self._store = store

    async def load(self, request: Request, admin: AdminRequest) -> ProjectModel:
        """The project with its groups. Raises NoRight."""
        project = await self._projects.get(admin.actor, request.path_params["project_id"])
        return await self._store.project(project.project_id)


def may_in_project(admin: AdminRequest, operation: Operation, model: ProjectModel) -> bool:
    """Nothing is done in a project that is removed."""
    about = GuardTarget(project_id=model.project.project_id)
    return not model.project.removed and is_open(admin.rights, operation, about)


def page_of_list(rows: Sequence[T], page_request: PageRequest) -> Page[T]:
    """A page of a list that is read whole."""
    return Page(
        rows=rows[page_request.offset : page_request.offset + page_request.size],
        total=len(rows),
        number=page_request.page,
        size=page_request.size,
    )
