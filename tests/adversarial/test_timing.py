"""The measuring of `make adversarial` works; how long anything takes is not judged here."""

from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import pytest

from tests.adversarial import timing
from tests.support.service import running_service

HERE: Final = Path(timing.__file__)
MAKEFILE: Final = HERE.parents[2] / "Makefile"


@pytest.mark.parametrize("path", timing.DOORS)
async def test_every_door_is_timed_in_pairs_of_known_and_unknown(
    migrated_url: str, tmp_path: Path, path: str
) -> None:
    unlimited = {"GATEHOUSE__RATES__ENABLED": "false"}
    async with running_service(migrated_url, tmp_path, environment=unlimited) as service:
        measured = await timing.timed(service, path, samples=3, warm_up=1)
    assert measured.pairs == 3
    assert measured.usual > 0
    assert "3 pairs" in str(measured)


def test_it_is_run_by_its_own_command_and_by_no_other(pytestconfig: pytest.Config) -> None:
    assert not any(fnmatch(HERE.name, pattern) for pattern in pytestconfig.getini("python_files"))
    assert "pytest tests/adversarial/timing.py" in MAKEFILE.read_text()
