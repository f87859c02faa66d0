"""`gatehouse user`: accounts, and requests for personal data."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
import msgspec

from gatehouse.accounts.email_links import INVITATION_LIFETIME
from gatehouse.accounts.model import CENTRAL_APPLICATION, User
from gatehouse.accounts.own_account.export import PersonalDataExport
from gatehouse.app.services import Services
from gatehouse.app.services.people import access_invitations
from gatehouse.audit.model import AuditOrigin
from gatehouse.cli import user_bans, user_roles
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.groups import CommandGroup
from gatehouse.cli.output import format_time, print_table, printable
from gatehouse.cli.records import LIST_USERS, print_record
from gatehouse.cli.services import (
    PasswordSource,
    find_application,
    find_user,
    operator_actor,
    operator_origin,
    password_options,
    run_with_services,
)
from gatehouse.fields.derive import copy_as
from gatehouse.languages import LANGUAGES
from gatehouse.permissions.model.invitation import AccessInvitation, InvitedAccess
from gatehouse.personal_data.model import DataCall, DataRequest
from gatehouse.web.api.permissions.user_admin import open_invitation_entry
from gatehouse.web.api.permissions.users import UserEntry, user_entry

POLL_SECONDS: Final = 1.0  # seconds
REQUEST_HEADINGS: Final = ("REQUEST", "KIND", "REQUESTED", "APPLICATION", "URL", "STATE", "ATTEMPTS", "NEXT", "ERROR")


class DataCallEntry(msgspec.Struct, frozen=True, kw_only=True):
    application_id: int
    application: str
    url: str
    state: str
    tries: int
    next_try: str
    done: str
    trouble: str
    answer_kept: bool


class DataRequestEntry(msgspec.Struct, frozen=True, kw_only=True):
    request_id: str
    kind: str
    user_id: str
    asked: str
    kept_until: str
    settled: bool
    calls: Sequence[DataCallEntry]


class UserExport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    requests: Sequence[DataRequestEntry]
    data: PersonalDataExport | None = None


async def export_user_data(services: Services, user: User, origin: AuditOrigin, *, seconds: int) -> UserExport:
    """Request the data; with seconds to wait, also make the calls here: the server need not be running."""
    request_id = await services.personal_data.requests.request_export(user.user_id, origin)
    if not seconds:
        return UserExport(requests=await requests_of(services, request_id))
    try:
        async with asyncio.timeout(seconds):
            await wait_until_settled(services, request_id)
    except TimeoutError:
        pass  # print what was found; the exit status tells that something is missing
    data = await services.personal_data.export.export_user(user, origin)
    return UserExport(requests=await requests_of(services, request_id), data=data)


async def wait_until_settled(services: Services, request_id: str) -> None:
    while not all(request.is_settled for request in await services.personal_data.requests.find_requests(request_id)):
        await services.personal_data.jobs.run_once()
        await services.clock.sleep(POLL_SECONDS)


async def find_requests(services: Services, name: str) -> list[DataRequestEntry]:
    """By the ID of a request or a user, or by the login of an existing account."""
    if "@" in name:
        name = (await find_user(services, name)).user_id
    return await requests_of(services, name)


async def requests_of(services: Services, name: str) -> list[DataRequestEntry]:
    return (
        [request_entry(request) for request in await services.personal_data.requests.find_requests(name)]
        if name
        else []
    )


def request_entry(request: DataRequest) -> DataRequestEntry:
    return DataRequestEntry(
        request_id=request.request_id,
        kind=request.kind.value,
        user_id=request.user_id,
        asked=format_time(request.created_at),
        kept_until=format_time(request.ends_at),
        settled=request.is_settled,
        calls=[call_entry(call) for call in request.calls],
    )


def call_entry(call: DataCall) -> DataCallEntry:
    return copy_as(
        DataCallEntry,
        call,
        state=call.state.value,
        next_try="" if call.done_at else format_time(call.next_try_at),
        done=format_time(call.done_at),
        answer_kept=call.is_answer_kept,
    )


def print_requests(requests: Sequence[DataRequestEntry]) -> None:
    rows = [
        (
            *(request.request_id, request.kind, request.asked, call.application or call.application_id, call.url),
            *(call.state, call.tries, call.next_try, call.trouble),
        )
        for request in requests
        for call in request.calls
    ]
    if rows:
        print_table(REQUEST_HEADINGS, rows)
    else:
        print_table((), [("No applications were contacted.",)])


# `gatehouse user`: accounts, for scripts and for the day the console cannot be reached.
#
# USER is a user id or a login.


Facts = dict[str, object]


@click.group(cls=CommandGroup)
def user() -> None:
    """Create, list, show, block and erase accounts, end sessions and issue tokens for scripts."""


@user.command()
@common_options
@json_option
@click.option("--login", required=True, help="Email the person signs in with; password resets go there.")
@click.option("--nick", required=True, help="Display name.")
@password_options
@click.option("--no-password", is_flag=True, help="Create the account without a password.")
def create(
    invocation: Invocation,
    *,
    login: str,
    nick: str,
    password_file: Path | None,
    password_stdin: bool,
    no_password: bool,
    as_json: bool,
) -> None:
    """Create an account and print its user ID."""
    if no_password and (password_file or password_stdin):
        raise click.UsageError("--no-password cannot be combined with a password option")
    password = None if no_password else PasswordSource(file=password_file, stdin=password_stdin).read()

    async def work(services: Services) -> UserEntry:
        made = await services.accounts.administration.create(
            login=login, nick=nick, password=password, origin=operator_origin()
        )
        return user_entry(made, services.base_url)

    made = run_with_services(invocation, work)
    if as_json:
        print_json(made)
    else:
        click.echo(made.user_id)


@user.command()
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


@user.command()
@common_options
@json_option
@click.argument("user_name", metavar="USER", required=False)
@click.option("--project", default="", help="Invitations into this project.")
def invitations(invocation: Invocation, *, user_name: str | None, project: str, as_json: bool) -> None:
    """List invitations that were not accepted yet, of an account or into a project."""
    if bool(user_name) == bool(project):
        raise click.UsageError("name either USER or --project")

    async def work(services: Services) -> Sequence[AccessInvitation]:
        actor, found = await operator_actor(services), access_invitations(services)
        if project:
            return await found.open_into(actor, project)
        return await found.open_of(actor, (await find_user(services, user_name or "")).user_id)

    found = run_with_services(invocation, work)
    if as_json:
        print_json([open_invitation_entry(one) for one in found])
        return
    for one in found:
        what = one.access.role or one.access.group_id
        line = f"{one.invitation_id}  {one.login}  {what}  expires {format_time(one.expires_at)}"
        click.echo(printable(line))


@user.command("withdraw-invitation")
@common_options
@click.argument("user_name", metavar="USER")
@click.argument("invitation_id")
def withdraw_invitation(invocation: Invocation, *, user_name: str, invitation_id: str) -> None:
    """Withdraw an invitation; `gatehouse user invitations` prints their IDs."""

    async def work(services: Services) -> None:
        actor, user_id = await operator_actor(services), (await find_user(services, user_name)).user_id
        await access_invitations(services).withdraw_of(actor, user_id, invitation_id)

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


@user.command()
@common_options
@json_option
@click.argument("user_name", metavar="USER")
def show(invocation: Invocation, *, user_name: str, as_json: bool) -> None:
    """Show an account, without secrets."""

    async def work(services: Services) -> tuple[UserEntry, Facts]:
        found = await find_user(services, user_name)
        return user_entry(found, services.base_url), await other_facts(services, found)

    entry, others = run_with_services(invocation, work)
    print_record(entry, as_json=as_json, others=others)


async def other_facts(services: Services, found: User) -> Facts:
    """Return what the record of the API does not tell."""
    permissions, now = services.storage.permissions, services.clock.now()
    return {
        "kind": found.kind.value,
        "phone_verified": found.phone_verified,
        "password": found.password_hash is not None,
        "totp": found.sealed_totp is not None,
        "roles": await permissions.root_roles(CENTRAL_APPLICATION, found.user_id, now),
        "system_tags": sorted(found.system_tags),
        "rev": found.rev,
    }


@user.command()
@common_options
@json_option
@click.argument("user_name", metavar="USER")
def block(invocation: Invocation, *, user_name: str, as_json: bool) -> None:
    """Block an account and end its sessions and tokens."""
    set_blocked(invocation, user_name, blocked=True, as_json=as_json)


@user.command()
@common_options
@json_option
@click.argument("user_name", metavar="USER")
def unblock(invocation: Invocation, *, user_name: str, as_json: bool) -> None:
    """Unblock an account; ended sessions and tokens stay ended."""
    set_blocked(invocation, user_name, blocked=False, as_json=as_json)


def set_blocked(invocation: Invocation, user_name: str, *, blocked: bool, as_json: bool) -> None:
    async def work(services: Services) -> UserEntry:
        user_id, administration = (await find_user(services, user_name)).user_id, services.accounts.administration
        if blocked:  # the operator can create another administrator; blocking a stolen account cannot wait
            changed = await administration.block(user_id, operator_origin(), even_last_administrator=True)
        else:
            changed = await administration.unblock(user_id, operator_origin())
        return user_entry(changed, services.base_url)

    changed = run_with_services(invocation, work)
    if as_json:
        print_json(changed)
    else:
        click.echo(f"{changed.user_id} is {'blocked' if changed.blocked else 'not blocked'}")


@user.command("revoke-all")
@common_options
@json_option
@click.argument("user_name", metavar="USER")
def revoke_all(invocation: Invocation, *, user_name: str, as_json: bool) -> None:
    """Sign a person out everywhere; ends every session, token and JWT."""

    async def work(services: Services) -> User:
        found = await find_user(services, user_name)
        await services.accounts.sessions.sign_out_everywhere(found.user_id, operator_origin())
        return await find_user(services, found.user_id)

    changed = run_with_services(invocation, work)
    if as_json:
        print_json({"user_id": changed.user_id, "rev": changed.rev})
    else:
        click.echo(f"{changed.user_id} signed out everywhere")


@user.command()
@common_options
@json_option
@click.argument("user_name", metavar="USER")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.option("--even-last-administrator", is_flag=True, help="Allow erasing the last administrator.")
def erase(invocation: Invocation, *, user_name: str, yes: bool, even_last_administrator: bool, as_json: bool) -> None:
    """Permanently erase an account and all data about the person.

    The user ID is never reused. Audit records are kept without personal data.
    """
    if not yes:
        click.confirm(f"Permanently erase {user_name}?", abort=True, err=True)

    async def work(services: Services) -> User:
        found = await find_user(services, user_name)
        await services.accounts.erasure.erase(
            found, operator_origin(), even_last_administrator=even_last_administrator
        )
        return found

    gone = run_with_services(invocation, work)
    if as_json:
        print_json({"user_id": gone.user_id, "erased": True})
    else:
        click.echo(f"{gone.user_id} erased")


@user.command("export")
@common_options
@json_option
@click.argument("user_name", metavar="USER")
@click.option("--wait", is_flag=True, help="Wait for the applications' answers and print all data.")
@click.option("--seconds", type=click.IntRange(1, 3_600), default=60, help="Maximum seconds to wait.  [default: 60]")
def export_user(invocation: Invocation, *, user_name: str, wait: bool, seconds: int, as_json: bool) -> None:
    """Request a person's data from applications; with --wait, print it together with the data stored here.

    Answers are kept for seven days and returned once. Run the command again to see the progress.
    """

    async def work(services: Services) -> UserExport:
        found = await find_user(services, user_name)
        return await export_user_data(services, found, operator_origin(), seconds=seconds if wait else 0)

    result = run_with_services(invocation, work)
    if as_json or wait:
        print_json(result)
    else:
        print_requests(result.requests)


@user.command()
@common_options
@json_option
@click.argument("name", metavar="USER_OR_REQUEST")
def gdpr(invocation: Invocation, *, name: str, as_json: bool) -> None:
    """Show the data requests sent to applications about a person, including erased ones, and their results."""

    async def work(services: Services) -> list[DataRequestEntry]:
        return await find_requests(services, name)

    found = run_with_services(invocation, work)
    if as_json:
        print_json(found)
    else:
        print_requests(found)


@user.command()
@common_options
@json_option
@click.argument("user_name", metavar="USER")
@click.option("--factor", required=True, help="Factor the token is bound to; requests must send it.")
def token(invocation: Invocation, *, user_name: str, factor: str, as_json: bool) -> None:
    """Print a user JWT for a script without signing in; recorded in the audit log."""

    async def work(services: Services) -> tuple[str, str]:
        found = await find_user(services, user_name)
        jwt = await services.accounts.user_tokens.issue_recorded(
            found.user_id, factor=factor, origin=operator_origin()
        )
        return found.user_id, jwt

    user_id, jwt = run_with_services(invocation, work)
    if as_json:
        print_json({"user_id": user_id, "factor": factor, "jwt": jwt})
    else:
        click.echo(jwt)


for command in (LIST_USERS, user_bans.ban, user_bans.lift_ban, user_bans.bans, user_roles.role):
    user.add_command(command)
user.add_command(LIST_USERS, "search")
