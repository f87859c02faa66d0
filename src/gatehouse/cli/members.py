"""`gatehouse members`: who has a rule or a role."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import click

from gatehouse.app.house import House
from gatehouse.app.questions import member_search
from gatehouse.cli.common import ApplicationId, Invocation, common_options, json_option, print_json
from gatehouse.cli.house import in_house
from gatehouse.cli.output import moment, print_table
from gatehouse.cli.questions import place_options, resource_of
from gatehouse.permissions.questions.members import Member, MembersDraft, Way
from gatehouse.web.permissions.question_records import csv_text, member

HEADINGS: Final = ("user_id", "until", "how")


@click.command()
@common_options
@json_option
@place_options
@click.option("--rule", help="List people with this permission.")
@click.option("--role", help="List people with this role.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.argument("application_id", type=ApplicationId())
def members(
    invocation: Invocation,
    *,
    application_id: int,
    rule: str | None,
    role: str | None,
    project: str | None,
    resource: str | None,
    as_csv: bool,
    as_json: bool,
) -> None:
    """List everyone with a permission or role in an application, with source and expiry."""
    if (rule is None) == (role is None) or (as_csv and as_json):
        raise click.UsageError("use either --rule or --role, and either --csv or --json")
    draft = MembersDraft(rule=rule, role=role, project_id=project, resource=resource_of(resource))
    found = in_house(invocation, lambda house: all_members(house, application_id, draft))
    if as_json:
        print_json([member(one) for one in found])
    elif as_csv:
        click.echo(csv_text(found), nl=False)
    else:
        print_table(HEADINGS, [(one.user_id, moment(one.until), how(one)) for one in found])


async def all_members(house: House, application_id: int, draft: MembersDraft) -> Sequence[Member]:
    search = member_search(house)
    wanted = await search.wanted(draft, tells=True)
    found: list[Member] = []
    after: str | None = ""
    while after is not None:
        page = await search.find(application_id, replace(wanted, after=after))
        found += page.found
        after = page.after
    return found


def how(one: Member) -> str:
    return "; ".join(map(told, one.path))


def told(way: Way) -> str:
    through = f"through the group {way.membership.group.title}" if way.membership else ""
    return " ".join(part for part in (way.kind.value.replace("_", " "), way.role, through) if part)
