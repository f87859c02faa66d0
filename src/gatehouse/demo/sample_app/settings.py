"""What a web application needs to sign people in, in a file that only its owner can read."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSettings:
    name: str  # as users know it
    base_url: str  # where Gatehouse is
    port: int  # where this application is
    client_id: str
    client_secret: str = field(repr=False)
    application_id: int
    access_key: str = field(repr=False)
    rules: Mapping[str, str]  # what one can do here: the rule, and how people call it

    @property
    def home(self) -> str:
        return f"http://localhost:{self.port}/"

    @property
    def redirect_uri(self) -> str:
        return f"{self.home}callback"


def read_settings(path: Path) -> SampleSettings:
    return msgspec.json.decode(path.read_bytes(), type=SampleSettings)


def write_settings(path: Path, settings: SampleSettings) -> None:
    content = msgspec.json.format(msgspec.json.encode(settings))
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content + b"\n")
    draft.replace(path)
