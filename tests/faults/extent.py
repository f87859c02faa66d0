"""How much of each fault is tried: `make test` a little of it, `make faults` all."""

import os
from typing import Final

import pytest

WHOLE: Final = "FAULT_ROUNDS" in os.environ  # noqa: TID251 - said to the tests, not to the service


def on_databases(quickly: str) -> pytest.MarkDecorator:
    """For a test that asks for `url`: one database in a hurry, both where there is time."""
    return pytest.mark.parametrize("url", ["sqlite", "postgres"] if WHOLE else [quickly], indirect=True)
