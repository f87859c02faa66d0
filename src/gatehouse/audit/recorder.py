"""Makes the record that a mutating verb takes along."""

import secrets
from collections.abc import Mapping
from typing import Final

from gatehouse.audit.chain import commitment_of, with_mac
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord, Details, Refusal
from gatehouse.audit.tally import SignInTally
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.ids import new_record_id

SALT_BYTES: Final = 16


class Recorder:
    def __init__(self, *, mac_key: bytes, clock: Clock, tally: SignInTally | None = None) -> None:
        self._tally = tally
        self._mac_key = mac_key
        self._clock = clock

    def record(
        self,
        event: AuditEvent,
        origin: AuditOrigin,
        *,
        subject: str,
        details: Details | None = None,
        personal: Mapping[str, str] | None = None,
    ) -> AuditRecord:
        """Build the record; it becomes true with the transaction that stores it."""
        if self._tally is not None:
            self._tally.count_event(event)
        salt = secrets.token_bytes(SALT_BYTES)
        told = {"address": origin.address, **(personal or {})}
        now = self._clock.now()
        record = AuditRecord(
            record_id=new_record_id(now),
            at=now,
            event=event.value,
            actor=origin.actor,
            subject=subject,
            request_id=origin.request_id,
            details=details or {},
            personal=told,
            salt=salt,
            commitment=commitment_of(salt, told),
            mac=b"",
        )
        return with_mac(record, self._mac_key)

    def refusal(self, event: str, origin: AuditOrigin, *, reason: str, subject: str) -> Refusal:
        now = self._clock.now()
        return Refusal(
            record_id=new_record_id(now),
            at=now,
            event=event,
            reason=reason,
            subject=subject,
            request_id=origin.request_id,
            details={},
            personal={"address": origin.address, "actor": origin.actor},
        )
