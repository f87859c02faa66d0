"""What has happened to an account, as its owner may read it."""

from collections.abc import Iterable

from gatehouse.accounts.own.model import AccountActivity
from gatehouse.audit.model import AuditRecord


def activity_of(records: Iterable[AuditRecord], user_id: str) -> tuple[AccountActivity, ...]:
    return tuple(
        AccountActivity(at=record.at, event=record.event, address=visible_address(record, user_id))
        for record in records
    )


def visible_address(record: AuditRecord, user_id: str) -> str:
    """Where it was done from; where another person works, an administrator, is that person's affair."""
    if record.actor.isdecimal() and record.actor != user_id:
        return ""
    return (record.personal or {}).get("address", "")
