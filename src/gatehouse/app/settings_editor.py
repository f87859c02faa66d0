"""Stores settings that change while the service runs, with their images, and records the change."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from gatehouse.app.live_settings import Changes, LiveSettings
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder, describe_changes
from gatehouse.images.loading import ImageLoader
from gatehouse.images.model import LOGO, BadImage, StoredImage
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.stored_settings import BadSetting, SettingsInvalid, StoredSetting, StoredSettings
from gatehouse.settings.secret import MASK
from gatehouse.storage.settings import SettingsStorage

SUBJECT: Final = "installation"


class SettingsEditor:
    def __init__(
        self,
        *,
        live: LiveSettings,
        store: SettingsStorage,
        images: ImageLoader,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._live = live
        self._store = store
        self._images = images
        self._recorder = recorder
        self._clock = clock

    async def save(self, changes: Changes, origin: AuditOrigin) -> None:
        """Store the changes together, or none of them. Raises SettingsInvalid, TooMany, Unavailable.

        An image is given as its content or as a URL. This node uses the changes when it returns, the others within a
        second.
        """
        changes = await self._with_images(changes, origin.actor)
        converted = self._live.convert(changes)
        images = {name: image for name, image in changes.items() if isinstance(image, StoredImage)}
        if converted:
            await self._store.change(
                converted,
                self._clock.now(),
                check=self._refuse_problems,
                audit=partial(self._records, origin),
                images=images,
            )
            await self._live.reload()

    async def _with_images(self, changes: Changes, uploader: str) -> Changes:
        """Return the changes with images as they are stored, without one that is given by its present address."""
        loaded = dict(changes)
        for name, given in changes.items():
            if not self._live.is_image(name) or not self._live.is_changeable(name):
                continue
            if given == self._live.displayed_value(name):
                del loaded[name]
            elif isinstance(given, bytes | str):
                loaded[name] = await self._load_image(name, given, uploader)
        return loaded

    async def _load_image(self, name: str, given: bytes | str, uploader: str) -> StoredImage | None:
        if given == "":
            return None
        try:
            if isinstance(given, bytes):
                return await self._images.convert(given, LOGO, uploader=uploader)
            return await self._images.load(given, LOGO, uploader=uploader)
        except BadImage as error:
            refusal = BadSetting(f"is refused: {error.detail}").on_screen(error.screen_key, **error.screen_values)
            raise SettingsInvalid({name: refusal}) from None

    def _refuse_problems(self, before: StoredSettings, after: StoredSettings) -> None:
        if problems := self._live.problems_of(before, after):
            raise SettingsInvalid(problems)

    def _records(self, origin: AuditOrigin, before: StoredSettings, after: StoredSettings) -> Iterator[AuditRecord]:
        details = describe_changes(display_values(before), display_values(after))
        secrets = [name for name in after if is_new_secret(before.get(name), after[name])]
        if secrets:
            details = {**details, **dict.fromkeys(secrets, "new value")}
        if details:
            yield self._recorder.record(AuditEvent.SETTINGS_CHANGED, origin, subject=SUBJECT, details=details)


def display_values(stored: StoredSettings) -> Mapping[str, object]:
    return {name: MASK if one.sealed is not None else one.value for name, one in stored.items()}


def is_new_secret(before: StoredSetting | None, after: StoredSetting) -> bool:
    return after.sealed is not None and (before is None or before.sealed != after.sealed)
