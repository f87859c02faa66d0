"""Whether the console has anything for somebody, composed; without the console itself."""

from gatehouse.admin.sights import Doorway, Sights
from gatehouse.app.house import House
from gatehouse.permissions.callers.desk import Desk
from gatehouse.storage.admin.sight import SightStorage


def doorway(house: House, desk: Desk) -> Doorway:
    return Doorway(desk=desk, reading=house.reading, sights=Sights(SightStorage(house.storage.runner)))
