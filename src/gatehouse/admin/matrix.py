"""Roles by rules as one table: what is in its cells, and what a save of changed cells is (interface §4.9). Pure.

A cell is what one role says of one rule. It is written `true`, `false`, `default` for not said, with parameters
behind a bar as in lists: `true|eu,us`. Changes go into the trees as they are stored, so whatever the table does not
show stays as it is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from gatehouse.kernel.sorting import sorted_in_slices
from gatehouse.permissions.commands.app_schemas import CENTRAL_ROLES, applies_to_all
from gatehouse.permissions.documents.rules import leaves, meta_entries, parse_params
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.compiled import compiled_model
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rule import Entry, Leaf, Rule
from gatehouse.permissions.model.schema import Tree

RULES_ON_A_PAGE: Final = 50
DEFAULT: Final = "default"
VALUES: Final[Mapping[str, bool | None]] = {"true": True, "false": False, DEFAULT: None}


@dataclass(frozen=True, slots=True)
class Said:
    """What a cell is to say; `params` None leaves those that are there."""

    value: bool | None  # None: nothing
    params: tuple[str, ...] | None = None

    @property
    def word(self) -> str:
        return DEFAULT if self.value is None else str(self.value).lower()

    @property
    def text(self) -> str:
        return self.word if not self.params else f"{self.word}|{','.join(self.params)}"


NOT_SAID: Final = Said(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChange:
    rule: Rule
    role: Role
    was: Said
    becomes: Said

    @property
    def loses_params(self) -> bool:
        return bool(self.was.params) and self.becomes.value is None

    @property
    def inverse(self) -> "CellChange":
        return CellChange(rule=self.rule, role=self.role, was=self.becomes, becomes=self.was)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    role: Role
    says: Mapping[Rule, Entry]
    is_open: bool  # its cells can be changed
    applies_to_all: bool

    def said(self, rule: Rule) -> Said:
        return said_of(self.says.get(rule))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    rule: Rule
    leaf: Leaf | None  # None: roles speak of it, the schema does not know it

    @property
    def prefix(self) -> str:
        return self.rule.path.rpartition(".")[0]

    @property
    def name(self) -> str:
        return self.rule.path.rpartition(".")[2]

    @property
    def protected(self) -> bool:
        return self.leaf is not None and self.leaf.protected

    def is_open_to(self, column: Column) -> bool:
        """A public role holds no protected rule (interface §3)."""
        return column.is_open and (column.role.protected or not self.protected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rules with the same prefix; `continued` when the page before has some of them."""

    section: str
    prefix: str
    rows: Sequence[Row]
    continued: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """All of it, to be looked up."""

    columns: Mapping[str, Column]  # by role key
    rows: Mapping[Rule, Row]


def matrix_of(model: ApplicationModel, *, may_save: bool = True) -> Matrix:
    return Matrix(
        columns={column.role.key: column for column in columns(model, may_save=may_save)},
        rows={row.rule: row for row in rows(model)},
    )


def said_of(entry: Entry | None) -> Said:
    return NOT_SAID if entry is None else Said(entry.value, entry.params)


def read_said(text: str, place: str) -> Said:
    """`true`, `false`, `default`; parameters behind a bar are put in place of those that are there."""
    word, bar, params = text.strip().partition("|")
    if word.lower() not in VALUES:
        raise Malformed(f"{place}: use true, false or {DEFAULT}")
    value = VALUES[word.lower()]
    return Said(value, parse_params(params, place) if bar and value is not None else None)


def columns(model: ApplicationModel, *, may_save: bool) -> list[Column]:
    """By name; the roles that application 1 is run by stay as they are."""
    return [column_of(model, role, may_save=may_save) for _, role in sorted(model.roles.items())]


def column_of(model: ApplicationModel, role: Role, *, may_save: bool) -> Column:
    return Column(
        role=role,
        says=meta_entries(role.meta),
        is_open=may_save and not (model.application.is_central and role.key in CENTRAL_ROLES),
        applies_to_all=applies_to_all(role),
    )


def rows(model: ApplicationModel) -> list[Row]:
    """Every rule of the schema, and those that only roles speak of, in the order of groups."""
    known = leaves(model.schema.private_data, model.schema.public_data)
    found = [Row(rule=rule, leaf=known.get(rule)) for rule in compiled_model(model).named]
    return sorted_in_slices(found, key=_order)


def _order(row: Row) -> tuple[str, str, str]:
    return row.rule.section, row.prefix, row.name


def pages(found: Iterable[Row], size: int = RULES_ON_A_PAGE) -> list[list[Group]]:
    """Groups stay together where they fit on a page; one that is larger than a page goes on on the next."""
    made: list[list[Group]] = [[]]
    room = size
    for group in _groups(found):
        rest, continued = list(group.rows), False
        while rest:
            if room < min(len(rest), size) and room < size:
                made.append([])
                room = size
            now, rest = rest[:room], rest[room:]
            made[-1].append(Group(section=group.section, prefix=group.prefix, rows=now, continued=continued))
            room -= len(now)
            continued = True
            if not room:
                made.append([])
                room = size
    return [page for page in made if page] or [[]]


def _groups(found: Iterable[Row]) -> Iterator[Group]:
    for (section, prefix), together in groupby(found, key=lambda row: (row.rule.section.value, row.prefix)):
        yield Group(section=section, prefix=prefix, rows=list(together))


def changes(known: Matrix, wanted: Mapping[tuple[Rule, str], Said]) -> list[CellChange]:
    """What differs from what is stored, by role and rule; `wanted` is by rule and role key."""
    found = (
        CellChange(rule=rule, role=known.columns[key].role, was=known.columns[key].said(rule), becomes=said)
        for (rule, key), said in wanted.items()
    )
    changed = [one for one in map(_settled, found) if one.was != one.becomes]
    return sorted(changed, key=lambda one: (one.role.key, one.rule))


def _settled(change: CellChange) -> CellChange:
    """With the parameters that it will have."""
    becomes = change.becomes
    if becomes.value is None:
        settled = NOT_SAID
    elif becomes.params is None:
        settled = Said(becomes.value, change.was.params or ())
    else:
        settled = becomes
    return CellChange(rule=change.rule, role=change.role, was=change.was, becomes=settled)


def save_of(model: ApplicationModel, changed: Iterable[CellChange], version: int) -> dict[str, object]:
    """The data of the one save that changes these cells and nothing else (R6: a role that is missing is deleted)."""
    metas: dict[str, Tree] = {}
    for one in changed:
        metas[one.role.key] = with_cell(metas.get(one.role.key, one.role.meta), one.rule, one.becomes)
    drafts = {role.name: {"meta": metas[key]} if key in metas else {} for key, role in model.roles.items()}
    return {"version": version, "roles": drafts}


def with_cell(meta: Tree, rule: Rule, said: Said) -> Tree:
    return _planted(meta, (rule.section.value, *rule.path.split(".")), said)


def _planted(tree: Tree, path: Sequence[str], said: Said) -> Tree:
    segment, *rest = path
    below = tree.get(segment)
    node = below if isinstance(below, Mapping) else {}
    new = _planted(node, rest, said) if rest else _leaf(node, said)
    if new:
        return {**tree, segment: new}
    return {name: child for name, child in tree.items() if name != segment}


def _leaf(stored: Tree, said: Said) -> Tree:
    """Other members of the leaf stay."""
    if said.value is None:
        return {}
    kept = {name: member for name, member in stored.items() if name != "params"}
    return {**kept, "value": said.value, **({"params": ",".join(said.params)} if said.params else {})}
