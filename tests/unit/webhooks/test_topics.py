"""Every audit event is sent under one topic or never."""

from collections import Counter

from gatehouse.audit.events import AuditEvent
from gatehouse.webhooks.message_body import PUBLIC_DETAILS, event_body, public_details
from gatehouse.webhooks.messages import EVENTS_BY_TOPIC, UNPUBLISHED_EVENTS
from tests.support.builders import a_record


def test_every_event_is_in_one_topic_or_listed_as_unpublished() -> None:
    places = Counter([*UNPUBLISHED_EVENTS, *(event for events in EVENTS_BY_TOPIC.values() for event in events)])
    assert {event.value: places[event] for event in AuditEvent if places[event] != 1} == {}


def test_details_are_told_by_name_and_no_others() -> None:
    details = {"application_id": 7, "title": "Anna's game", "private_data.cheats": "no -> yes", "users": "1, 2"}
    assert public_details(details) == {"application_id": 7, "users": "1, 2"}
    assert not {"name", "title", "comment", "tags", "purchases", "gsid", "address", "login", "nick"} & set(
        PUBLIC_DETAILS
    )


def test_no_event_body_contains_a_full_gsid() -> None:
    gsid = "0a1b2c3d-1111-4222-8333-444455556666"
    body = event_body(a_record(AuditEvent.GAME_CLOSED, subject=gsid))
    assert gsid not in body
    assert '"subject":"0a1b2c3d…"' in body
