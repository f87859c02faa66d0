"""Members of a project: who holds what in it, and on its applications, services and groups."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import CENTRAL_APPLICATION
from gatehouse.admin.names import NamedPerson, NameStore
from gatehouse.admin.paging import PAGE_SIZE, Page
from gatehouse.admin.projects import ProjectListStore
from gatehouse.kernel.background import run_off_loop
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.memberships import MembershipCommands, MembershipDraft
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import PersonNotFound
from gatehouse.permissions.model.candidates import CandidateFilter
from gatehouse.permissions.model.facts import NO_HOLDINGS, ApplicationModel, ProjectModel, ScopeHoldings
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import Scope
from gatehouse.permissions.questions.batches import person_weight
from gatehouse.permissions.questions.proposals import MembershipProposal
from gatehouse.permissions.rights.guard import GuardTarget, Operation, require_operation
from gatehouse.permissions.store import CandidateStore
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.forms import FieldConflict, Row, row_conflicts
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.impact import ImpactForecaster, ReviewContext, review_context
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen, page_of_list
from gatehouse.web.console.lookup import FoundNames, PersonFinder
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.projects.allow_lists import ListedGroup, listed_groups
from gatehouse.web.console.projects.holdings import (
    OWNER,
    HoldingPlace,
    HoldingRow,
    HoldingsForm,
    PlacedRole,
    ProjectPlaces,
    assignable_roles,
    fields_of_rows,
    format_end_field,
    load_places,
    mark_idle_roles,
    membership_document,
    parse_scopes,
    placed_roles,
    role_name,
    rows_from_form,
    rows_of_holdings,
    scopes_from_rows,
    shown_rows,
)
from gatehouse.web.console.projects.project import (
    ProjectHead,
    ProjectLoader,
    may_in_project,
    project_head,
    project_path,
)
from gatehouse.web.console.view import AdminRequest, Confirmation, ConsoleRoute, ConsoleView
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

ENTRY: Final = ConsoleEntry.PROJECTS
ADMINISTRATOR: Final = "project_administrator"
DEFAULT_ROLE: Final = ADMINISTRATOR  # what a new row starts with


class MemberLine(Struct, frozen=True, kw_only=True):
    user_id: str
    nick: str
    held: Sequence[PlacedRole]
    entries: int  # places with direct entries, which have no role
    leading_role: str  # project_owner, project_administrator or nothing
    person: NamedPerson | None = None  # None of a deleted account


class ProjectMembersContext(PageContext, frozen=True, kw_only=True):
    template = "console/projects/members.html"

    head: ProjectHead
    found: Page[MemberLine]
    may_save: bool
    groups: Sequence[ListedGroup]
    call: ApiCall


class FindMemberContext(PageContext, frozen=True, kw_only=True):
    template = "console/projects/find_member.html"

    head: ProjectHead
    search: str
    found: FoundNames
    searches_everyone: bool


class MemberContext(PageContext, frozen=True, kw_only=True):
    template = "console/projects/member.html"

    head: ProjectHead
    person: NamedPerson
    rows: Sequence[HoldingRow]
    places: Sequence[HoldingPlace]
    roles: Sequence[Role]
    entries: int
    is_member: bool
    may_save: bool
    call: ApiCall

    @property
    def path(self) -> str:
        return f"{self.head.path}/members/{self.person.user_id}"


class MemberForm(HoldingsForm, frozen=True, kw_only=True):
    version: int = 0


class ProjectMember(Struct, frozen=True, kw_only=True):
    model: ProjectModel
    person: NamedPerson
    scopes: Mapping[Scope, ScopeHoldings]
    places: ProjectPlaces
    central: ApplicationModel
    document: Mapping[str, object]  # the membership, as far as it is about them
    zone: str  # the reader's time zone

    @property
    def members_path(self) -> str:
        return project_path(self.model.project.project_id, "members")

    @property
    def known_places(self) -> Sequence[HoldingPlace]:
        """All places of the project, and those that the person holds something at."""
        shown = (*self.places.all, *map(self.places.place_at, self.scopes))
        return list({one.value: one for one in shown}.values())


class MemberScreens:
    def __init__(
        self,
        *,
        loader: ProjectLoader,
        memberships: MembershipCommands,
        lists: ProjectListStore,
        names: NameStore,
        finder: PersonFinder,
        forecaster: ImpactForecaster,
        candidates: CandidateStore,
        view: ConsoleView,
        clock: Clock,
    ) -> None:
        self._candidates = candidates
        self._clock = clock
        self._loader = loader
        self._memberships = memberships
        self._lists = lists
        self._names = names
        self._finder = finder
        self._forecaster = forecaster
        self._view = view

    async def _list(self, request: Request, admin: AdminRequest, query: ListQuery) -> ProjectMembersContext:
        model = await self._loader.load(request, admin)
        document = await self._memberships.get(admin.actor, admin.authenticated.central, model.project.project_id)
        lines = filter_lines(await self._load_lines(admin, model, users_in(document)), query)
        found = page_of_list(lines, query.page_request)
        return ProjectMembersContext(
            head=project_head(admin, model.project, "members"),
            found=replace(found, rows=await self._mark_idle_roles(admin, model, found.rows)),
            may_save=may_in_project(admin, Operation.MEMBERSHIP_SAVE, model),
            groups=listed_groups(model),
            call=ApiCall(
                path="project/membership",
                body={"action": "get", "data": {"id": model.project.project_id}},
                # The response has all people; if they fill more than a page, each person's page shows its own call.
                record=document if len(users_in(document)) <= PAGE_SIZE else None,
            ),
        )

    async def _mark_idle_roles(
        self, admin: AdminRequest, model: ProjectModel, lines: Sequence[MemberLine]
    ) -> Sequence[MemberLine]:
        """The lines with why a role gives its holder nothing."""
        among = CandidateFilter(
            application_id=CENTRAL_APPLICATION, user_ids=frozenset(line.user_id for line in lines if line.held)
        )
        if not among.user_ids:
            return lines
        page = await self._candidates.candidate_page(
            among, {model.project.project_id}, after="", limit=len(lines), known=admin.authenticated.central
        )
        now, facts = self._clock.now(), {one.subject.user_id: one for one in page.people}

        def mark() -> list[MemberLine]:
            return [
                replace(line, held=mark_idle_roles(line.held, facts[line.user_id], page.snapshot, now))
                if line.user_id in facts
                else line
                for line in lines
            ]

        return await run_off_loop(sum(map(person_weight, page.people)), mark)

    async def find_person(self, request: Request, admin: AdminRequest) -> Response:
        model, query = await self._loader.load(request, admin), read_query(request, ListQuery)
        require_operation(admin.rights, Operation.MEMBERSHIP_SAVE, GuardTarget(project_id=model.project.project_id))
        known = {user_id for group in model.groups.values() for user_id in group.users}
        known |= (await self._load_users(admin, model)).keys()
        context = FindMemberContext(
            head=project_head(admin, model.project, "members"),
            search=query.q,
            found=await self._finder.find(admin, query.q, known_ids=known, by_email=True),
            searches_everyone=admin.visibility.everything,
        )
        return self._view.render(request, admin, ENTRY, context)

    async def _page(
        self, _request: Request, admin: AdminRequest, member: ProjectMember, draft: FormDraft[MemberForm]
    ) -> MemberContext:
        project = member.model.project
        return MemberContext(
            head=project_head(admin, project, "members"),
            person=member.person,
            rows=shown_rows(draft.form, role=DEFAULT_ROLE),
            places=member.known_places,
            roles=assignable_roles(member.central),
            entries=count_entries(member.scopes),
            is_member=bool(member.scopes),
            may_save=may_in_project(admin, Operation.MEMBERSHIP_SAVE, member.model),
            call=ApiCall(
                path="project/membership",
                body={"action": "get", "data": {"id": project.project_id, "user_id": member.person.user_id}},
                record=member.document,
            ),
        )

    async def _review(
        self, _request: Request, admin: AdminRequest, member: ProjectMember, form: MemberForm
    ) -> ReviewContext:
        """What the person gains and loses, if the reader may see it."""
        draft, home = draft_of(member, form), member.members_path
        found = await self._forecaster.impact_of_membership(admin, draft.id, MembershipProposal(data=draft))
        return review_context(
            form,
            () if found.hidden else (found,),
            name=member.person.nick,
            back=f"{home}/{member.person.user_id}",
            trail=[(member.model.project.title, home)],
        )

    async def _save(self, _request: Request, admin: AdminRequest, member: ProjectMember, form: MemberForm) -> Saved:
        await self._memberships.save(admin.actor, member.central, draft_of(member, form))
        return Saved(address=member.members_path)

    def _conflicts(self, request: Request, member: ProjectMember, form: MemberForm) -> tuple[FieldConflict, ...]:
        t = self._view.words(request)
        places = {one.value: one for one in member.known_places}

        def words_of(row: HoldingRow) -> Row:
            place = places.get(row.place)
            until = f" ({t('members.until')}: {row.until})" if row.until else ""
            where = t(f"place.{place.kind}", title=place.title) if place else row.place
            return where, f"{role_name(member.central, row.role)}{until}"

        typed, stored = rows_from_form(form), rows_from_form(form_of(member))
        return row_conflicts(map(words_of, typed), map(words_of, stored))

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Confirmation:
        model, t = await self._loader.load(request, admin), self._view.words(request)
        require_operation(admin.rights, Operation.MEMBERSHIP_SAVE, GuardTarget(project_id=model.project.project_id))
        member = await self._load_member(request, admin)
        person, entries = member.person, count_entries(member.scopes)
        path = project_path(model.project.project_id, "members")
        return Confirmation(
            title=t("members.remove_title", nick=person.nick),
            trail=[(model.project.title, path), (person.nick, f"{path}/{person.user_id}")],
            text=t("members.remove_text", nick=person.nick),
            roles=placed_roles(member.scopes, member.places, member.central),
            consequences=[t("members.entries_go", count=entries)] if entries else (),
            hint=t("members.remove_hint"),
            button=t("members.remove"),
        )

    async def remove(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        model = await self._loader.load(request, admin)
        user_id = grammar.check_user_id(request.path_params["user_id"], "user_id")
        draft = MembershipDraft(id=model.project.project_id, users={user_id: None})
        await self._memberships.save(admin.actor, admin.authenticated.central, draft)
        return self._view.redirect_with_flash(project_path(model.project.project_id, "members"), "member_removed")

    async def _load_member(self, request: Request, admin: AdminRequest) -> ProjectMember:
        """A member of the project, or any person if the reader may assign roles in it."""
        model = await self._loader.load(request, admin)
        user_id = grammar.check_user_id(request.path_params["user_id"], "user_id")
        document = await self._memberships.get(
            admin.actor, admin.authenticated.central, model.project.project_id, user_id=user_id
        )
        held = users_in(document).get(user_id)
        if held is None:
            require_operation(
                admin.rights, Operation.MEMBERSHIP_SAVE, GuardTarget(project_id=model.project.project_id)
            )
        person = (await self._names.people_by_id([user_id])).get(user_id)
        if person is None:
            raise PersonNotFound
        scopes = {} if held is None else parse_scopes(held, model.project.project_id)
        places = await load_places(self._lists, model)
        return ProjectMember(
            model=model,
            person=person,
            scopes=scopes,
            places=places,
            central=admin.authenticated.central,
            document=document,
            zone=admin.zone,
        )

    async def _load_users(self, admin: AdminRequest, model: ProjectModel) -> Mapping[str, object]:
        return users_in(
            await self._memberships.get(admin.actor, admin.authenticated.central, model.project.project_id)
        )

    async def _load_lines(
        self, admin: AdminRequest, model: ProjectModel, users: Mapping[str, object]
    ) -> Sequence[MemberLine]:
        places = await load_places(self._lists, model)
        names = await self._names.people_by_id(users.keys())
        lines = []
        for user_id, document in users.items():
            scopes = parse_scopes(document, model.project.project_id)
            lines.append(
                MemberLine(
                    user_id=user_id,
                    nick=names[user_id].nick if user_id in names else user_id,
                    person=names.get(user_id),
                    held=placed_roles(scopes, places, admin.authenticated.central),
                    entries=count_entries(scopes),
                    leading_role=leading_role(scopes.get(Scope(model.project.project_id), NO_HOLDINGS)),
                )
            )
        return sorted(lines, key=lambda line: (RANK[line.leading_role], line.nick.lower(), line.user_id))

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/projects/{project_id}/members"
        members = ListScreen(view=view, path=path, query=ListQuery, page=self._list, file=members_file)
        member = EditScreen(
            view=view,
            path=f"{path}/{{user_id}}",
            form=MemberForm,
            load=self._load_member,
            form_of=form_of,
            page=self._page,
            review=self._review,
            save=self._save,
            undoable=True,
            conflicts=self._conflicts,
        )
        return [
            *members.routes(),
            view.page(f"{path}/new", self.find_person),
            *member.routes(),
            *view.confirmation(f"{path}/{{user_id}}/remove", CsrfForm, self.confirm_removal, self.remove),
        ]


def form_of(member: ProjectMember) -> MemberForm:
    rows = fields_of_rows(rows_of_holdings(member.scopes, member.zone))
    return MemberForm(version=member.model.project.version, **rows)


def draft_of(member: ProjectMember, form: MemberForm) -> MembershipDraft:
    project_id = member.model.project.project_id
    scopes = scopes_from_rows(rows_from_form(form), member.scopes, member.places, member.zone)
    document = membership_document(scopes, project_id, member.central)
    return MembershipDraft(id=project_id, users={member.person.user_id: document}, version=form.version)


def members_file(page: ProjectMembersContext) -> CsvFile[tuple[MemberLine, PlacedRole]]:
    return CsvFile(name=f"{page.head.project_id}-members", columns=COLUMNS, rows=csv_rows(page.found.rows))


def users_in(document: Mapping[str, object]) -> Mapping[str, object]:
    users = document["users"]
    return users if isinstance(users, dict) else {}


RANK: Final = {OWNER: 0, ADMINISTRATOR: 1, "": 2}


def leading_role(held: ScopeHoldings) -> str:
    keys = {role.role for role in held.roles}
    return next((one for one in (OWNER, ADMINISTRATOR) if one in keys), "")


def count_entries(scopes: Mapping[Scope, ScopeHoldings]) -> int:
    return sum(bool(held.private_data or held.public_data) for held in scopes.values())


def filter_lines(lines: Sequence[MemberLine], query: ListQuery) -> Sequence[MemberLine]:
    text = query.page_request.search.lower()
    return [
        line
        for line in lines
        if text in line.nick.lower()
        or text in line.user_id
        or any(text in held.role.lower() or text in held.place.title.lower() for held in line.held)
    ]


def csv_rows(lines: Sequence[MemberLine]) -> Sequence[tuple[MemberLine, PlacedRole]]:
    """One for each role."""
    return [(line, held) for line in lines for held in line.held]


COLUMNS: Final[Mapping[str, Callable[[tuple[MemberLine, PlacedRole]], object]]] = {
    "user_id": lambda row: row[0].user_id,
    "nick": lambda row: row[0].nick,
    "role": lambda row: row[1].role,
    "place": lambda row: row[1].place.kind,
    "place_id": lambda row: row[1].place.scope.resource_id or row[1].place.scope.project_id,
    "until": lambda row: format_end_field(row[1].end),
}
