"""Commands on one installation, on each database."""

from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, InstallationPaths


@pytest.fixture
def installation(migrated_url: str, tmp_path: Path) -> InstallationPaths:
    """An installation with the current schema and no data."""
    return InstallationPaths(data=tmp_path / "data", url=migrated_url)


@pytest.fixture
def gatehouse(installation: InstallationPaths) -> CommandLine:
    return installation.command_line()
