"""`explain`: why somebody may or may not (R6). A denial names the nearest missing facts."""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, UnsetType

from gatehouse.kernel.addresses import Address, parse_address
from gatehouse.kernel.background import run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.callers.callers import Caller
from gatehouse.permissions.callers.desk import AuthenticatedRequest, Authenticator
from gatehouse.permissions.errors import Malformed, ProjectNotFound
from gatehouse.permissions.evaluation.compiled import compiled_model
from gatehouse.permissions.evaluation.gathering import direct_entries
from gatehouse.permissions.evaluation.reading import EvaluationInput, PermissionLoader
from gatehouse.permissions.evaluation.weighing import model_work, record_work
from gatehouse.permissions.explanation.reasons import NO_HOLDER_COUNTS, Explanation, explain_rule
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.rule import Rule
from gatehouse.permissions.questions.asked import ResourceDraft
from gatehouse.permissions.questions.check import PermissionQuestion
from gatehouse.permissions.questions.discretion import as_unknown_project, explanation_filter
from gatehouse.permissions.questions.sight import QuestionAccess
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.permissions.store import ApplicationStore, ProjectStore


class ExplainDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str | UnsetType = UNSET
    rule: str
    project_id: str | None = None
    resource: ResourceDraft | None = None
    ip: str | None = None  # as if he came from there


class Explainer:
    """Explains a case to whoever may know it."""

    def __init__(self, *, applications: ApplicationStore, clock: Clock) -> None:
        self._applications = applications
        self._clock = clock

    async def explain(
        self,
        evaluation_input: EvaluationInput,
        application_id: int,
        question: PermissionQuestion,
        address: Address | None,
    ) -> Explanation:
        """All of it: who may hear what is for others to decide."""
        model, now = evaluation_input.models[application_id], self._clock.now()
        limited = model.limited_roles
        holders = (
            await self._applications.count_holders_of_roles(application_id, limited, now)
            if limited
            else NO_HOLDER_COUNTS
        )
        weight = max(await model_work(model), record_work(evaluation_input.facts.records[application_id]))
        return await run_off_loop(
            weight, explain_input, evaluation_input, application_id, question, address, now=now, holders=holders
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


class GuardedExplainer:
    def __init__(
        self,
        *,
        explainer: Explainer,
        question_access: QuestionAccess,
        authenticator: Authenticator,
        permission_loader: PermissionLoader,
        projects: ProjectStore,
    ) -> None:
        self._explainer = explainer
        self._question_access = question_access
        self._authenticator = authenticator
        self._permission_loader = permission_loader
        self._projects = projects

    async def explain(
        self, caller: Caller, user_id: str, question: PermissionQuestion, ip: str | None
    ) -> Explanation:
        """From `ip`, as if he came from there; else as his own record is read (R5)."""
        case = await self._question_access.load_input(caller, user_id)
        visit = await self._authenticator.attach_rights(caller)
        own = caller.address if user_id == caller.user_id else None
        address = own if ip is None else read_ip(ip)
        application_id, asked = caller.application_id or 0, question.scope.scope
        found = await self._project_id(asked.project_id)
        seen = await self._visible_project_ids(visit, case, application_id, address)
        is_seen = not found or found in seen or sees_project(visit, found)
        if found and is_seen:
            case = await self._permission_loader.load_input(case.facts, projects=(found,))
        explanation = await self._explainer.explain(case, application_id, question, address)
        if not is_seen:
            explanation = as_unknown_project(explanation, asked)
        return explanation_filter(visit, case.facts.records[application_id]).visible_part(explanation)

    async def _project_id(self, name: str) -> str:
        """Of one that is not there, the name it would have."""
        try:
            return (await self._projects.project(name)).project.project_id if name else ""
        except ProjectNotFound:
            return name

    async def _visible_project_ids(
        self,
        request: AuthenticatedRequest,
        evaluation_input: EvaluationInput,
        application_id: int,
        address: Address | None,
    ) -> set[str]:
        """Projects that the person's own record tells of, and the caller's in application 1."""
        held = await self._permission_loader.evaluate(evaluation_input, application_id, address)
        scopes = {
            *evaluation_input.facts.records[application_id].scopes,
            *await run_off_loop(held.work, lambda: held.nonempty_scopes),
        }
        if request.caller.vouching_application_id is None and request.caller.audience is None:
            central = request.rights.central
            scopes |= {*request.evaluation_input.facts.records[CENTRAL_ID].scopes}
            scopes |= {*await run_off_loop(central.work, lambda: central.nonempty_scopes)}
        return {scope.project_id for scope in scopes}


def known_rules(evaluation_input: EvaluationInput, application_id: int) -> frozenset[Rule]:
    """Those of the schema, of every role, and of the person's own entries."""
    compiled = compiled_model(evaluation_input.models[application_id])
    own = (direct_entries(held) for held in evaluation_input.facts.records[application_id].scopes.values())
    return compiled.all_rules.union(*own)


def sees_project(request: AuthenticatedRequest, project_id: str) -> bool:
    return is_open(request.rights, Operation.PROJECT_GET, GuardTarget(project_id=project_id))


def read_ip(text: str) -> Address:
    address = parse_address(text)
    if address is None:
        raise Malformed("data.ip: must be an IP address")
    return address
