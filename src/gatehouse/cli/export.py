"""`gatehouse export`: the installation as a file that `gatehouse apply` takes unchanged (R7)."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from gatehouse.app.services import Services
from gatehouse.app.services.provisioning import build_provisioning
from gatehouse.cli.common import Invocation, common_options
from gatehouse.cli.output import show_progress
from gatehouse.cli.services import run_with_services
from gatehouse.provision.document import Document, write_json, write_yaml
from gatehouse.provision.plan import SECTION_NAMES

WRITERS: Final = {"yaml": write_yaml, "json": write_json}


@click.command()
@common_options
@click.option("--no-secrets", is_flag=True, help="Leave out passwords and secrets; applying keeps the existing ones.")
@click.option("--only", type=click.Choice(SECTION_NAMES), multiple=True, help="Export this section; repeatable.")
@click.option("--no-users", is_flag=True, help="Leave out accounts; what people hold refers to them by user ID.")
@click.option("--format", "form", type=click.Choice(list(WRITERS)), default="yaml", show_default=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to this file, readable only by you.",
)
def export(
    invocation: Invocation, *, no_secrets: bool, only: tuple[str, ...], no_users: bool, form: str, output: Path | None
) -> None:
    """Export users, clients and permissions in the format of `gatehouse apply`.

    Secrets are encrypted with the master key and usable only by an installation with the same key. Two exports of
    an unchanged installation are identical, byte for byte.
    """

    async def read(services: Services) -> Mapping[str, Sequence[Document]]:
        return await build_provisioning(services).export(secrets=not no_secrets, only=names, report=print_left_out)

    names = set(only or SECTION_NAMES) - ({"users"} if no_users else set())
    if not names:
        raise click.UsageError("--only users and --no-users leave nothing to export.")

    sections = run_with_services(invocation, read)
    with show_progress("Exporting, entries", sum(map(len, sections.values()))) as tell:
        text = WRITERS[form](sections, tell)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_private(output, text)


def print_left_out(line: str) -> None:
    click.echo(f"left out because it could not be applied: {line}", err=True)


def write_private(path: Path, text: str) -> None:
    """Replace the file when the new one is complete; only its owner can read it."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}-", encoding="utf-8", delete=False
        ) as draft:
            draft.write(text)
        Path(draft.name).replace(path)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from error
