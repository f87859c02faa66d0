"""The text format of access tokens."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from itertools import combinations

import pytest

from gatehouse.oauth.model import SCOPES
from gatehouse.oauth.tokens import AccessToken, AccessTokens

TOKENS = AccessTokens(bytes(range(32)))
GRANT = "0f" * 16
ENDS = 1_800_003_600


def encode_token(**changes: object) -> str:
    fields = {"grant_id": GRANT, "scopes": SCOPES, "ends_at": ENDS, "distrust_count": 7, **changes}
    return TOKENS.encode(**fields)  # type: ignore[arg-type]


def test_a_token_says_what_it_was_made_of_for_every_set_of_scopes() -> None:
    for size in range(len(SCOPES) + 1):
        for scopes in combinations(SCOPES, size):
            expected = AccessToken(grant_id=GRANT, scopes=frozenset(scopes), ends_at=ENDS, distrust_count=7)
            assert TOKENS.decode(encode_token(scopes=scopes)) == expected


def test_two_tokens_of_one_grant_and_second_differ() -> None:
    assert encode_token() != encode_token()


def test_a_changed_bit_anywhere_makes_it_none() -> None:
    token = encode_token()
    raw = bytearray(urlsafe_b64decode(token + "=="))
    for position in range(len(raw)):
        for bit in range(8):
            raw[position] ^= 1 << bit
            assert TOKENS.decode(urlsafe_b64encode(raw).rstrip(b"=").decode()) is None
            raw[position] ^= 1 << bit
    assert TOKENS.decode(urlsafe_b64encode(raw).rstrip(b"=").decode()) is not None


def test_access_token_has_exactly_one_encoding() -> None:
    token = encode_token()
    for end in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_":
        assert (TOKENS.decode(token[:-1] + end) is not None) == (end == token[-1])
    for other in (token + "=", token + " ", " " + token, token + "\n", token.swapcase(), f"{token[:9]}\n{token[9:]}"):
        assert TOKENS.decode(other) is None


@pytest.mark.parametrize("text", ["", "A", "é" * 72, "A" * 72, "A" * 1_000_000, "a.b.c"])
def test_whatever_was_not_made_here_is_none(text: str) -> None:
    assert TOKENS.decode(text) is None


def test_another_key_reads_nothing() -> None:
    assert AccessTokens(bytes(32)).decode(encode_token()) is None
