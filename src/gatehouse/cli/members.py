"""`gatehouse members`: who has a rule or a role."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import click

from gatehouse.app.house import Services
from gatehouse.app.questions import member_search
from gatehouse.cli.common import ApplicationId, Invocation, common_options, json_option, print_json
from gatehouse.cli.house import run_with_services
from gatehouse.cli.output import format_time, print_table
from gatehouse.cli.questions import parse_resource, scope_options
from gatehouse.permissions.questions.members import FoundMember, GrantSource, MembersDraft
from gatehouse.web.permissions.question_records import member_record, members_csv

MEMBER_HEADINGS: Final = ("user_id", "until", "how")


@click.command()
@common_options
@json_option
@scope_options
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
    draft = MembersDraft(rule=rule, role=role, project_id=project, resource=parse_resource(resource))
    found = run_with_services(invocation, lambda house: all_members(house, application_id, draft))
    if as_json:
        print_json([member_record(one) for one in found])
    elif as_csv:
        click.echo(members_csv(found), nl=False)
    else:
        print_table(MEMBER_HEADINGS, [(one.user_id, format_time(one.until), paths_text(one)) for one in found])


async def all_members(services: Services, application_id: int, draft: MembersDraft) -> Sequence[FoundMember]:
    search = member_search(services)
    wanted = await search.read_query(draft, may_see_missing=True)
    found: list[FoundMember] = []
    after: str | None = ""
    while after is not None:
        page = await search.find_page(application_id, replace(wanted, after=after))
        found += page.members
        after = page.after
    return found


def paths_text(one: FoundMember) -> str:
    return "; ".join(map(path_text, one.path))


def path_text(way: GrantSource) -> str:
    through = f"through the group {way.membership.group.title}" if way.membership else ""
    return " ".join(part for part in (way.kind.value.replace("_", " "), way.role, through) if part)
