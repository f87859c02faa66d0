"""`gatehouse apply`: apply a file that describes the installation (R7)."""

import sys
from pathlib import Path
from typing import Final

import click

from gatehouse.app.services import Services
from gatehouse.app.services.provisioning import build_provisioning
from gatehouse.cli.common import Invocation, common_options, create_data_directory, json_option, print_json
from gatehouse.cli.output import show_progress
from gatehouse.cli.services import operator_origin, run_with_services
from gatehouse.kernel.errors import BadInput
from gatehouse.provision.document import Document, read_document
from gatehouse.provision.file_secrets import SecretResolver
from gatehouse.provision.model import Action, Change, Plan, Unfit
from gatehouse.provision.plan import SECTIONS
from gatehouse.provision.sections.section import Options, SectionEntries, read_entries
from gatehouse.settings.merge import file_privacy, process_environment
from gatehouse.settings.secret_files import FilePrivacy, read_private

EXIT_REFUSED: Final = 1
EXIT_WOULD_CHANGE: Final = 2
STANDARD_INPUT: Final = Path("-")
MARKS: Final = {Action.ADD: ("+", "green"), Action.CHANGE: ("~", "yellow"), Action.REMOVE: ("-", "red")}


@click.command()
@common_options
@json_option
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Print the changes without applying them; exit 2 if there are any.")
@click.option("--prune", is_flag=True, help="Remove entries that the file's sections don't list.")
@click.option(
    "--allow-weak", is_flag=True, help="Accept weak passwords and short client secrets.  [implied by --dev]"
)
def apply(invocation: Invocation, *, file: Path, dry_run: bool, prune: bool, allow_weak: bool, as_json: bool) -> None:
    """Create and update what FILE lists.

    FILE is .yaml, .toml or .json; - reads YAML from standard input. Runs in one transaction and is idempotent. An
    absent field is left unchanged, null clears it, a value replaces it completely. The service may be running or
    stopped.
    """
    environment = process_environment()
    secret_file = SecretFileReader(file, file_privacy(environment, dev=invocation.dev))
    sources = SecretResolver(environment=environment, read_file=secret_file)
    terms = Options(secrets=sources, prune=prune, allow_weak=allow_weak or invocation.dev)
    try:
        asked = read_file(file)
        create_data_directory(invocation.data)
        plan = run_with_services(
            invocation, lambda services: run_apply(services, asked, terms, dry_run=dry_run), may_create=True
        )
    except Unfit as unfit:
        print_refusal(unfit, as_json=as_json)
        sys.exit(EXIT_REFUSED)
    if as_json:
        print_json(plan_summary(plan, dry_run=dry_run))
    else:
        print_plan(plan, dry_run=dry_run)
    if dry_run and plan.changes:
        sys.exit(EXIT_WOULD_CHANGE)


def read_file(file: Path) -> tuple[SectionEntries, ...]:
    if file == STANDARD_INPUT:
        return read_entries(parse_document(sys.stdin.buffer.read(), ".yaml"), SECTIONS)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise Unfit([f"cannot read {file}: {error.strerror}"]) from error
    try:
        document = parse_document(content, file.suffix)
    except Unfit as unfit:
        raise Unfit([f"{file}: {problem}" for problem in unfit.problems]) from unfit
    return read_entries(document, SECTIONS)


def parse_document(content: bytes, suffix: str) -> Document:
    with show_progress("Reading, lines", content.count(b"\n")) as tell:
        return read_document(content, suffix, tell)


async def run_apply(services: Services, asked: tuple[SectionEntries, ...], terms: Options, *, dry_run: bool) -> Plan:
    provisioning = build_provisioning(services, show_progress)
    return await (provisioning.dry_run if dry_run else provisioning.apply)(asked, terms, operator_origin())


class SecretFileReader:
    """Reads what `{file: PATH}` names; a relative path starts at the applied file's directory."""

    def __init__(self, applied: Path, privacy: FilePrivacy) -> None:
        self._directory = applied.parent
        self._privacy = privacy

    def __call__(self, path: str) -> str:
        try:
            return read_private(self._directory / path, self._privacy)
        except ValueError as error:
            raise BadInput(str(error)) from error


def print_refusal(unfit: Unfit, *, as_json: bool) -> None:
    if as_json:
        print_json({"applied": False, "problems": unfit.problems})
        return
    click.echo(unfit.public, err=True)
    for problem in unfit.problems:
        click.echo(f"  {problem}", err=True)


def plan_summary(plan: Plan, *, dry_run: bool) -> dict[str, object]:
    return {
        "applied": not dry_run,
        "changes": [
            {
                "action": change.action,
                "kind": change.kind,
                "name": change.name,
                "fields": change.fields,
                **({"assumed": change.assumed} if change.assumed else {}),
            }
            for change in plan.changes
        ],
        "spared": plan.spared,
        "warnings": plan.warnings,
        "generated_secrets": {} if dry_run else generated_secrets(plan),
    }


def print_plan(plan: Plan, *, dry_run: bool) -> None:
    for change in plan.changes:
        mark, colour = MARKS[change.action]
        click.secho(f"{mark} {change_line(change)}", fg=colour)
    for line in (*plan.spared, *plan.warnings):
        click.echo(f"! {line}")
    click.echo(closing_line(plan, dry_run=dry_run))
    for change in () if dry_run else plan.changes:
        if change.generated_secret is not None:
            what = f"New secret for {change.kind} {change.name}: {change.generated_secret}"
            click.echo(f"{what} (shown only once)")


def change_line(change: Change) -> str:
    details = ", ".join(change.fields) or change.assumed
    return f"{change.kind} {change.name}" + (f": {details}" if details else "")


def closing_line(plan: Plan, *, dry_run: bool) -> str:
    if not plan.changes:
        return "No changes."
    counts = {action: sum(change.action is action for change in plan.changes) for action in Action}
    would = "would be " if dry_run else ""
    return f"{counts[Action.ADD]} {would}added, {counts[Action.CHANGE]} changed, {counts[Action.REMOVE]} removed."


def generated_secrets(plan: Plan) -> dict[str, str]:
    """The secrets created for records that came without one; they are shown only once."""
    return {
        change.name if change.kind == "client" else f"{change.kind} {change.name}": change.generated_secret
        for change in plan.changes
        if change.generated_secret is not None
    }
