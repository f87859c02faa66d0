"""Verify the log all the time, some records at a time, so that the console can say how far it is verified."""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from gatehouse.audit.verification import ChainVerifier, ChainWalk, log
from gatehouse.kernel.clock import Clock

SLICE_RECORDS: Final = 200  # read and checked at a time
RECORDS_PER_RUN: Final = 20_000  # every five seconds
RECORDS_FOR_A_PAGE: Final = 1_000  # that a page waits for
VERIFY_AGAIN_SECONDS: Final = 24 * 3600  # from the beginning: records may be changed after they were verified
MAX_PROBLEMS: Final = 20


class VerifiedLog(msgspec.Struct, frozen=True, kw_only=True):
    records: int = 0
    at: int = 0  # when it was verified; 0 before the first time
    problems: tuple[str, ...] = ()


class ContinuousVerifier:
    def __init__(self, *, make_verifier: Callable[[], ChainVerifier], clock: Clock) -> None:
        self._make_verifier = make_verifier
        self._clock = clock
        self._lock = asyncio.Lock()
        self._verifier = make_verifier()
        self._walk: ChainWalk | None = None
        self._began_at = 0
        self._ended = False  # the walk has reached the end of the log once
        self.result = VerifiedLog()

    async def run_once(self, records: int = RECORDS_PER_RUN) -> None:
        """Verify what was sealed since, or some more of a long log; once a day all of it again."""
        if self._lock.locked():
            return
        async with self._lock:
            now = self._clock.now()
            if self._walk is None or (self._ended and now >= self._began_at + VERIFY_AGAIN_SECONDS):
                self._verifier, self._began_at, self._ended = self._make_verifier(), now, False
                self._walk = await self._verifier.begin()
            for _ in range(records // SLICE_RECORDS):
                ended = await self._verifier.advance(self._walk, SLICE_RECORDS)
                if ended or len(self._verifier.problems) >= MAX_PROBLEMS:
                    break
            self._ended = self._ended or ended or len(self._verifier.problems) >= MAX_PROBLEMS
            self._update_result(self._walk.checked, ended=ended)

    def _update_result(self, checked: int, *, ended: bool) -> None:
        """The earlier result counts until the log was verified again as far."""
        problems = self._verifier.problems[:MAX_PROBLEMS]
        for problem in problems:
            if problem not in self.result.problems:
                log.critical("audit.broken", reason=problem)
        if ended or checked >= self.result.records:
            self.result = VerifiedLog(records=checked, at=self._clock.now(), problems=problems)
        elif problems:
            self.result = replace(self.result, problems=tuple(dict.fromkeys((*self.result.problems, *problems))))
