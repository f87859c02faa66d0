"""A file to apply, and an installation on each database."""

from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, InstallationPaths
from tests.support.service import RunningService
from tests.support.studio import Studio, a_studio

FILE = """\
users:
  - {login: anna@studio.example, nick: Anna, password: {env: ANNA_PASSWORD}, user_id: "1001", administrator: true}
  - {login: bob@studio.example, nick: Bob, password: {file: bob.txt}, country: NO}
clients:
  - {client_id: web, name: Web shop, redirect_hosts: [localhost], client_secret: Zq8vK2mX4tR9wLp6sYb3nHc7dJf5gTaU}
"""
SECRETS = ("correct-horse-battery", "a-secret-of-bob", "Zq8vK2mX4tR9wLp6sYb3nHc7dJf5gTaU")


@pytest.fixture
def place(migrated_url: str, tmp_path: Path) -> InstallationPaths:
    return InstallationPaths(data=tmp_path / "data", url=migrated_url, environment={"ANNA_PASSWORD": SECRETS[0]})


@pytest.fixture
def gatehouse(place: InstallationPaths) -> CommandLine:
    return place.command_line()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "bob.txt").write_text(f"{SECRETS[1]}\n")
    path = tmp_path / "studio.yaml"
    path.write_text(FILE)
    return path


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)
