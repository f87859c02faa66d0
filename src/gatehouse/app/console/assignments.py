"""Who has which role in an application: a table and its editor, also on the page of a person."""

from gatehouse.admin.assignments import AssignmentListStore
from gatehouse.app.console.shared import ConsoleServices
from gatehouse.web.console.applications.assignment_edits import AssignmentEditor
from gatehouse.web.console.applications.assignments import AssignmentTable


def assignment_editor(console: ConsoleServices) -> AssignmentEditor:
    services, storage, view = console.services, console.services.storage, console.view
    people, facts = AssignmentListStore(storage.runner), storage.candidates
    table = AssignmentTable(
        people=people, people_facts=facts, applications=storage.applications, view=view, clock=services.clock
    )
    return AssignmentEditor(
        table=table,
        schemas=services.commands.user_records,
        simulation=services.questions.simulation,
        people=people,
        names=console.names,
        people_facts=facts,
        lookup=console.lookup,
        view=view,
        clock=services.clock,
    )
