"""The part of the composition root that foresees changes for the console."""

from gatehouse.app.house import House
from gatehouse.app.questions import simulation
from gatehouse.storage.admin.names import NameStorage
from gatehouse.web.console.desk import ConsoleDesk
from gatehouse.web.console.forecast import Foresight


def foresight(house: House, desk: ConsoleDesk) -> Foresight:
    return Foresight(simulation=simulation(house), names=NameStorage(house.storage.runner), desk=desk)
