"""The SHA-1 proof and PKCE."""

import hashlib
import hmac

import pytest

from gatehouse.oauth.client_auth import matches_code_challenge, native_proof

REDIRECT = "https://shop.example/ü"
SECRET = b"s3cret"
PROOF = hashlib.sha1(REDIRECT.encode() + SECRET, usedforsecurity=False).hexdigest()
# RFC 7636, appendix B
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


@pytest.fixture
def compared_lengths(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The lengths of all values that are compared in constant time."""
    lengths: list[tuple[int, int]] = []

    def spy(one: bytes, other: bytes) -> bool:
        lengths.append((len(one), len(other)))
        return compare(one, other)

    compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", spy)
    return lengths


def test_the_proof_is_hex_of_sha_1_over_the_utf_8_of_both() -> None:
    assert native_proof(REDIRECT, SECRET) == PROOF


def test_a_verifier_fits_its_challenge_and_no_other() -> None:
    assert matches_code_challenge(VERIFIER, CHALLENGE)
    assert matches_code_challenge("", "")
    for verifier, challenge in (
        *((VERIFIER[:-1] + "l", CHALLENGE), (CHALLENGE, CHALLENGE), ("", CHALLENGE), (VERIFIER, "")),
        (VERIFIER + "\n", CHALLENGE),
    ):
        assert not matches_code_challenge(verifier, challenge)
