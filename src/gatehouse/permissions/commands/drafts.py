"""What a save of tags says: the same for applications, projects and groups (R6)."""

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import VersionConflict


class TagsDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data` of application/tags, project/tags and group/tags; null removes all tags."""

    tags: list[object] | None
    id: str = ""  # of the project; others are named outside of it
    version: int | UnsetType = UNSET
    application_id: object = UNSET  # this and what follows stands in one of the records, accepted and ignored (R6)
    project_id: object = UNSET
    name: object = UNSET
    title: object = UNSET
    description: object = UNSET
    aliases: object = UNSET
    settings: object = UNSET
    service_meta: object = UNSET
    conditions: object = UNSET
    users: object = UNSET
    removed: object = UNSET
    author: object = UNSET
    created: object = UNSET
    updated_at: object = UNSET

    @property
    def checked_tags(self) -> tuple[str, ...]:
        return grammar.check_tags(self.tags or [], "data.tags")


# Optimistic versions: a save or delete that names the one it read is refused when another came between (R6).


NEW_VERSION: Final = 0  # the version of what is only being made


def expected_version(given: int | UnsetType) -> int | None:
    """For stores that compare it in their own transaction."""
    return None if given is UNSET else given


def refuse_old_version(given: int | UnsetType, stored: int) -> None:
    if given is not UNSET and given != stored:
        raise VersionConflict(f"saved from version {given}, but version {stored} is stored")
