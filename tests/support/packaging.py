"""Parse the packaging files."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.find_programs import ROOT

DEPLOY: Final = ROOT / "deploy"
UNIT: Final = DEPLOY / "gatehouse.service"
NODES: Final = DEPLOY / "nodes"
SERVICES: Final = ("db", "migrate", "grants", "gatehouse")  # in deploy/compose.yaml


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of deploy/Dockerfile."""

    word: str
    rest: str


def dockerfile_instructions() -> list[Instruction]:
    lines = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    parted = [line.partition(" ") for line in text.splitlines() if line]
    return [Instruction(word, re.sub(r"\s+", " ", rest).strip()) for word, _, rest in parted]


def last_instruction(word: str) -> str:
    return next(instruction.rest for instruction in reversed(dockerfile_instructions()) if instruction.word == word)


def read_compose(directory: Path = DEPLOY) -> dict[str, Any]:
    """Read the compose file for one machine, or that for NODES."""
    compose: dict[str, Any] = yaml.safe_load((directory / "compose.yaml").read_text())
    return compose


def memory_bytes(text: str) -> int:
    """Read a memory limit as compose, systemd and Kubernetes write it: 256m, 1G, 1Gi."""
    matched = re.fullmatch(r"(\d+)([kmg])i?", text.lower())
    assert matched is not None, text
    return int(matched[1]) << {"k": 10, "m": 20, "g": 30}[matched[2]]


def user_of(service: str, directory: Path = DEPLOY) -> int:
    """The user of a compose service: our image sets its own, the others have it in the compose file."""
    user: str = read_compose(directory)["services"][service].get("user") or last_instruction("USER")
    return int(user.partition(":")[0])


def unit_settings() -> dict[str, list[str]]:
    """Every value of every key of the systemd unit, in all sections."""
    settings: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        key, mark, value = line.partition("=")
        if mark and not line.startswith("#"):
            settings.setdefault(key, []).append(value)
    return settings
