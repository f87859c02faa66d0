"""The part of the composition root that is the console's two staged tables of an application."""

from collections.abc import Sequence

from gatehouse.app.house import House
from gatehouse.app.questions import simulation
from gatehouse.permissions.commands.app_schemas import AppSchemas
from gatehouse.permissions.commands.user_schemas import UserSchemas
from gatehouse.storage.admin.assignments import AssignmentListStorage
from gatehouse.web.console.assignment_changes import UserChanges
from gatehouse.web.console.assignments import UsersTable
from gatehouse.web.console.desk import ConsoleDesk
from gatehouse.web.console.matrix import MatrixTable
from gatehouse.web.console.matrix_changes import MatrixChanges
from gatehouse.web.console.screens import Screen


def table_screens(house: House, desk: ConsoleDesk) -> Sequence[Screen]:
    storage = house.storage
    people = AssignmentListStorage(storage.runner)
    matrix = MatrixChanges(
        table=MatrixTable(desk=desk),
        schemas=AppSchemas(store=storage.applications, recorder=house.recorder, clock=house.clock),
        simulation=simulation(house),
        people=people,
        audit=storage.audit,
        desk=desk,
    )
    users = UserChanges(
        table=UsersTable(
            people=people, crowds=storage.crowds, applications=storage.applications, desk=desk, clock=house.clock
        ),
        schemas=UserSchemas(
            store=storage.user_records,
            people=storage.permissions,
            projects=storage.projects,
            recorder=house.recorder,
            clock=house.clock,
        ),
        simulation=simulation(house),
        people=people,
        crowds=storage.crowds,
        desk=desk,
        clock=house.clock,
    )
    return [*matrix.screens(), *users.screens()]
