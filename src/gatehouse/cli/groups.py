"""Groups of commands, whose help shows each command with a whole sentence."""

from collections.abc import Iterable

import click


class CommandGroup(click.Group):
    """A group whose list of commands wraps sentences where click's own cuts them off."""

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


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A suggestion to follow an error; empty when no known word is similar."""
    from difflib import get_close_matches

    return "".join(f" Did you mean {one}?" for one in get_close_matches(word, known, n=1))


def first_sentence(command: click.Command) -> str:
    paragraph = " ".join((command.help or "").partition("\n\n")[0].split())
    return paragraph.partition("; ")[0].removesuffix(".") + "."
