"""service_meta.config_schema: a JSON schema that is kept and handed out, and never run here (checklist AP-09).

So no pattern of it is ever matched and no reference followed; what remains is to bound it. References that lead
elsewhere are refused all the same, for the sake of those who do run it.
"""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Final

from gatehouse.permissions.documents.fields import printable, read_members
from gatehouse.permissions.errors import Malformed

MAX_CONFIG_SCHEMA_DEPTH: Final = 32
MAX_CONFIG_SCHEMA_VALUES: Final = 5_000
MAX_CONFIG_SCHEMA_CHARACTERS: Final = 65_536  # of all names and texts together
MAX_INTEGER: Final = 2**63 - 1
REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
NUL: Final = "\0"  # PostgreSQL keeps no NUL


def check_config_schema(document: object, place: str) -> Mapping[str, object]:
    schema = read_members(document, place)
    values: list[tuple[object, int]] = [(schema, 1)]
    characters = 0
    for value, depth in values:  # grows while it is walked: no recursion, however deep the document is
        if depth > MAX_CONFIG_SCHEMA_DEPTH:
            raise Malformed(f"{place}: nested more than {MAX_CONFIG_SCHEMA_DEPTH} levels deep")
        characters += _text_length(value, place)
        if characters > MAX_CONFIG_SCHEMA_CHARACTERS:
            raise Malformed(f"{place}: at most {MAX_CONFIG_SCHEMA_CHARACTERS} characters")
        values.extend((child, depth + 1) for child in _children(value, place))
        if len(values) > MAX_CONFIG_SCHEMA_VALUES:
            raise Malformed(f"{place}: at most {MAX_CONFIG_SCHEMA_VALUES} values")
    return schema


def _children(value: object, place: str) -> Iterable[object]:
    if isinstance(value, Mapping):
        members = read_members(value, place)
        _refuse_foreign_references(members, place)
        return members.values()
    return value if isinstance(value, list | tuple) else ()


def _refuse_foreign_references(members: Mapping[str, object], place: str) -> None:
    for name in REFERENCES:
        target = members.get(name)
        if isinstance(target, str) and not target.startswith("#"):
            raise Malformed(f"{place}: {name} refers outside the schema, to {printable(target)}")


def _text_length(value: object, place: str) -> int:
    """How much text a value holds by itself; raises for what JSON, or a database, does not have."""
    match value:
        case str():
            return _storable_length(value, place)
        case Mapping():
            return sum(_storable_length(name, place) for name in read_members(value, place))
        case bool() | None | list() | tuple():
            return 0
        case int() if -MAX_INTEGER <= value <= MAX_INTEGER:
            return 0
        case float() if isfinite(value):
            return 0
        case _:
            raise Malformed(f"{place}: {printable(value)} is not allowed")


def _storable_length(text: str, place: str) -> int:
    if NUL in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise Malformed(f"{place}: NUL and surrogates are not allowed")
    return len(text)
