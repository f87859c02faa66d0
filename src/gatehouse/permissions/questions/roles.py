"""The roles of an application, as far as a caller may see them (interface §4.9, R6)."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from gatehouse.kernel.clock import Clock
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import RoleNotFound
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.permissions.store import ApplicationStore


class VisibleRole(Struct, frozen=True):
    role: Role
    users_count: int | None  # None: the caller sees names and descriptions only


class RoleList(Struct, kw_only=True, eq=False):
    store: ApplicationStore
    clock: Clock

    async def list_roles(self, request: AuthenticatedRequest) -> Sequence[VisibleRole]:
        model = request.require_application(Operation.ROLE_NAMES)
        counts = await self._counts(request, model)
        return [
            VisibleRole(role, None if counts is None else counts.get(role.key, 0))
            for role in sorted(model.roles.values(), key=lambda role: role.key)
        ]

    async def get_role(self, request: AuthenticatedRequest, name: object) -> VisibleRole:
        """Return a role. Raises NoRight before RoleNotFound."""
        model = request.require_application(Operation.ROLE_NAMES)
        role = model.roles.get(grammar.check_role_name(name, "data.name").lower())
        if role is None:
            raise RoleNotFound
        counts = await self._counts(request, model)
        return VisibleRole(role, None if counts is None else counts.get(role.key, 0))

    async def get_saved_role(self, model: ApplicationModel, name: str) -> VisibleRole:
        """A role that the caller has just saved."""
        role = model.roles[name.lower()]
        counts = await self.store.count_role_holders(model.application.application_id, self.clock.now())
        return VisibleRole(role, counts.get(role.key, 0))

    async def _counts(self, request: AuthenticatedRequest, model: ApplicationModel) -> Mapping[str, int] | None:
        if not is_open(request.rights, Operation.ROLES_GET, request.target):
            return None
        return await self.store.count_role_holders(model.application.application_id, self.clock.now())
