"""What the commands that ask who may do what share: how a rule, a place and a person are named."""

from collections.abc import Callable
from typing import TypeVar

import click

from gatehouse.app.house import House
from gatehouse.cli.people import find_user
from gatehouse.permissions.errors import ApplicationNotFound, ProjectNotFound
from gatehouse.permissions.evaluation.reading import Case
from gatehouse.permissions.questions.asked import ResourceDraft, read_rule, read_scope
from gatehouse.permissions.questions.check import Question

Function = TypeVar("Function", bound=Callable[..., object])


def place_options(command: Function) -> Function:
    project = click.option("--project", metavar="ID", help="Project ID or alias.  [default: root]")
    resource = click.option(
        "--resource", metavar="KIND/ID", help="Resource in the project: applications, services or groups."
    )
    return project(resource(command))


def resource_of(text: str | None) -> ResourceDraft | None:
    if text is None:
        return None
    kind, _, resource_id = text.partition("/")
    return ResourceDraft(kind=kind, id=resource_id)


def question_of(rule: str, project: str | None, resource: str | None) -> Question:
    return Question(rule=read_rule(rule, "RULE"), scope=read_scope(project, resource_of(resource), "--project"))


async def case_of(house: House, application_id: int, user: str, question: Question) -> Case:
    """What decides about the person in the application. Raises UserNotFound, ApplicationNotFound."""
    found = await find_user(house, user)
    facts = await house.reading.facts(found.user_id, (application_id,))
    if facts is None or application_id not in facts.applications:
        raise ApplicationNotFound
    return await house.reading.case(facts, projects=await known(house, question.scope.scope.project_id))


async def known(house: House, project: str) -> tuple[str, ...]:
    """The id of a project given by id or alias; of none that there is not."""
    if not project:
        return ()
    try:
        return ((await house.storage.projects.project(project)).project.project_id,)
    except ProjectNotFound:
        return ()
