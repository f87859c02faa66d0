"""What a caller may do with an application's own records: canRead, canSave, meta.roles.canWrite… (interface §2.8)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gatehouse.permissions.documents.ends import stored_end
from gatehouse.permissions.model.schema import APPLICATION_RULES, Tree


class Part(StrEnum):
    """The parts of a user's record that are opened one by one."""

    ROLES = "roles"
    PRIVATE = "private"
    PUBLIC = "public"
    SECRET = "secret"  # noqa: S105 - a word of the interface


class Extent(StrEnum):
    NONE = "none"
    SELF = "self"
    ALL = "all"


WIDTH: Final = {Extent.NONE: 0, Extent.SELF: 1, Extent.ALL: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretData:
    application: frozenset[str] = frozenset()  # names of the rules that are true
    reads: Mapping[Part, Extent]
    writes: Mapping[Part, Extent]

    def covers(self, other: "SecretData") -> bool:
        """Whether whoever holds this may give the other away (R5, granting)."""
        return (
            other.application <= self.application
            and all(WIDTH[self.reads[part]] >= WIDTH[other.reads[part]] for part in Part)
            and all(WIDTH[self.writes[part]] >= WIDTH[other.writes[part]] for part in Part)
        )


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
    meta = branch(tree, "meta")
    return SecretData(
        application=frozenset(application),
        reads={part: extent(meta, part, "canRead", below.reads[part], now) for part in Part},
        writes={part: extent(meta, part, "canWrite", below.writes[part], now) for part in Part},
    )


def extent(meta: Tree, part: Part, verb: str, below: Extent, now: int) -> Extent:
    value = living_value(branch(meta, part.value).get(verb), now)
    if value is None:
        return below
    return (
        Extent(value) if isinstance(value, str) and value in set(Extent) else Extent.NONE
    )  # whatever it is, it opens nothing (S-22)


def branch(tree: Tree, name: str) -> Tree:
    found = tree.get(name)
    return found if isinstance(found, Mapping) else {}


def living_value(leaf: object, now: int) -> object:
    """The value of a leaf that is there and has not ended, else None."""
    if not isinstance(leaf, Mapping) or stored_end(leaf).is_past(now):
        return None
    return leaf.get("value")
