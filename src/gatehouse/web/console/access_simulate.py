"""Access, simulate: what a change would do, before it is made. Nothing here is saved."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin import role_cells
from gatehouse.admin.role_cells import WithoutEffect
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.app_schemas import RoleDraft
from gatehouse.permissions.commands.groups import AccessDraft
from gatehouse.permissions.commands.memberships import MembershipDraft
from gatehouse.permissions.commands.user_schemas import RecordDraft, private_data_to_save, role_names
from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.documents.records import holdings_document, project_access_document
from gatehouse.permissions.errors import GroupNotFound, Malformed, NoRight, ProjectNotFound, RoleNotFound
from gatehouse.permissions.evaluation.loader import EvaluationInput
from gatehouse.permissions.model.facts import NO_HOLDINGS, ApplicationModel
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import End, RuleSection, Scope
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.questions.check import QuestionAccess, refuse_about_everyone
from gatehouse.permissions.questions.parsing import read_rule
from gatehouse.permissions.questions.proposals import (
    AnyProposal,
    GroupAccessProposal,
    MembershipProposal,
    RecordProposal,
    RoleProposal,
    SchemaProposal,
)
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.permissions.store import GroupStore, ProjectStore
from gatehouse.web.api.permissions.simulate import forecast_record
from gatehouse.web.console.access_check import ENTRY
from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption
from gatehouse.web.console.condition_builder import fields_of_rows, rows_of_condition
from gatehouse.web.console.ends import parse_end
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.impact import MAX_PEOPLE, Impact, ImpactForecaster
from gatehouse.web.console.lookup import Lookup, readable_rules
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.remedies import REMOVE, Review, assignment_review, matrix_review, role_address
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

# The changes to simulate, and the fields each needs; the texts are `access.change_<name>` and `access.field_<name>`.
CHANGES: Final[Mapping[str, tuple[str, ...]]] = {
    "give_role": ("user_id", "role", "project_id", "until"),
    "take_role": ("user_id", "role", "project_id"),
    "role_rule": ("role", "rule", "value"),
    "group_member": ("group_id", "user_id", "way"),
    "group_condition": ("group_id", "test", "wanted"),
    "membership": ("project_id", "group_id", "list"),
    "remove_rule": ("rule",),
}
DEFAULT_CHANGE: Final = "give_role"
COMBOBOXES: Final = {
    "application_id": ComboboxKind.APPLICATION,
    "user_id": ComboboxKind.PERSON,
    "project_id": ComboboxKind.PROJECT,
    "group_id": ComboboxKind.GROUP,
    "role": ComboboxKind.ROLE,
    "rule": ComboboxKind.PERMISSION,
}
TEST_CHOICES: Final = ("domain", "tag", "purchase", "everyone")
VALUE_CHOICES: Final = ("true", "false", "none")
MEMBER_CHOICES: Final = ("add", "remove")
LIST_CHOICES: Final = ("allow", "disallow", "neither")


class SimulateQuery(msgspec.Struct, frozen=True, kw_only=True):
    change: str = DEFAULT_CHANGE
    application_id: str = ""
    user_id: str = ""
    role: str = ""
    project_id: str = ""
    end: str = ""
    until: str = ""  # a day, included
    rule: str = ""
    value: str = "true"
    group_id: str = ""
    way: str = "add"
    test: str = "domain"
    wanted: str = ""
    list: str = "allow"


class ProposedChange(msgspec.Struct, frozen=True, kw_only=True):
    proposal: AnyProposal
    review: Review  # of exactly this change
    without_effect: WithoutEffect | None = None  # why an assignment gives nothing


class SimulateContext(PageContext, frozen=True, kw_only=True):
    template = "console/access/simulate.html"

    query: SimulateQuery
    changes: Sequence[str] = tuple(CHANGES)
    fields: Sequence[str] = ()
    picked: Mapping[str, ComboboxOption]
    choices: Mapping[str, Sequence[str]] = msgspec.field(
        default_factory=lambda: {
            "value": VALUE_CHOICES,
            "way": MEMBER_CHOICES,
            "list": LIST_CHOICES,
            "test": TEST_CHOICES,
        }
    )
    impact: Impact | None = None
    call: ApiCall | None = None
    review: Review | None = None
    without_effect: WithoutEffect | None = None
    problem: FormProblem | None = None
    administers: bool = False


class SimulateScreens:
    def __init__(
        self,
        *,
        forecaster: ImpactForecaster,
        question_access: QuestionAccess,
        groups: GroupStore,
        projects: ProjectStore,
        lookup: Lookup,
        view: ConsoleView,
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._forecaster = forecaster
        self._question_access = question_access
        self._groups = groups
        self._projects = projects
        self._lookup = lookup
        self._view = view

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        query = read_query(request, SimulateQuery)
        if query.change not in CHANGES:  # an address typed wrong: the page has the list
            query = replace(query, change=DEFAULT_CHANGE)
        context = await self._empty_context(admin, query)
        try:
            context = await self._simulate(admin, context)
        except EXPECTED_ERRORS as error:
            context = replace(context, problem=problem_from(error))
        return self._view.render(request, admin, ENTRY, context)

    async def _empty_context(self, admin: AdminRequest, query: SimulateQuery) -> SimulateContext:
        return SimulateContext(
            query=query,
            fields=CHANGES[query.change],
            picked=await self._lookup.describe(admin, query, combobox_fields(query)),
            administers=admin.rights.administers,
        )

    async def _simulate(self, admin: AdminRequest, context: SimulateContext) -> SimulateContext:
        query = await self._lookup.resolve(admin, context.query, combobox_fields(context.query))
        if not query.application_id:
            return context
        application_id = int(query.application_id)
        admin = await self._view.for_application(admin, application_id)
        refuse_about_everyone(admin.authenticated)
        if not is_complete(query):
            return context
        proposed = await self._propose(admin, query, query.user_id)
        impact = await self._forecaster.impact_in(admin, application_id, proposed.proposal)
        return replace(
            context,
            impact=impact,
            call=simulate_call(application_id, proposed.proposal, impact),
            review=proposed.review,
            without_effect=proposed.without_effect,
        )

    async def _propose(self, admin: AdminRequest, query: SimulateQuery, user_id: str) -> ProposedChange:
        ways: Mapping[str, Callable[[], Awaitable[ProposedChange]]] = {
            "give_role": lambda: self._propose_assignment(admin, query, user_id),
            "take_role": lambda: self._propose_assignment(admin, query, user_id),
            "role_rule": lambda: self._propose_role_rule(admin, query),
            "group_member": lambda: self._propose_group_member(admin, query, user_id),
            "group_condition": lambda: self._propose_group_condition(admin, query),
            "membership": lambda: self._propose_membership(admin, query),
            "remove_rule": lambda: self._propose_rule_removal(admin, query),
        }
        proposed = await ways[query.change]()
        if not user_id or proposed.without_effect is not None:
            return proposed
        return replace(proposed, without_effect=await self._without_any_effect(admin, user_id))

    async def _without_any_effect(self, admin: AdminRequest, user_id: str) -> WithoutEffect | None:
        """Why nothing changes for the person, whatever is given or taken."""
        model = admin.authenticated.model
        if model is None:
            return None
        case = await self._question_access.load_input(admin.authenticated.caller, user_id)
        return role_cells.without_any_effect(model, case.facts, case.structure, now=self._clock.now())

    async def _propose_assignment(self, admin: AdminRequest, query: SimulateQuery, user_id: str) -> ProposedChange:
        """Propose an assignment in a project, or at the root without one; the rest of the record stays."""
        model = admin.authenticated.named_application()
        role = model.roles.get(query.role.strip().lower())
        if role is None:
            raise RoleNotFound
        case = await self._question_access.load_input(admin.authenticated.caller, user_id)
        record = case.facts.records[model.application.application_id]
        names = role_names(model)
        end = parse_end(query.end, query.until, zone=admin.zone, now=self._clock.now())
        given = {"name": role.name, **({"expired": end} if end else {})} if query.change == "give_role" else None
        project_id = query.project_id.strip()
        if not project_id:
            at_root = holdings_document(record.root, names)
            draft = RecordDraft(user_id=user_id, roles=with_role(at_root.get("roles"), role.name, given))
        else:
            access = project_access_document(record.scopes, names)
            there = access.setdefault(project_id, {})
            there["roles"] = with_role(there.get("roles"), role.name, given)
            private = private_data_to_save(admin.rights, user_id, record.root.private_data, access)
            draft = RecordDraft(user_id=user_id, private_data=private)
        until = REMOVE if given is None else str(end) if end else ""
        review = assignment_review(
            model.application.application_id,
            user_id,
            role.name,
            project_id=project_id,
            until=until,
            back=simulate_address(query),
        )
        idle = None
        if given is not None:
            idle = await self._without_effect(model, case, role, project_id, End(expired=end))
        return ProposedChange(proposal=RecordProposal(data=draft), review=review, without_effect=idle)

    async def _without_effect(
        self, model: ApplicationModel, case: EvaluationInput, role: Role, project_id: str, end: End
    ) -> WithoutEffect | None:
        """Why the assignment would give nothing."""
        if project_id:
            case = await self._question_access.permission_loader.load_input(case.facts, projects=(project_id,))
        scope, application_id = Scope(project_id), model.application.application_id
        record = case.facts.records[application_id]
        change = role_cells.RoleChange(role=role, scope=scope, was=None, becomes=end)
        held = role_cells.with_role_change(record.scopes.get(scope, NO_HOLDINGS), change)
        records = {**case.facts.records, application_id: record.with_holdings(scope, held)}
        facts = replace(case.facts, records=records)
        return role_cells.without_effect(model, facts, case.structure, scope, role, now=self._clock.now())

    async def _propose_role_rule(self, admin: AdminRequest, query: SimulateQuery) -> ProposedChange:
        model = admin.authenticated.require_application(Operation.ROLES_GET)
        role = model.roles.get(query.role.strip().lower())
        if role is None:
            raise RoleNotFound
        rule = read_rule(query.rule.strip(), "rule").resolve(rule for rule, _ in readable_rules(admin))
        leaf = None if query.value == "none" else {"value": query.value == "true"}
        section = with_leaf(as_tree(role.meta.get(rule.section.value)), rule.path.split("."), leaf)
        draft = RoleDraft(name=role.name, meta={**role.meta, rule.section.value: section})
        value = {"true": "allow", "false": "deny"}.get(query.value, "default")
        review = matrix_review(
            model.application.application_id, str(rule), role.name, value, back=simulate_address(query)
        )
        if not is_open(admin.rights, Operation.SCHEMA_SAVE, admin.authenticated.target):
            review = Review(address=role_address(model.application.application_id, role.name))
        return ProposedChange(proposal=RoleProposal(data=draft), review=review)

    async def _propose_rule_removal(self, admin: AdminRequest, query: SimulateQuery) -> ProposedChange:
        model = admin.authenticated.require_application(Operation.SCHEMA_GET)
        rule = read_rule(query.rule.strip(), "rule").resolve(rule for rule, _ in readable_rules(admin))
        trees = {RuleSection.PRIVATE: model.schema.private_data, RuleSection.PUBLIC: model.schema.public_data}
        left = with_leaf(trees[rule.section], rule.path.split("."), None)
        if left == trees[rule.section]:
            raise Malformed("rule: not in the schema; choose a permission from the list").on_screen("rule_unlisted")
        address = f"{ConsoleEntry.APPLICATIONS.path}/{model.application.application_id}/rules/{rule}/remove"
        return ProposedChange(
            proposal=SchemaProposal(data={rule.section.value: left}), review=Review(address=address)
        )

    async def _load_group(self, admin: AdminRequest, group_id: str) -> Group:
        """Load a group for those who manage it; others see nothing."""
        try:
            group = await self._groups.group(group_id.strip())
        except GroupNotFound:
            if admin.rights.administers:
                raise
            raise NoRight("no such group") from None
        where = GuardTarget(project_id=group.project_id, group_id=group.group_id)
        if not is_open(admin.rights, Operation.GROUP_GET, where):
            raise NoRight("the group")
        return group

    async def _propose_group_member(self, admin: AdminRequest, query: SimulateQuery, user_id: str) -> ProposedChange:
        group = await self._load_group(admin, query.group_id)
        users = [member_id for member_id in group.users if member_id != user_id] + (
            [user_id] if query.way == "add" else []
        )
        address = f"{ConsoleEntry.PROJECTS.path}/{group.project_id}/groups/{group.group_id}/access"
        field = ("add" if query.way == "add" else "drop", user_id)
        back = simulate_address(query)
        return ProposedChange(
            proposal=GroupAccessProposal(group_id=group.group_id, data=AccessDraft(users=list(users))),
            review=Review(address=address, fields=[field, ("version", str(group.version)), ("back", back)]),
        )

    async def _propose_group_condition(self, admin: AdminRequest, query: SimulateQuery) -> ProposedChange:
        group = await self._load_group(admin, query.group_id)
        old = [
            {"title": condition.title, "condition": dict(condition.condition.document)}
            for condition in group.conditions
        ]
        test = {"everyone": True} if query.test == "everyone" else {query.test: query.wanted.strip()}
        new = {"title": SIMULATED, "condition": test}
        rows = fields_of_rows(rows_of_condition(parse_condition(test)))
        fields = [("title", SIMULATED), *((name, value) for name, values in rows.items() for value in values)]
        address = f"{ConsoleEntry.PROJECTS.path}/{group.project_id}/groups/{group.group_id}/conditions/new"
        return ProposedChange(
            proposal=GroupAccessProposal(group_id=group.group_id, data=AccessDraft(conditions=[*old, new])),
            review=Review(address=address, fields=[*fields, ("version", str(group.version)), EDIT]),
        )

    async def _propose_membership(self, admin: AdminRequest, query: SimulateQuery) -> ProposedChange:
        try:
            project = (await self._projects.project(query.project_id.strip())).project
        except ProjectNotFound:
            if admin.rights.administers:
                raise
            raise NoRight("no such project") from None
        if not is_open(admin.rights, Operation.MEMBERSHIP_GET, GuardTarget(project_id=project.project_id)):
            raise NoRight("the project's members")
        group_id = query.group_id.strip()
        lists = {
            name: [one for one in getattr(project, name) if one != group_id]
            + ([group_id] if query.list == name else [])
            for name in ("allow", "disallow")
        }
        chosen = {one: name for name, ids in lists.items() for one in ids}
        draft = MembershipDraft(id=project.project_id, allow=list(lists["allow"]), disallow=list(lists["disallow"]))
        return ProposedChange(
            proposal=MembershipProposal(data=draft),
            review=Review(
                address=f"{ConsoleEntry.PROJECTS.path}/{project.project_id}/members/lists",
                fields=[*list_fields({group_id: "", **chosen}), ("version", str(project.version)), EDIT],
            ),
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        return [self._view.page("/access/simulate", self.show)]


EDIT: Final = ("do", "edit")  # shows a form with the change, which is not saved yet
SIMULATED: Final = "Simulated"  # title of a condition, until the form that saves it has another
OPTIONAL_FIELDS: Final = frozenset({"project_id", "until", "wanted"})


def combobox_fields(query: SimulateQuery) -> Mapping[str, ComboboxKind]:
    """Those of the change that is simulated; what an address has besides is ignored."""
    names = ("application_id", *CHANGES[query.change])
    return {name: kind for name, kind in COMBOBOXES.items() if name in names}


def is_complete(query: SimulateQuery) -> bool:
    """Whether all fields are filled in; before that the form is only shown."""
    needed = [name for name in CHANGES[query.change] if name not in OPTIONAL_FIELDS or query.change == "membership"]
    return all(getattr(query, name).strip() for name in needed)


def as_tree(value: object) -> Tree:
    return value if isinstance(value, Mapping) else {}


def with_role(roles: object, name: str, given: object | None) -> list[object]:
    listed = roles if isinstance(roles, list | tuple) else []
    kept = [one for one in listed if role_name_of(one).lower() != name.lower()]
    return [*kept, given] if given is not None else kept


def role_name_of(one: object) -> str:
    """An assignment is written as the role's name alone, where it has no end."""
    return str(one["name"] if isinstance(one, Mapping) else one)


def with_leaf(tree: Tree, path: Sequence[str], leaf: Tree | None) -> dict[str, object]:
    """The tree with that leaf replaced; None removes it, and branches that are empty then."""
    first, *rest = path
    others = {name: node for name, node in tree.items() if name != first}
    below: object = with_leaf(as_tree(tree.get(first)), rest, leaf) if rest else leaf
    return {**others, first: below} if below else others


def list_fields(listed: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The groups of a project's lists, as its form sends them."""
    for group_id, name in listed.items():
        yield "group", group_id
        yield "listed", name


def simulate_address(query: SimulateQuery) -> str:
    asked = {name: value for name, value in msgspec.structs.asdict(query).items() if value}
    return f"{ENTRY.path}/simulate?{urlencode(asked)}"


def simulate_call(application_id: int, proposal: AnyProposal, impact: Impact) -> ApiCall:
    change = msgspec.to_builtins(proposal)
    return ApiCall(
        path="simulate",
        body={"application_id": application_id, "data": {"change": change, "limit": MAX_PEOPLE}},
        record=None if impact.forecast is None else forecast_record(impact.forecast),
    )
