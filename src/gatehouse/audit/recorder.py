"""Make audit records, and describe what differs between two states."""

import secrets
from collections.abc import Iterator, Mapping
from typing import Final

from gatehouse.audit.chain import commitment_of, with_mac
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord, Details, Refusal
from gatehouse.audit.sign_in_tally import SignInTally
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.ids import new_record_id

MAX_CHANGES: Final = 40
MAX_VALUE_LENGTH: Final = 120


def describe_changes(before: Mapping[str, object], after: Mapping[str, object]) -> Details:
    """`{"settings.allowed_domains": "[] -> ['a.example']"}`; what does not fit is counted."""
    changes = dict(_changed_values(before, after, ""))
    shown = dict(list(changes.items())[:MAX_CHANGES])
    more = len(changes) - len(shown)
    return {**shown, "and more": more} if more else shown


def _changed_values(
    before: Mapping[str, object], after: Mapping[str, object], place: str
) -> Iterator[tuple[str, str]]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        where = f"{place}{name}"
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _changed_values(old, new, f"{where}.")
        else:
            yield where, f"{_shorten(old)} -> {_shorten(new)}"


def _shorten(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"


# Make the record that a mutating verb stores.


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
        """Build the record; it takes effect with the transaction that stores it."""
        if self._tally is not None:
            self._tally.count_event(event, subject, details or {})
        salt = secrets.token_bytes(SALT_BYTES)
        personal_fields = {"address": origin.address, **(personal or {})}
        now = self._clock.now()
        record = AuditRecord(
            record_id=new_record_id(now),
            at=now,
            event=event.value,
            actor=origin.actor,
            subject=subject,
            request_id=origin.request_id,
            details=details or {},
            personal=personal_fields,
            salt=salt,
            commitment=commitment_of(salt, personal_fields),
            mac=b"",
        )
        return with_mac(record, self._mac_key)

    def note_seen(self, user_id: str) -> None:
        """Note that the person was here; there is no record of it."""
        if self._tally is not None:
            self._tally.note_seen(user_id)

    def refusal(
        self,
        event: str,
        origin: AuditOrigin,
        *,
        reason: str,
        subject: str,
        details: Details | None = None,
        record_id: str = "",
    ) -> Refusal:
        """Build the record of a refusal. `record_id`: the ID that its caller is shown, if it has one already."""
        now = self._clock.now()
        return Refusal(
            record_id=record_id or new_record_id(now),
            at=now,
            event=event,
            reason=reason,
            subject=subject,
            request_id=origin.request_id,
            details=details or {},
            personal={"address": origin.address, "actor": origin.actor},
        )
