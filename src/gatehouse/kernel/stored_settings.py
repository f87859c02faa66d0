"""A setting as the database holds it, for the code that stores settings without knowing them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StoredSetting:
    """The value of a setting as JSON, or encrypted if it is a secret."""

    value: Any = None
    sealed: bytes | None = None


StoredSettings = Mapping[str, StoredSetting]


def setting_sealing_purpose(name: str) -> str:
    return f"setting:{name}"
