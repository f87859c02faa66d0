"""Tags and purchases end with the rule that set them (R14)."""

from collections.abc import Callable, Mapping
from typing import Final

from gatehouse.accounts.model import ProvidedLabels
from gatehouse.accounts.own_account.model import OwnAccountStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock

# Seconds from the start of a process until labels without a rule end. Its file may be the wrong one, or an older one
# in a rolling restart, and a kept tag without its identity does not come back.
AFTER_START: Final = 3_600


class LabelRules:
    def __init__(
        self,
        *,
        store: OwnAccountStore,
        recorder: Recorder,
        origin: AuditOrigin,
        clock: Clock,
        rules: Callable[[], Mapping[str, ProvidedLabels] | None],
    ) -> None:
        """`rules` returns those of all providers by now; None while they cannot all be read."""
        self._store = store
        self._recorder = recorder
        self._origin = origin
        self._clock = clock
        self._rules = rules
        self._known: Mapping[str, ProvidedLabels] | None = None
        self._due: int | None = None  # when what has no rule ends; None after it did

    async def apply(self) -> None:
        """End what no rule sets any more: at a change of the rules, and an hour after the start."""
        rules = self._rules()
        if rules is None:
            return
        if rules != self._known:
            self._due = self._clock.now() + (AFTER_START if self._known is None else 0)
            self._known = rules
            while await self._store.find_sources(rules):
                pass
        if self._due is not None and self._clock.now() >= self._due:
            while await self._store.end_labels_without_rule(rules, self._record):
                pass
            self._due = None

    def _record(self, user_id: str, provider: str) -> AuditRecord:
        return self._recorder.record(
            AuditEvent.USER_TAGS_SAVED, self._origin, subject=user_id, details={"provider": provider}
        )
