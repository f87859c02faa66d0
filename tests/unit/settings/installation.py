"""An installation in a temporary directory, with only the environment a test sets."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from gatehouse.settings.checks import LoadPurpose
from gatehouse.settings.merge import LoadedSettings, SettingsRefused, load

# Random; never used to seal anything.
MASTER_KEY: Final = "hJ3oGkP0rVtYw1mXq9Zc5sEdN7uBfLaI2xRkT8vQ4yM"
OTHER_MASTER_KEY: Final = "9b1fe07c43d5aa2867f09e3c11d84b6e5a70cf2294be638d0d7715e8fa92c35b"
MASTER: Final = "GATEHOUSE__SECURITY__MASTER_KEY"
BASE_URL: Final = "GATEHOUSE__SERVER__BASE_URL"
SOUND: Final = {MASTER: MASTER_KEY, BASE_URL: "https://login.studio.example"}


@dataclass(frozen=True, slots=True)
class TemporaryInstallation:
    data: Path

    def load(
        self,
        environment: Mapping[str, str] = SOUND,
        *,
        toml: str | None = None,
        config: Path | None = None,
        flags: Mapping[str, str] | None = None,
        dev: bool = False,
        purpose: LoadPurpose = LoadPurpose.COMMAND,
    ) -> LoadedSettings:
        if toml is not None:
            self.write("gatehouse.toml", toml)
        return load(
            data=self.data,
            config=config,
            dev=dev,
            environment=environment,
            flags=flags or {},
            purpose=purpose,
        )

    def problems(
        self,
        environment: Mapping[str, str] = SOUND,
        *,
        toml: str | None = None,
        config: Path | None = None,
        flags: Mapping[str, str] | None = None,
        dev: bool = False,
        purpose: LoadPurpose = LoadPurpose.COMMAND,
    ) -> tuple[str, ...]:
        """The problems of a refused load; a load without problems fails the test."""
        with pytest.raises(SettingsRefused) as error:
            self.load(environment, toml=toml, config=config, flags=flags, dev=dev, purpose=purpose)
        return error.value.problems

    def write(self, name: str, text: str, *, mode: int = 0o600) -> Path:
        path = self.data / name
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path
