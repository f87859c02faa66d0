"""Whether the console has anything for somebody, composed; without the console itself."""

from gatehouse.admin.sights import ConsoleAccess, VisibilityLoader
from gatehouse.app.house import Services
from gatehouse.permissions.callers.desk import Authenticator
from gatehouse.storage.admin.sight import VisibilityStorage


def doorway(house: Services, desk: Authenticator) -> ConsoleAccess:
    return ConsoleAccess(
        desk=desk, reading=house.reading, sights=VisibilityLoader(VisibilityStorage(house.storage.runner))
    )
