"""How much of each fault is tried: `make test` a short sample that is the same each time, `make faults` all."""

import os
from typing import Final, TypeVar

import pytest

FULL_RUN: Final = "FAULT_ROUNDS" in os.environ  # noqa: TID251 - said to the tests, not to the service


T = TypeVar("T")


def sample(everything: list[T], *quickly: T) -> list[T]:
    """Parameters of a test: all of them in `make faults`, the named ones in `make test`."""
    return everything if FULL_RUN else list(quickly)


def on_databases(quickly: str, url: str = "url") -> pytest.MarkDecorator:
    """For a test that asks for `url`, or for `migrated_url`: one database in `make test`, both in `make faults`."""
    return pytest.mark.parametrize(url, sample(["sqlite", "postgres"], quickly), indirect=True)
