"""Render what a person holds: list, list_short and roles (interface §4.5, R5)."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from itertools import groupby
from typing import Final

from msgspec import Struct

from gatehouse.kernel.sorting import SORT_SLICE, sort_in_slices
from gatehouse.permissions.evaluation.effective import EffectivePermissions, ScopePermissions
from gatehouse.permissions.model.rules import Rule, RuleSection, Scope

PROJECT_ACCESS_PREFIX: Final = "private_data.projectAccess"
ALL_PROJECTS: Final = None
ALL_SECTIONS: Final = frozenset(RuleSection)
UNKNOWN_PROJECT: Final = ""  # a requested project that does not exist: only the root is rendered


class Shape(StrEnum):
    LIST = "list"
    LIST_SHORT = "list_short"
    ROLES = "roles"


class TooLong(Exception):
    """All entries together are longer than allowed."""


class RulePrefix(Struct, frozen=True):
    """The beginning of rules: a section, or the first characters of a path, or both."""

    section: RuleSection | None
    path: str

    def covers(self, rule: Rule) -> bool:
        return (self.section is None or rule.section is self.section) and rule.path.startswith(self.path)


class ShapeOptions(Struct, frozen=True, kw_only=True):
    project_id: str | None = ALL_PROJECTS  # an id, never an alias
    hide_project_access: bool = False
    with_exp: bool = False
    sections: frozenset[RuleSection] = ALL_SECTIONS  # of the root; what is held in projects counts as private
    prefix: "RulePrefix | None" = None  # only rules with this prefix
    max_length: int | None = None  # characters of all entries together; TooLong is raised beyond


DEFAULT_OPTIONS: Final = ShapeOptions()


def selected_scopes(effective: EffectivePermissions, options: ShapeOptions = DEFAULT_OPTIONS) -> list[Scope]:
    """The scopes an answer with these options is about."""
    if options.hide_project_access:
        return [scope for scope in effective.open_scopes if scope.is_root]
    if options.project_id is ALL_PROJECTS:
        return list(effective.open_scopes)
    return [scope for scope in effective.open_scopes if scope.is_root or scope.project_id == options.project_id]


def render_shape(effective: EffectivePermissions, kind: Shape, options: ShapeOptions, now: int) -> tuple[str, ...]:
    """Render the shape: sorted, each entry once. Raises TooLong."""
    return sorted_unique(_entries(effective, kind, options, now))


def render_work(effective: EffectivePermissions, kind: Shape) -> int:
    """Estimated work of `render_shape`."""
    if kind is Shape.ROLES:
        return sum(len(effective.granted_roles(scope)) for scope in effective.open_scopes)
    return effective.work


def sorted_unique(texts: list[str]) -> tuple[str, ...]:
    """Return the texts sorted, each once."""
    if len(texts) <= SORT_SLICE:
        return tuple(sorted(dict.fromkeys(texts)))
    return tuple(text for text, _ in groupby(sort_in_slices(texts, key=str)))


def _entries(effective: EffectivePermissions, kind: Shape, options: ShapeOptions, now: int) -> list[str]:
    entries: list[str] = []
    length = 0
    for scope in selected_scopes(effective, options):
        if kind is Shape.ROLES:
            entries += [
                _roles_prefix(scope) + granted_role.role.name
                for granted_role in effective.granted_roles(scope).values()
            ]
        else:
            permissions = effective.rules(scope)
            moment = now if options.with_exp else None
            texts = _rule_texts(permissions, _selected_rules(permissions, scope, options), kind, scope, moment)
            length += sum(map(len, texts)) if options.max_length else 0
            if options.max_length is not None and length > options.max_length:
                raise TooLong
            entries += texts
    return entries


def _selected_rules(permissions: ScopePermissions, scope: Scope, options: ShapeOptions) -> AbstractSet[Rule]:
    prefix, sections = options.prefix, options.sections if scope.is_root else ALL_SECTIONS
    shown = (
        permissions.held
        if sections == ALL_SECTIONS
        else {rule for rule in permissions.held if rule.section in sections}
    )
    return shown if prefix is None else {rule for rule in shown if prefix.covers(rule)}


def _rule_texts(
    permissions: ScopePermissions, selected: AbstractSet[Rule], kind: Shape, scope: Scope, now: int | None
) -> list[str]:
    """Return the texts of rules; most have neither params nor an end and need no lookup."""
    lefts = {} if now is None else permissions.seconds_left(selected, now)
    special = {*permissions.params, *lefts} & selected
    prefix = list_prefix(scope) if kind is Shape.LIST else short_prefix(scope)
    suffix = "" if now is None else ":0"
    rest = selected - special if special else selected
    plain = permissions.rule_texts(rest) if kind is Shape.LIST else [rule.path for rule in rest]
    return [
        *([f"{prefix}{text}{suffix}" for text in plain] if prefix or suffix else plain),
        *(prefix + _text(rule, kind) + _suffix(permissions, rule, lefts, now) for rule in special),
    ]


def _text(rule: Rule, kind: Shape) -> str:
    """Return the text of a rule; short texts have no section, because a path is in one section only (R5)."""
    return str(rule) if kind is Shape.LIST else rule.path


def _suffix(permissions: ScopePermissions, rule: Rule, lefts: Mapping[Rule, int], now: int | None) -> str:
    return with_params("", permissions.params.get(rule)) + ("" if now is None else f":{lefts.get(rule, 0)}")


def with_params(text: str, params: Iterable[str] | None) -> str:
    return f"{text}|{','.join(params)}" if params else text


def list_prefix(scope: Scope) -> str:
    return "" if scope.is_root else ".".join((PROJECT_ACCESS_PREFIX, scope.project_id, *_resource(scope), ""))


def short_prefix(scope: Scope) -> str:
    return "" if scope.is_root else "/".join((scope.project_id, *_resource(scope), ""))


def _roles_prefix(scope: Scope) -> str:
    return "" if scope.is_root else ".".join((scope.project_id, *_resource(scope))) + "/"


def _resource(scope: Scope) -> tuple[str, ...]:
    return () if scope.kind is None else (scope.kind.value, scope.resource_id)
