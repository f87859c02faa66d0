"""What the commands about accounts share: who is meant, and how a password is given."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.logins import login_key
from gatehouse.accounts.model import User
from gatehouse.app.house import Services

Function = TypeVar("Function", bound=Callable[..., object])


async def find_user(services: Services, name: str) -> User:
    """The account of that login or user id. Raises UserNotFound."""
    if "@" not in name:
        return await user_by_id(services, name)
    found = await services.storage.accounts.user_by_login(login_key(name))
    if found is None:
        raise UserNotFound(f"no account with the login {name}")
    return found


async def user_by_id(services: Services, user_id: str) -> User:
    try:
        return await services.storage.accounts.user(user_id)
    except UserNotFound:
        raise UserNotFound(f"no user {user_id}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordSource:
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
