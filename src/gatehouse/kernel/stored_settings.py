"""A setting as the database holds it, for the code that stores settings without knowing them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gatehouse.kernel.errors import BadInput

IMAGE_REFERENCE: Final = re.compile(r"image:([0-9a-f]{64})", re.ASCII)


@dataclass(frozen=True, slots=True)
class StoredSetting:
    """The value of a setting as JSON, or encrypted if it is a secret."""

    value: Any = None
    sealed: bytes | None = None


StoredSettings = Mapping[str, StoredSetting]


def image_reference(image_id: str) -> str:
    """Return the stored value of a setting that is an image."""
    return f"image:{image_id}"


def referenced_image(value: object) -> str:
    """Return the ID of the image that is the value of a setting; "" for any other value."""
    match = IMAGE_REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return match[1] if match else ""


def setting_sealing_purpose(name: str) -> str:
    return f"setting:{name}"


class BadSetting(BadInput, ValueError):
    """A value that a setting cannot have, with a text that follows its name; screens have their own (`on_screen`)."""


class SettingsInvalid(BadInput):
    """Settings that cannot be stored, with every problem by its setting."""

    def __init__(self, problems: Mapping[str, BadInput]) -> None:
        self.problems: Final = dict(problems)
        super().__init__("; ".join(f"{name} {problem.detail}" for name, problem in self.problems.items()))
