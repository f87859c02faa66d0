"""The versions of an application's rules and roles, and what each save changed."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gatehouse.permissions.model.facts import ApplicationModel

MAX_VERSIONS: Final = 100  # of one application; the oldest go first
MAX_VERSION_BYTES: Final = 4 * 2**20  # of all versions of one application, as they are stored


class ChangedItem(StrEnum):
    RULE = "rule"
    ROLE = "role"
    LOGIN = "login"
    SYSTEM = "system"  # secret_data: what the application's own people may do with it


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceDetail:
    """One changed field of a rule or role; None where it did not or does not exist."""

    field: str
    name: str = ""  # of the rule whose entry in a role differs
    before: bool | int | str | None
    after: bool | int | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    what: ChangedItem
    how: ChangeKind
    name: str
    details: tuple[DifferenceDetail, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTally:
    """Differences of one kind, counted, with the first few of them named."""

    what: ChangedItem
    how: ChangeKind
    count: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaVersion:
    version: int
    saved_at: int
    actor: str  # the actor's name in the audit log; "" when it is no longer known
    nick: str | None  # if that is a person who still has an account
    changes: tuple[ChangeTally, ...]  # since the version before


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSchema:
    saved: SchemaVersion
    model: ApplicationModel  # the current version
