"""Saves of tags, the same for applications, projects and groups (R6)."""

import msgspec
from msgspec import UNSET, UnsetType

from gatehouse.fields.derive import draft_members, with_members
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.model.application import APPLICATION_FIELDS
from gatehouse.permissions.model.group import GROUP_FIELDS
from gatehouse.permissions.model.project import PROJECT_FIELDS


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
