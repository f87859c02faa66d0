"""The sources of settings: the TOML file, the environment, the flags of a command."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from gatehouse.fields.secrets import HIDDEN, SecretRecord
from gatehouse.kernel.text import is_plain_line
from gatehouse.settings.entries import (
    FILE_SUFFIX,
    PREFIX,
    SECTIONS,
    TABLES,
    Setting,
    Value,
    find_setting,
    nearest_section,
    nearest_setting,
    setting_of_name,
)
from gatehouse.settings.secret import Secret
from gatehouse.settings.secret_files import FilePrivacy, read_private


class GivenValue(SecretRecord, frozen=True, kw_only=True):
    entry: Setting
    value: Annotated[Value, HIDDEN]
    source: str
    where: str  # the name of the source for its author


class SettingProblem(Struct, frozen=True, kw_only=True):
    where: str
    what: str
    name: str = ""  # the setting that has no value because of it
    error: Exception | None = None  # of a check between settings

    def __str__(self) -> str:
        return "".join(escape_invisible(character) for character in f"{self.where}: {self.what}")


SourceItem = GivenValue | SettingProblem


def escape_invisible(character: str) -> str:
    """Escape invisible characters, so that a problem stays one readable line."""
    return character if is_plain_line(character) else ascii(character)[1:-1]


def unknown_setting(where: str, suggestion: str, *, thing: str = "setting") -> SettingProblem:
    hint = f", did you mean {suggestion}?" if suggestion else ""
    return SettingProblem(where=where, what=f"unknown {thing}{hint}")


def from_environment(environment: Mapping[str, str], privacy: FilePrivacy) -> Iterator[SourceItem]:
    """Read every GATEHOUSE__ variable in any case, so that a misspelled one is reported.

    Two underscores are required, because Kubernetes sets GATEHOUSE_PORT for a service of that name.
    """
    for variable in sorted(environment):
        if variable.upper().startswith(PREFIX):
            yield from_variable(variable, environment, privacy)


def from_variable(variable: str, environment: Mapping[str, str], privacy: FilePrivacy) -> SourceItem:
    of_file = setting_of_variable(variable.removesuffix(FILE_SUFFIX))
    if of_file is not None and of_file.is_secret and variable.endswith(FILE_SUFFIX):
        return from_file_variable(of_file, variable, environment, privacy)
    entry = setting_of_variable(variable)
    if entry is None:
        return unknown_setting(variable, suggest_variable(variable))
    try:
        value = entry.from_text(environment[variable])
    except ValueError as error:
        return SettingProblem(where=variable, what=str(error), name=entry.path)
    return GivenValue(entry=entry, value=value, source="environment", where=variable)


def setting_of_variable(variable: str) -> Setting | None:
    """Return the setting whose variable this is, in capital letters."""
    entry = find_setting(variable.removeprefix(PREFIX).replace("__", ".").lower())
    return entry if entry is not None and entry.variable == variable else None


def from_file_variable(
    entry: Setting, variable: str, environment: Mapping[str, str], privacy: FilePrivacy
) -> SourceItem:
    if entry.variable in environment:
        return SettingProblem(where=variable, what=f"{entry.variable} is also set; keep only one", name=entry.path)
    try:
        value = from_secret_file(entry, Path(environment[variable]), privacy)
    except ValueError as error:
        return SettingProblem(where=variable, what=str(error), name=entry.path)
    return GivenValue(entry=entry, value=value, source="environment", where=variable)


def from_secret_file(entry: Setting, path: Path, privacy: FilePrivacy) -> Value:
    """Read a secret file; a list has one entry per line."""
    text = read_private(path, privacy)
    return entry.convert(text.splitlines() if entry.is_list else text)


def suggest_variable(variable: str) -> str:
    spelling = variable.upper().removeprefix(PREFIX)
    bare = spelling.removesuffix(FILE_SUFFIX)
    entry = nearest_setting(bare.replace("__", "."))
    if entry is None:
        return ""
    return entry.variable + (FILE_SUFFIX if entry.is_secret and bare != spelling else "")


def from_flags(flags: Mapping[str, str]) -> Iterator[SourceItem]:
    for name, text in flags.items():
        where = f"--{name.rpartition('.')[2].replace('_', '-')}"
        entry = setting_of_name(name)
        try:
            value = entry.from_text(text)
        except ValueError as error:
            yield SettingProblem(where=where, what=str(error), name=name)
        else:
            yield GivenValue(entry=entry, value=value, source="flag", where=where)


class TomlFile(Struct, frozen=True, kw_only=True):
    path: Path
    privacy: FilePrivacy

    def read(self) -> Iterator[SourceItem]:
        try:
            with self.path.open("rb") as file:
                exposed = self.privacy.exposure(self.path, os.fstat(file.fileno()))
                document = tomllib.load(file)
        except OSError as error:
            yield SettingProblem(where=str(self.path), what=f"cannot be read: {error.strerror}")
        except (ValueError, RecursionError) as error:
            # Duplicate names end here too: TOML itself forbids them.
            yield SettingProblem(where=str(self.path), what=f"is not valid TOML: {error}")
        else:
            for section, sheet in document.items():
                yield from self._section(section, sheet, exposed)

    def _section(self, section: str, sheet: object, exposed: str) -> Iterator[SourceItem]:
        if section in TABLES and isinstance(sheet, dict):
            for table_id, fields in sheet.items():
                yield from self._keys(f"{section}.{table_id}", fields, exposed)
        elif section not in SECTIONS:
            near = nearest_section(section)
            yield unknown_setting(f"{self.path}: [{section}]", near and f"[{near}]", thing="section")
        else:
            yield from self._keys(section, sheet, exposed)

    def _keys(self, section: str, sheet: object, exposed: str) -> Iterator[SourceItem]:
        if not isinstance(sheet, dict):
            yield SettingProblem(where=f"{self.path}: {section}", what="is a section and needs keys")
            return
        for key, given in sheet.items():
            yield self._setting(f"{section}.{key}", given, exposed)

    def _setting(self, name: str, given: object, exposed: str) -> SourceItem:
        where = f"{self.path}: {name}"
        entry = find_setting(name)
        if entry is None:
            near = nearest_setting(name)
            return unknown_setting(where, near.path if near else "")
        try:
            value = self._value(entry, given, exposed)
        except ValueError as error:
            return SettingProblem(where=where, what=str(error), name=name)
        return GivenValue(entry=entry, value=value, source=f"file {self.path}", where=where)

    def _value(self, entry: Setting, given: object, exposed: str) -> Value:
        if entry.is_secret and isinstance(given, dict):
            return self._from_secret_file(entry, given)
        value = entry.convert(given)
        if exposed and holds_secret(value):
            raise ValueError(f"is an unencrypted secret, and {self.path} {exposed}")
        return value

    def _from_secret_file(self, entry: Setting, table: Mapping[str, object]) -> Value:
        path = table.get("file")
        if not isinstance(path, str) or len(table) != 1:
            raise ValueError('must be text or { file = "PATH" }')
        return from_secret_file(entry, self.path.parent / path, self.privacy)


def holds_secret(value: Value) -> bool:
    members = value if isinstance(value, tuple) else (value,)
    return any(isinstance(member, Secret) and member.is_masked for member in members)
