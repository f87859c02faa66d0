"""Who owns an application, as pages of sign-in tell it."""

from msgspec import Struct

from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.store import ApplicationStore, ProjectStore


class ApplicationOwners(Struct, kw_only=True, eq=False):
    """Tells who owns an application."""

    applications: ApplicationStore
    projects: ProjectStore

    async def owner(self, application_id: int) -> str:
        """Return the title of its project; empty when it belongs to none."""
        try:
            application = await self.applications.application(application_id)
            if application.project_id is None:
                return ""
            return (await self.projects.project(application.project_id)).project.title
        except NotFound:
            return ""
