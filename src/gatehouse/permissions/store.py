"""What the permission model needs kept."""

from collections.abc import Sequence
from typing import Protocol

from gatehouse.audit.model import Record
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.schema import ApplicationSchema, Tree


class PermissionStore(Protocol):
    async def install(self, application: Application, schema: ApplicationSchema, roles: Sequence[Role]) -> None:
        """Keep application 1 with its schema and roles unless it is there; one atomic act, repeatable."""

    async def login_section(self, application_id: int) -> Tree | None:
        """The login rules of the application's schema; None when it is unknown or removed."""

    async def knows_email_secret(self, application_id: int, digest: bytes) -> bool:
        """Whether this is one of the application's `with_email` secrets."""

    async def add_email_secret(self, application_id: int, digest: bytes, now: int, entry: Record) -> None:
        """Let whoever knows the secret see login e-mails of this application's users. Raises ApplicationNotFound."""

    async def root_roles(self, application_id: int, user_id: str, now: int) -> Sequence[str]:
        """Names of the roles the user holds at the root of the application, expired ones left out."""
