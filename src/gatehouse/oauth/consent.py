"""What people allowed clients that are not the house's own: asked once for each set of scopes (R3)."""

from collections.abc import Sequence

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.model import Client, Consent
from gatehouse.oauth.store import ConsentStore


class Consents:
    def __init__(self, *, store: ConsentStore, recorder: Recorder, clock: Clock) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock

    async def is_needed(self, user_id: str, client: Client, scopes: Sequence[str]) -> bool:
        """False for first-party clients, which need none beyond signing in, and for what was allowed before."""
        if client.first_party:
            return False
        given = await self._store.consent(user_id, client.client_id)
        return given is None or not set(scopes) <= set(given.scopes)

    async def give(self, user_id: str, client: Client, scopes: Sequence[str], origin: AuditOrigin) -> None:
        consent = Consent(
            user_id=user_id, client_id=client.client_id, scopes=tuple(scopes), given_at=self._clock.now()
        )
        details = {"client": client.client_id, "scope": " ".join(scopes)}
        entry = self._recorder.record(AuditEvent.CONSENT_GIVEN, origin, subject=user_id, details=details)
        await self._store.add_consent(consent, entry)

    def denial_record(self, user_id: str, client_id: str, scopes: Sequence[str], origin: AuditOrigin) -> AuditRecord:
        """What is recorded when he says no; nothing else is kept of that."""
        details = {"client": client_id, "scope": " ".join(scopes)}
        return self._recorder.record(AuditEvent.CONSENT_DENIED, origin, subject=user_id, details=details)

    async def withdraw(self, user_id: str, client_id: str, origin: AuditOrigin) -> bool:
        """Everything the client was given ends with it."""
        entry = self._recorder.record(
            AuditEvent.CONSENT_WITHDRAWN, origin, subject=user_id, details={"client": client_id}
        )
        return await self._store.withdraw_consent(user_id, client_id, self._clock.now(), entry)

    async def of_user(self, user_id: str) -> Sequence[tuple[Consent, Client]]:
        """What he allowed, and what a client of the house holds without having asked."""
        return await self._store.consents(user_id, self._clock.now())
