"""The part of the composition root that foresees changes for the console."""

from gatehouse.app.house import Services
from gatehouse.app.questions import simulation
from gatehouse.storage.admin.names import NameStorage
from gatehouse.web.console.desk import ConsoleView
from gatehouse.web.console.forecast import ImpactForecaster


def impact_forecast(house: Services, desk: ConsoleView) -> ImpactForecaster:
    return ImpactForecaster(simulation=simulation(house), names=NameStorage(house.storage.runner), desk=desk)
