import hmac

import pytest

from gatehouse.kernel.digests import HmacSha256


@pytest.mark.parametrize("length", [0, 1, 32, 63, 64, 65, 200])
def test_prepared_states_give_the_hmac_of_the_standard_library(length: int) -> None:
    key = bytes(range(200))[:length]
    prepared = HmacSha256(key)
    for message in (b"", b"one", b"another", bytes(1_000), b"one"):
        assert prepared.digest(message) == hmac.digest(key, message, "sha256")


def test_the_key_is_in_no_text_of_it() -> None:
    prepared = HmacSha256(b"a key that no one may read")
    assert "no one may read" not in f"{prepared!r} {prepared}"
