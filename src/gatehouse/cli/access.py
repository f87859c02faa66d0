"""`gatehouse check` and `explain`: whether and why a person may do something."""

import sys
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import click
from msgspec import UNSET
from msgspec.structs import asdict

from gatehouse.app.services import Services
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.output import print_result
from gatehouse.cli.services import find_application, find_user, run_with_services, warn_about_unknown_permission
from gatehouse.kernel.errors import GatehouseError
from gatehouse.permissions.errors import ApplicationNotFound, ProjectNotFound
from gatehouse.permissions.evaluation.loader import EvaluationInput
from gatehouse.permissions.explanation.reasons import Explanation
from gatehouse.permissions.explanation.wording import explanation_sentences, remedy_sentences
from gatehouse.permissions.questions.check import NO_ADDRESS, CheckOutcome, PermissionQuestion, answer_questions
from gatehouse.permissions.questions.explain import read_ip
from gatehouse.permissions.questions.parsing import ResourceDraft, read_rule, read_scope
from gatehouse.web.api.permissions.explanation_records import explanation_record as record

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
    """The facts that decide about the person in the application. Raises UserNotFound, ApplicationNotFound."""
    found = await find_user(services, user)
    facts = await services.permissions.loader.load_facts(found.user_id, (application_id,))
    if facts is None or application_id not in facts.applications:
        raise ApplicationNotFound
    return await services.permissions.loader.load_input(
        facts, projects=await known_project_ids(services, question.scope.scope.project_id)
    )


async def known_project_ids(services: Services, project: str) -> tuple[str, ...]:
    """The ID of a project given by ID or alias; empty when there is none."""
    if not project:
        return ()
    try:
        return ((await services.storage.projects.project(project)).project.project_id,)
    except ProjectNotFound:
        return ()


# `gatehouse check`: whether a person may do something.


EXIT_DENIED: Final = 1


class Undecided(click.ClickException):
    exit_code = 2


@click.command()
@common_options
@json_option
@scope_options
@click.argument("application")
@click.argument("user")
@click.argument("rule")
def check(
    invocation: Invocation,
    *,
    application: str,
    user: str,
    rule: str,
    project: str | None,
    resource: str | None,
    as_json: bool,
) -> None:
    """Check whether USER has permission RULE in APPLICATION.

    USER is an ID or a login, APPLICATION an ID or a name. Exit codes: 0 allowed, 1 denied, 2 unknown.
    """

    async def work(services: Services) -> CheckOutcome:
        question = parse_question(rule, project, resource)
        found = await find_application(services, application)
        await warn_about_unknown_permission(services, found, rule)
        case = await load_evaluation_input(services, found.application_id, user, question)
        held = await services.permissions.loader.evaluate(case, found.application_id, NO_ADDRESS)
        return answer_questions(case, held, [question], services.clock.now())

    checked = run_check(invocation, work)
    [allowed] = checked.allowed
    if as_json:
        print_json({"allowed": allowed, "user_id": checked.user_id, "expired": checked.expired})
    else:
        print_result("allowed" if allowed else "denied", success=allowed)
    if not allowed:
        sys.exit(EXIT_DENIED)


def run_check(invocation: Invocation, work: Callable[[Services], Awaitable[CheckOutcome]]) -> CheckOutcome:
    """Exit differently for an error than for a denial, so that scripts can tell them apart."""
    try:
        return run_with_services(invocation, work)
    except GatehouseError as error:
        raise Undecided(str(error)) from error


# `gatehouse explain`: why a person may do something, or why not.


@click.command()
@common_options
@json_option
@scope_options
@click.option("--ip", help="Evaluate for this client IP address.  [default: none]")
@click.argument("application")
@click.argument("user")
@click.argument("rule")
def explain(
    invocation: Invocation,
    *,
    application: str,
    user: str,
    rule: str,
    project: str | None,
    resource: str | None,
    ip: str | None,
    as_json: bool,
) -> None:
    """Explain why USER has permission RULE in APPLICATION or not, and what is missing.

    USER is an ID or a login, APPLICATION an ID or a name.
    """
    question = parse_question(rule, project, resource)
    address = None if ip is None else read_ip(ip)

    async def work(services: Services) -> Explanation:
        found = await find_application(services, application)
        await warn_about_unknown_permission(services, found, rule)
        case = await load_evaluation_input(services, found.application_id, user, question)
        return await services.questions.explainer.explain(case, found.application_id, question, address)

    explanation = run_with_services(invocation, work)
    if as_json:
        members = {name: value for name, value in asdict(record(explanation)).items() if value is not UNSET}
        print_json({"user_id": explanation.user_id, **members})
    else:
        click.echo("\n".join([*explanation_sentences(explanation), *remedy_sentences(explanation)]))
