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


def table_screens(services: Services, view: ConsoleView) -> Sequence[ConsoleRoute]:
    storage = services.storage
    people = AssignmentListStorage(storage.runner)
    matrix = MatrixEditor(
        table=MatrixTable(view=view),
        schemas=SchemaCommands(store=storage.applications, recorder=services.recorder, clock=services.clock),
        simulation=simulation(services),
        people=people,
        audit=storage.audit,
        view=view,
    )
    users = AssignmentEditor(
        table=AssignmentTable(
            people=people,
            people_facts=storage.candidates,
            applications=storage.applications,
            view=view,
            clock=services.clock,
        ),
        schemas=UserRecordCommands(
            store=storage.user_records,
            people=storage.permissions,
            projects=storage.projects,
            recorder=services.recorder,
            clock=services.clock,
        ),
        simulation=simulation(services),
        people=people,
        people_facts=storage.candidates,
        view=view,
        clock=services.clock,
    )
    return [*matrix.routes(), *users.routes()]
