"""Options of commands from the descriptions of fields, and the values that were given with them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import msgspec

from gatehouse.cli.common import Function
from gatehouse.fields.model import DescribedField, FieldT, Kind

T = TypeVar("T")

KIND_ARGUMENTS: Final[Mapping[Kind, Mapping[str, Any]]] = {
    Kind.LIST: {"multiple": True},
    Kind.NUMBER: {"type": int},
    Kind.DOCUMENT: {"metavar": "FILE"},
}


def field_options(
    described: Sequence[DescribedField[FieldT]],
    arguments: Callable[[DescribedField[FieldT]], Mapping[str, Any]] | None = None,
) -> Callable[[Function], Function]:
    """Add an option for each field; without `arguments` of another kind, one that is not given has no value."""

    def add(command: Function) -> Function:
        for one in reversed(described):
            option = one.field.option or option_name(one)
            more = (arguments or option_arguments)(one)
            command = click.option(option, one.name, help=one.field.help, **more)(command)
        return command

    return add


def option_name(one: DescribedField[FieldT]) -> str:
    words = one.name.replace("_", "-")
    return f"--{words}/--no-{words}" if one.kind is Kind.FLAG else f"--{words}"


def option_arguments(one: DescribedField[FieldT]) -> Mapping[str, Any]:
    if one.kind is Kind.CHOICE:
        return {"type": click.Choice([member.value for member in one.type])}
    return {"default": None} if one.kind is Kind.FLAG else KIND_ARGUMENTS.get(one.kind, {})


def given_values(described: Iterable[DescribedField[FieldT]], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that were given, as a request has them: an empty value clears a field."""
    return {one.name: given_value(one, given[one.name]) for one in described if given[one.name] not in (None, ())}


def changed_values(described: Iterable[DescribedField[FieldT]], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same for a change, which needs at least one."""
    values = given_values(described, given)
    if not values:
        raise click.UsageError("nothing to change: use at least one option")
    return values


def given_value(one: DescribedField[FieldT], given: Any) -> Any:  # noqa: ANN401 - the type of the field
    if one.kind is Kind.LIST:
        return [value for value in given if value]
    if given == "" and not one.is_required:
        return None
    return read_json_file(Path(given)) if one.kind is Kind.DOCUMENT else given


def read_draft(draft: type[T], values: Mapping[str, Any]) -> T:
    """Return what a request with these values would be read into."""
    try:
        return msgspec.convert(values, draft)
    except msgspec.ValidationError as error:
        raise click.UsageError(str(error)) from None


def read_json_file(path: Path) -> object:
    try:
        found: object = json.loads(path.read_text())
    except OSError as error:
        raise click.UsageError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise click.UsageError(f"{path} is not valid JSON") from None
    return found
