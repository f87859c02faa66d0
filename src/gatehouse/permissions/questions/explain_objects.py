"""`explain` about an object: each scope from the object upward, whether it speaks, and which one decides (R12)."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.callers import Caller
from gatehouse.permissions.evaluation.contributions import Contribution, EvaluationContext, SourceKind
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.evaluation.objects import ObjectDecision
from gatehouse.permissions.explanation.contributions import Membership, membership_of
from gatehouse.permissions.explanation.reasons import Explanation
from gatehouse.permissions.model.objects import SEPARATOR
from gatehouse.permissions.model.rules import End, Rule, Scope
from gatehouse.permissions.questions.check import (
    PermissionQuestion,
    QuestionAccess,
    decide_object,
    object_evaluator,
    object_rule,
)
from gatehouse.permissions.questions.explain import GuardedExplainer, read_ip
from gatehouse.permissions.questions.parsing import ScopeReference
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open


class ObjectSource(Struct, frozen=True, kw_only=True):
    """One contribution, as far as the caller may know it."""

    kind: SourceKind
    value: bool
    role: str = ""
    membership: Membership | None = None
    end: End


class ExplainedScope(Struct, frozen=True, kw_only=True):
    object_key: str
    value: bool | None  # None: nothing there names the rule
    sources: Sequence[ObjectSource] = ()


class ObjectExplanation(Struct, frozen=True, kw_only=True):
    object_key: str
    known: bool
    allowed: bool
    scopes: Sequence[ExplainedScope]  # the nearest first, up to the one that decides
    around: Explanation  # of the project, or of the root, which decides when no object speaks

    @property
    def is_decided_by_object(self) -> bool:
        return bool(self.scopes) and self.scopes[-1].value is not None

    @property
    def sentence(self) -> str:
        """What decides, if it is not the project or the root."""
        if not self.known:
            return (
                f"{self.object_key} does not exist, so {'the root decides' if self.allowed else 'the answer is no'}."
            )
        if self.is_decided_by_object:
            return f"{'Allowed' if self.allowed else 'Denied'} by what is held on {self.scopes[-1].object_key}."
        return f"Nothing on {self.object_key} or above it names the permission."


class ObjectExplainer(Struct, kw_only=True, eq=False):
    explainer: GuardedExplainer
    question_access: QuestionAccess
    permission_loader: PermissionLoader
    authenticator: Authenticator

    async def explain(
        self, caller: Caller, user_id: str, question: PermissionQuestion, ip: str | None
    ) -> ObjectExplanation:
        evaluation_input = await self.question_access.load_input(caller, user_id)
        application_id, key = caller.application_id or 0, question.object_key
        own = caller.address if user_id == caller.user_id else None
        address = own if ip is None else read_ip(ip)
        found, object_facts = await self.permission_loader.load_input_with_objects(
            evaluation_input.facts, application_id, (key,)
        )
        effective = await self.permission_loader.evaluate(found, application_id, address)
        now = self.explainer.explainer.clock.now()
        evaluator = object_evaluator(found, effective, object_facts, now, address)
        decision = decide_object(evaluator, question, question.scope.resolve(found.structure))
        around = PermissionQuestion(rule=question.rule, scope=ScopeReference(scope=Scope(decision.place)))
        rights = (await self.authenticator.attach_rights(caller)).rights
        home = found.models[application_id].application.project_id
        target = GuardTarget(application_id=application_id, project_id=home)
        return ObjectExplanation(
            object_key=key,
            known=decision.known,
            allowed=decision.allowed,
            scopes=tuple(
                explained_scopes(
                    evaluator.context,
                    decision,
                    object_rule(question),
                    sees_roles=user_id == caller.user_id or is_open(rights, Operation.ROLE_NAMES, target),
                    sees_groups=is_open(rights, Operation.PROJECT_GET, GuardTarget(project_id=decision.place)),
                )
            ),
            around=await self.explainer.explain(caller, user_id, around, ip),
        )


def explained_scopes(
    context: EvaluationContext, decision: ObjectDecision, rule: Rule, *, sees_roles: bool, sees_groups: bool
) -> Iterator[ExplainedScope]:
    """The scopes of objects; the project or the root is explained by itself."""
    for step in decision.steps:
        if step.path:
            yield ExplainedScope(
                object_key=step.path.rpartition(SEPARATOR)[2],
                value=step.value,
                sources=tuple(
                    source_of(context, decision.place, each, rule, sees_roles=sees_roles, sees_groups=sees_groups)
                    for each in step.contributions
                ),
            )


def source_of(
    context: EvaluationContext,
    place: str,
    contribution: Contribution,
    rule: Rule,
    *,
    sees_roles: bool,
    sees_groups: bool,
) -> ObjectSource:
    source = contribution.source
    is_shown = bool(source.group_id) and sees_groups
    return ObjectSource(
        kind=source.kind,
        value=rule not in contribution.verdicts.no,
        role=source.role.name if source.role is not None and sees_roles else "",
        membership=membership_of(context, Scope(place), source.group_id) if is_shown else None,
        end=contribution.end,
    )
