"""The versions of an application's rules and roles, and what each save changed."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from gatehouse.permissions.model.facts import ApplicationModel

MAX_VERSIONS: Final = 100  # of one application; the oldest go first
MAX_VERSION_BYTES: Final = 4 * 2**20  # of all versions of one application, as they are stored


class ChangedItem(StrEnum):
    RULE = "rule"
    ROLE = "role"
    OBJECT = "object"  # an object type
    LOGIN = "login"
    SYSTEM = "system"  # secret_data: what the application's own people may do with it


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class DifferenceDetail(Struct, frozen=True, kw_only=True):
    """One changed field of a rule or role; None where it did not or does not exist."""

    field: str
    name: str = ""  # of the rule whose entry in a role differs
    before: bool | int | str | None
    after: bool | int | str | None


class Difference(Struct, frozen=True, kw_only=True):
    what: ChangedItem
    how: ChangeKind
    name: str
    details: tuple[DifferenceDetail, ...] = ()


class ChangeTally(Struct, frozen=True, kw_only=True):
    """Differences of one kind, counted, with the first few of them named."""

    what: ChangedItem
    how: ChangeKind
    count: int
    names: tuple[str, ...]


class SchemaVersion(Struct, frozen=True, kw_only=True):
    version: int
    saved_at: int
    actor: str  # the actor's name in the audit log; "" when it is no longer known
    nick: str | None  # if that is a person who still has an account
    changes: tuple[ChangeTally, ...]  # since the version before


class PastSchema(Struct, frozen=True, kw_only=True):
    saved: SchemaVersion
    model: ApplicationModel  # the current version
