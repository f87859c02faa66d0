"""Derive requests, entries and differences from described fields."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from operator import attrgetter
from typing import Any, TypeVar, cast

import msgspec
from msgspec import NODEFAULT, UNSET, UnsetType
from msgspec.structs import replace

from gatehouse.fields.model import DescribedField, FieldT

T = TypeVar("T")
StructT = TypeVar("StructT", bound=msgspec.Struct)

Member = tuple[str, Any, Any]  # name, type and default of a member of a Struct


def with_members(members: Callable[[], Iterable[Member]]) -> Callable[[type[StructT]], type[StructT]]:
    """Add members to a Struct; it declares only those that code reads by name."""

    def extend(struct: type[StructT]) -> type[StructT]:
        config = struct.__struct_config__
        extended = msgspec.defstruct(
            struct.__name__,
            [member for member in members() if member[0] not in struct.__struct_fields__],
            bases=(struct,),
            module=struct.__module__,
            namespace={"__doc__": struct.__doc__},
            frozen=True,
            kw_only=True,
            forbid_unknown_fields=config.forbid_unknown_fields,
            omit_defaults=config.omit_defaults,
        )
        return cast("type[StructT]", extended)

    return extend


def patch_members(described: Iterable[DescribedField[Any]]) -> Iterator[Member]:
    """Yield the members of a request that changes a record: absent keeps, null clears, a value replaces (R6)."""
    for one in described:
        if one.field.patchable:
            yield one.name, one.type | UnsetType | None, UNSET


def entry_members(described: Iterable[DescribedField[Any]]) -> Iterator[Member]:
    """Yield the members of a record as the API returns it."""
    for one in described:
        yield one.entry_name, one.entry_type, NODEFAULT


def optional_members(described: Iterable[DescribedField[Any]]) -> Iterator[Member]:
    """Yield the same, for a record that leaves some of them out."""
    for one in described:
        yield one.entry_name, one.entry_type | UnsetType, UNSET


def draft_members(described: Iterable[DescribedField[Any]]) -> Iterator[Member]:
    """Yield the members of a request that sends a whole entry; its reader checks those that may change (R6)."""
    for one in described:
        yield one.entry_name, object, UNSET


def entry_values(record: object, described: Iterable[DescribedField[Any]]) -> dict[str, Any]:
    """Return the members of an entry by name."""
    return {one.entry_name: one.entry_value(record) for one in described}


def document_values(record: object, described: Iterable[DescribedField[Any]]) -> dict[str, Any]:
    """Return them as files and audit records have them: lists for tuples, the values of enumerations."""
    return {one.entry_name: plain_value(one.entry_value(record)) for one in described}


def plain_value(value: Any) -> Any:  # noqa: ANN401 - any value of a record
    if isinstance(value, tuple):
        return [plain_value(member) for member in value]
    return value.value if isinstance(value, Enum) else value


def entry_columns(described: Iterable[DescribedField[Any]], inside: str = "") -> dict[str, Callable[[Any], object]]:
    """Return the columns of a CSV file of entries, or of rows that have the entry in an attribute."""
    place = f"{inside}." if inside else ""
    return {one.entry_name: attrgetter(place + one.entry_name) for one in described}


def with_values(record: T, values: Mapping[str, Any]) -> T:
    """Return the record, a dataclass or a Struct, with these values."""
    if isinstance(record, msgspec.Struct):
        return msgspec.structs.replace(record, **values)
    return cast("T", replace(cast("Any", record), **values))


def copy_as(target: Callable[..., T], source: object, /, **values: Any) -> T:  # noqa: ANN401 - fields of the target
    """Return a record with these values; its other fields come from attributes of the source, or are defaults."""
    fields = getattr(target, "__struct_fields__", None) or target.__dataclass_fields__  # type: ignore[attr-defined]
    same = {name: getattr(source, name) for name in fields if name not in values and hasattr(source, name)}
    return target(**same, **values)


def patched_value(given: T | UnsetType | None, *, kept: T, cleared: T) -> T:
    if given is UNSET:
        return kept
    return cleared if given is None else given


def changed_names(before: object, after: object, described: Iterable[DescribedField[Any]]) -> tuple[str, ...]:
    """Return the names of the fields that differ."""
    return tuple(one.name for one in described if getattr(before, one.name) != getattr(after, one.name))


FormRows = list[tuple[DescribedField[FieldT], ...]]


def form_rows(described: Iterable[DescribedField[FieldT]]) -> FormRows[FieldT]:
    """Return the fields of a form in rows; two short ones after each other share one."""
    rows: FormRows[FieldT] = []
    for one in described:
        if one.is_short and rows and len(rows[-1]) == 1 and rows[-1][0].is_short:
            rows[-1] = (*rows[-1], one)
        else:
            rows.append((one,))
    return rows


def rows_by_section(described: Sequence[DescribedField[FieldT]]) -> Mapping[str, FormRows[FieldT]]:
    """Return the rows of each section of a form."""
    sections = dict.fromkeys(str(one.field.section) for one in described)
    return {name: form_rows(one for one in described if one.field.section == name) for name in sections}
