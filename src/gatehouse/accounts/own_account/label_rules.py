"""Tags and purchases end with the rule that set them (R14)."""

from collections.abc import Callable, Mapping

from gatehouse.accounts.model import ProvidedLabels
from gatehouse.accounts.own_account.model import OwnAccountStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder


class LabelRules:
    def __init__(
        self,
        *,
        store: OwnAccountStore,
        recorder: Recorder,
        origin: AuditOrigin,
        rules: Callable[[], Mapping[str, ProvidedLabels] | None],
    ) -> None:
        """`rules` returns those of all providers by now; None while they cannot all be read."""
        self._store = store
        self._recorder = recorder
        self._origin = origin
        self._rules = rules
        self._applied: Mapping[str, ProvidedLabels] | None = None

    async def apply(self) -> None:
        """End what no rule sets any more, if the rules have changed since the last call."""
        rules = self._rules()
        if rules is None or rules == self._applied:
            return
        while await self._store.find_sources(rules):
            pass
        while await self._store.end_labels_without_rule(rules, self._record):
            pass
        self._applied = rules

    def _record(self, user_id: str, provider: str) -> AuditRecord:
        return self._recorder.record(
            AuditEvent.USER_TAGS_SAVED, self._origin, subject=user_id, details={"provider": provider}
        )
