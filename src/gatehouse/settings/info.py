"""How a setting is described: its unit, bounds, check and meaning."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Final

from gatehouse.fields.model import Field, Kind
from gatehouse.settings.grammar import absolute_path

YEAR_DAYS: Final = 365
MIN_SECRET_LENGTH: Final = 32  # characters; `gatehouse.kernel.ids.new_secret` makes longer ones
MAX_RATE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class SettingField(Field):
    """The description of a setting. A file and the environment give an image as a path; the database holds its ID."""

    _: KW_ONLY
    without: str = ""  # the effect when it is not set
    dev: str = ""  # the default with --dev, where it differs
    stored: bool = False  # administrators may change it while the service runs; it is kept in the database
    fixed: bool = False  # a provider keeps its first value
    called: bool = False  # the URL of something that this service sends requests to
    sent_to: tuple[
        str, ...
    ] = ()  # of a secret: the settings of its section that say where it goes; the first may be ""


def number(help_text: str, low: int, high: int, unit: str = "", *, stored: bool = False) -> SettingField:
    return SettingField(help_text, unit=unit, minimum=low, maximum=high, stored=stored)


def seconds(help_text: str, low: int, high: int, *, stored: bool = False) -> SettingField:
    return number(help_text, low, high, "seconds", stored=stored)


def days(help_text: str, low: int = 1, high: int = YEAR_DAYS, *, stored: bool = False) -> SettingField:
    return number(help_text, low, high, "days", stored=stored)


def per_minute(help_text: str) -> SettingField:
    return number(help_text, 1, MAX_RATE, "requests a minute")


def text(
    help_text: str,
    check: Callable[[str], object],
    *,
    without: str = "",
    dev: str = "",
    stored: bool = False,
    fixed: bool = False,
    called: bool = False,
) -> SettingField:
    return SettingField(help_text, check=check, without=without, dev=dev, stored=stored, fixed=fixed, called=called)


def image(help_text: str, *, without: str) -> SettingField:
    return SettingField(help_text, kind=Kind.IMAGE, check=absolute_path, without=without, stored=True)


def long_secret(help_text: str) -> SettingField:
    return SettingField(help_text, unit="characters", minimum=MIN_SECRET_LENGTH)
