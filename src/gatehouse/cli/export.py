"""`gatehouse export`: the installation as a file that `gatehouse apply` takes unchanged (R7)."""

import tempfile
from pathlib import Path
from typing import Final

import click

from gatehouse.app.house import Services
from gatehouse.app.provisioning import build_provisioning
from gatehouse.cli.common import Invocation, common_options
from gatehouse.cli.house import run_with_services
from gatehouse.provision.document import Document, write_json, write_yaml

WRITERS: Final = {"yaml": write_yaml, "json": write_json}


@click.command()
@common_options
@click.option("--no-secrets", is_flag=True, help="Leave out passwords and secrets; applying keeps the existing ones.")
@click.option("--format", "form", type=click.Choice(list(WRITERS)), default="yaml", show_default=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to this file, readable only by you.",
)
def export(invocation: Invocation, *, no_secrets: bool, form: str, output: Path | None) -> None:
    """Export users, clients and permissions in the format of `gatehouse apply`.

    Secrets are encrypted with the master key and usable only by an installation with the same key. Two exports of
    an unchanged installation are identical, byte for byte.
    """

    async def read(services: Services) -> Document:
        return await build_provisioning(services).export(secrets=not no_secrets, report=print_left_out)

    text = WRITERS[form](run_with_services(invocation, read))
    if output is None:
        click.echo(text, nl=False)
    else:
        write_private(output, text)


def print_left_out(line: str) -> None:
    click.echo(f"left out because it could not be applied: {line}", err=True)


def write_private(path: Path, text: str) -> None:
    """Put the file in place when it is complete, readable by its owner only, whatever was there before."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}-", encoding="utf-8", delete=False
        ) as draft:
            draft.write(text)
        Path(draft.name).replace(path)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from error
