"""What a caller may do with an application's own records: canRead, canSave, meta.roles.canWrite… (interface §2.8)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeAlias

from gatehouse.permissions.documents.ends import stored_end
from gatehouse.permissions.model.rule import ENDLESS, End
from gatehouse.permissions.model.schema import APPLICATION_RULES, SECRET_DEFAULT, Tree
from gatehouse.permissions.rights.lasting import longest

Place: TypeAlias = tuple[str, ...]  # ("application", "canSave"), ("meta", "roles", "canRead")


class Part(StrEnum):
    """The parts of a user's record that are opened one by one."""

    ROLES = "roles"
    PRIVATE = "private"
    PUBLIC = "public"
    SECRET = "secret"  # noqa: S105 - a word of the interface


WHAT_IS_HELD: Final = frozenset({Part.ROLES, Part.PUBLIC, Part.PRIVATE})


class Extent(StrEnum):
    NONE = "none"
    SELF = "self"
    ALL = "all"


META: Final = "meta"
WIDTH: Final = {Extent.NONE: 0, Extent.SELF: 1, Extent.ALL: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretData:
    application: frozenset[str] = frozenset()  # names of the rules that are true
    reads: Mapping[Part, Extent]
    writes: Mapping[Part, Extent]
    ends: Mapping[Place, End] = field(default_factory=dict)  # what is not named here has none

    def at(self, place: Place) -> Extent:
        """What is held in one place; a rule of the application that is true is held whole."""
        match place:
            case ("meta", part, "canRead"):
                return self.reads[Part(part)]
            case ("meta", part, "canWrite"):
                return self.writes[Part(part)]
            case (_, rule):
                return Extent.ALL if rule in self.application else Extent.NONE
            case _:
                return Extent.NONE

    def end(self, place: Place) -> End:
        return self.ends.get(place, ENDLESS)


NO_SECRETS: Final = SecretData(
    reads=dict.fromkeys(Part, Extent.NONE),
    writes=dict.fromkeys(Part, Extent.NONE),
)
EVERYTHING: Final = SecretData(
    application=frozenset(APPLICATION_RULES),
    reads=dict.fromkeys(Part, Extent.ALL),
    writes=dict.fromkeys(Part, Extent.ALL),
)


def overlaid(below: SecretData, tree: Tree, now: int) -> SecretData:
    """What `tree` says, where it says anything that has not ended; the rest as it is below."""
    application = set(below.application)
    for rule, leaf in branch(tree, "application").items():
        value = living_value(leaf, now)
        if value is True:
            application.add(rule)
        elif value is not None:
            application.discard(rule)
    meta = branch(tree, META)
    ends = {
        place: end_with(below, place, leaf_extent(place, leaf), leaf_end(leaf), now)
        for place, leaf in secret_leaves(tree).items()
        if living_value(leaf, now) is not None
    }
    return SecretData(
        application=frozenset(application),
        reads={part: extent(meta, part, "canRead", below.reads[part], now) for part in Part},
        writes={part: extent(meta, part, "canWrite", below.writes[part], now) for part in Part},
        ends={**below.ends, **ends},
    )


def everything_until(end: End) -> SecretData:
    ends = {} if end == ENDLESS else dict.fromkeys(secret_leaves(SECRET_DEFAULT), end)
    return replace(EVERYTHING, ends=ends)


def opened(data: SecretData, places: Collection[Place], end: End, now: int) -> SecretData:
    """The same, with these places open wide until that end."""
    return SecretData(
        application=data.application | {place[1] for place in places if place[0] == "application"},
        reads={part: Extent.ALL if (META, part, "canRead") in places else held for part, held in data.reads.items()},
        writes={part: Extent.ALL if (META, part, "canWrite") in places else was for part, was in data.writes.items()},
        ends={**data.ends, **{place: end_with(data, place, Extent.ALL, end, now) for place in places}},
    )


def end_with(below: SecretData, place: Place, wide: Extent, end: End, now: int) -> End:
    """Until when so much is held there: longer than the end says, when it was held before."""
    return longest((end, below.end(place)), now) if WIDTH[below.at(place)] >= WIDTH[wide] else end


def extent(meta: Tree, part: Part, verb: str, below: Extent, now: int) -> Extent:
    leaf = branch(meta, part.value).get(verb)
    return below if living_value(leaf, now) is None else leaf_extent((META, part, verb), leaf)


def secret_leaves(tree: Tree) -> dict[Place, object]:
    meta = branch(tree, META)
    return {("application", rule): leaf for rule, leaf in branch(tree, "application").items()} | {
        (META, part.value, verb): leaf for part in Part for verb, leaf in branch(meta, part.value).items()
    }


def leaf_extent(place: Place, leaf: object) -> Extent:
    """How much a leaf opens while it lives; whatever is not understood opens nothing (S-22)."""
    value = leaf.get("value") if isinstance(leaf, Mapping) else None
    if place[0] != META:
        return Extent.ALL if value is True else Extent.NONE
    return Extent(value) if isinstance(value, str) and value in set(Extent) else Extent.NONE


def leaf_end(leaf: object) -> End:
    return stored_end(leaf) if isinstance(leaf, Mapping) else ENDLESS


def branch(tree: Tree, name: str) -> Tree:
    found = tree.get(name)
    return found if isinstance(found, Mapping) else {}


def living_value(leaf: object, now: int) -> object:
    """The value of a leaf that is there and has not ended, else None."""
    if not isinstance(leaf, Mapping) or stored_end(leaf).is_past(now):
        return None
    return leaf.get("value")
