"""Optimistic versions: a save or delete that names an old version is refused (R6)."""

from typing import Final

from msgspec import UNSET, UnsetType

from gatehouse.permissions.errors import VersionConflict

NEW_VERSION: Final = 0  # of what does not exist yet


def expected_version(version: int | UnsetType) -> int | None:
    """Return the expected version for stores, which compare it in their own transaction."""
    return None if version is UNSET else version


def refuse_old_version(version: int | UnsetType, stored: int) -> None:
    if version is not UNSET and version != stored:
        raise VersionConflict(f"saved from version {version}, but version {stored} is stored")
