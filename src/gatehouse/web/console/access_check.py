"""Access, check: may a person do something, and why (R6). Anyone may ask about themselves."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.names import NamedApplication, NamedPerson, NameStore
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.documents.rules import schema_rules
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.explanation.reasons import Explanation
from gatehouse.permissions.login_rules import LoginRefusalReason, LoginRules
from gatehouse.permissions.model.rules import ResourceKind, Rule, RuleDefinition
from gatehouse.permissions.questions.check import PermissionQuestion, QuestionAccess
from gatehouse.permissions.questions.explain import GuardedExplainer, read_ip
from gatehouse.permissions.questions.parsing import ResourceDraft, read_rule, read_scope
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.web.api.permissions.explanation_records import explanation_record
from gatehouse.web.console.access_decision import DecisionNode, DecisionVisibility, decision_tree
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.lookup import (
    PersonMatch,
    PlaceQuery,
    Suggestion,
    Suggestions,
    SuggestionsContext,
    SuggestQuery,
)
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.view import (
    EXPECTED_ERRORS,
    AdminRequest,
    ConsoleRoute,
    ConsoleView,
    FormProblem,
    problem_from,
)
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext

ENTRY: Final = ConsoleEntry.ACCESS
MAX_RULES_OFFERED: Final = 1_000


class CheckQuery(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str = ""
    application_id: str = ""
    rule: str = ""
    project_id: str = ""
    kind: str = ""  # of a resource of the project
    resource_id: str = ""
    ip: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessCheck:
    """The answer, as a tree and as the API gives it."""

    explanation: Explanation
    tree: DecisionNode
    call: ApiCall
    until: int  # Unix seconds, 0 for ever

    @property
    def nearest(self) -> DecisionNode | None:
        return next((part for part in self.tree.parts if part.tone == "missing"), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInCheck:
    """Whether the application lets the person in at all."""

    by: LoginRefusalReason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext(PageContext):
    template = "console/access/check.html"

    query: CheckQuery
    person: PersonMatch = field(default_factory=PersonMatch)
    candidates: Sequence[NamedPerson] = ()
    application: str = ""
    applications: Sequence[NamedApplication] = ()
    rules: Sequence[tuple[Rule, RuleDefinition]] = ()
    kinds: Sequence[str] = tuple(ResourceKind)
    verdict: AccessCheck | None = None
    sign_in: SignInCheck | None = None
    problem: FormProblem | None = None
    administers: bool = False


class CheckScreens:
    def __init__(
        self,
        *,
        explanations: GuardedExplainer,
        question_access: QuestionAccess,
        login: LoginRules,
        suggestions: Suggestions,
        names: NameStore,
        view: ConsoleView,
        clock: Clock,
    ) -> None:
        self._explanations = explanations
        self._question_access = question_access
        self._login = login
        self._suggestions = suggestions
        self._names = names
        self._view = view
        self._clock = clock

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        query = read_query(request, CheckQuery)
        try:
            context = await self._check(admin, query)
        except EXPECTED_ERRORS as error:
            problem = problem_from(error)
            context = await self._empty_context(admin, query, problem=problem)
        return self._view.render(
            request, admin, ENTRY, context, status=context.problem.status if context.problem else None
        )

    async def suggest_people(self, request: Request, admin: AdminRequest) -> Response:
        return self._render_suggestions(
            request, admin, await self._suggestions.suggest_people(admin, read_query(request, SuggestQuery).text)
        )

    async def suggest_projects(self, request: Request, admin: AdminRequest) -> Response:
        query = read_query(request, PlaceQuery)
        return self._render_suggestions(
            request, admin, await self._suggestions.suggest_projects(admin, query.project_id)
        )

    async def suggest_groups(self, request: Request, admin: AdminRequest) -> Response:
        query = read_query(request, PlaceQuery)
        suggestions = await self._suggestions.suggest_groups(admin, query.group_id, query.project_id)
        return self._render_suggestions(request, admin, suggestions)

    async def suggest_resources(self, request: Request, admin: AdminRequest) -> Response:
        suggestions = await self._suggestions.suggest_resources(admin, read_query(request, PlaceQuery))
        return self._render_suggestions(request, admin, suggestions)

    def _render_suggestions(
        self, request: Request, admin: AdminRequest, suggestions: Sequence[Suggestion]
    ) -> Response:
        return self._view.render(request, admin, ENTRY, SuggestionsContext(suggestions=suggestions))

    async def _empty_context(
        self, admin: AdminRequest, query: CheckQuery, *, problem: FormProblem | None = None
    ) -> CheckContext:
        return CheckContext(
            query=query,
            applications=await self._suggestions.visible_applications(admin),
            problem=problem,
            administers=admin.rights.administers,
        )

    async def _check(self, admin: AdminRequest, query: CheckQuery) -> CheckContext:
        blank = await self._empty_context(admin, query)
        application_id = parse_optional_application_id(query.application_id)
        if not application_id:
            return blank
        admin = await self._view.for_application(admin, application_id)
        person = await self._resolve_person(admin, query.user_id)
        model = admin.authenticated.model
        ready = bool(person.user_id)
        return CheckContext(
            query=query,
            person=person,
            candidates=person.candidates,
            application=model.application.name if model and ready else "",
            applications=blank.applications,
            rules=readable_rules(admin),
            verdict=await self._explain(admin, person.user_id, query) if ready and query.rule.strip() else None,
            sign_in=await self._check_sign_in(admin, person.user_id, application_id) if ready else None,
            administers=admin.rights.administers,
        )

    async def _resolve_person(self, admin: AdminRequest, text: str) -> PersonMatch:
        meant = await self._suggestions.resolve_person(admin, text)
        if meant.user_id and not meant.nick:
            await self._question_access.load_input(
                admin.authenticated.caller, meant.user_id
            )  # no right comes before a name
            names = await self._names.people_by_id([meant.user_id])
            return PersonMatch(
                user_id=meant.user_id, nick=names[meant.user_id].nick if meant.user_id in names else ""
            )
        return meant

    async def _explain(self, admin: AdminRequest, user_id: str, query: CheckQuery) -> AccessCheck:
        question, asked = parse_question(query)
        ip = query.ip.strip() or None
        visit, caller = admin.authenticated, admin.authenticated.caller
        explanation = await self._explanations.explain(caller, user_id, question, ip)
        case = await self._question_access.load_input(caller, user_id)
        own = caller.address if user_id == caller.user_id else None
        address = own if ip is None else read_ip(ip)
        return AccessCheck(
            explanation=explanation,
            tree=decision_tree(
                explanation,
                DecisionVisibility(
                    authenticated=visit,
                    evaluation_input=case,
                    address=address,
                    application_id=explanation.application_id,
                ),
            ),
            call=ApiCall(
                path="explain",
                body={"application_id": explanation.application_id, "data": {"user_id": user_id, **asked}},
                record=explanation_record(explanation),
            ),
            until=self._clock.now() + explanation.seconds_left if explanation.seconds_left else 0,
        )

    async def _check_sign_in(self, admin: AdminRequest, user_id: str, application_id: int) -> SignInCheck | None:
        """Administrators see what blocks a person; all see whether they themselves may sign in."""
        if not admin.rights.administers or admin.authenticated.model is None:
            return None
        refused = await self._login.find_refusal(user_id, (application_id,))
        return SignInCheck(by=refused.reason if refused else None)

    def routes(self) -> Sequence[ConsoleRoute]:
        view = self._view
        return [
            view.page("/access", self.show),
            view.page("/access/check", self.show),
            view.page("/access/people", self.suggest_people),
            view.page("/access/projects", self.suggest_projects),
            view.page("/access/groups", self.suggest_groups),
            view.page("/access/resources", self.suggest_resources),
        ]


def parse_optional_application_id(text: str) -> int:
    typed = text.strip()
    if not typed:
        return 0
    if not (typed.isascii() and typed.isdigit() and len(typed) <= 18):  # noqa: PLR2004 - 64 bits
        raise Malformed("application_id: choose an application from the list")
    return int(typed)


def parse_question(query: CheckQuery) -> tuple[PermissionQuestion, dict[str, object]]:
    """What is asked, and the same as the API's members."""
    project = query.project_id.strip() or None
    resource = None
    if query.kind and query.resource_id.strip():
        resource = ResourceDraft(kind=query.kind, id=query.resource_id.strip())
    question = PermissionQuestion(
        rule=read_rule(query.rule.strip(), "rule"), scope=read_scope(project, resource, "data")
    )
    asked: dict[str, object] = {
        "rule": query.rule.strip(),
        **({"project_id": project} if project else {}),
        **({"resource": {"kind": resource.kind, "id": resource.id}} if resource else {}),
        **({"ip": query.ip.strip()} if query.ip.strip() else {}),
    }
    return question, asked


def readable_rules(admin: AdminRequest) -> Sequence[tuple[Rule, RuleDefinition]]:
    """The rules of the schema, for those who may read it."""
    authenticated = admin.authenticated
    if authenticated.model is None or not is_open(authenticated.rights, Operation.SCHEMA_GET, authenticated.target):
        return ()
    schema = authenticated.model.schema
    known = schema_rules(schema.private_data, schema.public_data).items()
    return sorted(known, key=lambda item: (item[0].section, item[0].path))[:MAX_RULES_OFFERED]
