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
from gatehouse.permissions.evaluation.effective import EffectivePermissions
from gatehouse.permissions.evaluation.places import existing_lookup_scopes
from gatehouse.permissions.evaluation.reading import EvaluationInput, PermissionLoader
from gatehouse.permissions.model.facts import Structure
from gatehouse.permissions.model.scope import Scope
from gatehouse.permissions.questions.asked import ResourceDraft, RuleReference, ScopeReference, read_rule, read_scope
from gatehouse.permissions.questions.sight import QuestionAccess

MAX_CHECKS: Final = 100
NO_ADDRESS: Final[Address | None] = None  # a check knows no address (R5)


class CheckDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    rule: str
    project_id: str | None = None
    resource: ResourceDraft | None = None


class ChecksDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str | UnsetType = UNSET
    checks: Annotated[list[CheckDraft], Meta(extra_json_schema={"minItems": 1, "maxItems": MAX_CHECKS})]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionQuestion:
    rule: RuleReference
    scope: ScopeReference


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutcome:
    user_id: str
    allowed: tuple[bool, ...]  # in the order of the questions
    expired: int  # the earliest end of anything in the scopes asked about


class Checks:
    def __init__(self, *, question_access: QuestionAccess, permission_loader: PermissionLoader, clock: Clock) -> None:
        self._question_access = question_access
        self._permission_loader = permission_loader
        self._clock = clock

    async def check(self, caller: Caller, user_id: str, questions: Sequence[PermissionQuestion]) -> CheckOutcome:
        case = await self._question_access.load_input(caller, user_id)
        application_id = caller.application_id or 0
        held = await self._permission_loader.evaluate(case, application_id, NO_ADDRESS)
        return await run_off_loop(held.decision_work, answer_questions, case, held, questions, self._clock.now())


def answer_questions(
    evaluation_input: EvaluationInput, held: EffectivePermissions, questions: Sequence[PermissionQuestion], now: int
) -> CheckOutcome:
    structure = evaluation_input.structure
    pairs = [(one, one.scope.resolve(structure)) for one in questions]
    return CheckOutcome(
        user_id=evaluation_input.facts.subject.user_id,
        allowed=tuple(
            any(any(held.scopes_holding(structure, scope, rule)) for rule in one.rule.rules) for one, scope in pairs
        ),
        expired=earliest_end(held, structure, pairs, now),
    )


def earliest_end(
    held: EffectivePermissions, structure: Structure, pairs: Sequence[tuple[PermissionQuestion, Scope]], now: int
) -> int:
    places = {
        place
        for one, scope in pairs
        for rule in one.rule.rules
        for place in existing_lookup_scopes(structure, held.application_id, scope, rule)
    }
    ends = (held.first_end(now, [place]) for place in places)
    return min((end for end in ends if end), default=0)


def read_questions(drafts: Sequence[CheckDraft]) -> tuple[PermissionQuestion, ...]:
    if not 1 <= len(drafts) <= MAX_CHECKS:
        raise Malformed(f"data.checks: must have 1 to {MAX_CHECKS} entries")
    return tuple(read_question(one, f"data.checks[{index}]") for index, one in enumerate(drafts))


def read_question(draft: CheckDraft, place: str) -> PermissionQuestion:
    return PermissionQuestion(
        rule=read_rule(draft.rule, f"{place}.rule"), scope=read_scope(draft.project_id, draft.resource, place)
    )
