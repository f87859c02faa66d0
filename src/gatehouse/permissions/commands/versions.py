"""Optimistic versions: a save that names the one it read is refused when another came between (R6)."""

from typing import Final

from msgspec import UNSET, UnsetType

from gatehouse.permissions.errors import VersionConflict

NOT_YET: Final = 0  # the version of what is only being made


def refuse_old_version(given: int | UnsetType, stored: int) -> None:
    if given is not UNSET and given != stored:
        raise VersionConflict(f"saved from version {given}, stored is {stored}")
