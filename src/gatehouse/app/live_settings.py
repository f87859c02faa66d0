"""Settings that change while the service runs: kept in the database, read again by every node within a second."""

from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

import structlog

from gatehouse.images.model import StoredImage
from gatehouse.kernel.errors import BadInput
from gatehouse.kernel.sealing import SecretSealer
from gatehouse.kernel.stored_settings import (
    BadSetting,
    SettingsInvalid,
    StoredSetting,
    StoredSettings,
    image_reference,
    setting_sealing_purpose,
)
from gatehouse.settings.display import display_value
from gatehouse.settings.entries import (
    Setting,
    Value,
    all_names,
    find_setting,
    find_stored_setting,
    nearest_setting,
    setting_of_name,
    value_of,
)
from gatehouse.settings.merge import LoadedSettings
from gatehouse.settings.model import Settings
from gatehouse.settings.secret import Secret

log = structlog.get_logger(__name__)

Changes = Mapping[str, object]  # setting -> new value; None removes the stored one


class StoredSettingsReader(Protocol):
    async def read_all(self) -> StoredSettings:
        """Return the settings that the database holds."""


class LiveSettings:
    """The settings that apply now: those given at the start, and below them those of the database."""

    def __init__(self, given: LoadedSettings, *, store: StoredSettingsReader, sealer: SecretSealer) -> None:
        self._given = given
        self._store = store
        self._sealer = sealer
        self._stored: StoredSettings = {}
        self.current = given
        self.is_complete = True  # False while stored settings do not apply: this version or key cannot read them

    async def reload(self) -> bool:
        """Use what the database holds now; True if something changed."""
        stored = await self._store.read_all()
        if stored == self._stored:
            return False
        self._stored = stored
        self.current, self.is_complete = self._with_stored(stored)
        return True

    def _with_stored(self, stored: StoredSettings) -> tuple[LoadedSettings, bool]:
        """Return the settings with these stored values, and whether all of them apply.

        Those that this version or a file does not allow are left out.
        """
        values = dict(self._readable(stored))
        while problems := (loaded := self._given.with_stored(values)).problems():
            section = problems[0].name.rpartition(".")[0]
            log.warning("stored settings ignored", setting=section, reason=str(problems[0]))
            dropped = {name for name in values if name.startswith(f"{section}.")}
            if not dropped:
                break
            values = {name: value for name, value in values.items() if name not in dropped}
        return loaded, len(values) == len(stored)

    def _readable(self, stored: StoredSettings) -> Iterator[tuple[str, Value]]:
        for name, one in stored.items():
            try:
                yield name, setting_of_name(name).convert_stored(self._plain_value(name, one))
            except (KeyError, ValueError) as error:  # stored by another version
                log.warning("stored setting ignored", setting=name, reason=str(error))

    def _plain_value(self, name: str, one: StoredSetting) -> object:
        if one.sealed is None:
            return one.value
        plain = self._sealer.try_open(one.sealed, purpose=setting_sealing_purpose(name))
        if plain is None:
            raise ValueError("is damaged")
        return plain.decode()

    def convert(self, changes: Changes) -> Mapping[str, StoredSetting | None]:
        """Return the changes as they are stored. Raises SettingsInvalid with every problem."""
        problems: dict[str, BadInput] = {}
        converted: dict[str, StoredSetting | None] = {}
        for name, given in changes.items():
            try:
                converted[name] = self.convert_setting(name, given)
            except BadInput as error:
                problems[name] = error
        if problems:
            raise SettingsInvalid(problems)
        return converted

    def convert_setting(self, name: str, given: object) -> StoredSetting | None:
        """Return the value as it is stored, None for None. Raises BadSetting."""
        entry = self._changeable(name)
        value = None if given is None else convert_value(entry, given)
        if value is None:
            return None
        if isinstance(value, Secret):
            return StoredSetting(
                sealed=self._sealer.seal(value.reveal().encode(), purpose=setting_sealing_purpose(name))
            )
        return StoredSetting(list(value) if isinstance(value, tuple) else value)

    def _changeable(self, name: str) -> Setting:
        entry = find_setting(name)
        if entry is None:
            near = nearest_setting(name)
            raise BadSetting(f"is unknown{f', did you mean {near.path}?' if near else ''}").on_screen(
                "setting_unknown"
            )
        if not entry.field.stored:
            raise BadSetting(
                "cannot be changed while the service runs; set it in a file or the environment"
            ).on_screen("setting_operator_only")
        if self._given.is_locked(name):
            raise BadSetting(f"is set by {self._given.sources[name]}; change it there").on_screen("setting_locked")
        return entry

    def is_image(self, name: str) -> bool:
        """Whether the setting is an image, which is loaded before `convert_setting` gets it."""
        entry = find_stored_setting(name)
        return entry is not None and entry.is_image

    def is_changeable(self, name: str) -> bool:
        return find_stored_setting(name) is not None and not self._given.is_locked(name)

    def displayed_value(self, name: str) -> object:
        return display_value(self.current.settings, name)

    def problems_of(
        self, before: StoredSettings, after: StoredSettings, entered: Collection[str] = ()
    ) -> Mapping[str, BadInput]:
        """Return what is wrong with or between the settings after a change, by setting.

        `entered`: secrets that were given in the clear; one that is as before keeps its stored form in a file's plan.
        """
        wanted = self._given.with_stored(dict(self._readable(after)))
        current = self._given.with_stored(dict(self._readable(before)))
        fixed = BadSetting("cannot be changed; remove the provider and add it again").on_screen("setting_fixed")
        return {
            **wanted.refusals(),
            **dict.fromkeys(changed_fixed_settings(current.settings, wanted.settings), fixed),
            **{
                name: self._redirection_refusal(name)
                for name in redirected_secrets(current.settings, wanted.settings)
                if name not in entered and before.get(name) == after.get(name)  # one entered in a form is sealed anew
            },
        }

    def _redirection_refusal(self, name: str) -> BadSetting:
        """Return the refusal of a change that would send a secret to an address that its owner did not choose."""
        if self._given.is_locked(name):
            source = self._given.sources[name]
            return BadSetting(
                f"is set by {source} and would be sent to another server; change the address there too"
            ).on_screen("secret_locked_address", secret=name, source=source)
        return BadSetting("must be entered again, because it would be sent to another server").on_screen(
            "secret_again"
        )


def changed_fixed_settings(before: Settings, after: Settings) -> Iterator[str]:
    """Return the settings of a provider that it cannot have another value of as long as it exists.

    One that is off and has neither that value nor a secret may get its first one: the console adds a provider before
    it asks for the rest.
    """
    for name in set(all_names(before)) & set(all_names(after)):
        entry = setting_of_name(name)
        if not entry.field.fixed or value_of(before, entry) == value_of(after, entry):
            continue
        provider = before.providers[entry.group.rpartition(".")[2]]
        if value_of(before, entry) or provider.enabled or has_secret(before, name.rpartition(".")[0]):
            yield name


def has_secret(settings: Settings, section: str) -> bool:
    entries = (setting_of_name(name) for name in all_names(settings) if name.rpartition(".")[0] == section)
    return any(entry.is_secret and value_of(settings, entry) for entry in entries)


def redirected_secrets(before: Settings, after: Settings) -> Iterator[str]:
    """Return the secrets that stay as they are while the address that they are sent to changes."""
    for name in set(all_names(before)) & set(all_names(after)):
        entry = setting_of_name(name)
        if not entry.field.sent_to or not value_of(after, entry):
            continue
        section = name.rpartition(".")[0]
        addresses = [setting_of_name(f"{section}.{part}") for part in entry.field.sent_to]
        if value_of(after, addresses[0]) and any(value_of(before, one) != value_of(after, one) for one in addresses):
            yield name


def convert_value(entry: Setting, given: object) -> Value:
    """Convert a value that is to be stored; of an image only the image itself, which is stored with it."""
    if not entry.is_image:
        return entry.convert(given)
    if not isinstance(given, StoredImage):
        raise BadSetting("must be the URL of an image").on_screen("image_url")
    return image_reference(given.image_id)
