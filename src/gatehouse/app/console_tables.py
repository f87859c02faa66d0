"""The part of the composition root that is the console's two staged tables of an application."""

from collections.abc import Sequence

from gatehouse.app.house import Services
from gatehouse.app.questions import simulation
from gatehouse.permissions.commands.app_schemas import SchemaCommands
from gatehouse.permissions.commands.user_schemas import UserRecordCommands
from gatehouse.storage.admin.assignments import AssignmentListStorage
from gatehouse.web.console.assignment_changes import AssignmentEditor
from gatehouse.web.console.assignments import AssignmentTable
from gatehouse.web.console.desk import ConsoleView
from gatehouse.web.console.matrix import MatrixTable
from gatehouse.web.console.matrix_changes import MatrixEditor
from gatehouse.web.console.screens import ConsoleRoute


def table_screens(house: Services, desk: ConsoleView) -> Sequence[ConsoleRoute]:
    storage = house.storage
    people = AssignmentListStorage(storage.runner)
    matrix = MatrixEditor(
        table=MatrixTable(desk=desk),
        schemas=SchemaCommands(store=storage.applications, recorder=house.recorder, clock=house.clock),
        simulation=simulation(house),
        people=people,
        audit=storage.audit,
        desk=desk,
    )
    users = AssignmentEditor(
        table=AssignmentTable(
            people=people, crowds=storage.crowds, applications=storage.applications, desk=desk, clock=house.clock
        ),
        schemas=UserRecordCommands(
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
