"""secret_data: a caller's rights on an application's records, and how long they last (interface §2.8, R5)."""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from gatehouse.permissions.documents.ends import stored_end
from gatehouse.permissions.evaluation.effective import FOREVER, EffectivePermissions, ScopePermissions
from gatehouse.permissions.model.rules import NO_END, End, Rule, Scope
from gatehouse.permissions.model.schema import APPLICATION_RULES, SECRET_DEFAULT, Tree


def ends_of(effective: EffectivePermissions, scope: Scope, rule: Rule, now: int) -> list[End]:
    """Return the end of each place where the rule is held and counts in the scope; none when it is not held."""
    return [
        end_in_scope(effective.rules(place), rule, now)
        for place in effective.lookup_scopes(scope, rule)
        if rule in effective.rules(place)
    ]


def end_in_scope(permissions: ScopePermissions, rule: Rule, now: int) -> End:
    """Return when a rule that is held there ends."""
    left = permissions.seconds_left({rule}, now).get(rule)
    if left is None:
        return NO_END
    allowing = (contribution for contribution in permissions.contributions if rule in contribution.verdicts.yes)
    by_ttl = any(contribution.end.ttl == left for contribution in allowing)
    return End(ttl=left) if by_ttl else End(expired=now + left)


def latest_end(ends: Iterable[End], now: int) -> End:
    return max(ends, key=lambda end: (FOREVER if end.ttl else end.expired or FOREVER, end.ends_at(now) or FOREVER))


def outlasts(end: End, other: End, now: int) -> bool:
    """Whether the first end may be later than the second, or lists show a later end for it."""
    if other == NO_END:
        return False
    if end.ttl and not other.ttl:
        return True  # a ttl is not an end
    return not end.ends_at(now) or end.ends_at(now) > other.ends_at(now)


# What a caller may do with an application's own records: canRead, canSave, meta.roles.canWrite… (interface §2.8).


SecretPath: TypeAlias = tuple[str, ...]  # ("application", "canSave"), ("meta", "roles", "canRead")


class RecordPart(StrEnum):
    """The parts of a user's record that have separate rights."""

    ROLES = "roles"
    PRIVATE = "private"
    PUBLIC = "public"
    SECRET = "secret"  # noqa: S105 - a word of the interface


PERMISSION_PARTS: Final = frozenset({RecordPart.ROLES, RecordPart.PUBLIC, RecordPart.PRIVATE})


class Extent(StrEnum):
    NONE = "none"
    SELF = "self"
    ALL = "all"


META: Final = "meta"
WIDTH: Final = {Extent.NONE: 0, Extent.SELF: 1, Extent.ALL: 2}


class SecretData(Struct, frozen=True, kw_only=True):
    application: frozenset[str] = frozenset()  # names of the rules that are true
    reads: Mapping[RecordPart, Extent]
    writes: Mapping[RecordPart, Extent]
    ends: Mapping[SecretPath, End] = field(default_factory=dict)  # places not listed here have none

    def extent_at(self, place: SecretPath) -> Extent:
        """Return the extent in one place; a true rule of the application gives the full extent."""
        match place:
            case ("meta", part, "canRead"):
                return self.reads[RecordPart(part)]
            case ("meta", part, "canWrite"):
                return self.writes[RecordPart(part)]
            case (_, rule):
                return Extent.ALL if rule in self.application else Extent.NONE
            case _:
                return Extent.NONE

    def end_at(self, place: SecretPath) -> End:
        return self.ends.get(place, NO_END)


NO_SECRET_DATA: Final = SecretData(
    reads=dict.fromkeys(RecordPart, Extent.NONE),
    writes=dict.fromkeys(RecordPart, Extent.NONE),
)
FULL_SECRET_DATA: Final = SecretData(
    application=frozenset(APPLICATION_RULES),
    reads=dict.fromkeys(RecordPart, Extent.ALL),
    writes=dict.fromkeys(RecordPart, Extent.ALL),
)


def overlay_secret_data(below: SecretData, tree: Tree, now: int) -> SecretData:
    """`below`, overridden by each leaf of `tree` that has not expired."""
    application = set(below.application)
    for rule, leaf in subtree(tree, "application").items():
        value = unexpired_value(leaf, now)
        if value is True:
            application.add(rule)
        elif value is not None:
            application.discard(rule)
    meta = subtree(tree, META)
    ends = {
        place: combine_end(below, place, leaf_extent(place, leaf), leaf_end(leaf), now)
        for place, leaf in secret_leaves(tree).items()
        if unexpired_value(leaf, now) is not None
    }
    return SecretData(
        application=frozenset(application),
        reads={part: overlay_extent(meta, part, "canRead", below.reads[part], now) for part in RecordPart},
        writes={part: overlay_extent(meta, part, "canWrite", below.writes[part], now) for part in RecordPart},
        ends={**below.ends, **ends},
    )


def full_secret_data_until(end: End) -> SecretData:
    ends = {} if end == NO_END else dict.fromkeys(secret_leaves(SECRET_DEFAULT), end)
    return replace(FULL_SECRET_DATA, ends=ends)


def open_places(data: SecretData, places: Collection[SecretPath], end: End, now: int) -> SecretData:
    """Return the same, with the full extent in these places until that end."""
    return SecretData(
        application=data.application | {place[1] for place in places if place[0] == "application"},
        reads={
            part: Extent.ALL if (META, part, "canRead") in places else extent for part, extent in data.reads.items()
        },
        writes={part: Extent.ALL if (META, part, "canWrite") in places else was for part, was in data.writes.items()},
        ends={**data.ends, **{place: combine_end(data, place, Extent.ALL, end, now) for place in places}},
    )


def combine_end(below: SecretData, place: SecretPath, wide: Extent, end: End, now: int) -> End:
    """Until when this extent lasts there: longer than the end of the leaf if it was held before."""
    return latest_end((end, below.end_at(place)), now) if WIDTH[below.extent_at(place)] >= WIDTH[wide] else end


def overlay_extent(meta: Tree, part: RecordPart, verb: str, below: Extent, now: int) -> Extent:
    leaf = subtree(meta, part.value).get(verb)
    return below if unexpired_value(leaf, now) is None else leaf_extent((META, part, verb), leaf)


def secret_leaves(tree: Tree) -> dict[SecretPath, object]:
    meta = subtree(tree, META)
    return {("application", rule): leaf for rule, leaf in subtree(tree, "application").items()} | {
        (META, part.value, verb): leaf for part in RecordPart for verb, leaf in subtree(meta, part.value).items()
    }


def leaf_extent(place: SecretPath, leaf: object) -> Extent:
    """Return the extent of an unexpired leaf; an unknown value gives none (S-22)."""
    value = leaf.get("value") if isinstance(leaf, Mapping) else None
    if place[0] != META:
        return Extent.ALL if value is True else Extent.NONE
    return Extent(value) if isinstance(value, str) and value in set(Extent) else Extent.NONE


def leaf_end(leaf: object) -> End:
    return stored_end(leaf) if isinstance(leaf, Mapping) else NO_END


def subtree(tree: Tree, name: str) -> Tree:
    node = tree.get(name)
    return node if isinstance(node, Mapping) else {}


def unexpired_value(leaf: object, now: int) -> object:
    """Return the value of a leaf that exists and has not ended, else None."""
    if not isinstance(leaf, Mapping) or stored_end(leaf).is_past(now):
        return None
    return leaf.get("value")
