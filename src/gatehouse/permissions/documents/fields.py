"""Read the fields of requests and files: strict types, and errors that name the place.

Booleans are never read as numbers, nor numbers as text: what is read back equals what was sent (checklist SC-14).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, TypeVar

from msgspec import UNSET

from gatehouse.fields.derive import with_values
from gatehouse.fields.model import DescribedField, Field
from gatehouse.kernel.text import is_plain_line
from gatehouse.permissions.errors import Malformed

MAX_PRINTABLE_LENGTH: Final = 70  # characters of foreign text in an error

RecordT = TypeVar("RecordT")


@dataclass(frozen=True, slots=True)
class RecordField(Field):
    """The description of a field that requests and files send as JSON."""

    _: KW_ONLY
    read: Callable[[Any, str], Any] | None = None  # (value, place) to the stored form; raises Malformed
    request: str = ""  # its own, which alone changes it: access or tags


def read_fields(
    record: RecordT, draft: object, described: Iterable[DescribedField[RecordField]], place: str
) -> RecordT:
    """Return the record with the fields given: an absent one stays, null clears it (R6). Raises Malformed.

    `place` is what an error puts before the name of a field.
    """
    return with_values(record, read_values(draft, described, place))


def read_values(draft: object, described: Iterable[DescribedField[RecordField]], place: str) -> Mapping[str, Any]:
    """Return the values of the fields given by name, in their stored form; null clears (R6). Raises Malformed."""
    fields = ((field, getattr(draft, field.name, UNSET)) for field in described)
    return {
        field.name: _read_field(field, value, f"{place}{field.name}") for field, value in fields if value is not UNSET
    }


def _read_field(field: DescribedField[RecordField], value: Any, place: str) -> Any:  # noqa: ANN401 - the field's type
    if value is None:
        return field.default
    return value if field.field.read is None else field.field.read(value, place)


def printable(value: object) -> str:
    """Return a member's name for an error text: printable and shortened."""
    text = value if isinstance(value, str) and value.isascii() and value.isprintable() else ascii(value)
    return text if len(text) <= MAX_PRINTABLE_LENGTH else f"{text[:MAX_PRINTABLE_LENGTH]}..."


def read_members(document: object, place: str, known: Collection[str] | None = None) -> Mapping[str, object]:
    """An object whose names are text (a YAML file may have others) and, when `known` is given, among these."""
    if not isinstance(document, Mapping):
        raise Malformed(f"{place}: must be an object").on_screen("an_object")
    for name in document:
        if not isinstance(name, str) or (known is not None and name not in known):
            raise Malformed(f"{place}.{printable(name)}: unknown field").on_screen("unknown_field")
    return document


def member_or(members: Mapping[str, object], name: str, empty: object) -> object:
    """A member, or `empty` when it is absent or null: null clears (R6)."""
    value = members.get(name)
    return empty if value is None else value


def read_list(document: object, place: str, most: int) -> Sequence[object]:
    if not isinstance(document, list | tuple):
        raise Malformed(f"{place}: must be a list").on_screen("a_list")
    if len(document) > most:
        raise Malformed(f"{place}: at most {most} entries").on_screen("entries_most", most=most)
    return document


def read_flag(value: object, place: str) -> bool:
    if not isinstance(value, bool):
        raise Malformed(f"{place}: must be true or false").on_screen("true_or_false")
    return value


def read_number(value: object, place: str, highest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= highest:
        raise Malformed(f"{place}: must be an integer from 0 to {highest}").on_screen("integer_to", highest=highest)
    return value


def read_line(value: object, place: str, longest: int, *, shortest: int = 0) -> str:
    """One line without invisible or misleading characters (checklist AP-14)."""
    if not isinstance(value, str) or not shortest <= len(value) <= longest:
        raise Malformed(f"{place}: must be text of {shortest} to {longest} characters").on_screen(
            "text_length", shortest=shortest, longest=longest
        )
    if not is_plain_line(value):
        raise Malformed(f"{place}: must not contain line breaks, control or invisible characters").on_screen(
            "invisible"
        )
    return value


def read_lines(value: object, place: str, longest: int) -> str:
    """The same with line breaks: a description may have paragraphs."""
    if not isinstance(value, str) or len(value) > longest:
        raise Malformed(f"{place}: must be text of 0 to {longest} characters").on_screen("text_most", longest=longest)
    read_line(value.replace("\n", ""), place, longest)
    return value


def refuse_repeated(values: Sequence[str], place: str) -> None:
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            raise Malformed(f"{place}[{index}]: {printable(value)} is listed twice").on_screen(
                "value_twice", value=printable(value)
            )
        seen.add(value)
