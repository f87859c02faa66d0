"""Which secrets of a client are accepted, and at what cost."""

import hmac
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import TooMany
from gatehouse.oauth.client_auth import WEAK_GUESS_LIMIT, ClientSecretVerifier, native_proof
from gatehouse.oauth.client_commands import client_secret_purpose
from gatehouse.oauth.model import Client, ClientSecret, SecretKind
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter
from tests.support.builders import NOW, a_client
from tests.support.clock import MovableClock
from tests.support.keys import master_keys

STRONG = "s" * 43
REDIRECT = "https://shop.example/ü"


class Hashes:
    """A quick replacement of the slow hash that counts calls."""

    def __init__(self) -> None:
        self.computed = 0

    async def matches(self, password: str, password_hash: str) -> bool:
        self.computed += 1
        return password_hash == f"hash of {password}"


class Attempts:
    """Counts guesses per subject, and refuses after the free ones."""

    def __init__(self) -> None:
        self.counted: dict[str, int] = {}

    async def blocked_until(self, subjects: Sequence[str]) -> int:
        over = [subject for subject in subjects if self.counted.get(subject, 0) >= WEAK_GUESS_LIMIT.free_attempts]
        return NOW + 30 if over else 0

    async def begin_attempts(self, subjects: Sequence[tuple[str, AttemptLimit]], _now: int) -> None:
        for subject, _ in subjects:
            self.counted[subject] = self.counted.get(subject, 0) + 1

    async def undo_attempts(self, _shared: object, _at: int, forgiven: Sequence[str] = ()) -> None:
        for subject in forgiven:
            self.counted.pop(subject, None)


def secrets_setup() -> tuple[ClientSecretVerifier, Hashes, Attempts, MovableClock]:
    hashes, attempts, clock = Hashes(), Attempts(), MovableClock(NOW)
    guesses = AttemptLimiter(store=attempts, limit=AttemptLimit(), clock=clock)  # type: ignore[arg-type]
    secrets = ClientSecretVerifier(
        masters=master_keys(), hashes=hashes, guesses=guesses, clock=clock, cache_key=bytes(32)
    )
    return secrets, hashes, attempts, clock


def with_secrets(*secrets: ClientSecret) -> Client:
    return replace(a_client(), secrets=secrets)


def stored_secret(kind: SecretKind, secret: str, **fields: Any) -> ClientSecret:
    forms: dict[SecretKind, Callable[[], bytes]] = {
        SecretKind.SEALED: lambda: master_keys().seal(secret.encode(), purpose=client_secret_purpose("web")),
        SecretKind.SHA256: partial(sha256, secret),
        SecretKind.ARGON2: f"hash of {secret}".encode,
    }
    return ClientSecret(kind=kind, secret=forms[kind](), created_at=NOW, **fields)


@pytest.mark.parametrize("kind", list(SecretKind))
async def test_a_secret_is_known_in_whatever_form_it_is_kept(kind: SecretKind) -> None:
    secrets, _, _, _ = secrets_setup()
    client = with_secrets(stored_secret(kind, STRONG))
    assert await secrets.is_correct_secret(client, STRONG, source="here")
    for wrong in ("", STRONG[:-1], STRONG + "s", "é"):
        assert not await secrets.is_correct_secret(client, wrong, source="here")
    assert not await secrets.is_correct_secret(with_secrets(), STRONG, source="here")


async def test_both_client_secrets_are_valid_until_each_expires() -> None:
    secrets, _, _, clock = secrets_setup()
    client = with_secrets(
        stored_secret(SecretKind.SHA256, "old" * 11, expires_at=NOW + 10),
        stored_secret(SecretKind.SHA256, STRONG, slot=2),
    )
    assert await secrets.is_correct_secret(client, "old" * 11, source="here")
    assert await secrets.is_correct_secret(client, STRONG, source="here")
    await clock.advance(10)
    assert not await secrets.is_correct_secret(client, "old" * 11, source="here")
    assert await secrets.is_correct_secret(client, STRONG, source="here")


async def test_a_slow_hash_is_computed_once_for_a_right_secret() -> None:
    secrets, hashes, attempts, _ = secrets_setup()
    client = with_secrets(stored_secret(SecretKind.ARGON2, "weak"))
    for _ in range(5):
        assert await secrets.is_correct_secret(client, "weak", source="here")
    assert hashes.computed == 1
    assert attempts.counted == {}
    changed = with_secrets(stored_secret(SecretKind.ARGON2, "other"))
    assert not await secrets.is_correct_secret(changed, "weak", source="here")


@pytest.mark.parametrize("kind", [SecretKind.ARGON2, SecretKind.SEALED])
async def test_guesses_at_a_weak_secret_are_counted_before_they_are_made(kind: SecretKind) -> None:
    secrets, _, _, _ = secrets_setup()
    client = with_secrets(stored_secret(kind, "weak"))
    for number in range(WEAK_GUESS_LIMIT.free_attempts):
        assert not await secrets.is_correct_secret(client, f"guess {number}", source="here")
    with pytest.raises(TooMany):
        await secrets.is_correct_secret(client, "weak", source="here")
    assert await secrets.is_correct_secret(client, "weak", source="elsewhere")


async def test_guesses_at_a_strong_secret_cost_nothing() -> None:
    secrets, _, attempts, _ = secrets_setup()
    client = with_secrets(stored_secret(SecretKind.SEALED, STRONG), stored_secret(SecretKind.SHA256, STRONG, slot=2))
    assert not await secrets.is_correct_secret(client, "x", source="here")
    assert not await secrets.is_correct_proof(client, "x", "https://shop.example", source="here")
    assert attempts.counted == {}


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


@pytest.mark.parametrize("place", [0, 42])
@pytest.mark.parametrize("kind", [SecretKind.SEALED, SecretKind.SHA256])
async def test_tk_27_a_wrong_secret_is_compared_whole_wherever_it_differs(
    compared_lengths: list[tuple[int, int]], kind: SecretKind, place: int
) -> None:
    secrets, _, _, _ = secrets_setup()
    wrong = STRONG[:place] + "x" + STRONG[place + 1 :]
    assert not await secrets.is_correct_secret(with_secrets(stored_secret(kind, STRONG)), wrong, source="here")
    length = 43 if kind is SecretKind.SEALED else 32
    assert compared_lengths == [(length, length)]


@pytest.mark.parametrize("right", [STRONG, "t" * 43])
async def test_tk_27_every_strong_secret_is_compared_whichever_is_right(
    compared_lengths: list[tuple[int, int]], right: str
) -> None:
    secrets, _, _, _ = secrets_setup()
    client = with_secrets(
        stored_secret(SecretKind.SEALED, STRONG), stored_secret(SecretKind.SEALED, "t" * 43, slot=2)
    )
    assert await secrets.is_correct_secret(client, right, source="here")
    assert compared_lengths == [(43, 43)] * 2


async def test_a_proof_is_accepted_in_either_case() -> None:
    secrets, _, _, _ = secrets_setup()
    client, proof = with_secrets(stored_secret(SecretKind.SEALED, STRONG)), native_proof(REDIRECT, STRONG.encode())
    for right in (proof, proof.upper()):
        assert await secrets.is_correct_proof(client, right, REDIRECT, source="here")
    for wrong in ("", proof[:-1], proof + "0", "0" * 40, "é" * 40, proof.replace(proof[0], "İ")):
        assert not await secrets.is_correct_proof(client, wrong, REDIRECT, source="here")
    assert not await secrets.is_correct_proof(client, proof, f"{REDIRECT}/", source="here")


async def test_a_secret_with_a_slow_hash_is_no_proof() -> None:
    secrets, hashes, _, _ = secrets_setup()
    client = with_secrets(stored_secret(SecretKind.ARGON2, "weak"))
    assert not await secrets.is_correct_proof(client, "weak", REDIRECT, source="here")
    assert hashes.computed == 0


@pytest.mark.parametrize("place", [0, 20, 39])
async def test_tk_27_a_wrong_proof_is_compared_whole_wherever_it_differs(
    compared_lengths: list[tuple[int, int]], place: int
) -> None:
    secrets, _, _, _ = secrets_setup()
    proof = native_proof(REDIRECT, STRONG.encode())
    wrong = proof[:place] + ("0" if proof[place] != "0" else "1") + proof[place + 1 :]
    client = with_secrets(stored_secret(SecretKind.SEALED, STRONG))
    assert not await secrets.is_correct_proof(client, wrong, REDIRECT, source="here")
    assert compared_lengths == [(40, 40)]
