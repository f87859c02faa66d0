"""Who sees what in the console: what his rights let him read (interface §5.5)."""

from collections.abc import Collection

from gatehouse.admin.model.sight import Sight, SightStore
from gatehouse.permissions.model.scope import ResourceKind
from gatehouse.permissions.rights.guard import About, Operation, is_open
from gatehouse.permissions.rights.rights import Rights


class Sights:
    def __init__(self, store: SightStore) -> None:
        self._store = store

    async def of(self, rights: Rights) -> Sight:
        if rights.administers:
            return Sight(everything=True, may_publish=True, may_create=True)
        own = await self._store.own_applications(rights.user_id)
        scopes = [scope for scope in rights.central.open_scopes if not scope.is_root]
        projects = {scope.project_id for scope in scopes if scope.kind is None}
        held = {int(scope.resource_id) for scope in scopes if scope.kind is ResourceKind.APPLICATION}
        return Sight(
            projects=opened(rights, Operation.PROJECT_GET, projects),
            managed=opened(rights, Operation.APPLICATION_CREATE_IN_PROJECT, projects),
            applications=frozenset(own) | held,
            groups=frozenset(scope.resource_id for scope in scopes if scope.kind is ResourceKind.GROUP),
            may_publish=is_open(rights, Operation.PUBLISH),
            may_create=is_open(rights, Operation.APPLICATION_CREATE),
        )


def opened(rights: Rights, operation: Operation, projects: Collection[str]) -> frozenset[str]:
    return frozenset(one for one in projects if is_open(rights, operation, About(project_id=one)))
