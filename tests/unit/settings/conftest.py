from pathlib import Path

import pytest

from tests.unit.settings.installation import TemporaryInstallation


@pytest.fixture
def installation(tmp_path: Path) -> TemporaryInstallation:
    return TemporaryInstallation(tmp_path)
