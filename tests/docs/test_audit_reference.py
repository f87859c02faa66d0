import re

import pytest
from tools.audit_reference import PAGE, page

from gatehouse.audit.events import AuditEvent


def test_the_reference_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run tools/audit_reference.py"


def test_the_reference_page_lists_every_event_once() -> None:
    matches = re.findall(r"^\| `([a-z_.]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert matches == sorted(event.value for event in AuditEvent)


@pytest.mark.parametrize("event", AuditEvent)
def test_every_event_is_explained_in_one_sentence(event: AuditEvent) -> None:
    assert re.fullmatch(r"[a-z_]+\.[a-z_]+", event.value)
    assert re.fullmatch(r"[A-Z][^|\n]+\.", event.meaning)
