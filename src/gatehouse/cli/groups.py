"""Groups of commands, whose help shows each command with a whole sentence."""

import gc
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import click


class CommandGroup(click.Group):
    """A group whose list of commands wraps sentences where click's own cuts them off.

    `places` are commands that are imported when they are called: `module:name` below gatehouse.cli.
    """

    def __init__(self, *given: Any, places: Mapping[str, str] | None = None, **more: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(*given, **more)
        self.places = places or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self.places.get(cmd_name)
        return super().get_command(ctx, cmd_name) if place is None else import_command(place)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest a command for a word that is none."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(error.message + did_you_mean(args[0], self.list_commands(ctx)), ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.write_commands(ctx, formatter, "Commands", self.list_commands(ctx))

    def write_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter, section: str, names: Iterable[str]
    ) -> None:
        commands = ((name, self.get_command(ctx, name)) for name in names)
        with formatter.section(section):
            formatter.write_dl([(name, first_sentence(one)) for name, one in commands if one is not None])


def import_command(place: str) -> click.Command:
    """Import a command. Its modules stay, and looking for garbage in them takes a sixth of the time."""
    module, _, name = place.partition(":")
    gc.disable()
    try:
        command: click.Command = getattr(import_module(f"gatehouse.cli.{module}"), name)
    finally:
        gc.enable()
    return command


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A suggestion to follow an error; empty when no known word is similar."""
    from difflib import get_close_matches

    return "".join(f" Did you mean {one}?" for one in get_close_matches(word, known, n=1))


def first_sentence(command: click.Command) -> str:
    paragraph = " ".join((command.help or "").partition("\n\n")[0].split())
    return paragraph.partition("; ")[0].removesuffix(".") + "."
