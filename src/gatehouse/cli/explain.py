"""`gatehouse explain`: why a person may do something, or why not."""

import click
from msgspec.structs import asdict

from gatehouse.app.house import House
from gatehouse.app.questions import explained
from gatehouse.cli.common import ApplicationId, Invocation, common_options, json_option, print_json
from gatehouse.cli.house import in_house
from gatehouse.cli.questions import case_of, place_options, question_of
from gatehouse.permissions.explanation.reasons import Explanation
from gatehouse.permissions.explanation.wording import words
from gatehouse.permissions.questions.explain import read_ip
from gatehouse.web.permissions.question_records import explained as record


@click.command()
@common_options
@json_option
@place_options
@click.option("--ip", help="Evaluate for this client IP address.  [default: none]")
@click.argument("application_id", type=ApplicationId())
@click.argument("user")
@click.argument("rule")
def explain(
    invocation: Invocation,
    *,
    application_id: int,
    user: str,
    rule: str,
    project: str | None,
    resource: str | None,
    ip: str | None,
    as_json: bool,
) -> None:
    """Explain why USER (an ID or a login) has permission RULE in an application or not, and what is missing."""
    question = question_of(rule, project, resource)
    address = None if ip is None else read_ip(ip)

    async def work(house: House) -> Explanation:
        case = await case_of(house, application_id, user, question)
        return await explained(house).of(case, application_id, question, address)

    explanation = in_house(invocation, work)
    if as_json:
        print_json({"user_id": explanation.user_id, **asdict(record(explanation))})
    else:
        click.echo("\n".join(words(explanation)))
