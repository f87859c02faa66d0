"""`gatehouse user invite`, and the invitations that are open."""

from datetime import UTC, datetime

import click

from gatehouse.accounts.email_links import INVITATION_LIFETIME
from gatehouse.accounts.model import User
from gatehouse.app.services import Services
from gatehouse.app.services.people import access_invitations
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.output import format_time, printable
from gatehouse.cli.services import find_application, find_user, operator_actor, run_with_services
from gatehouse.languages import LANGUAGES
from gatehouse.permissions.model.invitation import AccessInvitation, InvitedAccess
from gatehouse.web.api.permissions.user_admin import open_invitation_entry


@click.command()
@common_options
@json_option
@click.argument("logins", metavar="LOGIN...", nargs=-1, required=True)
@click.option("--nick", default="", help="Display name; the person can change it.  [default: from LOGIN]")
@click.option("--lang", type=click.Choice(LANGUAGES), default="en", help="Language of the email.  [default: en]")
@click.option("--role", metavar="APPLICATION/ROLE", help="Role that the person gets when they accept.")
@click.option("--project", default="", help="Project in which the role counts.")
@click.option("--until", type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d"]), help="End of the role, in UTC.")
@click.option("--group", default="", help="ID of a group that the person joins when they accept.")
def invite(
    invocation: Invocation,
    *,
    logins: tuple[str, ...],
    nick: str,
    lang: str,
    role: str | None,
    project: str,
    until: datetime | None,
    group: str,
    as_json: bool,
) -> None:
    """Create accounts without a password and email their owners a link to set one.

    The link works once and expires after a week. Inviting the same person again sends a new link. With a role or a
    group, people who have an account get an email too, and accept after signing in.
    """
    if (project or until) and not role:
        raise click.UsageError("--project and --until need --role")

    async def work(services: Services) -> list[User]:
        end = int(until.replace(tzinfo=UTC).timestamp()) if until else 0
        access = await invited_access(services, role, project=project, end=end, group=group)
        actor, invitations = await operator_actor(services), access_invitations(services)
        return [
            (await invitations.invite(actor, login=one, nick=nick, lang=lang, access=access)).user for one in logins
        ]

    invited = run_with_services(invocation, work)
    entries = [{"user_id": user.user_id, "login": user.login, "expires_in": INVITATION_LIFETIME} for user in invited]
    if as_json:
        print_json(entries[0] if len(entries) == 1 else entries)
    else:
        for user in invited:
            click.echo(user.user_id)
            click.echo(f"Invitation to {user.login} queued.", err=True)


@click.command()
@common_options
@json_option
@click.argument("user_name", metavar="USER", required=False)
@click.option("--project", default="", help="Invitations into this project.")
def invitations(invocation: Invocation, *, user_name: str | None, project: str, as_json: bool) -> None:
    """List invitations that were not accepted yet, of an account or into a project."""
    if bool(user_name) == bool(project):
        raise click.UsageError("name either USER or --project")

    async def work(services: Services) -> list[AccessInvitation]:
        actor, found = await operator_actor(services), access_invitations(services)
        about = project or (await find_user(services, user_name or "")).user_id
        read = found.open_into if project else found.open_of
        page = await read(actor, about)
        listed = [*page.invitations]
        while page.after is not None:
            page = await read(actor, about, page.after)
            listed += page.invitations
        return listed

    found = run_with_services(invocation, work)
    if as_json:
        print_json([open_invitation_entry(one) for one in found])
        return
    for one in found:
        what = one.access.role or one.access.group_id
        line = f"{one.invitation_id}  {one.login}  {what}  expires {format_time(one.expires_at)}"
        click.echo(printable(line))


@click.command("withdraw-invitation")
@common_options
@click.argument("named", metavar="[USER] INVITATION_ID", nargs=-1, required=True)
@click.option("--project", default="", help="Project that the invitation is into, instead of USER.")
def withdraw_invitation(invocation: Invocation, *, named: tuple[str, ...], project: str) -> None:
    """Withdraw an invitation; `gatehouse user invitations` prints their IDs."""
    *users, invitation_id = named
    if len(users) != (0 if project else 1):
        raise click.UsageError("name either USER or --project, and one INVITATION_ID")

    async def work(services: Services) -> None:
        actor, found = await operator_actor(services), access_invitations(services)
        if project:
            await found.withdraw(actor, project, invitation_id)
        else:
            await found.withdraw_of(actor, (await find_user(services, users[0])).user_id, invitation_id)

    run_with_services(invocation, work)
    click.echo("Withdrawn.", err=True)


async def invited_access(
    services: Services, role: str | None, *, project: str, end: int, group: str
) -> InvitedAccess:
    if not role:
        return InvitedAccess(group_id=group)
    application, slash, name = role.rpartition("/")
    if not slash:
        raise click.UsageError("--role needs APPLICATION/ROLE, like 50001/moderator")
    found = await find_application(services, application)
    return InvitedAccess(application_id=found.application_id, role=name, end=end, project_id=project, group_id=group)
