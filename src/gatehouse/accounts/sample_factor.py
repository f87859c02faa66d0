"""The factor that code samples had: the same text on every device, so it names none (interface §4.3)."""

from collections.abc import Sequence
from typing import Final, Protocol

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import BadInput

SAMPLE_FACTOR: Final = "a random text kept on this device"
RECORD_PERIOD: Final = 86_400  # seconds in which one node records one application once


class SampleFactorStore(Protocol):
    async def refusing_applications(self, application_ids: Sequence[int]) -> Sequence[int]:
        """Return those of the applications that do not accept the sample factor."""

    async def record_sample_factor(self, application_id: int, now: int) -> None:
        """Store that players of the application send it."""


class SampleFactorRule:
    """Refuses it, except for applications from before this rule: their players would have to sign in again."""

    def __init__(self, *, store: SampleFactorStore, clock: Clock, accepts_none: bool) -> None:
        """`accepts_none`: in development no application accepts it."""
        self._store = store
        self._clock = clock
        self._accepts_none = accepts_none
        self._recorded: dict[int, int] = {}

    async def check(self, factor: str | None, application_ids: Sequence[int]) -> None:
        """Raise BadInput for the sample factor, unless all the applications accept it."""
        if factor != SAMPLE_FACTOR:
            return
        if self._accepts_none or await self._store.refusing_applications(application_ids):
            raise BadInput(
                "factor: this is the text of a code sample; call device_factor, which makes one per device"
            )
        now = self._clock.now()
        for application_id in application_ids:
            if now - self._recorded.get(application_id, -RECORD_PERIOD) >= RECORD_PERIOD:
                await self._store.record_sample_factor(application_id, now)
                self._recorded[application_id] = now
