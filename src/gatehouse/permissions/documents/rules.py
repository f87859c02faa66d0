"""Rules as schemas, roles and records write them, and as typed values (interface §2.7 to §2.9, R5). Pure."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from gatehouse.permissions.documents.ends import end_members, parse_end, stored_end
from gatehouse.permissions.documents.fields import member_or, printable, read_flag, read_line, read_list, read_members
from gatehouse.permissions.documents.grammar import check_description, check_role_name
from gatehouse.permissions.documents.trees import (
    MAX_LEAVES,
    MAX_PATH_SEGMENTS,
    paths_of,
    prefixes_of,
    read_tree,
    walk_leaves,
)
from gatehouse.permissions.errors import Malformed, TooMuch
from gatehouse.permissions.model.rules import Rule, RuleDefinition, RuleEntry, RuleSection
from gatehouse.permissions.model.schema import (
    APPLICATION_RULES,
    LOGIN_DEFAULT,
    SECRET_DEFAULT,
    ApplicationSchema,
    Tree,
)

MAX_PARAMS: Final = 64
MAX_PARAM_LENGTH: Final = 64
MAX_PARAMS_LENGTH: Final = MAX_PARAMS * (MAX_PARAM_LENGTH + 1)

SCHEMA_MEMBERS: Final = ("value", "protected", "description")
# Fields that only the schema uses are ignored in a leaf of a role or record: people copy leaves (R6).
ROLE_MEMBERS: Final = ("value", "params", "protected", "description")
ENTRY_MEMBERS: Final = ("value", "params", "expired", "ttl", "protected", "description")
ENDING_MEMBERS: Final = ("value", "expired", "ttl", "protected", "description")
META_PARTS: Final = ("roles", "private", "public", "secret")
META_RULES: Final = ("canRead", "canWrite")
EXTENTS: Final = ("self", "all", "none")

ReadValue = Callable[[object, str], object]
ReadSystemLeaf = Callable[[object, str, ReadValue], Tree]


def parse_schema_section(document: object, section: RuleSection, *, place: str = "") -> Tree:
    """A section of an application's schema, defaults filled in."""
    return read_tree(document, place or section.value, _schema_leaf)


def refuse_duplicate_paths(private: Tree, public: Tree, *, place: str = "data") -> None:
    """Refuse a path in both sections, or one that is leaf and prefix: list_short does not name sections."""
    inside = paths_of(private)
    outside = paths_of(public)
    if len(inside) + len(outside) > MAX_LEAVES:
        raise TooMuch(f"{place}: at most {MAX_LEAVES} rules in private_data and public_data together").on_screen(
            "rules_most_together", max_leaves=MAX_LEAVES
        )
    for paths, others in ((inside, outside), (outside, inside)):
        doubled = paths & (others | prefixes_of(others))
        if doubled:
            raise Malformed(f"{place}: {min(doubled)} is in both private_data and public_data")


def schema_rules(private: Tree, public: Tree) -> dict[Rule, RuleDefinition]:
    definitions: dict[Rule, RuleDefinition] = {}
    for section, tree in ((RuleSection.PRIVATE, private), (RuleSection.PUBLIC, public)):
        for path, leaf in walk_leaves(tree):
            definitions[Rule(section, path)] = RuleDefinition(
                value=leaf["value"] is True,
                protected=leaf.get("protected") is True,
                description=str(leaf.get("description", "")),
            )
    return definitions


def read_roles(document: object, *, place: str) -> Mapping[str, object]:
    """The roles of a schema by name; their content is not parsed yet."""
    roles = read_members(document, place)
    for name in roles:
        check_role_name(name, f"{place}.{printable(name)}")
    return roles


def parse_meta(document: object, place: str) -> Tree:
    """The content of a role: sections as in the schema, or the flat list `permissions` (R5)."""
    members = read_members(document, place, ("permissions", *RuleSection))
    if "permissions" in members:
        if len(members) > 1:
            raise Malformed(f"{place}: use either permissions or sections")
        members = _unflatten(members["permissions"], f"{place}.permissions")
    sections = {
        section: parse_role_section(member_or(members, section, {}), place=f"{place}.{section}")
        for section in RuleSection
    }
    refuse_duplicate_paths(sections[RuleSection.PRIVATE], sections[RuleSection.PUBLIC], place=place)
    return {section.value: tree for section, tree in sections.items() if tree}


def parse_role_section(document: object, *, place: str) -> Tree:
    return read_tree(document, place, _role_leaf)


def meta_entries(meta: Tree) -> dict[Rule, RuleEntry]:
    entries: dict[Rule, RuleEntry] = {}
    for section in RuleSection:
        tree = meta.get(section.value)
        if isinstance(tree, Mapping):
            entries.update(section_entries(tree, section))
    return entries


def parse_entries(document: object, section: RuleSection, *, place: str = "", expired: int = 0) -> Tree:
    """A section of a user's record; `expired` is the end of entries without their own."""

    def read_leaf(members: Mapping[str, object], where: str) -> Tree:
        end = parse_end(members, where, expired)
        return {**_role_leaf(members, where, ENTRY_MEMBERS), **end_members(end)}

    return read_tree(document, place or section.value, read_leaf)


def section_entries(tree: Tree, section: RuleSection) -> dict[Rule, RuleEntry]:
    return {Rule(section, path): _entry(leaf) for path, leaf in walk_leaves(tree)}


def parse_params(text: object, place: str) -> tuple[str, ...]:
    """Parse comma-separated parameters.

    None may contain a character with a meaning in `rule|a,b:60` (checklist RO-08).
    """
    line = read_line(text, place, MAX_PARAMS_LENGTH)
    params = tuple(line.split(",")) if line else ()
    if len(params) > MAX_PARAMS:
        raise Malformed(f"{place}: at most {MAX_PARAMS} parameters").on_screen("params_most", max_params=MAX_PARAMS)
    for param in params:
        if not 0 < len(param) <= MAX_PARAM_LENGTH or "|" in param or ":" in param:
            raise Malformed(f"{place}: parameters must be 1 to {MAX_PARAM_LENGTH} characters, without | and :")
    return params


def read_params(text: object, place: str) -> str:
    """Return the parameters of a role as they are stored. Raises Malformed."""
    return ",".join(parse_params(text, place))


def split_params(text: str) -> tuple[str, ...]:
    """The same for a stored section, which was checked before."""
    return tuple(text.split(",")) if text else ()


class SchemaRules:
    """The rules of a schema, read once for all roles that are compared with them."""

    def __init__(self, schema: ApplicationSchema) -> None:
        self.leaves = schema_rules(schema.private_data, schema.public_data)
        self.paths = {rule.path for rule in self.leaves}
        self.prefixes = prefixes_of(self.paths)


def refuse_collisions(
    schema: ApplicationSchema | SchemaRules, rules: Iterable[Rule], *, place: str, central: bool
) -> None:
    """Rules outside the schema are accepted if they cannot be confused with one inside (R5).

    This applies to both sections: `public_data.user.kick` would look like the protected `private_data.user.kick` in
    list_short. In application 1 (`central`) only its own rules are accepted.
    """
    known = schema if isinstance(schema, SchemaRules) else SchemaRules(schema)
    for rule in rules:
        if rule in known.leaves:
            continue
        if central:
            raise Malformed(f"{place}.{rule}: unknown rule").on_screen("unknown_rule")
        above = prefixes_of((rule.path,))
        if rule.path in known.paths or rule.path in known.prefixes or not known.paths.isdisjoint(above):
            raise Malformed(f"{place}.{rule}: conflicts with a rule of the application's schema").on_screen(
                "rule_conflict"
            )


def protected_rules_in(schema: ApplicationSchema | SchemaRules, rules: Iterable[Rule]) -> list[Rule]:
    known = (schema if isinstance(schema, SchemaRules) else SchemaRules(schema)).leaves
    return [rule for rule in rules if rule in known and known[rule].protected]


def parse_login(document: object, *, place: str = "login") -> Tree:
    """The login rules of an application's schema; one left out is as in a new application (interface §2.8)."""
    members = read_members(document, place, LOGIN_DEFAULT)
    read = {
        name: _schema_leaf(_leaf_members(leaf, f"{place}.{name}"), f"{place}.{name}")
        for name, leaf in members.items()
    }
    return {**LOGIN_DEFAULT, **read}


def parse_own_login(document: object, *, place: str = "login", expired: int = 0) -> Tree:
    """The login rules of one user's record; missing ones come from the application."""
    members = read_members(document, place, LOGIN_DEFAULT)
    return {name: _leaf_with_end(leaf, f"{place}.{name}", read_flag, expired) for name, leaf in members.items()}


def parse_secret(document: object, *, place: str = "secret_data") -> Tree:
    """The system rules of an application's schema; missing ones are as in a new application (interface §2.8)."""
    return _overlay(SECRET_DEFAULT, _secret(document, place, _leaf_without_end))


def parse_own_secret(document: object, *, place: str = "secret_data", expired: int = 0) -> Tree:
    """The system rules of one user's record; missing ones come from the application."""
    return _secret(document, place, partial(_leaf_with_end, expired=expired))


def _secret(document: object, place: str, read_leaf: ReadSystemLeaf) -> Tree:
    members = read_members(document, place, SECRET_DEFAULT)
    application = read_members(member_or(members, "application", {}), f"{place}.application", APPLICATION_RULES)
    meta = read_members(member_or(members, "meta", {}), f"{place}.meta", META_PARTS)
    read: dict[str, Tree] = {
        "application": {
            name: read_leaf(leaf, f"{place}.application.{name}", read_flag) for name, leaf in application.items()
        },
        "meta": {part: _meta_part(rules, f"{place}.meta.{part}", read_leaf) for part, rules in meta.items()},
    }
    return {name: tree for name, tree in read.items() if tree}


def _meta_part(document: object, place: str, read_leaf: ReadSystemLeaf) -> Tree:
    rules = read_members(document, place, META_RULES)
    return {name: read_leaf(leaf, f"{place}.{name}", _read_extent) for name, leaf in rules.items()}


def _leaf_without_end(document: object, place: str, read_value: ReadValue) -> Tree:
    return {"value": read_value(_leaf_members(document, place)["value"], f"{place}.value")}


def _leaf_with_end(document: object, place: str, read_value: ReadValue, expired: int) -> Tree:
    members = _leaf_members(document, place, ENDING_MEMBERS)
    value = read_value(members["value"], f"{place}.value")
    return {"value": value, **end_members(parse_end(members, place, expired))}


def _leaf_members(document: object, place: str, known: tuple[str, ...] = SCHEMA_MEMBERS) -> Mapping[str, object]:
    members = read_members(document, place, known)
    if "value" not in members:
        raise Malformed(f"{place}.value: required").on_screen("required")
    return members


def _read_extent(value: object, place: str) -> str:
    if not isinstance(value, str) or value not in EXTENTS:
        raise Malformed(f"{place}: must be one of {', '.join(EXTENTS)}").on_screen("one_of", names=", ".join(EXTENTS))
    return value


def _overlay(below: Tree, above: Tree) -> Tree:
    """`below`, overridden by each leaf of `above`."""
    return {name: _overlay_node(node, above.get(name)) for name, node in below.items()}


def _overlay_node(below: object, above: object) -> object:
    if not isinstance(above, Mapping) or not isinstance(below, Mapping):
        return below
    return above if "value" in above else _overlay(below, above)


def _schema_leaf(members: Mapping[str, object], place: str) -> Tree:
    read_members(members, place, SCHEMA_MEMBERS)
    return {
        "value": read_flag(members["value"], f"{place}.value"),
        "protected": read_flag(members.get("protected", False), f"{place}.protected"),
        "description": check_description(members.get("description", ""), f"{place}.description"),
    }


def _role_leaf(members: Mapping[str, object], place: str, known: tuple[str, ...] = ROLE_MEMBERS) -> Tree:
    read_members(members, place, known)
    value = read_flag(members["value"], f"{place}.value")
    params = parse_params(members.get("params", ""), f"{place}.params")
    return {"value": value, "params": ",".join(params)} if params else {"value": value}


def _entry(leaf: Mapping[str, object]) -> RuleEntry:
    return RuleEntry(
        value=leaf["value"] is True, params=split_params(str(leaf.get("params", ""))), end=stored_end(leaf)
    )


def _unflatten(document: object, place: str) -> Mapping[str, object]:
    """`[{name: user.kick, value: true}]` as a tree, not yet checked; a name without section is private."""
    sections: dict[str, dict[str, object]] = {section.value: {} for section in RuleSection}
    for index, item in enumerate(read_list(document, place, MAX_LEAVES)):
        where = f"{place}[{index}]"
        members = dict(read_members(item, where, ("name", *ROLE_MEMBERS)))
        name = members.pop("name", None)
        if not isinstance(name, str) or "value" not in members:
            raise Malformed(f"{where}: must be an object with name and value")
        _insert_leaf(sections, name, members, f"{where}.name")
    return sections


def _insert_leaf(sections: dict[str, dict[str, object]], name: str, leaf: Mapping[str, object], place: str) -> None:
    first, _, rest = name.partition(".")
    section, path = (first, rest) if first in sections and rest else (RuleSection.PRIVATE.value, name)
    *way, last = path.split(".", MAX_PATH_SEGMENTS)
    node = sections[section]
    for segment in way:
        child = node.setdefault(segment, {})
        if not isinstance(child, dict) or "value" in child:
            raise Malformed(f"{place}: {printable(name)} is listed twice or is below another rule").on_screen(
                "listed_below", name=printable(name)
            )
        node = child
    if last in node:
        raise Malformed(f"{place}: {printable(name)} is listed twice or is above another rule").on_screen(
            "listed_above", name=printable(name)
        )
    node[last] = leaf
