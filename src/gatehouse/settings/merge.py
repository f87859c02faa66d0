"""Merges the sources of settings: what the process is given at its start, then the values stored in the database."""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.kernel.errors import BadInput, Misconfigured
from gatehouse.settings.checks import Candidate, LoadPurpose
from gatehouse.settings.draft import DEFAULT, DEV, SettingsDraft, fill_defaults, run_checks, use_dev_key
from gatehouse.settings.entries import Value, all_values, build_settings, find_stored_setting
from gatehouse.settings.grammar import ws_url_of
from gatehouse.settings.model import Settings
from gatehouse.settings.provider_checks import checks_of
from gatehouse.settings.secret_files import FilePrivacy, path_exists
from gatehouse.settings.sources import SettingProblem, SourceItem, TomlFile, from_environment, from_flags

FILE_NAME: Final = "gatehouse.toml"
FROM_DATABASE: Final = "database"


class SettingsRefused(Misconfigured):
    """Lists everything that is wrong, one line each."""

    def __init__(self, problems: Sequence[SettingProblem]) -> None:
        self.problems: Final = tuple(map(str, problems))
        super().__init__("\n".join(self.problems))


class LoadedSettings(Struct, frozen=True, kw_only=True):
    settings: Settings
    sources: Mapping[str, str]  # setting -> default, dev, file …, environment, flag, database
    data: Path
    dev: bool

    def with_stored_base_url(self, base_url: str) -> Self:
        """Return the settings with the base_url stored in the database, unless one was given here (R8)."""
        if self.is_locked("server.base_url"):
            return self
        server = replace(self.settings.server, base_url=base_url)
        if self.sources["server.ws_url"] == DEFAULT:
            server = replace(server, ws_url=ws_url_of(base_url))
        sources = MappingProxyType({**self.sources, "server.base_url": FROM_DATABASE})
        return replace(self, settings=replace(self.settings, server=server), sources=sources)

    def with_passkey_host(self, host: str) -> Self:
        """Return the settings with the host that the passkeys in the database belong to."""
        sources = MappingProxyType({**self.sources, "passkeys.rp_id": FROM_DATABASE})
        passkeys = replace(self.settings.passkeys, rp_id=host)
        return replace(self, settings=replace(self.settings, passkeys=passkeys), sources=sources)

    def is_locked(self, name: str) -> bool:
        """Whether a file, the environment or a flag gives the value, so that the database cannot."""
        return self.source_of(name) not in {DEFAULT, DEV}

    def source_of(self, name: str) -> str:
        return self.sources.get(name, DEFAULT)

    def with_stored(self, stored: Mapping[str, Value]) -> Self:
        """Return the settings with values of the database, where they are not locked."""
        used = {name: value for name, value in stored.items() if not self.is_locked(name)}
        values = {**all_values(self.settings), **used}
        sources = {**self.sources, **dict.fromkeys(used, FROM_DATABASE)}
        if sources["mail.from_name"] == DEFAULT:
            values["mail.from_name"] = values["branding.name"]
        return replace(self, settings=build_settings(values), sources=MappingProxyType(sources))

    def problems(self) -> Sequence[SettingProblem]:
        """Return what is wrong between the settings that can be stored."""
        draft = SettingsDraft()
        candidate = Candidate(settings=self.settings, data=self.data, dev=self.dev, purpose=LoadPurpose.COMMAND)
        checks = [(name, check) for name, check in checks_of(self.settings) if find_stored_setting(name)]
        run_checks(draft, candidate, checks)
        return draft.problems

    def refusals(self) -> dict[str, BadInput]:
        """Return the problems by their setting, as they are shown to the person who changes settings."""
        return {
            problem.name: problem.error if isinstance(problem.error, BadInput) else BadInput(problem.what)
            for problem in self.problems()
        }


def process_environment() -> Mapping[str, str]:
    return MappingProxyType(dict(os.environ))  # noqa: TID251 - the one place that may


def load(
    *,
    data: Path,
    config: Path | None,
    dev: bool,
    environment: Mapping[str, str],
    flags: Mapping[str, str],
    purpose: LoadPurpose = LoadPurpose.COMMAND,
) -> LoadedSettings:
    """Read every source and return the settings, or raise SettingsRefused with everything that is wrong.

    With --dev and no master key, dev.key is created in the data directory; nothing else is written.
    """
    data = data.absolute()
    draft = SettingsDraft()
    privacy = file_privacy(environment, dev=dev)
    draft.add(
        chain(from_config_file(data, config, privacy), from_environment(environment, privacy), from_flags(flags))
    )
    fill_defaults(draft, data, dev=dev)
    candidate = draft.candidate(data=data, dev=dev, purpose=purpose)
    run_checks(draft, candidate, checks_of(candidate.settings))
    if not draft.problems:
        use_dev_key(draft, candidate)
    if draft.problems:
        raise SettingsRefused(draft.problems)
    sources = MappingProxyType(draft.sources)
    return LoadedSettings(settings=build_settings(draft.values), sources=sources, data=data, dev=dev)


def file_privacy(environment: Mapping[str, str], *, dev: bool) -> FilePrivacy:
    directory = environment.get("CREDENTIALS_DIRECTORY")
    return FilePrivacy(strict=not dev, credentials=Path(directory) if directory else None)


def from_config_file(data: Path, config: Path | None, privacy: FilePrivacy) -> Iterator[SourceItem]:
    """Return the named file, which must exist, or the data directory's own file, which may be missing."""
    path = config or data / FILE_NAME
    if config is None and not path_exists(path):
        return iter(())
    return TomlFile(path=path, privacy=privacy).read()
