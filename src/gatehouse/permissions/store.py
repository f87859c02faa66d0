"""What the permission model needs kept."""

from collections.abc import Sequence
from typing import Protocol

from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.schema import ApplicationSchema


class PermissionStore(Protocol):
    async def install(self, application: Application, schema: ApplicationSchema, roles: Sequence[Role]) -> None:
        """Keep application 1 with its schema and roles unless it is there; one atomic act, repeatable."""

    async def root_roles(self, application_id: int, user_id: str, now: int) -> Sequence[str]:
        """Names of the roles the user holds at the root of the application, expired ones left out."""
