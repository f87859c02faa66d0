"""The languages of pages and emails: their names, plural rules, dates and numbers.

A language is its files: web/locales/<language>.toml, web/locales/console/<language> and mail/templates/<language>.
Babel knows the rest (docs/decisions/0063-plural-rules.md). It is imported with its first use: it takes 5 MB.
"""

from collections.abc import Callable
from datetime import date, datetime
from functools import cache
from importlib.resources import files
from typing import Final

FALLBACK_LANG: Final = "en"
GROUPED_FROM: Final = 1_000  # smaller numbers are written alike everywhere


def find_languages() -> tuple[str, ...]:
    """Return the languages that have files, the fallback first."""
    found = {file.name.removesuffix(".toml") for file in files("gatehouse.web").joinpath("locales").iterdir()}
    return (FALLBACK_LANG, *sorted(found - {FALLBACK_LANG, "console"}))


LANGUAGES: Final = find_languages()


@cache
def plural_rule(lang: str) -> Callable[[int], str]:
    from babel.core import Locale  # noqa: PLC0415

    return Locale.parse(lang, sep="-").plural_form


def plural_category(lang: str, count: int) -> str:
    """Return the form of a counted text: `one`, `other`, or another category of CLDR that the language has."""
    return plural_rule(lang)(count)


def format_number(lang: str, number: int) -> str:
    if abs(number) < GROUPED_FROM:
        return str(number)
    from babel.numbers import format_decimal  # noqa: PLC0415

    return format_decimal(number, locale=lang.replace("-", "_"))


def format_day(lang: str, day: date) -> str:
    from babel.dates import format_date  # noqa: PLC0415

    return format_date(day, "long", locale=lang.replace("-", "_"))


def format_clock(lang: str, when: datetime) -> str:
    from babel.dates import format_time  # noqa: PLC0415

    return format_time(when, "short", locale=lang.replace("-", "_"))
