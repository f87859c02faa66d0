"""Test that the measurements of `make adversarial` run; the durations are not checked here."""

from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import pytest

from tests.adversarial import timing
from tests.support.service import running_service

HERE: Final = Path(timing.__file__)
MAKEFILE: Final = HERE.parents[2] / "Makefile"


@pytest.mark.parametrize("path", timing.MEASURED_PATHS)
async def test_every_measured_endpoint_is_timed_in_pairs_of_known_and_unknown_values(
    installed_url: str, tmp_path: Path, path: str
) -> None:
    async with running_service(installed_url, tmp_path, environment=timing.SETTINGS) as service:
        measured = await timing.measure_pairs(service, path, samples=3, warm_up=1)
    assert measured.pairs == 3
    assert measured.usual > 0
    assert "3 pairs" in str(measured)


async def test_every_secret_comparison_is_timed_with_wrong_first_and_last_byte(
    installed_sqlite_url: str, tmp_path: Path
) -> None:
    async with running_service(installed_sqlite_url, tmp_path) as service:
        for what, (check, right) in (await timing.comparisons(service)).items():
            measured = await timing.compare_secrets(check, right, calls=50, warm_up=5)
            assert measured.calls == 50, what
            assert measured.usual > 0
            assert "50 calls" in str(measured)


async def test_a_comparison_that_stops_at_the_first_difference_is_found_out() -> None:
    right = "5" * 400

    async def compare_early(value: str) -> bool:
        return all(one == another for one, another in zip(value, right, strict=True))

    measured = await timing.compare_secrets(compare_early, right, calls=1_000, warm_up=100)
    assert measured.t < -timing.T_MOST


def test_timing_module_runs_only_through_its_own_make_target(pytestconfig: pytest.Config) -> None:
    assert not any(fnmatch(HERE.name, pattern) for pattern in pytestconfig.getini("python_files"))
    assert "pytest tests/adversarial/figures.py tests/adversarial/timing.py" in MAKEFILE.read_text()
