"""`gatehouse check`: whether a person may do something."""

import sys
from collections.abc import Awaitable, Callable
from typing import Final

import click

from gatehouse.app.house import House
from gatehouse.cli.common import ApplicationId, Invocation, common_options, json_option, print_json
from gatehouse.cli.house import in_house
from gatehouse.cli.questions import case_of, place_options, question_of
from gatehouse.kernel.errors import GatehouseError
from gatehouse.permissions.questions.check import NOWHERE, Checked, decided

DENIED: Final = 1


class NoTelling(click.ClickException):
    exit_code = 2


@click.command()
@common_options
@json_option
@place_options
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

    async def work(house: House) -> Checked:
        question = question_of(rule, project, resource)
        case = await case_of(house, application_id, user, question)
        held = await house.reading.effective(case, application_id, NOWHERE)
        return decided(case, held, [question], house.clock.now())

    checked = answered(invocation, work)
    [allowed] = checked.allowed
    if as_json:
        print_json({"allowed": allowed, "user_id": checked.user_id, "expired": checked.expired})
    else:
        click.echo("allowed" if allowed else "denied")
    if not allowed:
        sys.exit(DENIED)


def answered(invocation: Invocation, work: Callable[[House], Awaitable[Checked]]) -> Checked:
    """An error is not a denial: scripts tell the two by the exit code."""
    try:
        return in_house(invocation, work)
    except GatehouseError as error:
        raise NoTelling(str(error)) from error
