"""The format of recovery codes."""

import pytest

from gatehouse.accounts.second_factors.codes import ALPHABET, new_recovery_code, normalize_recovery_code


def test_a_code_has_fifty_bits_in_two_groups() -> None:
    codes = {new_recovery_code() for _ in range(200)}
    assert len(codes) == 200
    assert len(ALPHABET) ** 10 == 2**50
    for code in codes:
        first, second = code.split("-")
        assert len(first) == len(second) == 5
        assert set(first + second) <= set(ALPHABET)


@pytest.mark.parametrize("typed", ["7k2m9-x0q1z", "7K2M9-X0Q1Z", "7k2m9x0q1z", " 7k2m9 - xoqlz ", "7k2m9-xOqIz"])
def test_a_code_is_the_same_however_it_is_typed(typed: str) -> None:
    assert normalize_recovery_code(typed) == "7k2m9x0q1z"


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "123456",
        "7k2m9-x0q1",
        "7k2m9-x0q1zz",
        "7k2m9-x0q1u",
        "7k2m9_x0q1z",
        "\uff17k2m9-x0q1z",
        "7k2m9x0q1z\n",
        "-" * 99,
    ],
)
def test_malformed_recovery_code_is_rejected_before_lookup(typed: str) -> None:
    assert normalize_recovery_code(typed) is None
