"""What a save of tags says: the same for applications, projects and groups (R6)."""

import msgspec
from msgspec import UNSET, UnsetType

from gatehouse.permissions.documents import grammar


class TagsDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data` of application/tags, project/tags and group/tags; null takes all of them away."""

    tags: list[object] | None
    id: str = ""  # of the project; others are named outside of it
    version: int | UnsetType = UNSET

    @property
    def wanted(self) -> tuple[str, ...]:
        return grammar.check_tags(self.tags or [], "data.tags")
