"""Tests with generated input: a small fixed sample in `make test`, much more and new input in `make fuzz`.

FUZZ_FACTOR multiplies the number of examples, FUZZ_SEED selects them; make prints both, so that a failure can be
repeated. Only the long search shrinks its failures, which takes minutes.
"""

import os
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, settings

FACTOR: Final = int(os.environ.get("FUZZ_FACTOR", "1"))  # noqa: TID251 - an option of the tests, not of the service
IS_LONG: Final = FACTOR > 1
SEED: Final = int(os.environ.get("FUZZ_SEED", "1"))  # noqa: TID251


def examples(short: int) -> settings:
    """The settings of every search: `short` examples in `make test`. The tests themselves bound time."""
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
    """An installed database; the test runs once per kind."""
    url: str = request.getfixturevalue(f"installed_{request.param}_url")
    return url
