"""Settings as people may see them: secrets masked, lists as lists."""

from gatehouse.settings.entries import ALL_SETTINGS, value_of
from gatehouse.settings.model import Settings
from gatehouse.settings.secret import Secret

DisplayValue = bool | int | str | list[str]


def display_value(settings: Settings, name: str) -> DisplayValue:
    value = value_of(settings, ALL_SETTINGS[name])
    if isinstance(value, tuple):
        return [display_text(member) for member in value]
    return display_text(value) if isinstance(value, Secret) else value


def display_text(value: object) -> str:
    return value.masked if isinstance(value, Secret) else str(value)


def display_line(value: DisplayValue) -> str:
    """One line of it."""
    if isinstance(value, list):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
