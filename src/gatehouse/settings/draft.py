"""Values on their way to settings: read, completed, checked."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from gatehouse.kernel.addresses import parse_network
from gatehouse.keys.sealing import new_master_key
from gatehouse.settings.checks import Candidate, Check, LoadPurpose
from gatehouse.settings.entries import ALL_SETTINGS, Value, build_settings
from gatehouse.settings.grammar import is_loopback, master_key, ws_url_of
from gatehouse.settings.model import ServerSettings, Settings
from gatehouse.settings.secret import DatabaseUrl, Secret
from gatehouse.settings.secret_files import FilePrivacy, path_exists, read_private, write_if_missing
from gatehouse.settings.sources import SettingProblem, SourceItem

DEFAULT: Final = "default"
DEV: Final = "dev"
LOOPBACK_NETWORKS: Final = (parse_network("127.0.0.0/8"), parse_network("::1/128"))
DEFAULT_HOST: Final = ServerSettings().host
HTTP_PORT: Final = 80
DEV_DEFAULTS: Final[Mapping[str, Value]] = {
    "accounts.registration": True,
    "game.session_info_allow": LOOPBACK_NETWORKS,
    "log.format": "console",
}


class SettingsDraft(Struct, frozen=True, kw_only=True):
    """The values and errors so far, during one `load`."""

    values: dict[str, Value] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=lambda: dict.fromkeys(ALL_SETTINGS, DEFAULT))
    locations: dict[str, str] = field(default_factory=dict)
    problems: list[SettingProblem] = field(default_factory=list)

    def add(self, found: Iterable[SourceItem]) -> None:
        for one in found:
            if isinstance(one, SettingProblem):
                self.problems.append(one)
            else:
                self.put(one.entry.path, one.value, one.source)
                self.locations[one.entry.path] = one.where

    def put(self, name: str, value: Value, source: str) -> None:
        self.values[name] = value
        self.sources[name] = source

    def candidate(self, *, data: Path, dev: bool, purpose: LoadPurpose) -> Candidate:
        return Candidate(settings=build_settings(self.values), data=data, dev=dev, purpose=purpose)

    def add_problem(self, name: str, error: Exception) -> None:
        where = self.locations.get(name, name)
        self.problems.append(SettingProblem(where=where, what=str(error), name=name, error=error))

    def has_problem(self, name: str) -> bool:
        return any(problem.name == name for problem in self.problems)


def fill_defaults(draft: SettingsDraft, data: Path, *, dev: bool) -> None:
    """Set the defaults that depend on other settings, on --dev or on the data directory."""
    settings = build_settings(draft.values)
    if not settings.database.url:
        draft.put("database.url", DatabaseUrl(f"sqlite:///{data}/gatehouse.db"), DEFAULT)
    if not settings.mail.from_name:
        draft.put("mail.from_name", settings.branding.name, DEFAULT)
    if dev:
        fill_dev_defaults(draft, settings)
    base_url = build_settings(draft.values).server.base_url
    if not settings.server.ws_url and base_url:
        draft.put("server.ws_url", ws_url_of(base_url), DEFAULT)


def fill_dev_defaults(draft: SettingsDraft, settings: Settings) -> None:
    if not settings.server.base_url:
        draft.put("server.base_url", dev_base_url(settings.server), DEV)
    for name, value in DEV_DEFAULTS.items():
        if name not in draft.values:
            draft.put(name, value, DEV)


def dev_base_url(server: ServerSettings) -> str:
    """Return the base_url of `serve --dev`, so that a script needs only --host and --port."""
    plain = server.host == DEFAULT_HOST or not is_loopback(server.host)  # the latter is rejected anyway
    host = "localhost" if plain else f"[{server.host}]" if ":" in server.host else server.host
    return f"http://{host}" + ("" if server.port == HTTP_PORT else f":{server.port}")


def run_checks(draft: SettingsDraft, candidate: Candidate, checks: Iterable[tuple[str, Check]]) -> None:
    for name, holds in checks:
        if draft.has_problem(name):
            continue
        try:
            holds(candidate)
        except ValueError as error:
            draft.add_problem(name, error)


def use_dev_key(draft: SettingsDraft, candidate: Candidate) -> None:
    """Create and use dev.key for --dev, and let a rewrap open what it sealed (R8)."""
    security = candidate.settings.security
    try:
        if candidate.dev and not security.master_key:
            write_if_missing(candidate.dev_key, new_master_key())
            draft.put("security.master_key", read_master_key(candidate.dev_key), DEV)
        elif candidate.purpose is LoadPurpose.REWRAP and path_exists(candidate.dev_key):
            earlier = (*security.previous_master_keys, read_master_key(candidate.dev_key))
            draft.put("security.previous_master_keys", earlier, DEV)
    except ValueError as error:
        draft.add_problem("security.master_key", error)


def read_master_key(path: Path) -> Secret:
    text = read_private(path, FilePrivacy(strict=False))
    master_key(text)
    return Secret(text)
