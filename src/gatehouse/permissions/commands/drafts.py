"""Saves of tags and optimistic versions, the same for applications, projects and groups (R6)."""

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from gatehouse.fields.derive import draft_members, with_members
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import VersionConflict
from gatehouse.permissions.model.application import APPLICATION_FIELDS
from gatehouse.permissions.model.project import GROUP_FIELDS, PROJECT_FIELDS


class Draft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data` of a save: an absent field is unchanged, null clears it, a value replaces it completely (R6).

    What answers contain is accepted and ignored where a save does not change it.
    """

    version: int | UnsetType = UNSET
    application_id: object = UNSET
    removed: object = UNSET
    tags: object = UNSET
    author: object = UNSET
    created: object = UNSET
    updated_at: object = UNSET


@with_members(lambda: draft_members((*PROJECT_FIELDS, *GROUP_FIELDS, *APPLICATION_FIELDS)))
class TagsDraft(Draft, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data` of application/tags, project/tags and group/tags; null removes all tags."""

    tags: list[object] | None
    id: str = ""  # of the project; other ids are outside of `data`

    @property
    def checked_tags(self) -> tuple[str, ...]:
        return grammar.check_tags(self.tags or [], "data.tags")


# Optimistic versions: a save or delete that names an old version is refused (R6).


NEW_VERSION: Final = 0  # of what does not exist yet


def expected_version(given: int | UnsetType) -> int | None:
    """Return the expected version for stores, which compare it in their own transaction."""
    return None if given is UNSET else given


def refuse_old_version(given: int | UnsetType, stored: int) -> None:
    if given is not UNSET and given != stored:
        raise VersionConflict(f"saved from version {given}, but version {stored} is stored")
