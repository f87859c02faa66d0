"""The permissions x roles table: the value of each cell, and the save that changes cells (interface §4.9). Pure.

A cell is a role's value for one permission. Its text is `true`, `false` or `default` for not set, with parameters
after a bar as in lists: `true|eu,us`. Changes are made in the stored trees, so what the table does not show stays.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from msgspec import Struct

from gatehouse.kernel.sorting import sort_in_slices
from gatehouse.permissions.commands.app_schemas import CENTRAL_ROLES
from gatehouse.permissions.documents.rules import meta_entries, parse_params, schema_rules
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.compiled import compiled_model
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import Rule, RuleDefinition, RuleEntry
from gatehouse.permissions.model.schema import Tree

RULES_ON_A_PAGE: Final = 50
DEFAULT: Final = "default"
VALUES: Final[Mapping[str, bool | None]] = {"true": True, "false": False, DEFAULT: None, "allow": True, "deny": False}


class CellValue(Struct, frozen=True):
    """The value of a cell; with `params` None the stored parameters stay."""

    value: bool | None  # None: not set
    params: tuple[str, ...] | None = None

    @property
    def word(self) -> str:
        return DEFAULT if self.value is None else str(self.value).lower()

    @property
    def text(self) -> str:
        return self.word if not self.params else f"{self.word}|{','.join(self.params)}"


NOT_SET: Final = CellValue(None)


class CellChange(Struct, frozen=True, kw_only=True):
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


class PermissionColumn(Struct, frozen=True, kw_only=True):
    role: Role
    entries: Mapping[Rule, RuleEntry]
    is_open: bool  # the viewer may change its cells
    applies_to_all: bool

    def value_of(self, rule: Rule) -> CellValue:
        return cell_value(self.entries.get(rule))


class PermissionRow(Struct, frozen=True, kw_only=True):
    rule: Rule
    leaf: RuleDefinition | None  # None: set in roles, but not in the schema

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
        """Whether the role may have the permission: protected ones need a protected role (interface §3)."""
        return column.is_open and (column.role.protected or not self.protected)


class PermissionRowGroup(Struct, frozen=True, kw_only=True):
    """Permissions with the same prefix; `continued` if the group began on the page before."""

    section: str
    prefix: str
    rows: Sequence[PermissionRow]
    continued: bool = False


class PermissionMatrix(Struct, frozen=True, kw_only=True):
    """All rows and columns by key."""

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
    """Parse `true` or `allow`, `false` or `deny`, `default`; parameters after a bar replace the stored ones."""
    word, bar, params = text.strip().partition("|")
    if word.lower() not in VALUES:
        raise Malformed(f"{place}: use allow, deny or {DEFAULT}")
    value = VALUES[word.lower()]
    return CellValue(value, parse_params(params, place) if bar and value is not None else None)


def matrix_columns(model: ApplicationModel, *, may_save: bool) -> list[PermissionColumn]:
    """The column of a role; built-in roles of application 1 cannot be changed."""
    return [matrix_column(model, role, may_save=may_save) for _, role in sorted(model.roles.items())]


def matrix_column(model: ApplicationModel, role: Role, *, may_save: bool) -> PermissionColumn:
    return PermissionColumn(
        role=role,
        entries=meta_entries(role.meta),
        is_open=may_save and not (model.application.is_central and role.key in CENTRAL_ROLES),
        applies_to_all=role.is_default,
    )


def matrix_rows(model: ApplicationModel) -> list[PermissionRow]:
    """Every permission of the schema, and those set only in roles, in the order of groups."""
    known = schema_rules(model.schema.private_data, model.schema.public_data)
    rows = [PermissionRow(rule=rule, leaf=known.get(rule)) for rule in compiled_model(model).all_rules]
    return sort_in_slices(rows, key=_row_order)


def _row_order(row: PermissionRow) -> tuple[str, str, str]:
    return row.rule.section, row.prefix, row.name


def paginate_rows(rows: Iterable[PermissionRow], size: int = RULES_ON_A_PAGE) -> list[list[PermissionRowGroup]]:
    """Split groups into pages; only a group larger than a page is divided."""
    made: list[list[PermissionRowGroup]] = [[]]
    space_left = size
    for group in _group_rows(rows):
        rest, continued = list(group.rows), False
        while rest:
            if space_left < min(len(rest), size) and space_left < size:
                made.append([])
                space_left = size
            now, rest = rest[:space_left], rest[space_left:]
            made[-1].append(
                PermissionRowGroup(section=group.section, prefix=group.prefix, rows=now, continued=continued)
            )
            space_left -= len(now)
            continued = True
            if not space_left:
                made.append([])
                space_left = size
    return [page for page in made if page] or [[]]


def _group_rows(rows: Iterable[PermissionRow]) -> Iterator[PermissionRowGroup]:
    for (section, prefix), together in groupby(rows, key=lambda row: (row.rule.section.value, row.prefix)):
        yield PermissionRowGroup(section=section, prefix=prefix, rows=list(together))


def cell_changes(known: PermissionMatrix, wanted: Mapping[tuple[Rule, str], CellValue]) -> list[CellChange]:
    """The changes from what is stored, sorted by role and rule; `wanted` is by rule and role key."""
    changes = (
        CellChange(rule=rule, role=known.columns[key].role, was=known.columns[key].value_of(rule), becomes=value)
        for (rule, key), value in wanted.items()
    )
    changed = [change for change in map(_with_final_params, changes) if change.was != change.becomes]
    return sorted(changed, key=lambda change: (change.role.key, change.rule))


def _with_final_params(change: CellChange) -> CellChange:
    """The change with the parameters that the cell will have."""
    becomes = change.becomes
    if becomes.value is None:
        settled = NOT_SET
    elif becomes.params is None:
        settled = CellValue(becomes.value, change.was.params or ())
    else:
        settled = becomes
    return CellChange(rule=change.rule, role=change.role, was=change.was, becomes=settled)


def save_payload(model: ApplicationModel, changed: Iterable[CellChange], version: int) -> dict[str, object]:
    """The save that changes these cells and nothing else; it names all roles, a missing one is deleted (R6)."""
    metas: dict[str, Tree] = {}
    for change in changed:
        metas[change.role.key] = with_cell(metas.get(change.role.key, change.role.meta), change.rule, change.becomes)
    drafts = {role.name: {"meta": metas[key]} if key in metas else {} for key, role in model.roles.items()}
    return {"version": version, "roles": drafts}


def with_cell(meta: Tree, rule: Rule, value: CellValue) -> Tree:
    return _with_node(meta, (rule.section.value, *rule.path.split(".")), value)


def _with_node(tree: Tree, path: Sequence[str], value: CellValue) -> Tree:
    segment, *rest = path
    below = tree.get(segment)
    node = below if isinstance(below, Mapping) else {}
    new = _with_node(node, rest, value) if rest else _leaf_node(node, value)
    if new:
        return {**tree, segment: new}
    return {name: child for name, child in tree.items() if name != segment}


def _leaf_node(stored: Tree, value: CellValue) -> Tree:
    """The leaf with the value; its other members stay."""
    if value.value is None:
        return {}
    members = {name: member for name, member in stored.items() if name != "params"}
    return {**members, "value": value.value, **({"params": ",".join(value.params)} if value.params else {})}
