"""Commands about one installation, on each database in turn."""

from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, Place


@pytest.fixture
def place(migrated_url: str, tmp_path: Path) -> Place:
    """Today's schema, and nothing in it."""
    return Place(data=tmp_path / "data", url=migrated_url)


@pytest.fixture
def gatehouse(place: Place) -> CommandLine:
    return place.commands()
