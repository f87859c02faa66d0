"""What has happened to an account, as its owner may read it."""

from collections.abc import Iterable

from gatehouse.accounts.own.model import Act
from gatehouse.audit.model import Record


def acts(records: Iterable[Record], user_id: str) -> tuple[Act, ...]:
    return tuple(Act(at=record.at, event=record.event, address=address_in(record, user_id)) for record in records)


def address_in(record: Record, user_id: str) -> str:
    """Where it was done from; where another person works, an administrator, is that person's affair."""
    if record.actor.isdecimal() and record.actor != user_id:
        return ""
    return (record.personal or {}).get("address", "")
