"""The object types of a schema, read and checked (R12). Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from gatehouse.permissions.documents.fields import (
    member_or,
    printable,
    read_line,
    read_list,
    read_members,
    refuse_repeated,
)
from gatehouse.permissions.documents.trees import SEGMENT, paths_of
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.rules import RuleSection
from gatehouse.permissions.model.schema import ApplicationSchema, ObjectType, UnknownObject

MAX_OBJECT_TYPES: Final = 50
MAX_TYPE_TITLE_LENGTH: Final = 64
MAX_TYPE_RULES: Final = 1_000
RESERVED_TYPES: Final = frozenset({"application", "project", "service", "group", "user", "service_account"})
TYPE_MEMBERS: Final = ("title", "parents", "rules", "unknown")
RULE_PREFIX: Final = f"{RuleSection.PRIVATE}."


def parse_object_types(document: object, place: str) -> Mapping[str, ObjectType]:
    """The types by name, sorted. Raises Malformed."""
    members = read_members(document, place)
    if len(members) > MAX_OBJECT_TYPES:
        raise Malformed(f"{place}: at most {MAX_OBJECT_TYPES} object types").on_screen(
            "entries_most", most=MAX_OBJECT_TYPES
        )
    types = {name: _parse_type(name, members[name], f"{place}.{printable(name)}") for name in sorted(members)}
    for name, object_type in types.items():
        for parent in object_type.parents:
            if parent not in types:
                raise Malformed(f"{place}.{name}.parents: {parent} is not an object type of this schema").on_screen(
                    "one_of", names=", ".join(types)
                )
    return types


def refuse_unknown_type_rules(schema: ApplicationSchema, place: str) -> None:
    """Raise Malformed if a type names a rule that private_data does not have."""
    if not schema.objects:
        return
    known = paths_of(schema.private_data)
    for name, object_type in schema.objects.items():
        for rule in object_type.rules:
            if rule not in known:
                raise Malformed(f"{place}.objects.{name}.rules: {rule} is not a rule of private_data").on_screen(
                    "unknown_rule"
                )


def object_types_document(types: Mapping[str, ObjectType]) -> dict[str, object]:
    document: dict[str, object] = msgspec.to_builtins(types)
    return document


def _parse_type(name: str, document: object, place: str) -> ObjectType:
    if not SEGMENT.fullmatch(name):
        raise Malformed(f"{place}: must be 1 to 64 of A-Z a-z 0-9 _ -").on_screen("segment")
    if name in RESERVED_TYPES:
        raise Malformed(f"{place}: this name is reserved").on_screen("name_reserved")
    members = read_members(document, place, TYPE_MEMBERS)
    unknown = member_or(members, "unknown", UnknownObject.DENY.value)
    if not isinstance(unknown, str) or unknown not in set(UnknownObject):
        raise Malformed(f"{place}.unknown: must be one of {', '.join(UnknownObject)}").on_screen(
            "one_of", names=", ".join(UnknownObject)
        )
    return ObjectType(
        title=read_line(member_or(members, "title", ""), f"{place}.title", MAX_TYPE_TITLE_LENGTH),
        parents=_read_names(member_or(members, "parents", ()), f"{place}.parents", MAX_OBJECT_TYPES),
        rules=_read_names(_without_section(member_or(members, "rules", ())), f"{place}.rules", MAX_TYPE_RULES),
        unknown=UnknownObject(unknown),
    )


def _without_section(rules: object) -> object:
    """Rules may be written with their section, as in a check."""
    if not isinstance(rules, list | tuple):
        return rules
    return [rule.removeprefix(RULE_PREFIX) if isinstance(rule, str) else rule for rule in rules]


def _read_names(document: object, place: str, most: int) -> tuple[str, ...]:
    names: Iterable[object] = read_list(document, place, most)
    read = tuple(read_line(name, place, 1_024, shortest=1) for name in names)
    refuse_repeated(read, place)
    return tuple(sorted(read))
