"""The table of all settings, read from the classes, and the conversion of given values."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cached_property
from typing import Final, Literal, cast, get_args, get_origin, get_type_hints

from msgspec.structs import replace

from gatehouse.fields.model import DescribedField, Kind, described_fields
from gatehouse.kernel.addresses import Network
from gatehouse.kernel.stored_settings import BadSetting, referenced_image
from gatehouse.kernel.text import is_plain_line
from gatehouse.settings import grammar
from gatehouse.settings.info import SettingField
from gatehouse.settings.model import Settings
from gatehouse.settings.providers import ProviderSettings
from gatehouse.settings.secret import Secret
from gatehouse.settings.terms import DOCUMENT_ID, TermsSettings

PREFIX: Final = "GATEHOUSE__"
FILE_SUFFIX: Final = "__FILE"
WHOLE_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
SIMILARITY_CUTOFF: Final = 0.8  # of 1; a lower similarity gives no suggestion
BOOLEAN_WORDS: Final = {"true": True, "false": False}

Value = bool | int | str | Secret | tuple[Network, ...] | tuple[Secret, ...] | tuple[str, ...]


class Setting(DescribedField[SettingField], frozen=True, kw_only=True, dict=True):
    """A setting; its group is its section: of a provider `providers.<ID>`, of a document `terms.<ID>`."""

    @property
    def variable(self) -> str:
        return f"{PREFIX}{self.path.replace('.', '__')}".upper()

    @cached_property
    def is_list(self) -> bool:
        return get_origin(self.type) is tuple

    @cached_property
    def member_type(self) -> object:
        """The type of the setting itself, or of the members of a list."""
        return get_args(self.type)[0] if self.is_list else self.type

    @cached_property
    def is_secret(self) -> bool:
        return isinstance(self.member_type, type) and issubclass(self.member_type, Secret)

    @cached_property
    def is_image(self) -> bool:
        return self.kind is Kind.IMAGE

    @cached_property
    def choices(self) -> tuple[int | str, ...]:
        return get_args(self.type) if get_origin(self.type) is Literal else self.field.choices

    def from_text(self, text: str) -> Value:
        """Convert the value of an environment variable or flag."""
        return self.convert(self.parse(text))

    def convert_stored(self, given: object) -> Value:
        """Convert a value of the database; raise ValueError as `convert`. Only there an image is not a path."""
        if not self.is_image:
            return self.convert(given)
        if not referenced_image(given):
            raise ValueError("must be an image")
        return str(given)

    def convert(self, given: object) -> Value:
        """Convert a TOML value; raise ValueError with a text that never repeats a secret."""
        if self.choices:
            return self._choice(given)
        if self.kind is Kind.FLAG:
            return self._boolean(given)
        if self.kind is Kind.NUMBER:
            return self._number(given)
        if self.is_list:
            return self._list(given)
        return self._text(given)

    def parse(self, text: str) -> object:
        """Read the text of a variable or flag as the value that TOML would have; it is not checked yet."""
        if self.is_list:
            return [part.strip(" ") for part in text.split(",")] if text else []
        if self.kind is Kind.FLAG:
            return BOOLEAN_WORDS.get(text, text)
        wants_number = self.kind is Kind.NUMBER or isinstance(self.default, int)
        return int(text) if wants_number and WHOLE_NUMBER.fullmatch(text) else text

    def _choice(self, given: object) -> Value:
        for choice in self.choices:
            if type(given) is type(choice) and given == choice:
                return choice
        names = ", ".join(map(str, self.choices))
        raise BadSetting(f"must be one of {names}, not {preview(given)}").on_screen("one_of", names=names)

    def _boolean(self, given: object) -> bool:
        if isinstance(given, bool):
            return given
        raise BadSetting(f"must be true or false, not {preview(given)}").on_screen("true_or_false")

    def _number(self, given: object) -> int:
        field = self.field
        if not isinstance(given, int) or isinstance(given, bool):
            raise BadSetting(f"must be a whole number, not {preview(given)}").on_screen("integer")
        if not field.minimum <= given <= (field.maximum or 0):
            unit = f" {field.unit}" if field.unit else ""
            raise BadSetting(f"must be between {field.minimum} and {field.maximum}{unit}, not {given}").on_screen(
                "number_range", low=field.minimum, high=field.maximum
            )
        return given

    def _list(self, given: object) -> tuple[Network, ...] | tuple[Secret, ...] | tuple[str, ...]:
        if not isinstance(given, list):
            raise BadSetting("must be a list").on_screen("a_list")
        texts = [require_plain_line(member) for member in given]
        if "" in texts:
            raise BadSetting("contains an empty entry").on_screen("empty_entry")
        if self.is_secret:
            return tuple(self._secret(text) for text in texts)
        if self.member_type is str:
            return tuple(self._well_formed(text) for text in texts)
        return tuple(grammar.network(text) for text in texts)

    def _text(self, given: object) -> str | Secret:
        text = require_plain_line(given)
        return self._secret(text) if self.is_secret else self._well_formed(text)

    def _secret(self, text: str) -> Secret:
        return cast("type[Secret]", self.member_type)(self._well_formed(text))

    def _well_formed(self, text: str) -> str:
        means_none = not text and not self.default
        if self.field.check is not None and not means_none:
            self.field.check(text)
        return text


def require_plain_line(given: object) -> str:
    if not isinstance(given, str):
        raise BadSetting("must be text").on_screen("only_text")
    if not is_plain_line(given):
        # It would reach headers, log lines and pages (checklist OP-02).
        raise BadSetting("contains a line break or another invisible character").on_screen("invisible")
    return given


def preview(given: object) -> str:
    return f"{given!r:.60}"


def settings_of_section(section: str, sheet: type) -> list[Setting]:
    return [
        Setting(name=one.name, type=one.type, default=one.default, field=one.field, group=section)
        for one in described_fields(sheet, SettingField)
    ]


PROVIDERS: Final = "providers"
TERMS: Final = "terms"
# Sections that have a table of their own for each ID.
TABLES: Final[Mapping[str, type]] = {PROVIDERS: ProviderSettings, TERMS: TermsSettings}
SECTIONS: Final[Mapping[str, type]] = {
    name: sheet for name, sheet in get_type_hints(Settings).items() if name not in TABLES
}
ALL_SETTINGS: Final[Mapping[str, Setting]] = {
    entry.path: entry for section, sheet in SECTIONS.items() for entry in settings_of_section(section, sheet)
}

STORED_SETTINGS: Final[Mapping[str, Setting]] = {
    name: entry for name, entry in ALL_SETTINGS.items() if entry.field.stored
}
TABLE_SETTINGS: Final[Mapping[str, Mapping[str, Setting]]] = {
    table: {entry.name: entry for entry in settings_of_section(f"{table}.<id>", sheet)}
    for table, sheet in TABLES.items()
}
# Part of variables and of tags; `guest` is the tag of guests.
PROVIDER_ID: Final = re.compile(r"(?!guest$)[a-z][a-z0-9]{0,19}", re.ASCII)
TABLE_IDS: Final = {PROVIDERS: PROVIDER_ID, TERMS: DOCUMENT_ID}
DEFAULT_ROWS: Final[Mapping[str, object]] = {PROVIDERS: ProviderSettings(), TERMS: TermsSettings()}


def table_of(section: str) -> tuple[str, str] | None:
    """Return the table and the ID that a section like `providers.google` names."""
    table, _, table_id = section.partition(".")
    return (table, table_id) if table in TABLES and TABLE_IDS[table].fullmatch(table_id) else None


def find_setting(name: str) -> Setting | None:
    """Return the setting of this name, also one of a provider or document that does not exist yet."""
    section, _, key = name.rpartition(".")
    found = table_of(section)
    if found is None:
        return ALL_SETTINGS.get(name)
    entry = TABLE_SETTINGS[found[0]].get(key)
    return None if entry is None else replace(entry, group=section)


def setting_of_name(name: str) -> Setting:
    """Return the setting of a name that is known to be one."""
    entry = find_setting(name)
    if entry is None:
        raise KeyError(name)
    return entry


def find_stored_setting(name: str) -> Setting | None:
    """Return the setting of this name if the database may hold it."""
    entry = find_setting(name)
    return entry if entry is not None and entry.field.stored else None


def all_names(settings: Settings) -> list[str]:
    """Return the names of all settings, with those of every provider and document."""
    rows = (
        f"{table}.{one}.{key}"
        for table, entries in TABLE_SETTINGS.items()
        for one in getattr(settings, table)
        for key in entries
    )
    return [*ALL_SETTINGS, *rows]


def all_values(settings: Settings) -> dict[str, Value]:
    """Return every setting by its name."""
    return {name: value_of(settings, setting_of_name(name)) for name in all_names(settings)}


def build_settings(values: Mapping[str, Value]) -> Settings:
    """Build the settings, with defaults for missing names."""
    sheets: dict[str, dict[str, Value]] = {}
    for name, value in values.items():
        section, _, key = name.rpartition(".")
        sheets.setdefault(section, {})[key] = value
    sections = {
        section: cast("Callable[..., object]", sheet)(**sheets.get(section, {}))
        for section, sheet in SECTIONS.items()
    }
    tables: dict[str, dict[str, object]] = {table: {} for table in TABLES}
    for section, sheet in sorted(sheets.items()):
        table, _, table_id = section.partition(".")
        if table_id and table in TABLES:
            tables[table][table_id] = cast("Callable[..., object]", TABLES[table])(**sheet)
    return cast("Callable[..., Settings]", Settings)(**sections, **tables)


def value_of(settings: Settings, entry: Setting) -> Value:
    found = table_of(entry.group)
    if found is None:
        return cast("Value", entry.value_of(settings))
    table, table_id = found
    return cast("Value", getattr(getattr(settings, table).get(table_id, DEFAULT_ROWS[table]), entry.name))


def nearest_setting(name: str) -> Setting | None:
    """Return the existing setting that an unknown name most likely means."""
    section, _, key = name.lower().rpartition(".")
    if found := table_of(section):
        close = get_close_matches(key, TABLE_SETTINGS[found[0]], n=1)
        return find_setting(f"{section}.{close[0]}") if close else None
    by_letters = {normalized_name(entry.path): entry for entry in ALL_SETTINGS.values()}
    by_key = {entry.name: entry for entry in ALL_SETTINGS.values()}  # for a wrong or forgotten section
    near = get_close_matches(normalized_name(name), by_letters, n=1, cutoff=SIMILARITY_CUTOFF)
    if near:
        return by_letters[near[0]]
    near = get_close_matches(name.lower().rpartition(".")[2], by_key, n=1, cutoff=SIMILARITY_CUTOFF)
    return by_key[near[0]] if near else None


def nearest_section(name: str) -> str:
    return next(iter(get_close_matches(name.lower(), [*SECTIONS, *TABLES], n=1)), "")


def normalized_name(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
