"""Groups of commands, whose help shows each command with a whole sentence."""

from collections.abc import Iterable

import click


class CommandGroup(click.Group):
    """A group whose list of commands wraps sentences where click's own cuts them off."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.write_commands(ctx, formatter, "Commands", self.list_commands(ctx))

    def write_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter, section: str, names: Iterable[str]
    ) -> None:
        commands = ((name, self.get_command(ctx, name)) for name in names)
        with formatter.section(section):
            formatter.write_dl([(name, first_sentence(one)) for name, one in commands if one is not None])


def first_sentence(command: click.Command) -> str:
    paragraph = " ".join((command.help or "").partition("\n\n")[0].split())
    return paragraph.partition("; ")[0].removesuffix(".") + "."
