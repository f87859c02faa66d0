"""The database counts the people who meet a condition, and the evaluation decides it: both agree."""

import pytest

from gatehouse.accounts.system_tags import SYSTEM_TAGS
from gatehouse.admin import conditions
from gatehouse.admin.conditions import ConditionMatchStore
from gatehouse.audit.model import AuditOrigin
from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.evaluation.conditions import condition_holds
from gatehouse.permissions.model.candidates import CandidateFilter
from tests.support.console import ADA, DEV, OLGA, PIA
from tests.support.service import RunningService

CONDITIONS = (
    {"domain": "studio.example"},
    {"domain": "players.example"},  # her address was never verified
    {"tag": "beta"},
    {"tag": "email_verified"},
    {"tag": "2step"},
    {"tag": "2step_email"},
    {"purchase": "season-pass"},
    {"uid": [ADA, PIA, "99"]},
    {"everyone": True},
    {"everyone": False},
    {"domain": "studio.example", "uid": [DEV, PIA]},
    {"or": [{"tag": "beta"}, {"and": [{"uid": [OLGA, DEV]}, {"uid": [DEV]}]}]},
    {"or": [{"everyone": False}, {"tag": "50%"}]},
)


async def test_the_count_is_what_the_evaluation_decides(studio: RunningService) -> None:
    services, origin = studio.services, AuditOrigin(actor="test")
    await services.accounts.administration.set_purchases(PIA, frozenset({"season-pass"}), origin)
    candidates = await services.storage.candidates.candidate_page(
        CandidateFilter(application_id=1, everyone=True), (), after="", limit=1_000
    )
    store = ConditionMatchStore(services.storage.runner)
    for document in CONDITIONS:
        test = parse_condition(document).test
        expected = [
            person.subject.user_id for person in candidates.people if condition_holds(test, person.subject, None)
        ]
        match = await store.count_matches(test)
        assert match.count == len(expected), document
        assert [user.user_id for user in match.first] == expected[:5], document


async def test_beyond_a_limit_the_count_says_so(studio: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "MAX_COUNT", 3)
    match = await ConditionMatchStore(studio.services.storage.runner).count_matches(
        parse_condition({"everyone": True}).test
    )
    assert match.count == 3


def test_every_system_tag_has_a_count() -> None:
    assert conditions.COMPUTED_TAGS.keys() == SYSTEM_TAGS
