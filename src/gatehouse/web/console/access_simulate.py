"""Access, simulate: what a change would do, before anybody makes it. Nothing here is saved."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.names import NamedApplication, NamedPerson
from gatehouse.permissions.commands.app_schemas import RoleDraft
from gatehouse.permissions.commands.groups import AccessDraft
from gatehouse.permissions.commands.memberships import MembershipDraft
from gatehouse.permissions.commands.user_schemas import RecordDraft, private_data_to_save, role_names
from gatehouse.permissions.documents.records import holdings_document, project_access_document
from gatehouse.permissions.errors import GroupNotFound, Malformed, NoRight, ProjectNotFound, RoleNotFound
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.rule import Section
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.questions.asked import read_rule
from gatehouse.permissions.questions.proposals import (
    AnyProposal,
    GroupAccessProposal,
    MembershipProposal,
    RecordProposal,
    RoleProposal,
    SchemaProposal,
)
from gatehouse.permissions.questions.sight import Sights, refuse_about_everybody
from gatehouse.permissions.rights.guard import About, Operation, is_open
from gatehouse.permissions.store import GroupStore, ProjectStore
from gatehouse.web.console.access_check import HERE, TABS, read_application, rules_of
from gatehouse.web.console.activity import day
from gatehouse.web.console.choosing import Choosing, Meant
from gatehouse.web.console.desk import FORESEEN, ConsoleDesk, Guest, Problem, told
from gatehouse.web.console.forecast import PEOPLE_MOST, Foreseen, Foresight
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.places import Entry
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.parse import read_query
from gatehouse.web.permissions.simulate import forecast_record

# What can be thought of, and the fields each needs; the words are `access.change_<name>` and `access.field_<name>`.
CHANGES: Final[Mapping[str, tuple[str, ...]]] = {
    "give_role": ("user_id", "role", "project_id", "until"),
    "take_role": ("user_id", "role", "project_id"),
    "role_rule": ("role", "rule", "value"),
    "group_member": ("group_id", "user_id", "way"),
    "group_condition": ("group_id", "test", "wanted"),
    "membership": ("project_id", "group_id", "list"),
    "remove_rule": ("rule",),
}
TESTS: Final = ("domain", "tag", "purchase", "everyone")
VALUES: Final = ("true", "false", "none")
WAYS: Final = ("add", "remove")
LISTS: Final = ("allow", "disallow", "neither")


class SimulateQuery(msgspec.Struct, frozen=True, kw_only=True):
    change: str = "give_role"
    application_id: str = ""
    user_id: str = ""
    role: str = ""
    project_id: str = ""
    until: str = ""  # a day, included
    rule: str = ""
    value: str = "true"
    group_id: str = ""
    way: str = "add"
    test: str = "domain"
    wanted: str = ""
    list: str = "allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    proposal: AnyProposal
    place: str  # the address of the screen where it can be done


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateContext(PageContext):
    template = "console/access/simulate.html"

    query: SimulateQuery
    tabs: Sequence[tuple[str, str]] = TABS
    changes: Sequence[str] = tuple(CHANGES)
    fields: Sequence[str] = ()
    applications: Sequence[NamedApplication] = ()
    roles: Sequence[str] = ()
    rules: Sequence[str] = ()
    among: Sequence[NamedPerson] = ()
    person: Meant = field(default_factory=Meant)
    choices: Mapping[str, Sequence[str]] = field(
        default_factory=lambda: {"value": VALUES, "way": WAYS, "list": LISTS, "test": TESTS}
    )
    foreseen: Foreseen | None = None
    call: ApiCall | None = None
    place: str = ""
    problem: Problem | None = None
    administers: bool = False


class SimulateScreens:
    def __init__(
        self,
        *,
        foresight: Foresight,
        sights: Sights,
        groups: GroupStore,
        projects: ProjectStore,
        choosing: Choosing,
        desk: ConsoleDesk,
    ) -> None:
        self._foresight = foresight
        self._sights = sights
        self._groups = groups
        self._projects = projects
        self._choosing = choosing
        self._desk = desk

    async def show(self, request: Request, guest: Guest) -> Response:
        query = read_query(request, SimulateQuery)
        if query.change not in CHANGES:
            raise Malformed("change: choose a change from the list")
        context = await self._blank(guest, query)
        try:
            context = await self._answered(guest, context)
        except FORESEEN as error:
            context = replace(context, problem=told(error))
        status = context.problem.status if context.problem else None
        return self._desk.show(request, guest, HERE, context, status=status)

    async def _blank(self, guest: Guest, query: SimulateQuery) -> SimulateContext:
        return SimulateContext(
            query=query,
            fields=CHANGES[query.change],
            applications=await self._choosing.applications(guest),
            administers=guest.rights.administers,
        )

    async def _answered(self, guest: Guest, context: SimulateContext) -> SimulateContext:
        query = context.query
        application_id = read_application(query.application_id)
        if not application_id:
            return context
        about = await self._desk.about(guest, application_id)
        refuse_about_everybody(about.standing)
        model = about.standing.application()
        context = replace(
            context,
            roles=[role.name for _, role in sorted(model.roles.items())],
            rules=[rule.path for rule, _ in rules_of(about)],
        )
        if not is_complete(query):
            return context
        person = await self._choosing.person(about, query.user_id) if "user_id" in context.fields else Meant()
        context = replace(context, person=person, among=person.among)
        if "user_id" in context.fields and not person.user_id:
            return context
        proposed = await self._proposed(about, query, person.user_id)
        foreseen = await self._foresight.of(about, application_id, proposed.proposal)
        return replace(
            context,
            foreseen=foreseen,
            call=api_call(application_id, proposed.proposal, foreseen),
            place=proposed.place,
        )

    async def _proposed(self, about: Guest, query: SimulateQuery, user_id: str) -> Proposed:
        ways: Mapping[str, Callable[[], Awaitable[Proposed]]] = {
            "give_role": lambda: self._role_of_person(about, query, user_id),
            "take_role": lambda: self._role_of_person(about, query, user_id),
            "role_rule": lambda: self._role_rule(about, query),
            "group_member": lambda: self._group_member(about, query, user_id),
            "group_condition": lambda: self._group_condition(about, query),
            "membership": lambda: self._membership(about, query),
            "remove_rule": lambda: self._without_rule(about, query),
        }
        return await ways[query.change]()

    async def _role_of_person(self, about: Guest, query: SimulateQuery, user_id: str) -> Proposed:
        """Given in a project it is held there, else at the root; all else of the record stays."""
        model = about.standing.application()
        role = model.roles.get(query.role.strip().lower())
        if role is None:
            raise RoleNotFound
        case = await self._sights.case(about.standing.caller, user_id)
        record = case.facts.records[model.application.application_id]
        names = role_names(model)
        end = day(query.until, days=1)
        given = {"name": role.name, **({"expired": end} if end else {})} if query.change == "give_role" else None
        project_id = query.project_id.strip()
        if not project_id:
            at_root = holdings_document(record.root, names)
            draft = RecordDraft(user_id=user_id, roles=with_role(at_root.get("roles"), role.name, given))
        else:
            access = project_access_document(record.scopes, names)
            there = access.setdefault(project_id, {})
            there["roles"] = with_role(there.get("roles"), role.name, given)
            private = private_data_to_save(about.rights, user_id, record.root.private_data, access)
            draft = RecordDraft(user_id=user_id, private_data=private)
        place = f"{Entry.APPLICATIONS.path}/{model.application.application_id}/users?q={user_id}"
        return Proposed(proposal=RecordProposal(data=draft), place=place)

    async def _role_rule(self, about: Guest, query: SimulateQuery) -> Proposed:
        model = about.standing.opened(Operation.ROLES_GET)
        role = model.roles.get(query.role.strip().lower())
        if role is None:
            raise RoleNotFound
        rule = read_rule(query.rule.strip(), "rule").of(rule for rule, _ in rules_of(about))
        leaf = None if query.value == "none" else {"value": query.value == "true"}
        section = with_leaf(as_tree(role.meta.get(rule.section.value)), rule.path.split("."), leaf)
        draft = RoleDraft(name=role.name, meta={**role.meta, rule.section.value: section})
        place = f"{Entry.ROLES.path}/{model.application.application_id}/{role.name}"
        return Proposed(proposal=RoleProposal(data=draft), place=place)

    async def _without_rule(self, about: Guest, query: SimulateQuery) -> Proposed:
        model = about.standing.opened(Operation.SCHEMA_GET)
        rule = read_rule(query.rule.strip(), "rule").of(rule for rule, _ in rules_of(about))
        trees = {Section.PRIVATE: model.schema.private_data, Section.PUBLIC: model.schema.public_data}
        left = with_leaf(trees[rule.section], rule.path.split("."), None)
        if left == trees[rule.section]:
            raise Malformed("rule: not in the schema; choose a permission from the list")
        place = f"{Entry.APPLICATIONS.path}/{model.application.application_id}/rules"
        return Proposed(proposal=SchemaProposal(data={rule.section.value: left}), place=place)

    async def _group(self, about: Guest, group_id: str) -> Group:
        """Seen by whoever manages it; to others there is nothing to tell."""
        try:
            group = await self._groups.group(group_id.strip())
        except GroupNotFound:
            if about.rights.administers:
                raise
            raise NoRight("no such group") from None
        where = About(project_id=group.project_id, group_id=group.group_id)
        if not is_open(about.rights, Operation.GROUP_GET, where):
            raise NoRight("the group")
        return group

    async def _group_member(self, about: Guest, query: SimulateQuery, user_id: str) -> Proposed:
        group = await self._group(about, query.group_id)
        users = [one for one in group.users if one != user_id] + ([user_id] if query.way == "add" else [])
        return self._group_access(group, AccessDraft(users=list(users)))

    async def _group_condition(self, about: Guest, query: SimulateQuery) -> Proposed:
        group = await self._group(about, query.group_id)
        old = [{"title": one.title, "condition": dict(one.condition.document)} for one in group.conditions]
        test = {"everyone": True} if query.test == "everyone" else {query.test: query.wanted.strip()}
        new = {"title": "Simulated", "condition": test}
        return self._group_access(group, AccessDraft(conditions=[*old, new]))

    def _group_access(self, group: Group, draft: AccessDraft) -> Proposed:
        place = f"{Entry.PROJECTS.path}/{group.project_id}/groups/{group.group_id}"
        return Proposed(proposal=GroupAccessProposal(group_id=group.group_id, data=draft), place=place)

    async def _membership(self, about: Guest, query: SimulateQuery) -> Proposed:
        try:
            project = (await self._projects.project(query.project_id.strip())).project
        except ProjectNotFound:
            if about.rights.administers:
                raise
            raise NoRight("no such project") from None
        if not is_open(about.rights, Operation.MEMBERSHIP_GET, About(project_id=project.project_id)):
            raise NoRight("the project's members")
        group_id = query.group_id.strip()
        lists = {
            name: [one for one in getattr(project, name) if one != group_id]
            + ([group_id] if query.list == name else [])
            for name in ("allow", "disallow")
        }
        draft = MembershipDraft(id=project.project_id, allow=list(lists["allow"]), disallow=list(lists["disallow"]))
        return Proposed(
            proposal=MembershipProposal(data=draft), place=f"{Entry.PROJECTS.path}/{project.project_id}/members/lists"
        )

    def screens(self) -> Sequence[Screen]:
        return [self._desk.shown("/access/simulate", self.show)]


OPTIONAL: Final = frozenset({"project_id", "until", "wanted"})


def is_complete(query: SimulateQuery) -> bool:
    """A form that was not filled in yet is shown, not answered."""
    needed = [name for name in CHANGES[query.change] if name not in OPTIONAL or query.change == "membership"]
    return all(getattr(query, name).strip() for name in needed)


def as_tree(value: object) -> Tree:
    return value if isinstance(value, Mapping) else {}


def with_role(roles: object, name: str, given: object | None) -> list[object]:
    listed = roles if isinstance(roles, list | tuple) else []
    kept = [one for one in listed if role_called(one).lower() != name.lower()]
    return [*kept, given] if given is not None else kept


def role_called(one: object) -> str:
    """An assignment is written as the role's name alone, where it has no end."""
    return str(one["name"] if isinstance(one, Mapping) else one)


def with_leaf(tree: Tree, path: Sequence[str], leaf: Tree | None) -> dict[str, object]:
    """The tree with that leaf in place of what stood there; None takes it away, and what is empty then with it."""
    first, *rest = path
    others = {name: node for name, node in tree.items() if name != first}
    below: object = with_leaf(as_tree(tree.get(first)), rest, leaf) if rest else leaf
    return {**others, first: below} if below else others


def api_call(application_id: int, proposal: AnyProposal, foreseen: Foreseen) -> ApiCall:
    change = msgspec.to_builtins(proposal)
    return ApiCall(
        path="simulate",
        body={"application_id": application_id, "data": {"change": change, "limit": PEOPLE_MOST}},
        record=None if foreseen.forecast is None else forecast_record(foreseen.forecast),
    )
