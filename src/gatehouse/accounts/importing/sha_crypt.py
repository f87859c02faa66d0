"""SHA-crypt, the `$5$` and `$6$` of crypt(3), after Ulrich Drepper's public specification.

The standard library's `crypt` is gone since Python 3.13. Hashing small inputs holds the interpreter, so the rounds
run in a worker thread that takes turns with the event loop (docs/decisions/0028-heavy-work-off-the-loop.md).
"""

import hashlib
from collections.abc import Callable, Iterator
from typing import Final

ALPHABET: Final = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
CYCLE: Final = 42  # rounds after which the order of the inputs repeats: 2 x 3 x 7
TRIPLES_256: Final = 10
TRIPLES_512: Final = 21


def sha256_crypt(password: bytes, salt: bytes, rounds: int) -> str:
    """Return the checksum, without the parameters in front of it."""
    digest = _digest(password, salt, rounds, hashlib.sha256)
    groups = [(digest[a], digest[b], digest[c]) for a, b, c in _order(TRIPLES_256, forwards=False)]
    return "".join(_characters(*group, 4) for group in groups) + _characters(0, digest[31], digest[30], 3)


def sha512_crypt(password: bytes, salt: bytes, rounds: int) -> str:
    digest = _digest(password, salt, rounds, hashlib.sha512)
    groups = [(digest[a], digest[b], digest[c]) for a, b, c in _order(TRIPLES_512, forwards=True)]
    return "".join(_characters(*group, 4) for group in groups) + _characters(0, 0, digest[63], 2)


def _digest(password: bytes, salt: bytes, rounds: int, new: Callable[[bytes], "hashlib._Hash"]) -> bytes:
    alternate = new(password + salt + password).digest()
    first = new(password + salt + _fill(alternate, len(password)))
    length = len(password)
    while length:
        first.update(alternate if length & 1 else password)
        length >>= 1
    state = first.digest()
    p = _fill(new(password * len(password)).digest(), len(password))
    s = _fill(new(salt * (16 + state[0])).digest(), len(salt))
    around = list(_inputs(p, s))  # one call to the hash per round instead of four
    for number in range(rounds):
        before, after = around[number % CYCLE]
        state = new(before + state + after).digest()
    return state


def _inputs(p: bytes, s: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield what is hashed before and after the state in each round of a cycle."""
    for number in range(CYCLE):
        middle = (s if number % 3 else b"") + (p if number % 7 else b"")
        yield (p + middle, b"") if number & 1 else (b"", middle + p)


def _fill(block: bytes, length: int) -> bytes:
    return (block * (length // len(block) + 1))[:length]


def _order(triples: int, *, forwards: bool) -> Iterator[tuple[int, int, int]]:
    """Yield the places of the bytes of each group of four characters."""
    a, b, c = 0, triples, 2 * triples
    for _ in range(triples):
        yield a, b, c
        a, b, c = (b + 1, c + 1, a + 1) if forwards else (c + 1, a + 1, b + 1)


def _characters(high: int, middle: int, low: int, count: int) -> str:
    value = high << 16 | middle << 8 | low
    return "".join(ALPHABET[value >> 6 * place & 0x3F] for place in range(count))
