"""Every audit event is a kind of change or listed as none."""

from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.permissions.changes.model import KIND_BY_EVENT, StreamChangeKind, change_from_record
from tests.support.builders import a_record


def test_every_event_is_listed_with_its_kind_or_as_no_change() -> None:
    assert {event.value for event in AuditEvent} - {event.value for event in KIND_BY_EVENT} == set()
    assert StreamChangeKind.RESET not in KIND_BY_EVENT.values()


def test_change_says_what_it_is_about_and_no_details() -> None:
    record = a_record(AuditEvent.GROUP_CHANGED, subject="group 5f")
    change = change_from_record(replace(record, details={"project_id": "p", "title": "Anna"}))
    assert change is not None
    assert (change.kind, change.group_id, change.project_id) == (StreamChangeKind.GROUP, "5f", "p")
    assert "Anna" not in str(change)
    assert change_from_record(a_record(AuditEvent.SIGNED_IN)) is None
