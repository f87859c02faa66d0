"""`check`: many questions about one person, yes or no each (R6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gatehouse.kernel.addresses import Address
from gatehouse.kernel.background import run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.callers.callers import Caller
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.effective import Effective
from gatehouse.permissions.evaluation.places import asked_places
from gatehouse.permissions.evaluation.reading import Case, Reading
from gatehouse.permissions.model.facts import Structure
from gatehouse.permissions.model.scope import Scope
from gatehouse.permissions.questions.asked import AskedRule, AskedScope, ResourceDraft, read_rule, read_scope
from gatehouse.permissions.questions.sight import Sights

CHECKS_MOST: Final = 100
NOWHERE: Final[Address | None] = None  # a check knows no address (R5)


class CheckDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    rule: str
    project_id: str | None = None
    resource: ResourceDraft | None = None


class ChecksDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str | UnsetType = UNSET
    checks: Annotated[list[CheckDraft], Meta(extra_json_schema={"minItems": 1, "maxItems": CHECKS_MOST})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    rule: AskedRule
    scope: AskedScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    user_id: str
    allowed: tuple[bool, ...]  # in the order of the questions
    expired: int  # the earliest end of anything in the scopes asked about


class Checks:
    def __init__(self, *, sights: Sights, reading: Reading, clock: Clock) -> None:
        self._sights = sights
        self._reading = reading
        self._clock = clock

    async def check(self, caller: Caller, user_id: str, questions: Sequence[Question]) -> Checked:
        case = await self._sights.case(caller, user_id)
        application_id = caller.application_id or 0
        held = await self._reading.effective(case, application_id, NOWHERE)
        return await run_off_loop(held.decision_work, decided, case, held, questions, self._clock.now())


def decided(case: Case, held: Effective, questions: Sequence[Question], now: int) -> Checked:
    structure = case.structure
    pairs = [(one, one.scope.resolved(structure)) for one in questions]
    return Checked(
        user_id=case.facts.subject.user_id,
        allowed=tuple(
            any(any(held.holding(structure, scope, rule)) for rule in one.rule.rules) for one, scope in pairs
        ),
        expired=earliest(held, structure, pairs, now),
    )


def earliest(held: Effective, structure: Structure, pairs: Sequence[tuple[Question, Scope]], now: int) -> int:
    places = {
        place
        for one, scope in pairs
        for rule in one.rule.rules
        for place in asked_places(structure, held.application_id, scope, rule)
    }
    ends = (held.first_end(now, [place]) for place in places)
    return min((end for end in ends if end), default=0)


def read_questions(drafts: Sequence[CheckDraft]) -> tuple[Question, ...]:
    if not 1 <= len(drafts) <= CHECKS_MOST:
        raise Malformed(f"data.checks: must have 1 to {CHECKS_MOST} entries")
    return tuple(read_question(one, f"data.checks[{index}]") for index, one in enumerate(drafts))


def read_question(draft: CheckDraft, place: str) -> Question:
    return Question(
        rule=read_rule(draft.rule, f"{place}.rule"), scope=read_scope(draft.project_id, draft.resource, place)
    )
