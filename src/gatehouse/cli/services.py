"""Opens an existing database, unchanged, or the services on it, for a command."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from getpass import getuser
from pathlib import Path
from typing import TypeVar

import click
from msgspec import Struct

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import CENTRAL_APPLICATION, User
from gatehouse.admin.names import NamedApplication, NameStore
from gatehouse.app.services import Services, open_services
from gatehouse.app.services.core import open_database
from gatehouse.audit.model import AuditOrigin
from gatehouse.cli.common import Invocation, load_settings
from gatehouse.cli.groups import did_you_mean
from gatehouse.cli.output import printable
from gatehouse.kernel.clock import SystemClock
from gatehouse.kernel.errors import Misconfigured
from gatehouse.permissions.errors import ApplicationNotFound
from gatehouse.permissions.rights.actor import Actor
from gatehouse.settings.merge import LoadedSettings
from gatehouse.storage.database import Storage
from gatehouse.storage.sqlite.runner import sqlite_path


class NoInstallation(Misconfigured):
    """There is no database, or an empty one, where the settings say it is."""


@asynccontextmanager
async def open_existing_database(loaded: LoadedSettings) -> AsyncIterator[Storage]:
    """Connect to a database that has a schema. Raises NoInstallation."""
    refuse_missing_file(loaded)
    async with open_database(loaded) as storage:
        if not await storage.runner.revision():
            raise NoInstallation(f"the database {loaded.settings.database.url.masked} is empty")
        yield storage


def refuse_missing_file(loaded: LoadedSettings) -> None:
    """SQLite would create it, and a command would report on an empty installation."""
    path = sqlite_file(loaded)
    if path is not None and not path.exists():
        raise NoInstallation(f"no database at {path}; check --data")


def sqlite_file(loaded: LoadedSettings) -> Path | None:
    url = loaded.settings.database.url
    return Path(sqlite_path(url.reveal())) if url.is_sqlite else None


# Running one coroutine with the services.


T = TypeVar("T")


def run_with_services(
    invocation: Invocation,
    work: Callable[[Services], Awaitable[T]],
    *,
    may_create: bool = False,
    uses_keys: bool = True,
) -> T:
    """Run the work with the services; the server may be running or not.

    Raises NoInstallation where there is no database yet, unless the command is one that founds an installation.
    """
    from gatehouse import logs

    loaded = load_settings(invocation)
    logs.configure(dev=True, level="warning")
    if not may_create:
        refuse_missing_file(loaded)

    async def run() -> T:
        opened = open_services(loaded, clock=SystemClock(), serving=False, initialize=may_create, uses_keys=uses_keys)
        async with opened as services:
            return await work(services)

    return asyncio.run(run())


def operator_origin() -> AuditOrigin:
    """The person at the command line, as the audit log names them."""
    return AuditOrigin(actor=f"cli:{getuser()}")


async def operator_actor(services: Services) -> Actor:
    """The same person with the rights of an administrator."""
    from gatehouse.permissions.rights.operators import operator_actor as acting

    models = await services.storage.permissions.application_models([CENTRAL_APPLICATION])
    return acting(models[CENTRAL_APPLICATION], operator_origin(), services.clock.now())


# What commands are about: an application, a person, and a permission.


Function = TypeVar("Function", bound=Callable[..., object])


async def find_application(services: Services, name: str) -> NamedApplication:
    """The application of that ID or name. Raises ApplicationNotFound, with a suggestion."""
    from gatehouse.admin.people import PeopleListStore

    applications = await PeopleListStore(services.storage.runner).applications()
    found = [one for one in applications if name in (str(one.application_id), one.name)] or [
        one for one in applications if name.casefold() == one.name.casefold()
    ]
    if not found:
        raise ApplicationNotFound(f"no application {name}.{did_you_mean(name, [one.name for one in applications])}")
    if len(found) > 1:
        ids = ", ".join(str(one.application_id) for one in found)
        raise ApplicationNotFound(f"several applications are called {name}; use an ID: {ids}")
    return found[0]


async def names_of_people(services: Services, user_ids: Collection[str]) -> Mapping[str, str]:
    """The names of those that are people, by user ID."""
    people = await NameStore(services.storage.runner).people_by_id(user_ids)
    return {user_id: person.nick for user_id, person in people.items()}


async def warn_about_unknown_permission(services: Services, application: NamedApplication, permission: str) -> None:
    """Say it if the application does not describe the permission: a typing error is denied to everyone."""
    from gatehouse.permissions.documents.rules import schema_rules

    models = await services.storage.permissions.application_models([application.application_id])
    schema = models[application.application_id].schema
    known = sorted(rule.path for rule in schema_rules(schema.private_data, schema.public_data))
    path = permission.removeprefix("private_data.").removeprefix("public_data.")
    if path not in known:
        suggestion = did_you_mean(path, known)
        click.echo(f"{printable(path)} is not a permission of {printable(application.name)}.{suggestion}", err=True)


async def find_user(services: Services, name: str) -> User:
    """The account of that login or user id. Raises UserNotFound."""
    if "@" not in name:
        return await user_by_id(services, name)
    found = await services.storage.accounts.user_by_login(name)
    if found is None:
        raise UserNotFound(f"no account with the login {name}")
    return found


async def user_by_id(services: Services, user_id: str) -> User:
    try:
        return await services.storage.accounts.user(user_id)
    except UserNotFound:
        raise UserNotFound(f"no user {user_id}") from None


class PasswordSource(Struct, frozen=True, kw_only=True):
    file: Path | None
    stdin: bool

    def read(self) -> str:
        """The password: one line from the file or from standard input, else typed twice."""
        if self.file is not None and self.stdin:
            raise click.UsageError("use either --password-file or --password-stdin")
        if self.file is not None:
            return password_line(self.file.read_bytes())
        if self.stdin:
            return password_line(sys.stdin.buffer.read())
        if not sys.stdin.isatty():
            raise click.UsageError("no terminal to ask for the password: use --password-file or --password-stdin")
        password: str = click.prompt("Password", hide_input=True, confirmation_prompt=True)
        return password


def password_line(content: bytes) -> str:
    try:
        text = content.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise click.ClickException("the password is not UTF-8 text") from None
    if not text or "\n" in text:
        raise click.ClickException("the password must be a single line")
    return text


def password_options(command: Function) -> Function:
    """Never as a value on the command line, where every user of the machine could read it."""
    file = click.option(
        "--password-file",
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        help="File with the password.",
    )
    stdin = click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
    return file(stdin(command))
