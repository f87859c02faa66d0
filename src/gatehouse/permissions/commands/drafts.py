"""Saves of tags and optimistic versions, the same for applications, projects and groups (R6)."""

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import VersionConflict


class TagsDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data` of application/tags, project/tags and group/tags; null removes all tags."""

    tags: list[object] | None
    id: str = ""  # of the project; other ids are outside of `data`
    version: int | UnsetType = UNSET
    application_id: object = UNSET  # this and the following are accepted and ignored (R6)
    project_id: object = UNSET
    name: object = UNSET
    title: object = UNSET
    description: object = UNSET
    aliases: object = UNSET
    settings: object = UNSET
    service_meta: object = UNSET
    protected_sites: object = UNSET
    conditions: object = UNSET
    users: object = UNSET
    removed: object = UNSET
    author: object = UNSET
    created: object = UNSET
    updated_at: object = UNSET

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
