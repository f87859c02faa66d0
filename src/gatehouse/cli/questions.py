"""What the commands that ask who may do what share: how a rule, a place and a person are named."""

from collections.abc import Callable
from typing import TypeVar

import click

from gatehouse.app.house import Services
from gatehouse.cli.people import find_user
from gatehouse.permissions.errors import ApplicationNotFound, ProjectNotFound
from gatehouse.permissions.evaluation.reading import EvaluationInput
from gatehouse.permissions.questions.asked import ResourceDraft, read_rule, read_scope
from gatehouse.permissions.questions.check import PermissionQuestion

Function = TypeVar("Function", bound=Callable[..., object])


def scope_options(command: Function) -> Function:
    project = click.option("--project", metavar="ID", help="Project ID or alias.  [default: root]")
    resource = click.option(
        "--resource", metavar="KIND/ID", help="Resource in the project: applications, services or groups."
    )
    return project(resource(command))


def parse_resource(text: str | None) -> ResourceDraft | None:
    if text is None:
        return None
    kind, _, resource_id = text.partition("/")
    return ResourceDraft(kind=kind, id=resource_id)


def parse_question(rule: str, project: str | None, resource: str | None) -> PermissionQuestion:
    return PermissionQuestion(
        rule=read_rule(rule, "RULE"), scope=read_scope(project, parse_resource(resource), "--project")
    )


async def load_evaluation_input(
    services: Services, application_id: int, user: str, question: PermissionQuestion
) -> EvaluationInput:
    """What decides about the person in the application. Raises UserNotFound, ApplicationNotFound."""
    found = await find_user(services, user)
    facts = await services.permission_loader.load_facts(found.user_id, (application_id,))
    if facts is None or application_id not in facts.applications:
        raise ApplicationNotFound
    return await services.permission_loader.load_input(
        facts, projects=await known_project_ids(services, question.scope.scope.project_id)
    )


async def known_project_ids(services: Services, project: str) -> tuple[str, ...]:
    """The id of a project given by id or alias; of none that there is not."""
    if not project:
        return ()
    try:
        return ((await services.storage.projects.project(project)).project.project_id,)
    except ProjectNotFound:
        return ()
