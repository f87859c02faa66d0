"""Sign-ins per hour: for charts, not for evidence.

Counted in memory and written every few seconds, so that no sign-in waits for it. A killed process loses the counts
of its last seconds; the audit log has the events either way.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import Details, SignInCounts, TallyKind, TallyStore
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.sketches import sketch_digest
from gatehouse.kernel.times import HOUR, MINUTE

TALLIED_EVENTS: Final[Mapping[AuditEvent, TallyKind]] = {
    AuditEvent.SIGNED_IN: TallyKind.SIGNED_IN,
    AuditEvent.LOGGED_IN: TallyKind.SIGNED_IN,
    AuditEvent.GAME_CONFIRMED: TallyKind.GAME,
}
ACTIVE_EVENTS: Final = frozenset({AuditEvent.SIGNED_IN, AuditEvent.LOGGED_IN, AuditEvent.GRANT_MADE})
MAX_TARGETS: Final = 10_000  # different applications and clients between two flushes
MAX_SEEN: Final = 20_000  # people between two flushes
SEEN_BATCH: Final = 200  # people in one write


class SignInTally:
    """`key`: what people are counted under."""

    def __init__(self, *, store: TallyStore, clock: Clock, key: bytes) -> None:
        self._store = store
        self._clock = clock
        self._key = key
        self._pending = SignInCounts()
        self._seen: dict[str, int] = {}  # the minute, by the ID of a person
        self.by_method: Counter[tuple[str, ...]] = Counter()  # method and result, for the metrics of this process

    def count_refused(self, method: str) -> None:
        self._pending.kinds[self._hour(), TallyKind.REFUSED] += 1
        self.by_method[method, "refused"] += 1

    def count_event(self, event: AuditEvent, subject: str, details: Details) -> None:
        """Count the event if it is one of the counted kinds; `subject` is the person who signed in."""
        what = TALLIED_EVENTS.get(event)
        if what is not None:
            self._pending.kinds[self._hour(), what] += 1
        if what is TallyKind.SIGNED_IN:
            self.by_method[str(details.get("auth")), "success"] += 1
        if event in ACTIVE_EVENTS:
            self._pending.add_person(self._hour(), sketch_digest(self._key, subject))
            self.note_seen(subject)
            target = sign_in_target(details)
            if target and len(self._pending.targets) < MAX_TARGETS:
                self._pending.targets[self._hour(), target] += 1

    def note_seen(self, user_id: str) -> None:
        """Note that the person was here, for the list of people."""
        if len(self._seen) < MAX_SEEN:
            now = self._clock.now()
            self._seen[user_id] = now - now % MINUTE

    async def flush(self) -> None:
        """Write the counts since the last flush; a failed write is repeated the next time."""
        await self._write_seen()
        taken, self._pending = self._pending, SignInCounts()
        if taken.is_empty:
            return
        try:
            await self._store.add_counts(taken)
        except BaseException:
            self._pending.update(taken)
            raise

    async def _write_seen(self) -> None:
        taken, self._seen = self._seen, {}
        by_minute: dict[int, list[str]] = {}
        for user_id, at in taken.items():
            by_minute.setdefault(at, []).append(user_id)
        try:
            for at, user_ids in by_minute.items():
                for start in range(0, len(user_ids), SEEN_BATCH):
                    await self._store.record_seen(user_ids[start : start + SEEN_BATCH], at)
        except BaseException:
            self._seen = {**taken, **self._seen}
            raise

    def _hour(self) -> int:
        now = self._clock.now()
        return now - now % HOUR


def sign_in_target(details: Details) -> str:
    """The application or the client that was signed in to; empty for the service's own pages."""
    application, client = details.get("app_id"), details.get("client")
    if application:
        return f"application {application}"
    return f"client {client}" if client else ""
