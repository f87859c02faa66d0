"""How often people came in, by the hour: for pictures, not for proofs.

Counted in memory and written every few seconds, so that no sign-in waits for it. A process that is killed loses its
last seconds of it; what happened stands in the audit log either way.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import TallyKind
from gatehouse.audit.store import TallyStore
from gatehouse.kernel.clock import Clock

HOUR: Final = 3_600
TALLIED_EVENTS: Final[Mapping[AuditEvent, TallyKind]] = {
    AuditEvent.SIGNED_IN: TallyKind.SIGNED_IN,
    AuditEvent.LOGGED_IN: TallyKind.SIGNED_IN,
    AuditEvent.GAME_CONFIRMED: TallyKind.GAME,
}


class SignInTally:
    def __init__(self, *, store: TallyStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pending: Counter[tuple[int, TallyKind]] = Counter()

    def count(self, what: TallyKind) -> None:
        now = self._clock.now()
        self._pending[now - now % HOUR, what] += 1

    def count_event(self, event: AuditEvent) -> None:
        """Count it if it is one of those."""
        what = TALLIED_EVENTS.get(event)
        if what is not None:
            self.count(what)

    async def flush(self) -> None:
        """Keep what was counted since; what cannot be written now is written the next time."""
        taken, self._pending = self._pending, Counter()
        if not taken:
            return
        try:
            await self._store.add_counts(taken)
        except BaseException:
            self._pending.update(taken)
            raise
