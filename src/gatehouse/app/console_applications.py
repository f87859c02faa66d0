"""The part of the composition root that is the console's entry Applications."""

from collections.abc import Sequence

from gatehouse.app.house import House
from gatehouse.permissions.commands.applications import Applications
from gatehouse.storage.admin.applications import ApplicationListStorage
from gatehouse.web.console.applications.lists import ApplicationLists
from gatehouse.web.console.desk import ConsoleDesk
from gatehouse.web.console.screens import Screen


def application_screens(house: House, desk: ConsoleDesk) -> Sequence[Screen]:
    applications = application_commands(house)
    lists = ApplicationListStorage(house.storage.runner)
    return [*ApplicationLists(applications=applications, lists=lists, desk=desk).screens()]


def application_commands(house: House) -> Applications:
    return Applications(
        store=house.storage.applications,
        projects=house.storage.projects,
        masters=house.masters,
        recorder=house.recorder,
        clock=house.clock,
        reachable=house.settings.outbound.allow,
    )
