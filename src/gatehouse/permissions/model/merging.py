"""What an account takes over from one that is merged into it: roles and restrictions, no direct rights (R10)."""

from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.permissions.model.facts import NO_HOLDINGS, Assignment, ScopeHoldings, UserRecord
from gatehouse.permissions.model.rules import End
from gatehouse.permissions.model.schema import Tree

LOGIN_RESTRICTIONS: Mapping[str, bool] = {"can": False, "cannot": True}  # values that keep a person out


class MergedRecord(Struct, frozen=True, kw_only=True):
    record: UserRecord
    dropped: tuple[str, ...] = ()  # what the account did not take over, in words for the audit log


def merge_records(own: UserRecord, other: UserRecord, roles: Collection[str], now: int) -> MergedRecord:
    """Return the account's record with what it takes over of the other one.

    It gets those of `roles` that it does not have, and every restriction: a false entry beats a true one of either.
    """
    dropped: list[str] = []
    scopes = dict(own.scopes)
    for scope, there in other.scopes.items():
        here = scopes.get(scope, NO_HOLDINGS)
        merged = ScopeHoldings(
            roles=with_more_roles(here.roles, there.roles, roles, now),
            private_data=with_restrictions(here.private_data, there.private_data, now),
            public_data=with_restrictions(here.public_data, there.public_data, now),
        )
        dropped += dropped_roles(there.roles, merged.roles, now)
        dropped += dropped_entries(here, there, merged, now)
        if not merged.is_empty:
            scopes[scope] = merged
    if other.secret_data:
        dropped.append("secret_data")
    login = dict(own.login)
    for rule, restricts in LOGIN_RESTRICTIONS.items():
        leaf = other.login.get(rule)
        if unexpired_leaf_value(leaf, now) is restricts and lasts_longer(leaf, login.get(rule), restricts, now):
            login[rule] = leaf
    record = replace(own, scopes=scopes, login=login)
    return MergedRecord(record=record, dropped=tuple(f"{own.application_id}: {name}" for name in dropped))


def may_take_over(*, is_protected: bool, user_limit: int, holders: int, is_held: bool) -> bool:
    """Whether the account may get a role: no protected one, a limited one while a seat is free or its own."""
    return not is_protected and (not user_limit or is_held or holders < user_limit)


def live_roles(record: UserRecord, now: int) -> frozenset[str]:
    return frozenset(
        assignment.role
        for holdings in record.scopes.values()
        for assignment in holdings.roles
        if is_live(assignment, now)
    )


def is_live(assignment: Assignment, now: int) -> bool:
    return not assignment.end.is_past(now)


def with_more_roles(
    own: tuple[Assignment, ...], more: Collection[Assignment], roles: Collection[str], now: int
) -> tuple[Assignment, ...]:
    has = {assignment.role for assignment in own if is_live(assignment, now)}
    added = [
        assignment
        for assignment in more
        if assignment.role in roles and assignment.role not in has and is_live(assignment, now)
    ]
    replaced = {assignment.role for assignment in added}  # own assignments of these roles have ended
    return (*(assignment for assignment in own if assignment.role not in replaced), *added)


def dropped_roles(assignments: Collection[Assignment], merged: Collection[Assignment], now: int) -> Iterator[str]:
    """Yield the given roles that the account does not have now, or not as long."""
    ends = {assignment.role: assignment.end for assignment in merged}
    for assignment in assignments:
        if not is_live(assignment, now):
            continue
        if assignment.role not in ends:
            yield f"role {assignment.role}"
        elif is_later(assignment.end, ends[assignment.role]):
            yield f"role {assignment.role}: its later end"


def with_restrictions(own: Tree, other: Tree, now: int) -> Tree:
    """Return the section with the false entries of the other one."""
    merged = dict(own)
    for segment, node in other.items():
        here = merged.get(segment)
        if is_leaf(node):
            fits = here is None or is_leaf(here)  # an entry and entries below it exclude each other
            if fits and unexpired_leaf_value(node, now) is False and lasts_longer(node, here, False, now):
                merged[segment] = node
        elif isinstance(node, Mapping) and not is_leaf(here):
            below = with_restrictions(here if isinstance(here, Mapping) else {}, node, now)
            if below:
                merged[segment] = below
    return merged


def dropped_entries(own: ScopeHoldings, other: ScopeHoldings, merged: ScopeHoldings, now: int) -> Iterator[str]:
    """Yield lost entries: rights that were given, own rights that gave way, restrictions without a place."""
    for name in ("private_data", "public_data"):
        here, there, after = [dict(live_values(getattr(holdings, name), now)) for holdings in (own, other, merged)]
        rights = {path for path, value in after.items() if value is True}
        yield from (f"entry {path}" for path, value in there.items() if value is True and path not in rights)
        yield from (f"own entry {path}" for path, value in here.items() if value is True and path not in rights)
        yield from (f"restriction {path}" for path, value in there.items() if value is False and path not in after)


def live_values(tree: Tree, now: int, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield the path and value of every entry that has not ended."""
    for segment, node in tree.items():
        if is_leaf(node):
            value = unexpired_leaf_value(node, now)
            if value is not None:
                yield f"{prefix}{segment}", value
        elif isinstance(node, Mapping):
            yield from live_values(node, now, f"{prefix}{segment}.")


def is_leaf(node: object) -> bool:
    return isinstance(node, Mapping) and "value" in node


def unexpired_leaf_value(leaf: object, now: int) -> object:
    return None if not isinstance(leaf, Mapping) or end_of_leaf(leaf).is_past(now) else leaf.get("value")


def lasts_longer(leaf: object, own: object, restricts: bool, now: int) -> bool:  # noqa: FBT001
    """Whether the restriction keeps the person out where, or longer than, the account's own entry does."""
    if unexpired_leaf_value(own, now) is not restricts or not isinstance(own, Mapping):
        return True
    return is_later(end_of_leaf(leaf), end_of_leaf(own))


def is_later(end: End, than: End) -> bool:
    """Whether it ends later; something with a ttl never ends by itself (R5)."""
    return bool(than.expired) and not than.ttl and (bool(end.ttl) or not end.expired or end.expired > than.expired)


def end_of_leaf(leaf: object) -> End:
    if not isinstance(leaf, Mapping):
        return End()
    expired, ttl = leaf.get("expired", 0), leaf.get("ttl", 0)
    return End(expired=expired if isinstance(expired, int) else 0, ttl=ttl if isinstance(ttl, int) else 0)
