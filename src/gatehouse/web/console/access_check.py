"""Access, check: may a person do something, and why (R6). Anyone may ask about themselves."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.names import NamedPerson, NameStore
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.authentication.callers import Caller
from gatehouse.permissions.evaluation.loader import EvaluationInput, PermissionLoader
from gatehouse.permissions.explanation.reasons import Explanation
from gatehouse.permissions.login_rules import LoginRefusalReason, LoginRules
from gatehouse.permissions.model.rules import ResourceKind
from gatehouse.permissions.questions.check import PermissionQuestion, QuestionAccess
from gatehouse.permissions.questions.explain import GuardedExplainer, read_ip
from gatehouse.permissions.questions.parsing import ResourceDraft, read_rule, read_scope
from gatehouse.web.api.permissions.explanation_records import explanation_record
from gatehouse.web.console.access_decision import (
    DecisionNode,
    DecisionVisibility,
    ban_node,
    decision_tree,
    visible_ban,
)
from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.lookup import Lookup, readable_rules
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.remedies import RemedyPages, RemedyView
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
MAX_NEAR: Final = 3
FIELDS: Final = {
    "user_id": ComboboxKind.PERSON,
    "application_id": ComboboxKind.APPLICATION,
    "project_id": ComboboxKind.PROJECT,
    "resource_id": ComboboxKind.RESOURCE,
}


class CheckQuery(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str = ""
    application_id: str = ""
    rule: str = ""
    project_id: str = ""
    kind: str = ""  # of a resource of the project
    resource_id: str = ""
    ip: str = ""


class NearName(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    address: str  # of the same question about it


class AccessCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The answer, as a tree and as the API gives it."""

    explanation: Explanation
    tree: DecisionNode
    call: ApiCall
    until: int  # Unix seconds, 0 for ever

    remedies: Sequence[RemedyView] = ()
    projects: Mapping[str, Markup] = msgspec.field(default_factory=dict)  # links, by project ID
    blocked: bool = False  # the account, which then signs in nowhere
    unlisted: bool = False  # the schema does not have the permission, and the reader may know
    near: Sequence[NearName] = ()  # permissions with nearly this name

    @property
    def allowed(self) -> bool:
        """Whether the person can do it: a blocked account cannot, whatever it holds."""
        return self.explanation.allowed and not self.blocked

    @property
    def reason(self) -> DecisionNode | None:
        """What is missing first, unless a change of it is offered as a remedy anyway."""
        missing = next((part for part in self.tree.parts if part.tone == "missing"), None)
        is_ban = missing is not None and missing.key.startswith("lack_banned")
        return missing if is_ban or not self.remedies else None


class SignInCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the application lets the person in at all."""

    by: LoginRefusalReason | None
    ban: DecisionNode | None = None  # from what and until when, if that is the reason


class CheckContext(PageContext, frozen=True, kw_only=True):
    template = "console/access/check.html"

    query: CheckQuery
    picked: Mapping[str, ComboboxOption]
    person: NamedPerson | None = None
    application: str = ""
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
        lookup: Lookup,
        names: NameStore,
        permission_loader: PermissionLoader,
        view: ConsoleView,
        clock: Clock,
    ) -> None:
        self._permission_loader = permission_loader
        self._explanations = explanations
        self._question_access = question_access
        self._login = login
        self._lookup = lookup
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

    async def _empty_context(
        self, admin: AdminRequest, query: CheckQuery, *, problem: FormProblem | None = None
    ) -> CheckContext:
        return CheckContext(
            query=query,
            picked=await self._lookup.describe(admin, query, FIELDS),
            problem=problem,
            administers=admin.rights.administers,
        )

    async def _check(self, admin: AdminRequest, query: CheckQuery) -> CheckContext:
        blank = await self._empty_context(admin, query)
        resolved = await self._lookup.resolve(admin, query, FIELDS)
        if not resolved.application_id:
            return blank
        application_id = int(resolved.application_id)
        admin = await self._view.for_application(admin, application_id)
        person = await self._load_person(admin, resolved.user_id)
        model = admin.authenticated.model
        return replace(
            blank,
            person=person,
            application=model.application.name if model else "",
            verdict=await self._explain(admin, person.user_id, resolved) if resolved.rule.strip() else None,
            sign_in=await self._check_sign_in(admin, person.user_id, application_id),
        )

    async def _load_person(self, admin: AdminRequest, user_id: str) -> NamedPerson:
        """Oneself, if no one is named."""
        own_id = admin.user.user_id
        if user_id in ("", own_id):
            return NamedPerson(user_id=own_id, nick=admin.user.nick, login="")
        await self._question_access.load_input(admin.authenticated.caller, user_id)  # the right, before a name
        names = await self._names.people_by_id([user_id])
        return names.get(user_id) or NamedPerson(user_id=user_id, nick="", login="")

    async def _explain(self, admin: AdminRequest, user_id: str, query: CheckQuery) -> AccessCheck:
        question, asked = parse_question(query)
        ip = query.ip.strip() or None
        visit, caller = admin.authenticated, admin.authenticated.caller
        explanation = await self._explanations.explain(caller, user_id, question, ip)
        case = await self._load_input(caller, user_id, explanation.scope.project_id)
        own = caller.address if user_id == caller.user_id else None
        address = own if ip is None else read_ip(ip)
        visibility = DecisionVisibility(
            authenticated=visit,
            evaluation_input=case,
            address=address,
            application_id=explanation.application_id,
            now=self._clock.now(),
        )
        pages = RemedyPages(
            nouns=visibility, user_id=user_id, rule=explanation.rule, back=check_address(query, user_id=user_id)
        )
        known = [rule.path for rule, _ in readable_rules(admin)]
        close = () if explanation.in_schema else get_close_matches(explanation.rule.path, known, n=MAX_NEAR)
        scopes = (explanation.scope, *(one.scope for one in explanation.contributions))
        return AccessCheck(
            explanation=explanation,
            tree=decision_tree(explanation, visibility),
            remedies=pages.views(explanation.remedies),
            projects={one.project_id: visibility.project(one.project_id) for one in scopes},
            blocked=case.facts.blocked,
            unlisted=bool(known) and not explanation.in_schema,
            near=[
                NearName(name=name, address=check_address(query, user_id=user_id, rule=name))
                for name in dict.fromkeys(close)
            ],
            call=ApiCall(
                path="explain",
                body={"application_id": explanation.application_id, "data": {"user_id": user_id, **asked}},
                record=explanation_record(explanation),
            ),
            until=self._clock.now() + explanation.seconds_left if explanation.seconds_left else 0,
        )

    async def _load_input(self, caller: Caller, user_id: str, project_id: str) -> EvaluationInput:
        """The person's facts, with the project that was asked about as far as the explanation named it."""
        found = await self._question_access.load_input(caller, user_id)
        if not project_id:
            return found
        return await self._permission_loader.load_input(found.facts, projects=(project_id,))

    async def _check_sign_in(self, admin: AdminRequest, user_id: str, application_id: int) -> SignInCheck | None:
        """Administrators see what blocks a person; all see whether they themselves may sign in."""
        if not admin.rights.administers or admin.authenticated.model is None:
            return None
        refused = await self._login.find_refusal(user_id, (application_id,))
        return SignInCheck(
            by=refused.reason if refused else None,
            ban=await self._ban(admin, user_id, application_id) if refused else None,
        )

    async def _ban(self, admin: AdminRequest, user_id: str, application_id: int) -> DecisionNode | None:
        case = await self._question_access.load_input(admin.authenticated.caller, user_id)
        visibility = DecisionVisibility(
            authenticated=admin.authenticated,
            evaluation_input=case,
            address=None,
            application_id=application_id,
            now=self._clock.now(),
        )
        ban = visible_ban(visibility)
        return None if ban is None else ban_node(ban, visibility, decides=True)

    def routes(self) -> Sequence[ConsoleRoute]:
        view = self._view
        return [
            view.page("/access", self.show),
            view.page("/access/check", self.show),
        ]


def check_address(query: CheckQuery, **changed: str) -> str:
    """The address of the same question."""
    asked = {**msgspec.structs.asdict(query), **changed}
    return f"{ENTRY.path}/check?{urlencode({name: value for name, value in asked.items() if value})}"


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
