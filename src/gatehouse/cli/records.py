"""`list` and `show` of accounts, applications, projects, groups and roles: the records that the API returns."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import click
import msgspec

from gatehouse.admin.listings import FIRST_NUMBER, Listable, ListingStore
from gatehouse.admin.people_search import PeopleQuestion, PeopleSearchStore
from gatehouse.app.services import Services
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.output import format_value, print_facts, print_table
from gatehouse.cli.services import find_application, run_with_services
from gatehouse.permissions.commands.app_schemas import role_document
from gatehouse.permissions.errors import RoleNotFound
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import Role
from gatehouse.web.api.permissions.applications import application_record
from gatehouse.web.api.permissions.groups import group_record
from gatehouse.web.api.permissions.projects import project_record
from gatehouse.web.api.permissions.users import user_entry

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 100_000
NO_FACTS: Final[Mapping[str, object]] = {}


def print_record(record: object, *, as_json: bool, others: Mapping[str, object] = NO_FACTS) -> None:
    """Print a record of the API; people also see `others`."""
    if as_json:
        print_json(record)
    else:
        print_facts({**members_of(record), **others})


def print_records(records: Iterable[object], columns: Sequence[str], *, as_json: bool) -> None:
    """Print records of the API, as a table of some columns for people."""
    found = list(records)
    if as_json:
        print_json(found)
    else:
        rows = [members_of(record) for record in found]
        print_table(columns, [[format_value(row.get(name)) for name in columns] for row in rows])


def members_of(record: object) -> dict[str, object]:
    """Return what JSON would have."""
    members: dict[str, object] = msgspec.to_builtins(record)
    return members


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

        print_records(run_with_services(invocation, work), columns, as_json=as_json)

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

        print_record(run_with_services(invocation, work), as_json=as_json)

    command.params[:0] = [click.Argument([name]) for name in arguments]
    return command


# Accounts.


async def search_users(services: Services, words: str, limit: int) -> Iterable[object]:
    """List accounts; with WORDS those whose nick, name or login contains them."""
    store, question = PeopleSearchStore(services.storage.runner), PeopleQuestion(text=words)
    page = await store.search(question, None, limit)
    found = list(page.users)
    while page.after is not None and len(found) < limit:  # a page may be short
        page = await store.search(question, page.after, limit - len(found))
        found += page.users
    return [user_entry(user, services.base_url) for user in found]


LIST_USERS: Final = list_command(search_users, ("user_id", "nick", "login", "blocked", "registered"))


# Applications, projects and groups.


EVERYTHING: Final = Listable(everything=True)
IN_PROJECT: Final = click.Option(["--project"], default="", metavar="ID", help="List only those of this project.")


async def search_applications(services: Services, words: str, limit: int, project: str) -> Iterable[object]:
    """List applications; with WORDS those whose name, ID or description contains them."""
    store = ListingStore(services.storage.runner)
    return (await store.applications(EVERYTHING, words, project, FIRST_NUMBER, limit))[:limit]


async def show_application(services: Services, application: str) -> object:
    """Show an application, given by ID or name, without secrets."""
    named = await find_application(services, application)
    found = await services.storage.applications.application(named.application_id)
    return application_record(found, services.base_url, full=True)


async def search_projects(services: Services, words: str, limit: int) -> Iterable[object]:
    """List projects; with WORDS those whose title, ID or description contains them."""
    return (await ListingStore(services.storage.runner).projects(EVERYTHING, words, "", limit))[:limit]


async def show_project(services: Services, project_id: str) -> object:
    """Show a project, given by ID or alias."""
    return project_record((await services.storage.projects.project(project_id)).project)


async def search_groups(services: Services, words: str, limit: int, project: str) -> Iterable[object]:
    """List groups; with WORDS those whose title or description contains them."""
    return (await ListingStore(services.storage.runner).groups(EVERYTHING, words, project, "", limit))[:limit]


async def show_group(services: Services, group_id: str) -> object:
    """Show a group with its conditions and listed users."""
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
    roles = sorted((await load_model(services, application)).roles.values(), key=lambda role: role.key)
    text = words.casefold()
    found = [role for role in roles if text in role.key or text in role.description.casefold()]
    return [role_document(role) for role in found[:limit]]


async def show_role(services: Services, application: str, role: str) -> object:
    """Show a role of an application."""
    return role_document(find_role(await load_model(services, application), role))


def find_role(model: ApplicationModel, name: str) -> Role:
    found = model.roles.get(name.lower())
    if found is None:
        raise RoleNotFound(f"no role {name}")
    return found


async def load_model(services: Services, application: str) -> ApplicationModel:
    """Return the application of that ID or name, with its roles."""
    number = (await find_application(services, application)).application_id
    return (await services.storage.permissions.application_models([number]))[number]


LIST_ROLES: Final = list_command(
    search_roles, ("name", "protected", "default", "user_limit", "description"), click.Argument(["application"])
)
SHOW_ROLE: Final = show_command(show_role, "application", "role")
