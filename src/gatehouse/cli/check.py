"""`gatehouse check`: whether a person may do something."""

import sys
from collections.abc import Awaitable, Callable
from typing import Final

import click

from gatehouse.app.house import Services
from gatehouse.cli.common import ApplicationId, Invocation, common_options, json_option, print_json
from gatehouse.cli.house import run_with_services
from gatehouse.cli.questions import load_evaluation_input, parse_question, scope_options
from gatehouse.kernel.errors import GatehouseError
from gatehouse.permissions.questions.check import NO_ADDRESS, CheckOutcome, answer_questions

EXIT_DENIED: Final = 1


class Undecided(click.ClickException):
    exit_code = 2


@click.command()
@common_options
@json_option
@scope_options
@click.argument("application_id", type=ApplicationId())
@click.argument("user")
@click.argument("rule")
def check(
    invocation: Invocation,
    *,
    application_id: int,
    user: str,
    rule: str,
    project: str | None,
    resource: str | None,
    as_json: bool,
) -> None:
    """Check whether USER (an ID or a login) has permission RULE in an application.

    Exit codes: 0 allowed, 1 denied, 2 unknown.
    """

    async def work(services: Services) -> CheckOutcome:
        question = parse_question(rule, project, resource)
        case = await load_evaluation_input(services, application_id, user, question)
        held = await services.permission_loader.evaluate(case, application_id, NO_ADDRESS)
        return answer_questions(case, held, [question], services.clock.now())

    checked = run_check(invocation, work)
    [allowed] = checked.allowed
    if as_json:
        print_json({"allowed": allowed, "user_id": checked.user_id, "expired": checked.expired})
    else:
        click.echo("allowed" if allowed else "denied")
    if not allowed:
        sys.exit(EXIT_DENIED)


def run_check(invocation: Invocation, work: Callable[[Services], Awaitable[CheckOutcome]]) -> CheckOutcome:
    """An error is not a denial: scripts tell the two by the exit code."""
    try:
        return run_with_services(invocation, work)
    except GatehouseError as error:
        raise Undecided(str(error)) from error
