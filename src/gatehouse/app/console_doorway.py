"""Whether the console has anything for somebody, composed; without the console itself."""

from gatehouse.admin.sights import ConsoleAccess, VisibilityLoader
from gatehouse.app.house import Services
from gatehouse.permissions.callers.desk import Authenticator
from gatehouse.storage.admin.sight import VisibilityStorage


def doorway(services: Services, authenticator: Authenticator) -> ConsoleAccess:
    return ConsoleAccess(
        authenticator=authenticator,
        permission_loader=services.permission_loader,
        visibility_loader=VisibilityLoader(VisibilityStorage(services.storage.runner)),
    )
