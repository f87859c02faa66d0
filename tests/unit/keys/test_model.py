import pytest
from msgspec.structs import replace

from gatehouse.keys.model import Algorithm, KeyPurpose, KeyState, SigningKey, key_state

KEY = SigningKey(
    kid="k",
    alg=Algorithm.ES256,
    purpose=KeyPurpose.TOKENS,
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
        (99, KeyState.NEXT),
        (100, KeyState.SIGNING),
        (199, KeyState.SIGNING),
        (200, KeyState.VERIFYING),
        (299, KeyState.VERIFYING),
        (300, KeyState.RETIRED),
    ],
)
def test_a_key_passes_through_its_four_states(now: int, expected: KeyState) -> None:
    assert key_state(KEY, now) is expected


def test_ends_of_zero_are_open() -> None:
    assert key_state(replace(KEY, signs_until=0, verifies_until=0), 10**12) is KeyState.SIGNING
    assert key_state(replace(KEY, verifies_until=0), 10**12) is KeyState.VERIFYING


def test_a_retired_key_is_retired_even_before_it_would_have_signed() -> None:
    assert key_state(replace(KEY, signs_from=1000), 500) is KeyState.RETIRED


def test_the_private_half_is_not_printed() -> None:
    assert "hush" not in repr(KEY)
