"""What is to be known about a setting beyond its type and default."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Final

YEAR_DAYS: Final = 365
MIN_SECRET_LENGTH: Final = 32  # characters; what `gatehouse.kernel.ids.new_secret` makes is longer
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
    without: str = ""  # what happens when none is given
    dev: str = ""  # the default with --dev, where it differs


def number(meaning: str, low: int, high: int, unit: str = "") -> SettingInfo:
    return SettingInfo(meaning, unit=unit, low=low, high=high)


def seconds(meaning: str, low: int, high: int) -> SettingInfo:
    return number(meaning, low, high, "seconds")


def days(meaning: str, low: int = 1, high: int = YEAR_DAYS) -> SettingInfo:
    return number(meaning, low, high, "days")


def per_minute(meaning: str) -> SettingInfo:
    return number(meaning, 1, MAX_RATE, "requests a minute")


def text(meaning: str, grammar: Callable[[str], object], *, without: str = "", dev: str = "") -> SettingInfo:
    return SettingInfo(meaning, grammar=grammar, without=without, dev=dev)


def long_secret(meaning: str) -> SettingInfo:
    return SettingInfo(meaning, unit="characters", shortest=MIN_SECRET_LENGTH)
