"""Input no one thought of. `make test` tries a little of it, the same each time; `make fuzz` much more, and new.

FUZZ_FACTOR says how many times more than in `make test`, FUZZ_SEED which of it; make prints both, so that a failure
can be had again. Only the long search makes what it finds smaller, which takes minutes.
"""

import os
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, settings

FACTOR: Final = int(os.environ.get("FUZZ_FACTOR", "1"))  # noqa: TID251 - said to the tests, not to the service
IS_LONG: Final = FACTOR > 1
SEED: Final = int(os.environ.get("FUZZ_SEED", "1"))  # noqa: TID251


def examples(short: int) -> settings:
    """What every search here is run with: `short` examples in `make test`. The tests themselves bound time."""
    return settings(
        max_examples=short * FACTOR,
        phases=tuple(Phase) if IS_LONG else (Phase.explicit, Phase.generate),
        derandomize=not IS_LONG,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(params=["sqlite", "postgres"])
def fuzzed_url(request: pytest.FixtureRequest) -> str:
    """An installed database of each kind, one after the other."""
    url: str = request.getfixturevalue(f"installed_{request.param}_url")
    return url


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A long search takes longer than a test may."""
    for item in items:
        if IS_LONG and "fuzz" in item.path.parts:
            item.add_marker(pytest.mark.timeout(0))
