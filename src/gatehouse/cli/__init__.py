"""The command line. Each command has a file of its own, imported only when it is called."""

import gc
import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import click

from gatehouse import __version__
from gatehouse.cli.groups import CommandGroup
from gatehouse.cli.manifest import PROGRAM, completion_tree, stored_help
from gatehouse.kernel.errors import GatehouseError, NotWritable

SECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "Run": {
        "serve": "gatehouse.cli.serve:serve",
        "config": "gatehouse.cli.config:config",
        "doctor": "gatehouse.cli.doctor:doctor",
        "healthcheck": "gatehouse.cli.healthcheck:healthcheck",
        "mail": "gatehouse.cli.mail:mail",
        "migrate": "gatehouse.cli.migrate:migrate",
    },
    "People": {
        "admin": "gatehouse.cli.admin:admin",
        "user": "gatehouse.cli.user:user",
        "import": "gatehouse.cli.import_accounts:import_accounts",
    },
    "Permissions": {
        "check": "gatehouse.cli.access:check",
        "explain": "gatehouse.cli.access:explain",
        "group": "gatehouse.cli.project_groups:group",
        "members": "gatehouse.cli.members:members",
        "role": "gatehouse.cli.roles:role",
        "simulate": "gatehouse.cli.simulate:simulate",
        "test": "gatehouse.cli.test:test",
        "apply": "gatehouse.cli.apply:apply",
        "export": "gatehouse.cli.export:export",
    },
    "Clients and keys": {
        "application": "gatehouse.cli.applications:application",
        "client": "gatehouse.cli.client:client",
        "key": "gatehouse.cli.key:key",
        "service-token": "gatehouse.cli.service_token:service_token",
        "webhook": "gatehouse.cli.webhook:webhook",
    },
    "Data": {
        "audit": "gatehouse.cli.audit:audit",
        "backup": "gatehouse.cli.backup:backup",
        "restore": "gatehouse.cli.restore:restore",
        "project": "gatehouse.cli.project:project",
    },
    "Develop": {
        "sample-app": "gatehouse.cli.samples:sample_app",
        "sample-game": "gatehouse.cli.samples:sample_game",
        "completion": "gatehouse.cli.completion:completion",
        "version": "gatehouse.cli.version:version",
    },
}
COMMANDS: Final = {name: place for section in SECTIONS.values() for name, place in section.items()}


class ConfigurationRefused(click.ClickException):
    exit_code = os.EX_CONFIG


class LazyGroup(CommandGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_without_collections(module), attribute)
        return command

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


def import_without_collections(module: str) -> ModuleType:
    """Import a command: what modules define stays, and looking for garbage in it takes a sixth of the time."""
    gc.disable()
    try:
        return import_module(module)
    finally:
        gc.enable()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gatehouse", message="%(prog)s %(version)s")
def main() -> None:
    """Gatehouse: single sign-on, game login and permissions."""
