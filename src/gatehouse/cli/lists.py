"""The commands that list, search and show records. Each imports what reads its kind of record when it runs."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

import click

from gatehouse.accounts.model import CENTRAL_APPLICATION, User
from gatehouse.app.services import Services
from gatehouse.cli.common import Invocation, common_options, json_option
from gatehouse.cli.records import find_role, load_model, print_record, print_records
from gatehouse.cli.services import find_application, find_user, run_with_services

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 100_000


def list_command(
    read: Callable[..., Awaitable[Iterable[object]]], columns: Sequence[str], *params: click.Parameter
) -> click.Command:
    """Return a command whose help is the docstring of `read`, which takes services, words, limit and `params`."""

    @click.command("list", help=read.__doc__)
    @common_options
    @json_option
    @click.option(
        "--limit",
        type=click.IntRange(1, MAX_LIMIT),
        default=DEFAULT_LIMIT,
        show_default=True,
        help="Maximum number of records.",
    )
    @click.argument("words", nargs=-1)
    def command(invocation: Invocation, *, words: tuple[str, ...], as_json: bool, **given: Any) -> None:  # noqa: ANN401 - options
        async def work(services: Services) -> Iterable[object]:
            return await read(services, " ".join(words), **given)

        print_records(run_with_services(invocation, work, uses_keys=False), columns, as_json=as_json)

    command.params[:0] = params
    return command


def show_command(read: Callable[..., Awaitable[object]], *arguments: str) -> click.Command:
    """Return a command whose help is the docstring of `read`, which takes services and `arguments`."""

    @click.command("show", help=read.__doc__)
    @common_options
    @json_option
    def command(invocation: Invocation, *, as_json: bool, **given: str) -> None:
        async def work(services: Services) -> object:
            return await read(services, **given)

        print_record(run_with_services(invocation, work, uses_keys=False), as_json=as_json)

    command.params[:0] = [click.Argument([name]) for name in arguments]
    return command


# Accounts.


async def search_users(services: Services, words: str, limit: int) -> Iterable[object]:
    """List accounts; with WORDS those whose nick, name or login contains them."""
    from gatehouse.admin.people_search import PeopleQuestion, PeopleSearchStore
    from gatehouse.web.api.permissions.user_records import user_entry

    store, question = PeopleSearchStore(services.storage.runner), PeopleQuestion(text=words)
    page = await store.search(question, None, limit)
    found = list(page.users)
    while page.after is not None and len(found) < limit:  # a page may be short
        page = await store.search(question, page.after, limit - len(found))
        found += page.users
    return [user_entry(user, services.base_url) for user in found]


LIST_USERS: Final = list_command(search_users, ("user_id", "nick", "login", "blocked", "registered"))


@click.command("show")
@common_options
@json_option
@click.argument("user_name", metavar="USER")
def show_user(invocation: Invocation, *, user_name: str, as_json: bool) -> None:
    """Show an account, without secrets."""
    from gatehouse.web.api.permissions.user_records import UserEntry, user_entry

    async def work(services: Services) -> tuple[UserEntry, dict[str, object]]:
        found = await find_user(services, user_name)
        return user_entry(found, services.base_url), await other_facts(services, found)

    entry, others = run_with_services(invocation, work, uses_keys=False)
    print_record(entry, as_json=as_json, others=others)


async def other_facts(services: Services, found: User) -> dict[str, object]:
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


# Applications, projects and groups.


IN_PROJECT: Final = click.Option(["--project"], default="", metavar="ID", help="List only those of this project.")


async def search_applications(services: Services, words: str, limit: int, project: str) -> Iterable[object]:
    """List applications; with WORDS those whose name, ID or description contains them."""
    from gatehouse.admin.listings import FIRST_NUMBER, Listable, ListingStore

    store = ListingStore(services.storage.runner)
    return (await store.applications(Listable(everything=True), words, project, FIRST_NUMBER, limit))[:limit]


async def show_application(services: Services, application: str) -> object:
    """Show an application, given by ID or name, without secrets."""
    from gatehouse.web.api.permissions.applications import application_record

    named = await find_application(services, application)
    found = await services.storage.applications.application(named.application_id)
    return application_record(found, services.base_url, full=True)


async def search_projects(services: Services, words: str, limit: int) -> Iterable[object]:
    """List projects; with WORDS those whose title, ID or description contains them."""
    from gatehouse.admin.listings import Listable, ListingStore

    store = ListingStore(services.storage.runner)
    return (await store.projects(Listable(everything=True), words, "", limit))[:limit]


async def show_project(services: Services, project_id: str) -> object:
    """Show a project, given by ID or alias."""
    from gatehouse.web.api.permissions.projects import project_record

    return project_record((await services.storage.projects.project(project_id)).project)


async def search_groups(services: Services, words: str, limit: int, project: str) -> Iterable[object]:
    """List groups; with WORDS those whose title or description contains them."""
    from gatehouse.admin.listings import Listable, ListingStore

    store = ListingStore(services.storage.runner)
    return (await store.groups(Listable(everything=True), words, project, "", limit))[:limit]


async def show_group(services: Services, group_id: str) -> object:
    """Show a group with its conditions and listed users."""
    from gatehouse.web.api.permissions.groups import group_record

    return group_record(await services.storage.groups.group(group_id))


LIST_APPLICATIONS: Final = list_command(
    search_applications, ("application_id", "name", "project_id", "removed", "description"), IN_PROJECT
)
LIST_PROJECTS: Final = list_command(search_projects, ("id", "title", "removed", "description"))
SHOW_APPLICATION: Final = show_command(show_application, "application")
SHOW_PROJECT: Final = show_command(show_project, "project_id")
LIST_GROUPS: Final = list_command(search_groups, ("id", "project_id", "title", "description"), IN_PROJECT)
SHOW_GROUP: Final = show_command(show_group, "group_id")


# Roles.


async def search_roles(services: Services, words: str, limit: int, application: str) -> Iterable[object]:
    """List roles of an application; with WORDS those whose name or description contains them."""
    from gatehouse.permissions.commands.app_schemas import role_document

    roles = sorted((await load_model(services, application)).roles.values(), key=lambda role: role.key)
    text = words.casefold()
    found = [role for role in roles if text in role.key or text in role.description.casefold()]
    return [role_document(role) for role in found[:limit]]


async def show_role(services: Services, application: str, role: str) -> object:
    """Show a role of an application."""
    from gatehouse.permissions.commands.app_schemas import role_document

    return role_document(find_role(await load_model(services, application), role))


LIST_ROLES: Final = list_command(
    search_roles, ("name", "protected", "default", "user_limit", "description"), click.Argument(["application"])
)
SHOW_ROLE: Final = show_command(show_role, "application", "role")
