from pathlib import Path

import pytest

from tests.unit.settings.installation import Installation


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path)
