"""Write sealed audit records for a log collector or SIEM: as JSON lines, or as syslog messages (RFC 5424)."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final

import msgspec

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord, AuditStore
from gatehouse.kernel.times import iso8601

BATCH: Final = 500  # records that are read, written and confirmed together
AUTHPRIV: Final = 10  # the facility: security messages
NOTICE, WARNING = 5, 4  # severities
HIGH: Final = frozenset(event.value for event in AuditEvent if event.meaning.endswith("high."))


class ExportFormat(StrEnum):
    JSON = "json"
    SYSLOG = "syslog"


class RecordFormatter(msgspec.Struct, frozen=True, kw_only=True):
    """`host` names this installation; `personal` adds addresses and emails, which an erasure deletes here only."""

    host: str
    personal: bool
    format: ExportFormat

    def encode(self, record: AuditRecord) -> bytes:
        """Return one record, with what separates it from the next."""
        if self.format is ExportFormat.JSON:
            return self.json(record) + b"\n"
        message = self.syslog(record)
        return b"%d %s" % (len(message), message)  # RFC 6587 §3.4.1: counted, so any text may follow

    def json(self, record: AuditRecord) -> bytes:
        entry: dict[str, object] = {
            "place": record.place,
            "id": record.record_id,
            "at": iso8601(record.at),
            "event": record.event,
            "actor": record.actor,
            "subject": record.subject,
            "request_id": record.request_id,
            "details": record.details,
        }
        if self.personal:
            entry["personal"] = record.personal
        return msgspec.json.encode(entry)

    def syslog(self, record: AuditRecord) -> bytes:
        severity = WARNING if record.event in HIGH else NOTICE
        head = f"<{AUTHPRIV * 8 + severity}>1 {iso8601(record.at)} {self.host} gatehouse - {record.event} - "
        return head.encode("ascii") + self.json(record)


class AuditExport:
    def __init__(
        self,
        *,
        store: AuditStore,
        encode: Callable[[AuditRecord], bytes],
        write: Callable[[bytes], Awaitable[None]],
    ) -> None:
        """`write` returns when the receiver has taken what it was given."""
        self._store = store
        self._encode = encode
        self._write = write

    async def run(self, after: int, confirm: Callable[[int], object]) -> int:
        """Write every sealed record after that place; return the place of the last one.

        `confirm` is called with the place of each batch that was written. What was written and not confirmed is
        written again by the next run: twice is better than never.
        """
        while records := await self._store.records_from(after + 1, BATCH):
            await self._write(b"".join(map(self._encode, records)))
            after = records[-1].place or after
            confirm(after)
        return after
