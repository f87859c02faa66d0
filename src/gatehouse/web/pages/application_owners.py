"""Who owns an application, and what applications and projects are called, as pages of sign-in tell it."""

from msgspec import Struct

from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.store import ApplicationStore, ProjectStore


class ApplicationOwners(Struct, kw_only=True, eq=False):
    applications: ApplicationStore
    projects: ProjectStore

    async def application_name(self, application_id: int) -> str:
        """Return its name; its ID when it is gone."""
        try:
            return (await self.applications.application(application_id)).name
        except NotFound:
            return str(application_id)

    async def project_title(self, project_id: str) -> str:
        """Return its title; its ID when it is gone."""
        try:
            return (await self.projects.project(project_id)).project.title
        except NotFound:
            return project_id

    async def owner(self, application_id: int) -> str:
        """Return the title of its project; empty when it belongs to none."""
        try:
            application = await self.applications.application(application_id)
            if application.project_id is None:
                return ""
            return (await self.projects.project(application.project_id)).project.title
        except NotFound:
            return ""
