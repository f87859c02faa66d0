"""Objects of an application, and what people and groups hold on them (R12).

An object stores its path: its place (a project, or nothing for the root), then its ancestors from the top, then
itself. The separator sorts below every character of a key, so an object and everything below it is one range of an
index, in the order of the path.
"""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from gatehouse.permissions.model.rules import NO_END, End

SEPARATOR: Final = "!"
AFTER_SEPARATOR: Final = chr(ord(SEPARATOR) + 1)
OBJECT_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,64}:[A-Za-z0-9._~@-]{1,128}", re.ASCII)
MAX_OBJECT_KEY_LENGTH: Final = 64 + 1 + 128
MAX_TITLE_LENGTH: Final = 200
MAX_DEPTH: Final = 8
MAX_OBJECTS: Final = 1_000  # of one request
MAX_SUBTREE: Final = 10_000  # objects that one move or delete changes
MAX_SUBTREE_HOLDERS: Final = 100_000  # rows that one move or delete changes
MAX_ON_OBJECT: Final = 100  # roles and entries of one person or group on one object


class HolderKind(StrEnum):
    USER = "u"  # a person or a service account
    GROUP = "g"


class ItemKind(StrEnum):
    ROLE = "r"
    RULE = "p"  # of private_data


class Holder(Struct, frozen=True, order=True):
    kind: HolderKind
    id: str

    @property
    def key(self) -> str:
        """The holder as it is stored."""
        return f"{self.kind}:{self.id}"


class HeldItem(Struct, frozen=True, order=True):
    """A role, or a rule of private_data."""

    kind: ItemKind
    name: str

    @property
    def key(self) -> str:
        """The item as it is stored."""
        return f"{self.kind}:{self.name}"


class ObjectHolding(Struct, frozen=True, kw_only=True):
    """What one holder has on one object."""

    holder: Holder
    item: HeldItem
    value: bool = True  # False: a role is revoked, a rule denied
    end: End = NO_END
    generation: int = 0  # of the role; one of an earlier role with this name never counts


class StoredObject(Struct, frozen=True, kw_only=True):
    key: str  # type:id
    path: str
    title: str = ""
    version: int = 0

    @property
    def type(self) -> str:
        return self.key.partition(":")[0]

    @property
    def place(self) -> str:
        """The project, or "" for the root of the application."""
        return place_of(self.path)

    @property
    def parent(self) -> str | None:
        return parent_key(self.path)


class ObjectFacts(Struct, frozen=True, kw_only=True):
    """Objects that a question names, with what one person and groups hold on them and above, of one state."""

    paths: Mapping[str, str] = field(default_factory=dict)  # by key; without unknown objects
    holdings: Mapping[str, tuple[ObjectHolding, ...]] = field(default_factory=dict)  # by path


NO_OBJECTS: Final = ObjectFacts()


def place_of(path: str) -> str:
    return path.partition(SEPARATOR)[0]


def parent_path(path: str) -> str:
    """The path of the parent, or the place of an object without one."""
    return path.rpartition(SEPARATOR)[0]


def parent_key(path: str) -> str | None:
    above = parent_path(path)
    return above.rpartition(SEPARATOR)[2] if SEPARATOR in above else None


def path_below(above: str, key: str) -> str:
    return f"{above}{SEPARATOR}{key}"


def depth_of(path: str) -> int:
    """1 for an object without a parent."""
    return path.count(SEPARATOR)


def subtree_end(path: str) -> str:
    """The first text after the object and everything below it."""
    return f"{path}{AFTER_SEPARATOR}"


def is_within(path: str, above: str) -> bool:
    """Whether this is the object at that path, or one below it."""
    return path == above or path.startswith(f"{above}{SEPARATOR}")


def scope_paths(path: str) -> Iterator[str]:
    """The paths of the object and its ancestors, the nearest first."""
    while SEPARATOR in path:
        yield path
        path = parent_path(path)
