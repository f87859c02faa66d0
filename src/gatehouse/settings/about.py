"""What is to be known about a setting beyond its type and default."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Final

YEAR_DAYS: Final = 365
SHORTEST_SECRET: Final = 32  # characters; what `gatehouse.kernel.ids.new_secret` makes is longer
HIGHEST_RATE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class About:
    meaning: str
    _: KW_ONLY
    unit: str = ""
    low: int = 0
    high: int = 0
    shortest: int = 0  # characters of a secret
    grammar: Callable[[str], object] | None = None  # raises ValueError
    without: str = ""  # what happens when none is given
    dev: str = ""  # the default with --dev, where it differs


def number(meaning: str, low: int, high: int, unit: str = "") -> About:
    return About(meaning, unit=unit, low=low, high=high)


def seconds(meaning: str, low: int, high: int) -> About:
    return number(meaning, low, high, "seconds")


def days(meaning: str, low: int = 1, high: int = YEAR_DAYS) -> About:
    return number(meaning, low, high, "days")


def per_minute(meaning: str) -> About:
    return number(meaning, 1, HIGHEST_RATE, "requests a minute")


def text(meaning: str, grammar: Callable[[str], object], *, without: str = "", dev: str = "") -> About:
    return About(meaning, grammar=grammar, without=without, dev=dev)


def long_secret(meaning: str) -> About:
    return About(meaning, unit="characters", shortest=SHORTEST_SECRET)
