"""The large databases of the benchmark: the filler fills every column, and every timed operation works."""

import pytest
from bench import growth


async def test_every_benchmark_operation_finds_the_generated_data(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "CASES", 3)
    monkeypatch.setattr(growth, "ROUNDS", 1)
    figures = await growth.measure([migrated_url], "here", 0.0, [20])
    assert {figure.curve for figure in figures if figure.curve} == {
        f"{name}, here" for name in (*growth.OPERATIONS, *growth.DUTIES)
    }
