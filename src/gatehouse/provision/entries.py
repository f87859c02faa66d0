"""From a document to typed records: every name known, every value of its type, all complaints at once."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from gatehouse.provision.document import Document
from gatehouse.provision.errors import Problems, Unfit
from gatehouse.provision.given import FileSecret
from gatehouse.provision.sections.section import FileSection, Located

RecordT = TypeVar("RecordT", bound=Struct)

NUMBER_ERRORS: Final = ("got `int`", "got `float`", "got `bool`")


@dataclass(frozen=True, slots=True)
class SectionEntries:
    """A section the file names, with its records in the order of the file."""

    section: FileSection[Any]
    entries: tuple[Located[Any], ...]


def read_entries(document: Document, sections: Iterable[FileSection[Any]]) -> tuple[SectionEntries, ...]:
    """Return the named sections in the order of the table. Raises Unfit with all that is wrong."""
    table = {section.name: section for section in sections}
    problems = Problems()
    for name in document:
        if name not in table:
            problems.add(name, f"unknown section{suggestion(name, table)}")
    asked = tuple(
        SectionEntries(section, tuple(read_section(section, document[name], problems)))
        for name, section in table.items()
        if name in document
    )
    if problems.lines:
        raise Unfit(problems.lines)
    return asked


def read_section(section: FileSection[RecordT], given: object, problems: Problems) -> Iterator[Located[RecordT]]:
    if not isinstance(given, list):
        problems.add(section.name, "must be a list of records")
        return
    for number, record in enumerate(given):
        place = f"{section.name}[{number}]"
        entry = read_record(record, section.entry, place, problems)
        if entry is not None:
            yield Located(place, entry)


def read_record(record: object, kind: type[RecordT], place: str, problems: Problems) -> RecordT | None:
    """The record in its type; None after every complaint about it is collected."""
    if not isinstance(record, dict):
        problems.add(place, "must be a record with named fields")
    elif fields_are_valid(kind, record, place, problems):
        entry: RecordT | None = convert_value(record, kind, place, problems)
        return entry
    return None


def fields_are_valid(entry: type[Struct], record: Document, place: str, problems: Problems) -> bool:
    """Look at each field by itself: msgspec would stop at the first complaint."""
    known = {field.name: field.type for field in msgspec.structs.fields(entry)}
    before = len(problems.lines)
    for name, value in record.items():
        if name in known:
            convert_value(value, known[name], f"{place}.{name}", problems)
        else:
            problems.add(f"{place}.{name}", f"unknown field{suggestion(name, known)}")
    return len(problems.lines) == before


def convert_value(value: object, kind: Any, place: str, problems: Problems) -> Any:  # noqa: ANN401 - a type, and a value of it
    try:
        return msgspec.convert(value, kind, dec_hook=decode_hook)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        hint = ", put it in quotes" if "Expected `str" in what and what.endswith(NUMBER_ERRORS) else ""
        problems.add(f"{place}{path.rstrip('`')}", what + hint)
        return None


def decode_hook(kind: type, value: object) -> object:
    if kind is FileSecret:
        return FileSecret.parse(value)
    if kind is object:
        return value
    raise TypeError(f"no field is a {kind}")


def suggestion(name: str, known: Mapping[str, object]) -> str:
    near = get_close_matches(name.lower(), known, n=1)
    return f", did you mean {near[0]}?" if near else ""
