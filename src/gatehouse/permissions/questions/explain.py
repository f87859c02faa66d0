"""`explain`: why somebody may or may not (R6). A denial names the nearest missing facts."""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, UnsetType

from gatehouse.kernel.addresses import Address, parse_address
from gatehouse.kernel.background import run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.callers.callers import Caller
from gatehouse.permissions.callers.desk import Desk, Visit
from gatehouse.permissions.errors import Malformed, ProjectNotFound
from gatehouse.permissions.evaluation.compiled import compiled_model
from gatehouse.permissions.evaluation.gathering import direct_entries
from gatehouse.permissions.evaluation.reading import Case, Reading
from gatehouse.permissions.evaluation.weighing import model_work, record_work
from gatehouse.permissions.explanation.reasons import NOT_COUNTED, Explanation, explain
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.rule import Rule
from gatehouse.permissions.questions.asked import ResourceDraft
from gatehouse.permissions.questions.check import Question
from gatehouse.permissions.questions.discretion import as_if_unknown, discretion
from gatehouse.permissions.questions.sight import Sights
from gatehouse.permissions.rights.guard import About, Operation, is_open
from gatehouse.permissions.store import ApplicationStore, ProjectStore


class ExplainDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user_id: str | UnsetType = UNSET
    rule: str
    project_id: str | None = None
    resource: ResourceDraft | None = None
    ip: str | None = None  # as if he came from there


class Explained:
    """Explains a case to whoever may know it."""

    def __init__(self, *, applications: ApplicationStore, clock: Clock) -> None:
        self._applications = applications
        self._clock = clock

    async def of(self, case: Case, application_id: int, question: Question, address: Address | None) -> Explanation:
        """All of it: who may hear what is for others to decide."""
        model, now = case.models[application_id], self._clock.now()
        limited = model.limited
        holders = await self._applications.holders_of(application_id, limited, now) if limited else NOT_COUNTED
        weight = max(await model_work(model), record_work(case.facts.records[application_id]))
        return await run_off_loop(
            weight, explained, case, application_id, question, address, now=now, holders=holders
        )


def explained(
    case: Case,
    application_id: int,
    question: Question,
    address: Address | None,
    *,
    now: int,
    holders: Mapping[str, int],
) -> Explanation:
    return explain(
        case.models[application_id],
        case.facts,
        case.structure,
        question.scope.resolved(case.structure),
        question.rule.of(known_rules(case, application_id)),
        now=now,
        address=address,
        holders=holders,
    )


class Explanations:
    def __init__(
        self, *, explained: Explained, sights: Sights, desk: Desk, reading: Reading, projects: ProjectStore
    ) -> None:
        self._explained = explained
        self._sights = sights
        self._desk = desk
        self._reading = reading
        self._projects = projects

    async def explain(self, caller: Caller, user_id: str, question: Question, ip: str | None) -> Explanation:
        """From `ip`, as if he came from there; else as his own record is read (R5)."""
        case = await self._sights.case(caller, user_id)
        visit = await self._desk.visit(caller)
        own = caller.address if user_id == caller.user_id else None
        address = own if ip is None else read_ip(ip)
        application_id, asked = caller.application_id or 0, question.scope.scope
        found = await self._project_id(asked.project_id)
        seen = await self._told_of(visit, case, application_id, address)
        is_seen = not found or found in seen or sees_project(visit, found)
        if found and is_seen:
            case = await self._reading.case(case.facts, projects=(found,))
        explanation = await self._explained.of(case, application_id, question, address)
        if not is_seen:
            explanation = as_if_unknown(explanation, asked)
        return discretion(visit, case.facts.records[application_id]).told(explanation)

    async def _project_id(self, name: str) -> str:
        """Of one that is not there, the name it would have."""
        try:
            return (await self._projects.project(name)).project.project_id if name else ""
        except ProjectNotFound:
            return name

    async def _told_of(self, visit: Visit, case: Case, application_id: int, address: Address | None) -> set[str]:
        """Projects that the person's own record tells of, and the caller's in application 1."""
        held = await self._reading.effective(case, application_id, address)
        scopes = {*case.facts.records[application_id].scopes, *await run_off_loop(held.work, lambda: held.scopes)}
        if visit.caller.service is None and visit.caller.audience is None:
            central = visit.rights.central
            scopes |= {*visit.case.facts.records[CENTRAL_ID].scopes}
            scopes |= {*await run_off_loop(central.work, lambda: central.scopes)}
        return {scope.project_id for scope in scopes}


def known_rules(case: Case, application_id: int) -> frozenset[Rule]:
    """Those of the schema, of every role, and of the person's own entries."""
    compiled = compiled_model(case.models[application_id])
    own = (direct_entries(held) for held in case.facts.records[application_id].scopes.values())
    return compiled.named.union(*own)


def sees_project(visit: Visit, project_id: str) -> bool:
    return is_open(visit.rights, Operation.PROJECT_GET, About(project_id=project_id))


def read_ip(text: str) -> Address:
    address = parse_address(text)
    if address is None:
        raise Malformed("data.ip: must be an IP address")
    return address
