"""Finding what a request names, without telling whoever has no right whether it is there (R6, checklist PA-13)."""

from gatehouse.permissions.errors import NoRight, ProjectNotFound
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.rights.rights import Rights
from gatehouse.permissions.store import ProjectStore


async def find_project(projects: ProjectStore, rights: Rights, name: str) -> ProjectModel:
    """A project by id or alias. Only an administrator hears that there is none; others may simply not see it."""
    try:
        return await projects.project(name)
    except ProjectNotFound:
        if rights.administers:
            raise
        raise NoRight(f"no project {name}") from None


async def find_live_project(projects: ProjectStore, rights: Rights, name: str) -> ProjectModel:
    """One that is not removed: nothing new is put into those."""
    found = await find_project(projects, rights, name)
    if found.project.removed:
        raise ProjectNotFound(f"project {found.project.project_id} was removed") if rights.administers else NoRight
    return found
