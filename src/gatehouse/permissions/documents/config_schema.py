"""service_meta.config_schema: a JSON schema that is kept and handed out, and never run here (checklist AP-09).

So no pattern of it is ever matched and no reference followed; what remains is to bound it. References that lead
elsewhere are refused all the same, for the sake of those who do run it.
"""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Final

from gatehouse.permissions.documents.fields import read_members, shown
from gatehouse.permissions.errors import Malformed

DEEPEST: Final = 32
VALUES_MOST: Final = 5_000
CHARACTERS_MOST: Final = 65_536  # of all names and texts together
HIGHEST_INTEGER: Final = 2**63 - 1
REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
UNKEPT: Final = "\0"  # PostgreSQL keeps no NUL


def check_config_schema(document: object, place: str) -> Mapping[str, object]:
    schema = read_members(document, place)
    values: list[tuple[object, int]] = [(schema, 1)]
    characters = 0
    for value, depth in values:  # grows while it is walked: no recursion, however deep the document is
        if depth > DEEPEST:
            raise Malformed(f"{place}: nested more than {DEEPEST} levels deep")
        characters += _characters(value, place)
        if characters > CHARACTERS_MOST:
            raise Malformed(f"{place}: at most {CHARACTERS_MOST} characters")
        values.extend((child, depth + 1) for child in _children(value, place))
        if len(values) > VALUES_MOST:
            raise Malformed(f"{place}: at most {VALUES_MOST} values")
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
            raise Malformed(f"{place}: {name} refers outside the schema, to {shown(target)}")


def _characters(value: object, place: str) -> int:
    """How much text a value holds by itself; raises for what JSON, or a database, does not have."""
    match value:
        case str():
            return _kept(value, place)
        case Mapping():
            return sum(_kept(name, place) for name in read_members(value, place))
        case bool() | None | list() | tuple():
            return 0
        case int() if -HIGHEST_INTEGER <= value <= HIGHEST_INTEGER:
            return 0
        case float() if isfinite(value):
            return 0
        case _:
            raise Malformed(f"{place}: {shown(value)} is not allowed")


def _kept(text: str, place: str) -> int:
    if UNKEPT in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise Malformed(f"{place}: NUL and surrogates are not allowed")
    return len(text)
