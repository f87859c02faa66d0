"""Roles by rules as one table: what is in its cells, and what a save of changed cells is (interface §4.9). Pure.

A cell is what one role says of one rule. It is written `true`, `false`, `default` for not said, with parameters
behind a bar as in lists: `true|eu,us`. Changes go into the trees as they are stored, so whatever the table does not
show stays as it is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from gatehouse.kernel.sorting import sort_in_slices
from gatehouse.permissions.commands.app_schemas import CENTRAL_ROLES, applies_to_all
from gatehouse.permissions.documents.rules import meta_entries, parse_params, schema_rules
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.compiled import compiled_model
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rules import Role, Rule, RuleDefinition, RuleEntry, Tree

RULES_ON_A_PAGE: Final = 50
DEFAULT: Final = "default"
VALUES: Final[Mapping[str, bool | None]] = {"true": True, "false": False, DEFAULT: None}


@dataclass(frozen=True, slots=True)
class CellValue:
    """What a cell is to say; `params` None leaves those that are there."""

    value: bool | None  # None: nothing
    params: tuple[str, ...] | None = None

    @property
    def word(self) -> str:
        return DEFAULT if self.value is None else str(self.value).lower()

    @property
    def text(self) -> str:
        return self.word if not self.params else f"{self.word}|{','.join(self.params)}"


NOT_SET: Final = CellValue(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChange:
    rule: Rule
    role: Role
    was: CellValue
    becomes: CellValue

    @property
    def loses_params(self) -> bool:
        return bool(self.was.params) and self.becomes.value is None

    @property
    def inverse(self) -> "CellChange":
        return CellChange(rule=self.rule, role=self.role, was=self.becomes, becomes=self.was)


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionColumn:
    role: Role
    entries: Mapping[Rule, RuleEntry]
    is_open: bool  # its cells can be changed
    applies_to_all: bool

    def value_of(self, rule: Rule) -> CellValue:
        return cell_value(self.entries.get(rule))


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRow:
    rule: Rule
    leaf: RuleDefinition | None  # None: roles speak of it, the schema does not know it

    @property
    def prefix(self) -> str:
        return self.rule.path.rpartition(".")[0]

    @property
    def name(self) -> str:
        return self.rule.path.rpartition(".")[2]

    @property
    def protected(self) -> bool:
        return self.leaf is not None and self.leaf.protected

    def is_open_to(self, column: PermissionColumn) -> bool:
        """A public role holds no protected rule (interface §3)."""
        return column.is_open and (column.role.protected or not self.protected)


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRowGroup:
    """Rules with the same prefix; `continued` when the page before has some of them."""

    section: str
    prefix: str
    rows: Sequence[PermissionRow]
    continued: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionMatrix:
    """All of it, to be looked up."""

    columns: Mapping[str, PermissionColumn]  # by role key
    rows: Mapping[Rule, PermissionRow]


def build_matrix(model: ApplicationModel, *, may_save: bool = True) -> PermissionMatrix:
    return PermissionMatrix(
        columns={column.role.key: column for column in matrix_columns(model, may_save=may_save)},
        rows={row.rule: row for row in matrix_rows(model)},
    )


def cell_value(entry: RuleEntry | None) -> CellValue:
    return NOT_SET if entry is None else CellValue(entry.value, entry.params)


def parse_cell_value(text: str, place: str) -> CellValue:
    """`true`, `false`, `default`; parameters behind a bar are put in place of those that are there."""
    word, bar, params = text.strip().partition("|")
    if word.lower() not in VALUES:
        raise Malformed(f"{place}: use true, false or {DEFAULT}")
    value = VALUES[word.lower()]
    return CellValue(value, parse_params(params, place) if bar and value is not None else None)


def matrix_columns(model: ApplicationModel, *, may_save: bool) -> list[PermissionColumn]:
    """By name; the roles that application 1 is run by stay as they are."""
    return [matrix_column(model, role, may_save=may_save) for _, role in sorted(model.roles.items())]


def matrix_column(model: ApplicationModel, role: Role, *, may_save: bool) -> PermissionColumn:
    return PermissionColumn(
        role=role,
        entries=meta_entries(role.meta),
        is_open=may_save and not (model.application.is_central and role.key in CENTRAL_ROLES),
        applies_to_all=applies_to_all(role),
    )


def matrix_rows(model: ApplicationModel) -> list[PermissionRow]:
    """Every rule of the schema, and those that only roles speak of, in the order of groups."""
    known = schema_rules(model.schema.private_data, model.schema.public_data)
    found = [PermissionRow(rule=rule, leaf=known.get(rule)) for rule in compiled_model(model).all_rules]
    return sort_in_slices(found, key=_row_order)


def _row_order(row: PermissionRow) -> tuple[str, str, str]:
    return row.rule.section, row.prefix, row.name


def paginate_rows(found: Iterable[PermissionRow], size: int = RULES_ON_A_PAGE) -> list[list[PermissionRowGroup]]:
    """Groups stay together where they fit on a page; one that is larger than a page goes on on the next."""
    made: list[list[PermissionRowGroup]] = [[]]
    room = size
    for group in _group_rows(found):
        rest, continued = list(group.rows), False
        while rest:
            if room < min(len(rest), size) and room < size:
                made.append([])
                room = size
            now, rest = rest[:room], rest[room:]
            made[-1].append(
                PermissionRowGroup(section=group.section, prefix=group.prefix, rows=now, continued=continued)
            )
            room -= len(now)
            continued = True
            if not room:
                made.append([])
                room = size
    return [page for page in made if page] or [[]]


def _group_rows(found: Iterable[PermissionRow]) -> Iterator[PermissionRowGroup]:
    for (section, prefix), together in groupby(found, key=lambda row: (row.rule.section.value, row.prefix)):
        yield PermissionRowGroup(section=section, prefix=prefix, rows=list(together))


def cell_changes(known: PermissionMatrix, wanted: Mapping[tuple[Rule, str], CellValue]) -> list[CellChange]:
    """What differs from what is stored, by role and rule; `wanted` is by rule and role key."""
    found = (
        CellChange(rule=rule, role=known.columns[key].role, was=known.columns[key].value_of(rule), becomes=said)
        for (rule, key), said in wanted.items()
    )
    changed = [one for one in map(_with_final_params, found) if one.was != one.becomes]
    return sorted(changed, key=lambda one: (one.role.key, one.rule))


def _with_final_params(change: CellChange) -> CellChange:
    """With the parameters that it will have."""
    becomes = change.becomes
    if becomes.value is None:
        settled = NOT_SET
    elif becomes.params is None:
        settled = CellValue(becomes.value, change.was.params or ())
    else:
        settled = becomes
    return CellChange(rule=change.rule, role=change.role, was=change.was, becomes=settled)


def save_payload(model: ApplicationModel, changed: Iterable[CellChange], version: int) -> dict[str, object]:
    """The data of the one save that changes these cells and nothing else (R6: a role that is missing is deleted)."""
    metas: dict[str, Tree] = {}
    for one in changed:
        metas[one.role.key] = with_cell(metas.get(one.role.key, one.role.meta), one.rule, one.becomes)
    drafts = {role.name: {"meta": metas[key]} if key in metas else {} for key, role in model.roles.items()}
    return {"version": version, "roles": drafts}


def with_cell(meta: Tree, rule: Rule, said: CellValue) -> Tree:
    return _with_node(meta, (rule.section.value, *rule.path.split(".")), said)


def _with_node(tree: Tree, path: Sequence[str], said: CellValue) -> Tree:
    segment, *rest = path
    below = tree.get(segment)
    node = below if isinstance(below, Mapping) else {}
    new = _with_node(node, rest, said) if rest else _leaf_node(node, said)
    if new:
        return {**tree, segment: new}
    return {name: child for name, child in tree.items() if name != segment}


def _leaf_node(stored: Tree, said: CellValue) -> Tree:
    """Other members of the leaf stay."""
    if said.value is None:
        return {}
    kept = {name: member for name, member in stored.items() if name != "params"}
    return {**kept, "value": said.value, **({"params": ",".join(said.params)} if said.params else {})}
