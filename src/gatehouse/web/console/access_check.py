"""Access, check: may somebody do something, and why (R6). Everybody may ask about himself."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.names import NamedApplication, NamedPerson, NameStore
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.documents.rules import leaves
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.explanation.reasons import Explanation
from gatehouse.permissions.login import Barred, LoginRules
from gatehouse.permissions.model.rule import Leaf, Rule
from gatehouse.permissions.model.scope import ResourceKind
from gatehouse.permissions.questions.asked import ResourceDraft, read_rule, read_scope
from gatehouse.permissions.questions.check import Question
from gatehouse.permissions.questions.explain import Explanations, read_ip
from gatehouse.permissions.questions.sight import Sights
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.web.console.choosing import Choosing, Meant, Offer, PlaceQuery, SuggestionsContext, SuggestQuery
from gatehouse.web.console.decision import Node, Seen, tree
from gatehouse.web.console.desk import FORESEEN, ConsoleDesk, Guest, Problem, told
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.places import Entry
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.parse import read_query
from gatehouse.web.permissions.question_records import explained

HERE: Final = Entry.ACCESS
TABS: Final = tuple((name, f"{HERE.path}/{name}") for name in ("check", "who", "simulate"))
RULES_OFFERED: Final = 1_000


class CheckQuery(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str = ""
    application_id: str = ""
    rule: str = ""
    project_id: str = ""
    kind: str = ""  # of a resource of the project
    resource_id: str = ""
    ip: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer, as a tree and as the API gives it."""

    explanation: Explanation
    tree: Node
    call: ApiCall
    until: int  # Unix seconds, 0 for ever

    @property
    def nearest(self) -> Node | None:
        return next((part for part in self.tree.parts if part.tone == "missing"), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """Whether the application lets the person in at all."""

    by: Barred | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext(PageContext):
    template = "console/access/check.html"

    query: CheckQuery
    tabs: Sequence[tuple[str, str]] = TABS
    person: Meant = field(default_factory=Meant)
    among: Sequence[NamedPerson] = ()
    application: str = ""
    applications: Sequence[NamedApplication] = ()
    rules: Sequence[tuple[Rule, Leaf]] = ()
    kinds: Sequence[str] = tuple(ResourceKind)
    verdict: Verdict | None = None
    sign_in: SignIn | None = None
    problem: Problem | None = None
    administers: bool = False


class CheckScreens:
    def __init__(
        self,
        *,
        explanations: Explanations,
        sights: Sights,
        login: LoginRules,
        choosing: Choosing,
        names: NameStore,
        desk: ConsoleDesk,
        clock: Clock,
    ) -> None:
        self._explanations = explanations
        self._sights = sights
        self._login = login
        self._choosing = choosing
        self._names = names
        self._desk = desk
        self._clock = clock

    async def show(self, request: Request, guest: Guest) -> Response:
        query = read_query(request, CheckQuery)
        try:
            context = await self._answered(guest, query)
        except FORESEEN as error:
            problem = told(error)
            context = await self._blank(guest, query, problem=problem)
        return self._desk.show(
            request, guest, HERE, context, status=context.problem.status if context.problem else None
        )

    async def suggest(self, request: Request, guest: Guest) -> Response:
        return self._offered(
            request, guest, await self._choosing.people(guest, read_query(request, SuggestQuery).text)
        )

    async def suggest_projects(self, request: Request, guest: Guest) -> Response:
        query = read_query(request, PlaceQuery)
        return self._offered(request, guest, await self._choosing.projects(guest, query.project_id))

    async def suggest_groups(self, request: Request, guest: Guest) -> Response:
        query = read_query(request, PlaceQuery)
        offers = await self._choosing.groups(guest, query.group_id, query.project_id)
        return self._offered(request, guest, offers)

    async def suggest_resources(self, request: Request, guest: Guest) -> Response:
        offers = await self._choosing.resources(guest, read_query(request, PlaceQuery))
        return self._offered(request, guest, offers)

    def _offered(self, request: Request, guest: Guest, offers: Sequence[Offer]) -> Response:
        return self._desk.show(request, guest, HERE, SuggestionsContext(offers=offers))

    async def _blank(self, guest: Guest, query: CheckQuery, *, problem: Problem | None = None) -> CheckContext:
        return CheckContext(
            query=query,
            applications=await self._choosing.applications(guest),
            problem=problem,
            administers=guest.rights.administers,
        )

    async def _answered(self, guest: Guest, query: CheckQuery) -> CheckContext:
        blank = await self._blank(guest, query)
        application_id = read_application(query.application_id)
        if not application_id:
            return blank
        guest = await self._desk.about(guest, application_id)
        person = await self._person(guest, query.user_id)
        model = guest.standing.model
        ready = bool(person.user_id)
        return CheckContext(
            query=query,
            person=person,
            among=person.among,
            application=model.application.name if model and ready else "",
            applications=blank.applications,
            rules=rules_of(guest),
            verdict=await self._verdict(guest, person.user_id, query) if ready and query.rule.strip() else None,
            sign_in=await self._sign_in(guest, person.user_id, application_id) if ready else None,
            administers=guest.rights.administers,
        )

    async def _person(self, guest: Guest, text: str) -> Meant:
        meant = await self._choosing.person(guest, text)
        if meant.user_id and not meant.nick:
            await self._sights.case(guest.standing.caller, meant.user_id)  # no right comes before a name
            names = await self._names.people([meant.user_id])
            return Meant(user_id=meant.user_id, nick=names[meant.user_id].nick if meant.user_id in names else "")
        return meant

    async def _verdict(self, guest: Guest, user_id: str, query: CheckQuery) -> Verdict:
        question, asked = read_question(query)
        ip = query.ip.strip() or None
        visit, caller = guest.standing, guest.standing.caller
        explanation = await self._explanations.explain(caller, user_id, question, ip)
        case = await self._sights.case(caller, user_id)
        own = caller.address if user_id == caller.user_id else None
        address = own if ip is None else read_ip(ip)
        return Verdict(
            explanation=explanation,
            tree=tree(explanation, Seen(visit=visit, case=case, address=address, asked=explanation.application_id)),
            call=ApiCall(
                path="explain",
                body={"application_id": explanation.application_id, "data": {"user_id": user_id, **asked}},
                record=explained(explanation),
            ),
            until=self._clock.now() + explanation.left if explanation.left else 0,
        )

    async def _sign_in(self, guest: Guest, user_id: str, application_id: int) -> SignIn | None:
        """What keeps somebody out is for whoever administers; of himself everybody hears whether he is let in."""
        if not guest.rights.administers or guest.standing.model is None:
            return None
        refused = await self._login.refused(user_id, (application_id,))
        return SignIn(by=refused.by if refused else None)

    def screens(self) -> Sequence[Screen]:
        desk = self._desk
        return [
            desk.shown("/access", self.show),
            desk.shown("/access/check", self.show),
            desk.shown("/access/people", self.suggest),
            desk.shown("/access/projects", self.suggest_projects),
            desk.shown("/access/groups", self.suggest_groups),
            desk.shown("/access/resources", self.suggest_resources),
        ]


def read_application(text: str) -> int:
    typed = text.strip()
    if not typed:
        return 0
    if not (typed.isascii() and typed.isdigit() and len(typed) <= 18):  # noqa: PLR2004 - 64 bits
        raise Malformed("application_id: choose an application from the list")
    return int(typed)


def read_question(query: CheckQuery) -> tuple[Question, dict[str, object]]:
    """What is asked, and the same as the API's members."""
    project = query.project_id.strip() or None
    resource = None
    if query.kind and query.resource_id.strip():
        resource = ResourceDraft(kind=query.kind, id=query.resource_id.strip())
    question = Question(rule=read_rule(query.rule.strip(), "rule"), scope=read_scope(project, resource, "data"))
    asked: dict[str, object] = {
        "rule": query.rule.strip(),
        **({"project_id": project} if project else {}),
        **({"resource": {"kind": resource.kind, "id": resource.id}} if resource else {}),
        **({"ip": query.ip.strip()} if query.ip.strip() else {}),
    }
    return question, asked


def rules_of(guest: Guest) -> Sequence[tuple[Rule, Leaf]]:
    """Those of the schema, to whoever may read it."""
    standing = guest.standing
    if standing.model is None or not is_open(standing.rights, Operation.SCHEMA_GET, standing.about):
        return ()
    schema = standing.model.schema
    known = leaves(schema.private_data, schema.public_data).items()
    return sorted(known, key=lambda item: (item[0].section, item[0].path))[:RULES_OFFERED]
