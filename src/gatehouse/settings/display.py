"""Settings for display: secrets masked, lists as lists."""

from gatehouse.kernel.stored_settings import referenced_image
from gatehouse.settings.entries import setting_of_name, value_of
from gatehouse.settings.model import Settings
from gatehouse.settings.secret import Secret

DisplayValue = bool | int | str | list[str]


def display_value(settings: Settings, name: str) -> DisplayValue:
    value = value_of(settings, setting_of_name(name))
    if isinstance(value, tuple):
        return [display_text(member) for member in value]
    if image_id := referenced_image(value):
        return f"{settings.server.base_url}/images/{image_id}"
    return display_text(value) if isinstance(value, Secret) else value


def display_text(value: object) -> str:
    return value.masked if isinstance(value, Secret) else str(value)


def display_line(value: DisplayValue) -> str:
    """Return one line for display."""
    if isinstance(value, list):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
