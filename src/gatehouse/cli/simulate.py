"""`gatehouse simulate`: who would gain and who would lose what by a change."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.app.services import Services
from gatehouse.cli.common import Invocation, common_options, json_option, print_json
from gatehouse.cli.services import find_application, operator_origin, run_with_services
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.questions.proposals import AnyProposal, Proposer
from gatehouse.permissions.questions.simulate import Effect
from gatehouse.permissions.rights.operators import operator_actor as acting
from gatehouse.provision.document import read_document

STANDARD_INPUT: Final = Path("-")
PAGE: Final = 1_000


@click.command()
@common_options
@json_option
@click.argument("application")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
def simulate(invocation: Invocation, *, application: str, file: Path, as_json: bool) -> None:
    """Preview who would gain or lose access in APPLICATION by the change in FILE; nothing is saved.

    FILE (.yaml, .toml or .json; - reads YAML from standard input) contains `kind` (role, schema, group, group_access,
    project, membership or record) and its data, like `change` of POST /api/permissions/simulate.
    """
    change = read_change(file)
    found = run_with_services(invocation, lambda services: simulate_effects(services, application, change))
    if as_json:
        print_json(found)
        return
    for line in (line for one in found for line in effect_lines(one)):
        click.echo(line)
    click.echo(f"{len(found)} affected")


def read_change(file: Path) -> AnyProposal:
    try:
        content = sys.stdin.buffer.read() if file == STANDARD_INPUT else file.read_bytes()
    except OSError as error:
        raise click.ClickException(f"cannot read {file}: {error.strerror}") from error
    suffix = ".yaml" if file == STANDARD_INPUT else file.suffix
    try:
        change: AnyProposal = msgspec.convert(read_document(content, suffix), AnyProposal, strict=True)
    except msgspec.ValidationError as error:
        raise Malformed(str(error)) from error
    return change


async def simulate_effects(services: Services, application: str, change: AnyProposal) -> Sequence[Effect]:
    application_id = (await find_application(services, application)).application_id
    models = await services.storage.permissions.application_models([CENTRAL_APPLICATION, application_id])
    actor = acting(models[CENTRAL_APPLICATION], operator_origin(), services.clock.now())
    by = Proposer(actor=actor, model=models[application_id], central=models[CENTRAL_APPLICATION])
    found: list[Effect] = []
    after: str | None = ""
    while after is not None:
        page = await services.questions.simulation.run(change, by, after=after, limit=PAGE)
        found += page.effects
        after = page.after
    return found


def effect_lines(one: Effect) -> Sequence[str]:
    return [
        one.user_id,
        *(f"  + role {name}" for name in one.gains_roles),
        *(f"  - role {name}" for name in one.loses_roles),
        *(f"  + {rule}" for rule in one.gains),
        *(f"  - {rule}" for rule in one.loses),
    ]
