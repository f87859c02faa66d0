"""`gatehouse explain`: why a person may do something, or why not."""

import click
from msgspec.structs import asdict

from gatehouse.app.house import Services
from gatehouse.app.questions import explainer
from gatehouse.cli.common import ApplicationId, Invocation, common_options, json_option, print_json
from gatehouse.cli.house import run_with_services
from gatehouse.cli.questions import load_evaluation_input, parse_question, scope_options
from gatehouse.permissions.explanation.reasons import Explanation
from gatehouse.permissions.explanation.wording import explanation_sentences
from gatehouse.permissions.questions.explain import read_ip
from gatehouse.web.permissions.question_records import explanation_record as record


@click.command()
@common_options
@json_option
@scope_options
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
    question = parse_question(rule, project, resource)
    address = None if ip is None else read_ip(ip)

    async def work(services: Services) -> Explanation:
        case = await load_evaluation_input(services, application_id, user, question)
        return await explainer(services).explain(case, application_id, question, address)

    explanation = run_with_services(invocation, work)
    if as_json:
        print_json({"user_id": explanation.user_id, **asdict(record(explanation))})
    else:
        click.echo("\n".join(explanation_sentences(explanation)))
