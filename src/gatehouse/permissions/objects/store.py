"""The store of objects and of what is held on them (R12)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from gatehouse.audit.model import AuditRecord
from gatehouse.permissions.model.facts import Facts
from gatehouse.permissions.model.object_ranges import PathRange
from gatehouse.permissions.model.objects import Holder, ObjectHolding, StoredObject
from gatehouse.permissions.model.schema import ObjectType


class ObjectChange(Struct, frozen=True, kw_only=True):
    """One object before and after its change: the changes of a save are made one after the other."""

    before: StoredObject | None
    after: StoredObject


class ObjectEdit(Struct, frozen=True, kw_only=True):
    """The changes of a save, in order, and its audit record."""

    steps: Sequence[ObjectChange]
    record: AuditRecord


class HolderChange(Struct, frozen=True, kw_only=True):
    """What one holder has on one object; an empty one is removed."""

    path: str
    holder: Holder
    holdings: Sequence[ObjectHolding]


class HolderEdit(Struct, frozen=True, kw_only=True):
    rows: Sequence[HolderChange]
    record: AuditRecord


class RoleState(Struct, frozen=True, kw_only=True):
    """What an assignment on an object must know of a role."""

    name: str
    protected: bool
    user_limit: int
    generation: int


class ObjectDeletion(Struct, frozen=True, kw_only=True):
    objects: int
    holders: int


# Given what is stored, by key: the objects that a save names, and their parents; and the types of the schema.
ChangeObjects = Callable[[Mapping[str, StoredObject], Mapping[str, ObjectType]], ObjectEdit]
# Given the objects by key, what the holders have on them by path and holder, and roles and types of the application.
ChangeHolders = Callable[
    [
        Mapping[str, StoredObject],
        Mapping[tuple[str, str], Sequence[ObjectHolding]],
        Mapping[str, RoleState],
        Mapping[str, ObjectType],
    ],
    HolderEdit,
]
# Given the objects that go: refuses, or returns the record of what was deleted.
CheckDeletion = Callable[[Mapping[str, StoredObject]], Callable[[ObjectDeletion], AuditRecord]]


class ObjectPage(Struct, frozen=True, kw_only=True):
    objects: Sequence[StoredObject]
    after: str | None  # the path that the next page begins after; None at the end


class HolderPage(Struct, frozen=True, kw_only=True):
    holdings: Sequence[ObjectHolding]
    after: str | None  # the holder that the next page begins after; None at the end


class AllowedQuery(Struct, frozen=True, kw_only=True):
    """One page of the objects on which a person has a rule, in one place."""

    facts: Facts  # what the other members were made from
    project_ids: tuple[str, ...]
    application_id: int
    type: str
    within: PathRange
    holders: Sequence[Holder]  # the person and their groups
    # Given what the holders have by path, the ranges in which the person has the rule.
    find_ranges: Callable[[Mapping[str, Sequence[ObjectHolding]], PathRange], Sequence[PathRange]]
    limit: int


class ObjectStore(Protocol):
    """Changes of one application's objects that move or delete something run alone; others at the same time."""

    async def objects(self, application_id: int, keys: Sequence[str]) -> Mapping[str, StoredObject]:
        """Those that exist, by key."""

    async def save_objects(
        self, application_id: int, keys: Sequence[str], change: ChangeObjects
    ) -> Sequence[StoredObject]:
        """Create, change and move objects in one transaction.

        Raises ApplicationNotFound, SubtreeTooLarge, ObjectTooDeep.
        """

    async def delete_objects(
        self, application_id: int, keys: Sequence[str], check: CheckDeletion, *, recursive: bool
    ) -> ObjectDeletion:
        """Delete objects with what is held on them. Raises ObjectHasChildren unless `recursive`, SubtreeTooLarge."""

    async def save_holders(
        self,
        application_id: int,
        keys: Sequence[str],
        holders: Sequence[tuple[str, Holder]],
        change: ChangeHolders,
    ) -> HolderEdit:
        """Replace what these holders have on these objects, in one transaction.

        Raises ApplicationNotFound, UserNotFound, GroupNotFound for a group that is not of the object's project.
        """

    async def list_objects(
        self, application_id: int, types: Sequence[str], *, begin: str, end: str, after: str, limit: int
    ) -> ObjectPage:
        """Objects of these types with a path from `begin` on, before `end` and after `after`, by path."""

    async def holders_of(self, application_id: int, path: str, *, after: str, limit: int) -> HolderPage:
        """What is held on an object itself, by holder, each holder whole; about `limit` rows."""

    async def first_object(self, application_id: int, object_type: str, within: PathRange) -> StoredObject | None:
        """The first object of a type in the range."""

    async def allowed_page(self, query: AllowedQuery) -> ObjectPage | None:
        """Objects in the ranges, by path, read from one snapshot with a bounded number of rows.

        `after` is the position at which the next page begins. None when the facts have changed.
        """
