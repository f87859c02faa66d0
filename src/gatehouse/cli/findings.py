"""What the checks of `gatehouse doctor` share: a finding, and the installation that is checked."""

from collections.abc import AsyncIterator, Callable
from enum import StrEnum

from msgspec import Struct

from gatehouse.app.live_settings import LiveSettings
from gatehouse.kernel.clock import Clock
from gatehouse.keys.sealing import MasterKeys
from gatehouse.settings.merge import LoadedSettings
from gatehouse.settings.model import Settings
from gatehouse.storage.database import Storage


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    BAD = "bad"


class Finding(Struct, frozen=True, kw_only=True):
    level: Level
    topic: str
    text: str  # the finding, and how to fix it


def ok(topic: str, text: str) -> Finding:
    return Finding(level=Level.OK, topic=topic, text=text)


def warn(topic: str, text: str) -> Finding:
    return Finding(level=Level.WARN, topic=topic, text=text)


def bad(topic: str, text: str) -> Finding:
    return Finding(level=Level.BAD, topic=topic, text=text)


class CheckedInstallation(Struct, frozen=True, kw_only=True):
    loaded: LoadedSettings
    storage: Storage
    masters: MasterKeys
    clock: Clock

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    async def live_settings(self) -> Settings:
        """The same with what is stored in the database."""
        live = LiveSettings(self.loaded, store=self.storage.settings, sealer=self.masters)
        await live.reload()
        return live.current.settings


DatabaseCheck = Callable[[CheckedInstallation], AsyncIterator[Finding]]
