"""`gatehouse members`: who has a rule or a role."""

from collections.abc import Mapping, Sequence
from typing import Final

import click
from msgspec.structs import replace

from gatehouse.app.services import Services
from gatehouse.cli.access import parse_resource, scope_options
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.groups import did_you_mean
from gatehouse.cli.output import format_time, print_table
from gatehouse.cli.services import find_application, names_of_people, run_with_services
from gatehouse.permissions.errors import RoleNotFound
from gatehouse.permissions.questions.members import FoundMember, GrantSource, MembersDraft
from gatehouse.web.api.permissions.explanation_records import member_record, members_csv

MEMBER_HEADINGS: Final = ("user_id", "name", "until", "how")


@click.command()
@common_options
@json_option
@scope_options
@click.option("--rule", help="List people with this permission.")
@click.option("--role", help="List people with this role.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.argument("application")
def members(
    invocation: Invocation,
    *,
    application: str,
    rule: str | None,
    role: str | None,
    project: str | None,
    resource: str | None,
    as_csv: bool,
    as_json: bool,
) -> None:
    """List everyone with a permission or role in APPLICATION (an ID or a name), with source and expiry."""
    if (rule is None) == (role is None) or (as_csv and as_json):
        raise click.UsageError("use either --rule or --role, and either --csv or --json")
    draft = MembersDraft(rule=rule, role=role, project_id=project, resource=parse_resource(resource))
    found, names = run_with_services(invocation, lambda services: named_members(services, application, draft))
    if as_json:
        print_json([member_record(one) for one in found])
    elif as_csv:
        click.echo(members_csv(found), nl=False)
    else:
        rows = [(one.user_id, names.get(one.user_id, ""), format_time(one.until), paths_text(one)) for one in found]
        print_table(MEMBER_HEADINGS, rows)


async def named_members(
    services: Services, application: str, draft: MembersDraft
) -> tuple[Sequence[FoundMember], Mapping[str, str]]:
    found = await find_application(services, application)
    try:
        members_found = await all_members(services, found.application_id, draft)
    except RoleNotFound as error:
        models = await services.storage.permissions.application_models([found.application_id])
        names = [role.name for role in models[found.application_id].roles.values()]
        raise RoleNotFound(f"no role {draft.role}.{did_you_mean(str(draft.role), names)}") from error
    return members_found, await names_of_people(services, [one.user_id for one in members_found])


async def all_members(services: Services, application_id: int, draft: MembersDraft) -> Sequence[FoundMember]:
    search = services.questions.member_search
    query = await search.read_query(draft, may_see_missing=True)
    found: list[FoundMember] = []
    after: str | None = ""
    while after is not None:
        page = await search.find_page(application_id, replace(query, after=after))
        found += page.members
        after = page.after
    return found


def paths_text(one: FoundMember) -> str:
    return "; ".join(map(path_text, one.path))


def path_text(way: GrantSource) -> str:
    through = f"through the group {way.membership.group.title}" if way.membership else ""
    return " ".join(part for part in (way.kind.value.replace("_", " "), way.role, through) if part)
