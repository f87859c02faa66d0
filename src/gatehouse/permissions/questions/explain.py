"""`explain`: why somebody may or may not (R6). A denial names the nearest missing facts."""

from dataclasses import replace
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from gatehouse.kernel.addresses import Address, parse_address
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.callers.callers import Caller
from gatehouse.permissions.callers.desk import Desk, Visit
from gatehouse.permissions.errors import Malformed, ProjectNotFound
from gatehouse.permissions.evaluation.compiled import compiled_model
from gatehouse.permissions.evaluation.gathering import direct_entries
from gatehouse.permissions.evaluation.reading import Case, Reading
from gatehouse.permissions.explanation.failures import FailedTest
from gatehouse.permissions.explanation.missing import Missing
from gatehouse.permissions.explanation.reasons import NOT_COUNTED, Explanation, explain
from gatehouse.permissions.model.rule import Rule
from gatehouse.permissions.questions.asked import ResourceDraft
from gatehouse.permissions.questions.check import Question
from gatehouse.permissions.questions.sight import Sights, sees_roles
from gatehouse.permissions.rights.guard import About, Operation, is_open
from gatehouse.permissions.store import ApplicationStore, ProjectStore

OTHERS: Final = "one of certain users"  # whom a condition names is told only to those who see the roles


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
        """The structure of the case knows the project, if it may be known."""
        model, now = case.models[application_id], self._clock.now()
        limited = any(role.user_limit for role in model.roles.values())
        holders = await self._applications.role_holders(application_id, now) if limited else NOT_COUNTED
        return explain(
            model,
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
        if found := await self._visible_project(visit, question.scope.scope.project_id):
            case = await self._reading.case(case.facts, projects=(found,))
        own = caller.address if user_id == caller.user_id else None
        address = own if ip is None else read_ip(ip)
        explanation = await self._explained.of(case, caller.application_id or 0, question, address)
        return explanation if sees_roles(visit) else discreet(explanation)

    async def _visible_project(self, visit: Visit, name: str) -> str | None:
        """Others hear of a project what they would hear if it did not exist (checklist PA-13)."""
        if not name:
            return None
        try:
            project_id = (await self._projects.project(name)).project.project_id
        except ProjectNotFound:
            return None
        return project_id if is_open(visit.rights, Operation.PROJECT_GET, About(project_id=project_id)) else None


def known_rules(case: Case, application_id: int) -> frozenset[Rule]:
    """Those of the schema, of every role, and of the person's own entries."""
    compiled = compiled_model(case.models[application_id])
    own = (direct_entries(held) for held in case.facts.records[application_id].scopes.values())
    return compiled.known.union(*(role.says.yes | role.says.no for role in compiled.roles.values()), *own)


def read_ip(text: str) -> Address:
    address = parse_address(text)
    if address is None:
        raise Malformed("data.ip: an IP address")
    return address


def discreet(explanation: Explanation) -> Explanation:
    """Without the ids of the people whom a condition is for."""
    return replace(explanation, missing=tuple(map(without_people, explanation.missing)))


def without_people(one: Missing) -> Missing:
    return replace(
        one,
        failed=tuple(
            FailedTest(test.member, OTHERS, test.actual) if test.member == "uid" else test for test in one.failed
        ),
    )
