"""Decides whose rights a caller may query: their own, and others' with canRead `all` (R6)."""

import math
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from gatehouse.kernel.addresses import Address
from gatehouse.kernel.background import run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest, Authenticator
from gatehouse.permissions.authentication.callers import Caller
from gatehouse.permissions.documents.grammar import check_object_key
from gatehouse.permissions.errors import ApplicationNotFound, Malformed, NoRight
from gatehouse.permissions.evaluation.contributions import evaluation_context
from gatehouse.permissions.evaluation.effective import EffectivePermissions, existing_lookup_scopes
from gatehouse.permissions.evaluation.loader import EvaluationInput, PermissionLoader
from gatehouse.permissions.evaluation.objects import ObjectDecision, ObjectEvaluator
from gatehouse.permissions.model.facts import Structure
from gatehouse.permissions.model.objects import NO_OBJECTS, ObjectFacts
from gatehouse.permissions.model.rules import Rule, RuleSection, Scope
from gatehouse.permissions.questions.parsing import (
    ResourceDraft,
    RuleReference,
    ScopeReference,
    read_rule,
    read_scope,
)
from gatehouse.permissions.questions.person_input import PersonInputLoader, may_use_former_ids
from gatehouse.permissions.questions.user_record_views import readable_parts
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.permissions.rights.secret_data import PERMISSION_PARTS


class QuestionAccess(Struct, kw_only=True, eq=False):
    authenticator: Authenticator
    permission_loader: PermissionLoader
    person_inputs: PersonInputLoader

    async def load_input(self, caller: Caller, user_id: str) -> EvaluationInput:
        """The person's facts in the request's application. NoRight is checked before NotFound (R6)."""
        application_id = caller.application_id
        if application_id is None:
            raise Malformed("application_id: required")
        evaluation_input = await self._load_input(caller, user_id, application_id)
        if application_id not in evaluation_input.models:
            raise ApplicationNotFound
        return evaluation_input

    async def _load_input(self, caller: Caller, user_id: str, application_id: int) -> EvaluationInput:
        if caller.facts is None:  # the application itself, which may ask about anyone
            if not user_id:
                raise Malformed("data.user_id: required")
            return await self.person_inputs.load(user_id, application_id, by_former_id=True)
        if user_id == caller.user_id:
            return await self.permission_loader.load_input(caller.facts)
        request = await self.authenticator.attach_rights(caller)
        refuse_about_others(request, user_id)
        by_former_id = may_use_former_ids(caller, request)
        return await self.person_inputs.load(user_id, application_id, by_former_id=by_former_id)


def reads_permissions(request: AuthenticatedRequest, user_id: str = "") -> bool:
    """Whether the caller may ask about this person, or about anyone, and so may know who they are (R6, R9)."""
    return readable_parts(request, user_id) >= PERMISSION_PARTS


def refuse_about_others(request: AuthenticatedRequest, user_id: str = "") -> None:
    if not reads_permissions(request, user_id):
        raise NoRight(f"permissions of user {user_id or 'anyone'}")


def refuse_about_everyone(request: AuthenticatedRequest) -> None:
    """Refuse callers who may not query everyone; `members` shows who holds what, and so which roles exist."""
    refuse_about_others(request)
    require_operation(request.rights, Operation.ROLE_NAMES, request.target)


# `check`: many questions about one person, yes or no each (R6).


MAX_CHECKS: Final = 1_000
CHECK_WEIGHT: Final = 20  # work of one of them
QUESTIONS_OF_ONE_REQUEST: Final = 100  # more count as so many more requests in the rate limit (R11)
NO_ADDRESS: Final[Address | None] = None  # a check has no address (R5)


class CheckDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    rule: str
    project_id: str | None = None
    resource: ResourceDraft | None = None
    object: str | None = None  # type:id (R12)


class ChecksDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str | UnsetType = UNSET
    checks: Annotated[list[CheckDraft], Meta(extra_json_schema={"minItems": 1, "maxItems": MAX_CHECKS})]


class PermissionQuestion(msgspec.Struct, frozen=True, kw_only=True):
    rule: RuleReference
    scope: ScopeReference
    object_key: str = ""  # of the object that the question is about; the scope then is its place, or the root for any


class CheckOutcome(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str
    allowed: tuple[bool, ...]  # in the order of the questions
    expired: int  # the earliest end of anything in the scopes asked about
    known: tuple[bool | None, ...] = ()  # of each object; None for a question about none. Empty without objects


class Checks:
    def __init__(self, *, question_access: QuestionAccess, permission_loader: PermissionLoader, clock: Clock) -> None:
        self._question_access = question_access
        self._permission_loader = permission_loader
        self._clock = clock

    async def check(self, caller: Caller, user_id: str, questions: Sequence[PermissionQuestion]) -> CheckOutcome:
        evaluation_input = await self._question_access.load_input(caller, user_id)
        application_id = caller.application_id or 0
        keys = {question.object_key for question in questions} - {""}
        object_facts = NO_OBJECTS
        if keys:
            evaluation_input, object_facts = await self._permission_loader.load_input_with_objects(
                evaluation_input.facts, application_id, keys
            )
        effective = await self._permission_loader.evaluate(evaluation_input, application_id, NO_ADDRESS)
        weight = len(questions) * (CHECK_WEIGHT + len(evaluation_input.structure.projects)) + effective.decision_work
        return await run_off_loop(
            weight, answer_questions, evaluation_input, effective, questions, self._clock.now(), object_facts
        )


def request_weight(questions: int) -> int:
    """Return as how many requests this many questions count."""
    return max(1, math.ceil(questions / QUESTIONS_OF_ONE_REQUEST))


def answer_questions(
    evaluation_input: EvaluationInput,
    effective: EffectivePermissions,
    questions: Sequence[PermissionQuestion],
    now: int,
    object_facts: ObjectFacts = NO_OBJECTS,
) -> CheckOutcome:
    structure = evaluation_input.structure
    pairs = [(question, question.scope.resolve(structure)) for question in questions]
    evaluator = None
    if any(question.object_key for question in questions):
        evaluator = object_evaluator(evaluation_input, effective, object_facts, now)
    allowed: list[bool] = []
    known: list[bool | None] = []
    for question, scope in pairs:
        if evaluator is None or not question.object_key:
            holding = (effective.scopes_holding(structure, scope, rule) for rule in question.rule.rules)
            allowed.append(any(map(any, holding)))
            known.append(None)
        else:
            decision = decide_object(evaluator, question, scope)
            allowed.append(decision.allowed)
            known.append(decision.known)
    ends = [earliest_end(effective, structure, pairs, now)]
    if evaluator is not None:
        ends += [end for question in questions for end in evaluator.ends(question.object_key)]
    return CheckOutcome(
        user_id=evaluation_input.facts.subject.user_id,
        allowed=tuple(allowed),
        expired=min((end for end in ends if end), default=0),
        known=tuple(known) if evaluator is not None else (),
    )


def object_evaluator(
    evaluation_input: EvaluationInput,
    effective: EffectivePermissions,
    object_facts: ObjectFacts,
    now: int,
    address: Address | None = NO_ADDRESS,
) -> ObjectEvaluator:
    model = evaluation_input.models[effective.application_id]
    context = evaluation_context(model, evaluation_input.facts, evaluation_input.structure, now=now, address=address)
    return ObjectEvaluator(context=context, effective=effective, schema=model.schema, object_facts=object_facts)


def object_rule(question: PermissionQuestion) -> Rule:
    """The rule of a question about an object: one of private_data."""
    return next((rule for rule in question.rule.rules if rule.section is RuleSection.PRIVATE), question.rule.rules[0])


def decide_object(evaluator: ObjectEvaluator, question: PermissionQuestion, scope: Scope) -> ObjectDecision:
    """A question without a project is about the object wherever it is."""
    return evaluator.decide(question.object_key, object_rule(question), place=scope.project_id or None)


def earliest_end(
    effective: EffectivePermissions, structure: Structure, pairs: Sequence[tuple[PermissionQuestion, Scope]], now: int
) -> int:
    holding_scopes = {
        holding_scope
        for question, scope in pairs
        for rule in question.rule.rules
        for holding_scope in existing_lookup_scopes(structure, effective.application_id, scope, rule)
    }
    ends = (effective.first_end(now, [holding_scope]) for holding_scope in holding_scopes)
    return min((end for end in ends if end), default=0)


def read_questions(drafts: Sequence[CheckDraft]) -> tuple[PermissionQuestion, ...]:
    if not 1 <= len(drafts) <= MAX_CHECKS:
        raise Malformed(f"data.checks: must have 1 to {MAX_CHECKS} entries")
    return tuple(read_question(draft, f"data.checks[{index}]") for index, draft in enumerate(drafts))


def read_question(draft: CheckDraft, place: str) -> PermissionQuestion:
    if draft.object is not None and draft.resource is not None:
        raise Malformed(f"{place}: use either resource or object")
    return PermissionQuestion(
        rule=read_rule(draft.rule, f"{place}.rule"),
        scope=read_scope(draft.project_id, draft.resource, place),
        object_key="" if draft.object is None else check_object_key(draft.object, f"{place}.object"),
    )
