"""Proof of work: clients spend computing time before they create accounts or trigger emails.

A puzzle is signed, not stored; a solved one is stored until it expires, so that it works once on all nodes.
docs/guides/proof-of-work.md describes what clients compute.
"""

import re
import secrets
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final

import msgspec
import structlog

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal, hmac_sha256, sha256
from gatehouse.kernel.errors import Refused, TooMany
from gatehouse.kernel.times import HOUR, MINUTE
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter, AttemptStore, ThrottleSubject

log = structlog.get_logger(__name__)

PUZZLE_SECONDS: Final = HOUR  # lifetime: a form may be open for a while
PARTS: Final = 8  # of one puzzle: many small ones take a more even time than one large one
PART_BITS: Final = 3  # 2**PART_BITS == PARTS
NUMBER_BYTES: Final = 4  # of each number of a solution
PUZZLE: Final = re.compile(r"([a-z]{1,16})\.([0-9]{1,2})\.([0-9]{1,11})\.[0-9a-f]{32}\.([0-9a-f]{64})", re.ASCII)
SOLUTION: Final = re.compile(rf"[0-9]{{1,10}}(?:\.[0-9]{{1,10}}){{{PARTS - 1}}}", re.ASCII)

ATTACK_WINDOW: Final = 10 * MINUTE  # in which `attack_rate` requests count as an attack
ATTACK_SECONDS: Final = HOUR  # that puzzles are required after it
# Without a solution, for browsers without JavaScript: a few from each source, and not many from all together.
UNSOLVED_PER_SOURCE: Final = AttemptLimit(free_attempts=3, first_delay=HOUR, max_delay=HOUR, window=HOUR)
UNSOLVED_IN_ALL: Final = AttemptLimit(free_attempts=100, first_delay=MINUTE, max_delay=MINUTE, window=HOUR)


class PuzzlePurpose(StrEnum):
    """What a puzzle is solved for; a solution is valid for one of them."""

    REGISTER = "register"
    RESET = "reset"
    GUEST = "guest"
    PHONE = "phone"  # a code to a phone number


class ProofOfWorkMode(StrEnum):
    OFF = "off"
    ON = "on"
    AUTO = "auto"  # while a purpose is under attack


class ProofOfWorkPolicy(msgspec.Struct, frozen=True, kw_only=True):
    mode: ProofOfWorkMode
    difficulty: int  # a solution takes 2**difficulty hashes on average
    attack_rate: int  # requests in ATTACK_WINDOW


class Puzzle(msgspec.Struct, frozen=True, kw_only=True):
    """What a client must solve; also its JSON form."""

    puzzle: str
    difficulty: int  # leading zero bits of each part's digest
    parts: int = PARTS
    expires: int


class PuzzleUnsolved(Refused):
    """The solution is missing or wrong, or the puzzle has expired or was used before; all look alike."""

    public = "Solve the puzzle and send the request again."


class UnsolvedTooMany(TooMany):
    """Too many requests without a solution."""


UsePuzzle = Callable[[bytes, int, int], Awaitable[bool]]


class ProofOfWork:
    def __init__(
        self,
        *,
        store: AttemptStore,
        use_puzzle: UsePuzzle,
        limiter: AttemptLimiter,
        key: bytes,
        clock: Clock,
        policy: Callable[[], ProofOfWorkPolicy],
    ) -> None:
        """`use_puzzle` stores the digest of a puzzle until it expires; False if it is stored already."""
        self._store = store
        self._use_puzzle = use_puzzle
        self._limiter = limiter
        self._key = key
        self._clock = clock
        self._policy = policy

    async def issue_puzzle(self, purpose: PuzzlePurpose, *, always: bool = False) -> Puzzle | None:
        """Return a new puzzle, or None while the purpose requires none; `always` requires one in every mode."""
        policy = self._policy()
        if not always and not await self._is_required(purpose, policy):
            return None
        bits, ends = max(0, policy.difficulty - PART_BITS), self._clock.now() + PUZZLE_SECONDS
        signed = f"{purpose}.{bits}.{ends}.{secrets.token_hex(16)}"
        return Puzzle(puzzle=f"{signed}.{self._signature(signed)}", difficulty=bits, expires=ends)

    async def require_solution(
        self,
        purpose: PuzzlePurpose,
        puzzle: str,
        solution: str,
        *,
        unsolved_from: str | None = None,
        always: bool = False,
    ) -> None:
        """Use the solution, if the purpose requires one now or `always`. Raises PuzzleUnsolved, UnsolvedTooMany.

        `unsolved_from` is the source of a page's form, which may come without a solution at a stricter rate.
        """
        policy = self._policy()
        if policy.mode is ProofOfWorkMode.AUTO:
            await self._count_request(purpose, policy)
        if not always and not await self._is_required(purpose, policy):
            return
        if unsolved_from is not None and not solution:
            await self._admit_unsolved(purpose, unsolved_from)
        elif not await self._is_solved(purpose, puzzle, solution):
            raise PuzzleUnsolved(f"no solution of a puzzle for {purpose}")

    async def _is_required(self, purpose: PuzzlePurpose, policy: ProofOfWorkPolicy) -> bool:
        if policy.mode is not ProofOfWorkMode.AUTO:
            return policy.mode is ProofOfWorkMode.ON
        return await self._store.blocked_until([attack_subject(purpose, policy).key]) > self._clock.now()

    async def _count_request(self, purpose: PuzzlePurpose, policy: ProofOfWorkPolicy) -> None:
        subject = attack_subject(purpose, policy)
        was_required = await self._is_required(purpose, policy)
        if await self._store.record_failures([(subject.key, subject.limit)], self._clock.now()) and not was_required:
            log.warning("under attack: proof of work required", purpose=purpose)

    async def _admit_unsolved(self, purpose: PuzzlePurpose, source: str) -> None:
        try:
            await self._limiter.begin_attempt(
                [
                    ThrottleSubject(("unsolved", purpose, source), UNSOLVED_PER_SOURCE),
                    ThrottleSubject(("unsolved", purpose), UNSOLVED_IN_ALL),
                ]
            )
        except TooMany as error:
            raise UnsolvedTooMany(error.retry_after) from None

    async def _is_solved(self, purpose: PuzzlePurpose, puzzle: str, solution: str) -> bool:
        """Check the signature before anything is computed, and store the puzzle last."""
        read = PUZZLE.fullmatch(puzzle)
        if read is None or not constant_time_equal(read[4], self._signature(puzzle.rpartition(".")[0])):
            return False
        now, ends = self._clock.now(), int(read[3])
        if read[1] != purpose or ends <= now or not is_solution(puzzle, int(read[2]), solution):
            return False
        return await self._use_puzzle(sha256(puzzle), now, ends)

    def _signature(self, signed: str) -> str:
        return hmac_sha256(self._key, signed.encode()).hex()


def attack_subject(purpose: PuzzlePurpose, policy: ProofOfWorkPolicy) -> ThrottleSubject:
    limit = AttemptLimit(
        free_attempts=policy.attack_rate,
        first_delay=ATTACK_SECONDS,
        max_delay=ATTACK_SECONDS,
        window=ATTACK_WINDOW,
    )
    return ThrottleSubject(("attack", purpose), limit)


def is_solution(puzzle: str, difficulty: int, solution: str) -> bool:
    """Whether each number solves its part: nine hashes at most, whatever the difficulty."""
    if not SOLUTION.fullmatch(solution):
        return False
    numbers = [int(number) for number in solution.split(".")]
    seed = sha256(puzzle)
    return all(
        number < 1 << 8 * NUMBER_BYTES and is_part_solved(seed, part, number, difficulty)
        for part, number in enumerate(numbers)
    )


def is_part_solved(seed: bytes, part: int, number: int, difficulty: int) -> bool:
    digest = sha256(seed + bytes([part]) + number.to_bytes(NUMBER_BYTES, "big"))
    return int.from_bytes(digest[:8], "big") >> (64 - difficulty) == 0
