"""Settings as people may see them: secrets masked, lists as lists."""

from gatehouse.settings.entries import ENTRIES, value_of
from gatehouse.settings.model import Settings
from gatehouse.settings.secret import Secret

Shown = bool | int | str | list[str]


def shown(settings: Settings, name: str) -> Shown:
    value = value_of(settings, ENTRIES[name])
    if isinstance(value, tuple):
        return [text_of(member) for member in value]
    return text_of(value) if isinstance(value, Secret) else value


def text_of(value: object) -> str:
    return value.shown if isinstance(value, Secret) else str(value)


def cell(value: Shown) -> str:
    """One line of it."""
    if isinstance(value, list):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
