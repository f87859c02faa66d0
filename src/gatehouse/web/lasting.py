"""How long an answer stays the answer to its question (docs/decisions/0020-the-same-question-again.md)."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from starlette.requests import Request

from gatehouse.kernel.clock import Clock

STATE_KEY: Final = "lasting"
ORIGIN: Final = "origin"  # judged by what is remembered for a second (oauth/origins.py), also after a change
LONGEST: Final = 60  # seconds after which a question is answered anew, whatever was said about the answer

Moment = Hashable | None
Renew = Callable[[Callable[[], object]], None]


class Share(Protocol):
    """Whom a request counts against beside its source."""

    def has_room(self) -> bool:
        """Whether one more would be admitted; counts nothing."""

    def take(self) -> int:
        """Count one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting:
    """What an endpoint says about an answer: it would be made again, letter for letter, while this holds."""

    holds: Callable[[], bool]
    renew: Renew | None = None  # calls back when `holds` tells of a time after the call; None where it tells of now
    share: Share | None = None


class Lastings:
    """`moment` is another one after whatever may change an answer; None where that cannot be told.

    An older one than that of now does no harm to what an answer is said to hold in: it will not be met again. Whether
    it is still the moment is asked with `renew`.
    """

    def __init__(self, *, moment: Callable[[], Moment], renew: Renew | None, clock: Clock) -> None:
        self._moment = moment
        self._renew = renew
        self._clock = clock

    def moment(self) -> Moment:
        """To be asked before anything is read that the answer is made of."""
        return self._moment()

    def mark(self, request: Request, moment: Moment, *, until: int, share: Share | None = None) -> None:
        """The answer to this request holds in this moment, and before the Unix second `until`."""
        now = self._clock.now()
        if moment is None or until <= now or ORIGIN in request.headers:
            return
        ends = min(until, now + LONGEST)
        request.scope["state"][STATE_KEY] = Lasting(
            holds=lambda: self._moment() == moment and self._clock.now() < ends, renew=self._renew, share=share
        )


def lasting_of(state: Mapping[str, Any]) -> Lasting | None:
    found: Lasting | None = state.get(STATE_KEY)
    return found
