"""The command line. Each command has a file of its own, imported only when it is called."""

import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from gatehouse.cli.groups import CommandGroup
from gatehouse.cli.manifest import PROGRAM, completion_tree, stored_help
from gatehouse.kernel.errors import GatehouseError, NotWritable

SECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "Run": {
        "serve": "serve:serve",
        "config": "config:config",
        "doctor": "doctor:doctor",
        "healthcheck": "healthcheck:healthcheck",
        "mail": "mail:mail",
        "migrate": "migrate:migrate",
    },
    "People": {
        "admin": "admin:admin",
        "user": "command_groups:user",
        "import": "import_accounts:import_accounts",
    },
    "Permissions": {
        "check": "access:check",
        "explain": "access:explain",
        "group": "command_groups:group",
        "members": "members:members",
        "role": "command_groups:role",
        "simulate": "simulate:simulate",
        "test": "test:test",
        "apply": "apply:apply",
        "export": "export:export",
    },
    "Clients and keys": {
        "application": "command_groups:application",
        "client": "client:client",
        "key": "key:key",
        "service-token": "service_token:service_token",
        "webhook": "webhook:webhook",
    },
    "Data": {
        "audit": "audit:audit",
        "backup": "backup:backup",
        "restore": "restore:restore",
        "project": "command_groups:project",
    },
    "Develop": {
        "sample-app": "samples:sample_app",
        "sample-game": "samples:sample_game",
        "completion": "completion:completion",
        "version": "version:version",
    },
}
COMMANDS: Final = {name: place for section in SECTIONS.values() for name, place in section.items()}


class ConfigurationRefused(click.ClickException):
    exit_code = os.EX_CONFIG


class MainGroup(CommandGroup):
    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *rest: Any, **more: Any) -> Any:  # noqa: ANN401
        """Answer help from commands.json, which takes a fraction of the time of importing the command."""
        words = sys.argv[1:] if args is None else list(args)
        program = prog_name or Path(sys.argv[0]).name
        text = stored_help(words) if program == PROGRAM and more.get("standalone_mode", True) else None
        if text is not None:
            click.echo(text)
            sys.exit(0)
        return super().main(args, prog_name, *rest, **more)

    def _main_shell_completion(
        self, ctx_args: MutableMapping[str, Any], prog_name: str, complete_var: str | None = None
    ) -> None:
        completion_tree()._main_shell_completion(ctx_args, prog_name, complete_var)  # noqa: SLF001 - click's own hook

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, names in SECTIONS.items():
            self.write_commands(ctx, formatter, section, names)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Print the private half of an error, because the operator types commands, and no traceback."""
        try:
            return super().invoke(ctx)
        except NotWritable as error:
            raise ConfigurationRefused(str(error)) from error
        except GatehouseError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=MainGroup, places=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gatehouse", prog_name="gatehouse", message="%(prog)s %(version)s")
def main() -> None:
    """Gatehouse: single sign-on, game login and permissions."""
