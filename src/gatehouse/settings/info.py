"""How a setting is described: its unit, bounds, grammar and meaning."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Final

from gatehouse.settings.grammar import absolute_path

YEAR_DAYS: Final = 365
MIN_SECRET_LENGTH: Final = 32  # characters; `gatehouse.kernel.ids.new_secret` makes longer ones
MAX_RATE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class SettingInfo:
    meaning: str
    _: KW_ONLY
    unit: str = ""
    low: int = 0
    high: int = 0
    shortest: int = 0  # characters of a secret
    grammar: Callable[[str], object] | None = None  # raises ValueError
    choices: tuple[str, ...] = ()  # where they are not the type's
    without: str = ""  # the effect when it is not set
    dev: str = ""  # the default with --dev, where it differs
    stored: bool = False  # administrators may change it while the service runs; it is kept in the database
    image: bool = False  # a file and the environment give a path; the database holds an uploaded or fetched image
    fixed: bool = False  # a provider keeps its first value


def number(meaning: str, low: int, high: int, unit: str = "", *, stored: bool = False) -> SettingInfo:
    return SettingInfo(meaning, unit=unit, low=low, high=high, stored=stored)


def seconds(meaning: str, low: int, high: int, *, stored: bool = False) -> SettingInfo:
    return number(meaning, low, high, "seconds", stored=stored)


def days(meaning: str, low: int = 1, high: int = YEAR_DAYS, *, stored: bool = False) -> SettingInfo:
    return number(meaning, low, high, "days", stored=stored)


def per_minute(meaning: str) -> SettingInfo:
    return number(meaning, 1, MAX_RATE, "requests a minute")


def text(
    meaning: str,
    grammar: Callable[[str], object],
    *,
    without: str = "",
    dev: str = "",
    stored: bool = False,
    fixed: bool = False,
) -> SettingInfo:
    return SettingInfo(meaning, grammar=grammar, without=without, dev=dev, stored=stored, fixed=fixed)


def image(meaning: str, *, without: str) -> SettingInfo:
    return SettingInfo(meaning, grammar=absolute_path, without=without, stored=True, image=True)


def long_secret(meaning: str) -> SettingInfo:
    return SettingInfo(meaning, unit="characters", shortest=MIN_SECRET_LENGTH)
