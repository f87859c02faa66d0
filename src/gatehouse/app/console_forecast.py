"""The part of the composition root that foresees changes for the console."""

from gatehouse.app.house import Services
from gatehouse.app.questions import simulation
from gatehouse.storage.admin.names import NameStorage
from gatehouse.web.console.desk import ConsoleView
from gatehouse.web.console.forecast import ImpactForecaster


def impact_forecast(services: Services, view: ConsoleView) -> ImpactForecaster:
    return ImpactForecaster(simulation=simulation(services), names=NameStorage(services.storage.runner), view=view)
