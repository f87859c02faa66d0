"""The differences between two states of an application's rules and roles. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar, assert_never

from gatehouse.fields.derive import changed_names
from gatehouse.permissions.documents.rules import meta_entries, schema_rules
from gatehouse.permissions.documents.trees import walk_leaves
from gatehouse.permissions.model.condition import (
    AllOf,
    AnyOf,
    ConditionTest,
    Domain,
    Everyone,
    FromNetwork,
    HasPurchase,
    HasTag,
    OneOfUsers,
)
from gatehouse.permissions.model.condition import SimpleTest as Single
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import ROLE_FIELDS, Role
from gatehouse.permissions.model.rules import RuleDefinition, RuleEntry
from gatehouse.permissions.model.schema import ObjectType, Tree
from gatehouse.permissions.model.schema_version import (
    ChangedItem,
    ChangeKind,
    ChangeTally,
    Difference,
    DifferenceDetail,
)

K = TypeVar("K")
V = TypeVar("V")

MAX_TALLY_NAMES: Final = 3  # named in a tally
LEAF_FIELDS: Final = ("value", "protected", "description")
# Those that the list shows by itself: a condition with its mode as one text, and permissions one by one.
SEPARATE_FIELDS: Final = frozenset({"condition", "condition_mode", "meta", "version"})
NO_LEAF: Final = RuleDefinition()


def differences(before: ApplicationModel, after: ApplicationModel) -> tuple[Difference, ...]:
    """Rules, roles, login rules and system rules, each by name."""
    return (
        *_rules(before, after),
        *_roles(before.roles, after.roles),
        *_object_types(before.schema.objects, after.schema.objects),
        *_value_differences(ChangedItem.LOGIN, before.schema.login, after.schema.login),
        *_value_differences(ChangedItem.SYSTEM, before.schema.secret_data, after.schema.secret_data),
    )


def tally_differences(changes: Iterable[Difference]) -> tuple[ChangeTally, ...]:
    names: defaultdict[tuple[ChangedItem, ChangeKind], list[str]] = defaultdict(list)
    for difference in changes:
        names[difference.what, difference.how].append(difference.name)
    return tuple(
        ChangeTally(what=what, how=how, count=len(all_of_them), names=tuple(all_of_them[:MAX_TALLY_NAMES]))
        for (what, how), all_of_them in names.items()
    )


def condition_text(test: ConditionTest) -> str:
    """A condition as one line."""
    if isinstance(test, AllOf | AnyOf):
        joint = " and " if isinstance(test, AllOf) else " or "
        return joint.join(f"({condition_text(part)})" for part in test.parts)
    return _simple_test_text(test)


def _simple_test_text(test: Single) -> str:
    match test:
        case Domain(name):
            words = f"domain {name}"
        case OneOfUsers(user_ids):
            words = f"user {' or '.join(sorted(user_ids))}"
        case HasTag(tag):
            words = f"tag {tag}"
        case FromNetwork(network):
            words = f"address {network}"
        case HasPurchase(purchase):
            words = f"purchase {purchase}"
        case Everyone(holds):
            words = "everyone" if holds else "no one"
        case _:
            assert_never(test)
    return words


def _rules(before: ApplicationModel, after: ApplicationModel) -> Iterator[Difference]:
    old = schema_rules(before.schema.private_data, before.schema.public_data)
    new = schema_rules(after.schema.private_data, after.schema.public_data)
    for rule, was, now in _changed_pairs(old, new):
        details = tuple(
            DifferenceDetail(
                field=field,
                before=None if was is None else getattr(was, field),
                after=None if now is None else getattr(now, field),
            )
            for field in LEAF_FIELDS
            if getattr(was or NO_LEAF, field) != getattr(now or NO_LEAF, field)
        )
        yield Difference(what=ChangedItem.RULE, how=_change_kind(was, now), name=str(rule), details=details)


def _roles(before: Mapping[str, Role], after: Mapping[str, Role]) -> Iterator[Difference]:
    for _, was, now in _changed_pairs(before, after):
        details = (*_role_fields(was, now), *_role_rules(was, now))
        if details or was is None or now is None:
            named = now or was
            yield Difference(
                what=ChangedItem.ROLE,
                how=_change_kind(was, now),
                name=named.name if named else "",
                details=tuple(details),
            )


def _role_fields(was: Role | None, now: Role | None) -> Iterator[DifferenceDetail]:
    if was is None or now is None:
        return
    for name in changed_names(was, now, ROLE_FIELDS):
        if name not in SEPARATE_FIELDS:
            yield DifferenceDetail(field=name, before=getattr(was, name), after=getattr(now, name))
    if (was.condition, was.condition_mode) != (now.condition, now.condition_mode):
        yield DifferenceDetail(field="condition", before=_condition(was), after=_condition(now))


def _condition(role: Role) -> str | None:
    return None if role.condition is None else f"{role.condition_mode}: {condition_text(role.condition.test)}"


def _role_rules(was: Role | None, now: Role | None) -> Iterator[DifferenceDetail]:
    old = {} if was is None else meta_entries(was.meta)
    new = {} if now is None else meta_entries(now.meta)
    for rule, before, after in _changed_pairs(old, new):
        yield DifferenceDetail(field="rule", name=str(rule), before=_entry_text(before), after=_entry_text(after))


def _object_types(before: Mapping[str, ObjectType], after: Mapping[str, ObjectType]) -> Iterator[Difference]:
    for name, was, now in _changed_pairs(before, after):
        details = tuple(
            DifferenceDetail(field=field, before=_type_field(was, field), after=_type_field(now, field))
            for field in ObjectType.__struct_fields__
            if _type_field(was, field) != _type_field(now, field)
        )
        yield Difference(what=ChangedItem.OBJECT, how=_change_kind(was, now), name=name, details=details)


def _type_field(object_type: ObjectType | None, field: str) -> str | None:
    if object_type is None:
        return None
    value = getattr(object_type, field)
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _entry_text(entry: RuleEntry | None) -> bool | str | None:
    if entry is None or not entry.params:
        return None if entry is None else entry.value
    return f"{'yes' if entry.value else 'no'}: {', '.join(entry.params)}"


def _value_differences(what: ChangedItem, before: Tree, after: Tree) -> Iterator[Difference]:
    old = {path: leaf["value"] for path, leaf in walk_leaves(before)}
    new = {path: leaf["value"] for path, leaf in walk_leaves(after)}
    for path, was, now in _changed_pairs(old, new):
        detail = DifferenceDetail(field="value", before=_display_value(was), after=_display_value(now))
        yield Difference(what=what, how=ChangeKind.CHANGED, name=path, details=(detail,))


def _display_value(value: object) -> bool | str | None:
    return value if isinstance(value, bool) or value is None else str(value)


def _changed_pairs(before: Mapping[K, V], after: Mapping[K, V]) -> Iterator[tuple[K, V | None, V | None]]:
    """Return what differs between both sides, by its name as text."""
    for key in sorted(before.keys() | after.keys(), key=str):
        was, now = before.get(key), after.get(key)
        if was != now:
            yield key, was, now


def _change_kind(was: object, now: object) -> ChangeKind:
    if was is None:
        return ChangeKind.ADDED
    return ChangeKind.REMOVED if now is None else ChangeKind.CHANGED
