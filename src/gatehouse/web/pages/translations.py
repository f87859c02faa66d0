"""Texts of pages, in the reader's language.

The texts are flat keys in locales/<language>.toml. They are trusted and may contain `<strong>` and `<bdi>`;
inserted values are escaped. A text with a count has one key for each plural category of its language, like
`<key>_one` and `<key>_other`.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Final

from markupsafe import Markup
from msgspec import Struct

from gatehouse.languages import FALLBACK_LANG, LANGUAGES, format_number, plural_category
from gatehouse.settings.appearance import LanguageSettings

PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
REASON_TABLES: Final = ("problem.", "reason.", "said.")
MAX_REASON_LENGTH: Final = 4_000  # characters; none of ours is longer
MAX_REASONS: Final = 8  # in one text
REASON_PLACE: Final = re.compile(r"[\w.\[\]-]{1,200}")
LARGE_NUMBER: Final = re.compile(r"\d{1,3}(?:,\d{3}){1,5}", re.ASCII)  # as English writes it
PLURAL_CATEGORIES: Final = frozenset(("zero", "one", "two", "few", "many", "other"))  # all there are, in CLDR

MAX_PREFERENCE_LENGTH: Final = 512  # characters of Accept-Language or ui_locales; a longer one is ignored
MAX_PREFERENCES: Final = 32
LANGUAGE_TAG: Final = re.compile(
    r"([A-Za-z]{2,3})(?:-[A-Za-z0-9]{1,8}){0,4}", re.ASCII
)  # RFC 5646, the part that matters here
LANGUAGE_RANGE: Final = re.compile(
    r"([A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8}){0,4}|\*)(?:[ \t]*;[ \t]*[qQ]=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?",
    re.ASCII,
)


class Translator:
    """All texts in one language."""

    def __init__(self, lang: str, texts: Mapping[str, str]) -> None:
        self.lang: Final = lang
        self.texts: Final = MappingProxyType(dict(texts))

    def __call__(self, key: str, /, **values: object) -> Markup:
        """Return a text: `t("time.minutes", count=2)`. An unknown key or a missing value raises KeyError."""
        shown = {name: self.number(value) if type(value) is int else value for name, value in values.items()}
        return Markup(self.texts[self._plural_key(key, values)]).format(**shown)  # noqa: S704 - the text is ours

    def number(self, number: int) -> str:
        """Return a number with the separators of the language."""
        return format_number(self.lang, number)

    def knows(self, key: str) -> bool:
        return key in self.texts or f"{key}_other" in self.texts

    def forms(self, key: str) -> str:
        """Return the plural forms of a text as JSON, by category, for a script that counts."""
        start = f"{key}_"
        forms = {name.removeprefix(start): text for name, text in self.texts.items() if name.startswith(start)}
        return json.dumps({category: text for category, text in forms.items() if category in PLURAL_CATEGORIES})

    def _plural_key(self, key: str, values: Mapping[str, object]) -> str:
        count = values.get("count")
        if not isinstance(count, int) or f"{key}_other" not in self.texts:
            return key
        return f"{key}_{plural_category(self.lang, count)}"


class Languages:
    """All languages, and the translations of English texts: of errors, built-in descriptions and stored reasons."""

    def __init__(self, by_lang: Mapping[str, Translator]) -> None:
        self._by_lang = dict(by_lang)
        known = by_lang[FALLBACK_LANG].texts
        self._message_keys = {text: key for key, text in known.items() if key.startswith(("said.", "built_in."))}

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_lang)

    def __getitem__(self, lang: str) -> Translator:
        return self._by_lang[lang]

    def translate_message(self, lang: str, english: str) -> str | None:
        """Return the fixed text of an error or description in that language; None where only English exists."""
        key = self._message_keys.get(english)
        if lang == FALLBACK_LANG:
            return english
        return None if key is None else self._by_lang[lang].texts[key]

    def translate_reason(self, lang: str, english: str) -> str | None:
        """Return a stored or computed reason, like that of a refused request, in that language; None if unknown.

        It may be up to MAX_REASONS joined by semicolons, or contain another one as its value `error`.
        """
        if len(english) > MAX_REASON_LENGTH:
            return None
        located = self._locate_reason(english)
        if located is None:
            return self._translate_joined(lang, english)
        place, key, values = located
        error = self._translate_joined(lang, values["error"]) if "error" in values else None
        return self._format_reason(lang, place, key, values if error is None else {**values, "error": error})

    def _translate_joined(self, lang: str, english: str) -> str | None:
        texts = []
        for part in [english] if self._locate_reason(english) else english.split("; ", MAX_REASONS):
            located = self._locate_reason(part)
            if located is None:
                return None
            texts.append(self._format_reason(lang, *located))
        *others, last = texts
        return Markup("; ").join([*(text.removesuffix(".") for text in others), last])

    def _locate_reason(self, english: str) -> tuple[str, str, Mapping[str, str]] | None:
        """Return what a reason is about, which may be in front as in `username: required`, its key and values."""
        place, _, text = english.partition(": ")
        if REASON_PLACE.fullmatch(place) and (found := self._find_reason(text)):
            return place, *found
        found = self._find_reason(english)
        return ("", *found) if found else None

    def _find_reason(self, english: str) -> tuple[str, dict[str, str]] | None:
        whole, patterns = self._reasons
        if english in whole:
            return whole[english], {}
        for key, parts in patterns.items():
            if english.startswith(parts[0]) and english.endswith(parts[-1]):
                found = read_values(parts, english)
                if found is not None:
                    return key, found
        return None

    def _format_reason(self, lang: str, place: str, key: str, values: Mapping[str, str]) -> str:
        t = self._by_lang[lang]
        written = {
            name: t.number(int(value.replace(",", ""))) if LARGE_NUMBER.fullmatch(value) else value
            for name, value in values.items()
        }
        text = t(key, **written)
        return Markup("{}: {}").format(place, text) if place else text

    @cached_property
    def _reasons(self) -> tuple[Mapping[str, str], Mapping[str, Sequence[str]]]:
        """Keys of the English reasons without values, and the parts of the others. The longest text is first.

        The console's texts of errors are among them: an error may be a part of another reason.
        """
        known = self._by_lang[FALLBACK_LANG].texts.items()
        texts = {key: PLACEHOLDER.split(text) for key, text in known if key.startswith(REASON_TABLES)}
        longest_first = sorted(texts.items(), key=lambda item: -sum(map(len, item[1][::2])))
        whole = {parts[0]: key for key, parts in longest_first if len(parts) == 1}
        return whole, {key: parts for key, parts in longest_first if len(parts) > 1}


def read_values(parts: Sequence[str], text: str) -> dict[str, str] | None:
    """Return the values that make the text out of the parts: a text, a name, a text, and so on. None if none do.

    The text begins with the first part and ends with the last.

    Stored texts may be written by others, so nothing is tried twice: each part is found once, from the end. A regular
    expression takes two seconds for 4 KB of its own separators.
    """
    start, end = len(parts[0]), len(text) - len(parts[-1])
    names, between = parts[1::2], parts[2:-1:2]
    values = {}
    for name, before in zip(reversed(names[1:]), reversed(between), strict=True):
        found = text.rfind(before, start + 1, max(end - 1, 0))  # a value is never empty
        if found < 0:
            return None
        values[name], end = text[found + len(before) : end], found
    values[names[0]] = text[start:end]
    return values if all(values.values()) else None


@cache
def load_languages(*parts: str) -> Languages:
    """Load the texts of every page and of the named parts, in the languages that all of them have.

    A part is a folder per language, with one file per topic. A language it lacks is not used on its pages at all:
    two languages on one page are read out wrongly, whatever its `lang` says (WCAG 3.1.1). Cached per process.
    """
    locales = files("gatehouse.web").joinpath("locales")
    spoken = [lang for lang in LANGUAGES if all(locales.joinpath(part, lang).is_dir() for part in parts)]
    return Languages({lang: Translator(lang, _read_texts(locales, lang, parts)) for lang in spoken})


def translate_error(t: Translator, english: str) -> str:
    """Return an error on a screen of the console in the reader's language; an unknown one as it is."""
    translated = None if t.lang == FALLBACK_LANG else load_languages("console").translate_reason(t.lang, english)
    return english if translated is None else translated


def _read_texts(locales: Traversable, lang: str, parts: Sequence[str]) -> dict[str, str]:
    texts = _texts_of_file(locales.joinpath(f"{lang}.toml"))
    for part in parts:
        for file in locales.joinpath(part, lang).iterdir():
            texts |= _texts_of_file(file)
    return texts


def _texts_of_file(file: Traversable) -> dict[str, str]:
    return dict(_flatten("", tomllib.loads(file.read_text(encoding="utf-8"))))


def _flatten(prefix: str, table: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten(f"{prefix}{name}.", value)
        elif isinstance(value, str):
            yield f"{prefix}{name}", value
        else:
            raise TypeError(f"{prefix}{name} is not a text")


class LanguagePolicy(Struct, frozen=True, kw_only=True):
    """Which languages an installation offers; none means all."""

    default: str = FALLBACK_LANG
    offered: tuple[str, ...] = ()

    def available(self, languages: Iterable[str]) -> tuple[str, ...]:
        """Return those of the languages that are offered, the default first; all of them if none is."""
        every = tuple(languages)
        wanted = [lang for lang in every if not self.offered or lang in self.offered] or every
        return tuple(sorted(wanted, key=lambda lang: lang != self.default))


def language_policy(wanted: LanguageSettings) -> LanguagePolicy:
    return LanguagePolicy(default=wanted.default, offered=wanted.offered)


def choose_language(
    *,
    available: Languages | tuple[str, ...] = LANGUAGES,
    chosen: str = "",
    account: str = "",
    ui_locales: str = "",
    accept_language: str = "",
) -> str:
    """Return the first supported language: explicit choice, account, application, browser; else the first available.

    Accepts any input and never fails; an unreadable preference is ignored.
    """
    spoken = tuple(available)
    wishes = (chosen, account, *_tags(ui_locales), *_ranges(accept_language))
    return next((lang for wish in wishes if (lang := _match(wish, spoken))), spoken[0])


def _match(wish: str, spoken: tuple[str, ...]) -> str:
    tag = LANGUAGE_TAG.fullmatch(wish)
    language = tag[1].lower() if tag else ""
    return wish if wish in spoken else language if language in spoken else ""


def _tags(ui_locales: str) -> list[str]:
    """Yield space-separated tags, the preferred first (OpenID Connect Core §3.1.2.1)."""
    return ui_locales.split(" ")[:MAX_PREFERENCES] if len(ui_locales) <= MAX_PREFERENCE_LENGTH else []


def _ranges(accept_language: str) -> list[str]:
    """Yield ranges by weight, then as written (RFC 9110 §12.5.4). `*` ends the list."""
    if len(accept_language) > MAX_PREFERENCE_LENGTH:
        return []
    parsed = [LANGUAGE_RANGE.fullmatch(part.strip(" \t")) for part in accept_language.split(",")[:MAX_PREFERENCES]]
    weighed = [(match[1], float(match[2] or 1)) for match in parsed if match]
    wanted = [tag for tag, weight in sorted(weighed, key=lambda item: -item[1]) if weight > 0]
    return wanted[: wanted.index("*")] if "*" in wanted else wanted
