"""Optimistic versions: a save or delete that names an old version is refused (R6)."""

from typing import Final

from msgspec import UNSET, UnsetType

from gatehouse.permissions.errors import VersionConflict

NEW_VERSION: Final = 0  # of what does not exist yet


def expected_version(given: int | UnsetType) -> int | None:
    """Return the expected version for stores, which compare it in their own transaction."""
    return None if given is UNSET else given


def refuse_old_version(given: int | UnsetType, stored: int) -> None:
    if given is not UNSET and given != stored:
        raise VersionConflict(f"saved from version {given}, but version {stored} is stored")
