"""Limit an explanation to what the caller's rights show them anyway.

Names of roles need canSeeRoleList, conditions and limits need canReadSchema, groups and domains of a project need
can_view_project, conditions of a group need the right to manage it. People always see their own record.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.kernel.addresses import Address, parse_address
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest, Authenticator
from gatehouse.permissions.authentication.callers import Caller
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.evaluation.compiled import compiled_model
from gatehouse.permissions.evaluation.contributions import SourceKind, direct_entries
from gatehouse.permissions.evaluation.loader import EvaluationInput, PermissionLoader
from gatehouse.permissions.evaluation.work import model_work, record_work
from gatehouse.permissions.explanation.contributions import ExplainedContribution
from gatehouse.permissions.explanation.reasons import (
    MISSING_ORDER,
    NO_HOLDER_COUNTS,
    Explanation,
    MissingKind,
    MissingRequirement,
    explain_rule,
)
from gatehouse.permissions.explanation.remedies import Remedy, RemedyStep, StepKind
from gatehouse.permissions.model.facts import ApplicationModel, Facts
from gatehouse.permissions.model.rules import Rule, Scope
from gatehouse.permissions.questions.check import PermissionQuestion, QuestionAccess
from gatehouse.permissions.questions.parsing import ResourceDraft, find_project_id
from gatehouse.permissions.questions.remedies import RemedySearch, Situation, changed_role_keys, with_connecting
from gatehouse.permissions.questions.remedy_rights import RemedyRights, as_administrator
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.permissions.store import ApplicationStore, ProjectStore

BARRIERS: Final = frozenset(
    {MissingKind.IN_DISALLOWED_GROUP, MissingKind.IN_NO_ALLOWED_GROUP, MissingKind.DOMAIN_NOT_ALLOWED}
)
THROUGH_GROUPS: Final = frozenset(
    {MissingKind.NOT_A_MEMBER, MissingKind.REVOKED_BY_GROUP, MissingKind.ROLE_PROTECTED}
)
ABOUT_ROLES: Final = THROUGH_GROUPS | {
    MissingKind.CONDITION_FAILED,
    MissingKind.ROLE_EXPIRED,
    MissingKind.ROLE_NOT_ASSIGNED,
    MissingKind.ROLE_FULL,
}
ABOUT_SCHEMA: Final = frozenset(  # conditions, limits and permissions of roles
    {StepKind.MEET_CONDITION, StepKind.RAISE_LIMIT, StepKind.ALLOW_IN_ROLE, StepKind.UNSET_IN_ROLE}
)
CONCLUSIVE: Final = frozenset(  # then roles do not matter
    {
        MissingKind.APPLICATION_REMOVED,
        MissingKind.ACCOUNT_ENDED,
        MissingKind.BANNED,
        MissingKind.PROJECT_UNKNOWN,
        MissingKind.PROJECT_REMOVED,
        MissingKind.BANNED_FROM_PROJECT,
        MissingKind.RESOURCE_UNKNOWN,
        MissingKind.SAID_NO,
    }
)

SHOWN_WITH_UNKNOWN_PROJECT: Final = frozenset(
    {MissingKind.APPLICATION_REMOVED, MissingKind.ACCOUNT_ENDED, MissingKind.BANNED, MissingKind.HELD_ELSEWHERE}
)


class ExplanationFilter(msgspec.Struct, frozen=True, kw_only=True):
    request: AuthenticatedRequest
    assigned: frozenset[str]  # keys of the roles that the person's record names
    rights: RemedyRights

    @property
    def sees_roles(self) -> bool:
        return self._may(Operation.ROLE_NAMES, self.request.target)

    @property
    def sees_schema(self) -> bool:
        return self._may(Operation.ROLES_GET, self.request.target)

    def visible_part(self, explanation: Explanation) -> Explanation:
        return replace(
            explanation,
            contributions=tuple(self._visible_contributions(explanation)),
            missing=() if explanation.allowed else tuple(self._visible_missing(explanation)),
            remedies=tuple(self._visible_remedies(explanation)),
        )

    def _visible_remedies(self, explanation: Explanation) -> Iterator[Remedy]:
        """Those of which the caller may know each step, with whether they may make it."""
        for remedy in explanation.remedies:
            if all(self._sees_step(step) for step in remedy.steps):
                yield replace(remedy, steps=tuple(map(self.rights.permit, remedy.steps)))

    def _sees_step(self, step: RemedyStep) -> bool:
        if not self._sees_project(step.scope):
            return False
        if step.kind in ABOUT_SCHEMA:
            return self.sees_schema or not step.role
        return not step.role or self.sees_roles or step.role.lower() in self.assigned

    def _visible_contributions(self, explanation: Explanation) -> Iterator[ExplainedContribution]:
        lacks = {requirement.kind for requirement in explanation.missing}
        shut, unfound = not lacks.isdisjoint(BARRIERS), MissingKind.RESOURCE_UNKNOWN in lacks
        for contribution in explanation.contributions:
            if self._sees_project(contribution.scope):
                if contribution.scope.is_root or not unfound:
                    yield contribution
            elif not (shut and contribution.kind is SourceKind.GROUP_GRANT):  # what it would grant if it were open
                yield replace(contribution, membership=None)

    def _visible_missing(self, explanation: Explanation) -> list[MissingRequirement]:
        visible = [self._visible_requirement(requirement) for requirement in explanation.missing]
        requirements = without_irrelevant(requirement for requirement in visible if requirement is not None)
        emptied = bool(explanation.missing) and not requirements
        if emptied or not (self.sees_roles or any(requirement.kind in CONCLUSIVE for requirement in requirements)):
            requirements[MissingRequirement(kind=MissingKind.NOT_GIVEN, scope=explanation.scope)] = None
        return sorted(requirements, key=lambda requirement: MISSING_ORDER[requirement.kind])

    def _visible_requirement(self, requirement: MissingRequirement) -> MissingRequirement | None:
        sees_project = self._sees_project(requirement.scope)
        if requirement.kind in BARRIERS:
            return (
                requirement
                if sees_project
                else MissingRequirement(kind=MissingKind.PROJECT_CLOSED, scope=requirement.scope)
            )
        if requirement.kind is MissingKind.RESOURCE_UNKNOWN and not sees_project:
            return None  # the caller could probe for its resources
        shown = requirement if sees_project else replace(requirement, groups=())
        return (
            self._visible_role_requirement(shown, sees_project=sees_project)
            if requirement.kind in ABOUT_ROLES
            else shown
        )

    def _visible_role_requirement(
        self, requirement: MissingRequirement, *, sees_project: bool
    ) -> MissingRequirement | None:
        is_own = requirement.role.lower() in self.assigned
        hidden = not sees_project and requirement.kind in THROUGH_GROUPS
        if not (is_own or self.sees_roles) or (
            hidden and (not is_own or requirement.kind is MissingKind.NOT_A_MEMBER)
        ):
            return None
        if requirement.kind is MissingKind.NOT_A_MEMBER:
            return requirement if self._sees_members(requirement) else replace(requirement, failed=())
        return requirement if self.sees_schema else without_schema(requirement)

    def _sees_project(self, scope: Scope) -> bool:
        return scope.is_root or self._may(Operation.PROJECT_GET, GuardTarget(project_id=scope.project_id))

    def _sees_members(self, requirement: MissingRequirement) -> bool:
        project_id = requirement.scope.project_id
        return all(
            self._may(Operation.GROUP_GET, GuardTarget(project_id=project_id, group_id=group.group_id))
            for group in requirement.groups
        )

    def _may(self, operation: Operation, about: GuardTarget) -> bool:
        return is_open(self.request.rights, operation, about)


def explanation_filter(
    request: AuthenticatedRequest, evaluation_input: EvaluationInput, application_id: int, rule: Rule, now: int
) -> ExplanationFilter:
    """`evaluation_input`: of the person the explanation is about; the caller may read their record."""
    record = evaluation_input.facts.records[application_id]
    return ExplanationFilter(
        request=request,
        assigned=frozenset(role.role for holdings in record.scopes.values() for role in holdings.roles),
        rights=RemedyRights(
            request=request, model=evaluation_input.models[application_id], record=record, rule=rule, now=now
        ),
    )


def without_irrelevant(missing: Iterable[MissingRequirement]) -> dict[MissingRequirement, None]:
    """Return the missing facts, each once.

    If a resource is missing, facts that would grant something on it are left out.
    """
    requirements = dict.fromkeys(missing)
    if not any(requirement.kind is MissingKind.RESOURCE_UNKNOWN for requirement in requirements):
        return requirements
    return dict.fromkeys(
        requirement
        for requirement in requirements
        if requirement.kind in CONCLUSIVE | BARRIERS | {MissingKind.HELD_ELSEWHERE}
    )


def without_schema(requirement: MissingRequirement) -> MissingRequirement:
    """A role as the list of roles shows it: without its condition and its limit."""
    kind = MissingKind.ROLE_NOT_ASSIGNED if requirement.kind is MissingKind.ROLE_FULL else requirement.kind
    return replace(requirement, kind=kind, limit=0, failed=())


def as_unknown_project(explanation: Explanation, asked: Scope) -> Explanation:
    """Return the explanation for an unknown or invisible project; both look the same (R6).

    `asked` is the scope as the request names it, because the id would reveal that an alias exists.
    """
    unknown = MissingRequirement(kind=MissingKind.PROJECT_UNKNOWN, scope=asked.project)
    beside = (requirement for requirement in explanation.missing if requirement.kind in SHOWN_WITH_UNKNOWN_PROJECT)
    return replace(
        explanation,
        scope=asked,
        contributions=tuple(contribution for contribution in explanation.contributions if contribution.scope.is_root),
        missing=()
        if explanation.allowed
        else tuple(sorted((unknown, *beside), key=lambda requirement: MISSING_ORDER[requirement.kind])),
        remedies=(),
    )


# `explain`: why a person has or lacks a permission (R6). A denial names the nearest missing facts.


class ExplainDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str | UnsetType = UNSET
    rule: str
    project_id: str | None = None
    resource: ResourceDraft | None = None
    object: str | None = None  # type:id (R12)
    ip: str | None = None  # as if the person came from there


class Explainer(Struct, kw_only=True, eq=False):
    """Explains a decision as far as the caller may know it."""

    applications: ApplicationStore
    clock: Clock

    async def explain(
        self,
        evaluation_input: EvaluationInput,
        application_id: int,
        question: PermissionQuestion,
        address: Address | None,
    ) -> Explanation:
        """The whole explanation; callers limit it to what is visible."""
        model, now = evaluation_input.models[application_id], self.clock.now()
        limited = model.limited_roles
        holders = (
            await self.applications.count_holders_of_roles(application_id, limited, now)
            if limited
            else NO_HOLDER_COUNTS
        )
        weight = max(await model_work(model), record_work(evaluation_input.facts.records[application_id]))
        explanation = await run_off_loop(
            weight, explain_input, evaluation_input, application_id, question, address, now=now, holders=holders
        )
        search = RemedySearch(
            situation=Situation(model=model, facts=evaluation_input.facts, address=address),
            structure=with_connecting(evaluation_input.structure, application_id, explanation.scope.project_id),
            scope=explanation.scope,
            rule=explanation.rule,
            now=now,
            holders=holders,
            weight=weight,
        )
        remedies = await run_off_loop(OFF_LOOP_WEIGHT, search.find, explanation)
        counted = await self._with_others(model, evaluation_input.facts, remedies)
        return replace(explanation, remedies=tuple(as_administrator(remedy, model) for remedy in counted))

    async def _with_others(
        self, model: ApplicationModel, facts: Facts, remedies: Sequence[Remedy]
    ) -> tuple[Remedy, ...]:
        """The remedies with the number of other people who have a role that they change."""
        application_id = model.application.application_id
        keys = {key for remedy in remedies for key in changed_role_keys(remedy)}
        if not keys:
            return tuple(remedies)
        holders = await self.applications.count_holders_of_roles(application_id, keys, self.clock.now())
        own = {role.role for holdings in facts.records[application_id].scopes.values() for role in holdings.roles}
        return tuple(
            replace(remedy, others=sum(holders.get(key, 0) - (key in own) for key in changed_role_keys(remedy)))
            for remedy in remedies
        )


def explain_input(
    evaluation_input: EvaluationInput,
    application_id: int,
    question: PermissionQuestion,
    address: Address | None,
    *,
    now: int,
    holders: Mapping[str, int],
) -> Explanation:
    return explain_rule(
        evaluation_input.models[application_id],
        evaluation_input.facts,
        evaluation_input.structure,
        question.scope.resolve(evaluation_input.structure),
        question.rule.resolve(known_rules(evaluation_input, application_id)),
        now=now,
        address=address,
        holders=holders,
    )


class GuardedExplainer(Struct, kw_only=True, eq=False):
    explainer: Explainer
    question_access: QuestionAccess
    authenticator: Authenticator
    permission_loader: PermissionLoader
    projects: ProjectStore

    async def explain(
        self, caller: Caller, user_id: str, question: PermissionQuestion, ip: str | None
    ) -> Explanation:
        """Explain as if the request came from `ip`; without it, as the person's own record is evaluated (R5)."""
        evaluation_input = await self.question_access.load_input(caller, user_id)
        request = await self.authenticator.attach_rights(caller)
        own = caller.address if user_id == caller.user_id else None
        address = own if ip is None else read_ip(ip)
        application_id, asked = caller.application_id or 0, question.scope.scope
        name = asked.project_id
        project_id = await find_project_id(self.projects, name, default=name) if name else ""
        seen = await self._visible_project_ids(request, evaluation_input, application_id, address)
        is_seen = not project_id or project_id in seen or sees_project(request, project_id)
        if project_id and is_seen:
            evaluation_input = await self.permission_loader.load_input(evaluation_input.facts, projects=(project_id,))
        explanation = await self.explainer.explain(evaluation_input, application_id, question, address)
        if not is_seen:
            explanation = as_unknown_project(explanation, asked)
        visibility = explanation_filter(
            request, evaluation_input, application_id, explanation.rule, self.explainer.clock.now()
        )
        return visibility.visible_part(explanation)

    async def _visible_project_ids(
        self,
        request: AuthenticatedRequest,
        evaluation_input: EvaluationInput,
        application_id: int,
        address: Address | None,
    ) -> set[str]:
        """Projects of the person's own record, and those of the caller's in application 1."""
        effective = await self.permission_loader.evaluate(evaluation_input, application_id, address)
        scopes = {
            *evaluation_input.facts.records[application_id].scopes,
            *await run_off_loop(effective.work, lambda: effective.nonempty_scopes),
        }
        if request.caller.vouching_application_id is None and request.caller.audience is None:
            central = request.rights.central
            scopes |= {*request.evaluation_input.facts.records[CENTRAL_APPLICATION].scopes}
            scopes |= {*await run_off_loop(central.work, lambda: central.nonempty_scopes)}
        return {scope.project_id for scope in scopes}


def known_rules(evaluation_input: EvaluationInput, application_id: int) -> frozenset[Rule]:
    """Those of the schema, of every role, and of the person's own entries."""
    compiled = compiled_model(evaluation_input.models[application_id])
    own = (direct_entries(holdings) for holdings in evaluation_input.facts.records[application_id].scopes.values())
    return compiled.all_rules.union(*own)


def sees_project(request: AuthenticatedRequest, project_id: str) -> bool:
    return is_open(request.rights, Operation.PROJECT_GET, GuardTarget(project_id=project_id))


def read_ip(text: str) -> Address:
    address = parse_address(text)
    if address is None:
        raise Malformed("data.ip: must be an IP address")
    return address
