from dataclasses import replace

import pytest

from gatehouse.keys.model import Algorithm, Purpose, SigningKey, State, state

KEY = SigningKey(
    kid="k",
    alg=Algorithm.ES256,
    purpose=Purpose.TOKENS,
    public=b"",
    sealed_private=b"hush",
    created_at=50,
    signs_from=100,
    signs_until=200,
    verifies_until=300,
)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (99, State.NEXT),
        (100, State.SIGNING),
        (199, State.SIGNING),
        (200, State.VERIFYING),
        (299, State.VERIFYING),
        (300, State.RETIRED),
    ],
)
def test_a_key_passes_through_its_four_states(now: int, expected: State) -> None:
    assert state(KEY, now) is expected


def test_ends_of_zero_are_open() -> None:
    assert state(replace(KEY, signs_until=0, verifies_until=0), 10**12) is State.SIGNING
    assert state(replace(KEY, verifies_until=0), 10**12) is State.VERIFYING


def test_a_retired_key_is_retired_even_before_it_would_have_signed() -> None:
    assert state(replace(KEY, signs_from=1000), 500) is State.RETIRED


def test_the_private_half_is_not_printed() -> None:
    assert "hush" not in repr(KEY)
