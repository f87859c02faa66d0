"""Groups of a project: the list, a new one, one group with what it says of itself, who is in it, its removal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.matching import ConditionMatchStore, GroupMember
from gatehouse.admin.model.names import NamedPerson, NameStore
from gatehouse.admin.model.paging import Page
from gatehouse.permissions.commands.groups import GroupCommands, GroupDraft
from gatehouse.permissions.commands.tags import TagsDraft
from gatehouse.permissions.errors import NoRight
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.questions.proposals import GroupProposal
from gatehouse.permissions.rights.guard import GuardTarget, Operation, require_operation
from gatehouse.web.console.api_calls import group_call
from gatehouse.web.console.conditions import ConditionBuilders
from gatehouse.web.console.desk import AdminRequest, ConsoleView, FormProblem
from gatehouse.web.console.editing import FieldConflict, field_conflicts, join_lines, split_lines
from gatehouse.web.console.finding import PersonFinder
from gatehouse.web.console.forecast import Impact, ImpactForecaster
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.group_door import GroupHead, GroupLoader, LoadedGroup, group_head, sees_members
from gatehouse.web.console.listing import csv_file, read_list_query
from gatehouse.web.console.places import ConsoleEntry
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import CsrfForm

GROUP_ENTRY: Final = ConsoleEntry.PROJECTS
MEMBER_COLUMNS: Final = {
    "user_id": lambda line: line.user_id,
    "nick": lambda line: line.nick,
    "listed": lambda line: line.listed,
    "conditions": lambda line: line.conditions,
}


LISTED_PEOPLE_COLUMNS: Final = {"user_id": lambda one: one[0], "nick": lambda one: one[1]}


class GroupForm(CsrfForm, frozen=True, kw_only=True):
    title: str = ""
    description: str = ""
    tags: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupContext(PageContext):
    template = "console/groups/group.html"

    head: GroupHead
    group: Group
    form: GroupForm
    names: Mapping[str, NamedPerson]  # of those who are listed, and of the first whom conditions name
    search: str
    found: Sequence[NamedPerson]
    call: ApiCall
    problem: FormProblem | None = None
    clashes: tuple[FieldConflict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMembersContext(PageContext):
    template = "console/groups/who.html"

    head: GroupHead
    found: Page[GroupMember]
    search: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveGroupContext(PageContext):
    template = "console/groups/remove.html"

    head: GroupHead
    listed: str  # allow or disallow: then it cannot be removed
    services: int
    foreseen: Sequence[Impact]
    problem: FormProblem | None = None


class GroupScreens:
    def __init__(
        self,
        *,
        loader: GroupLoader,
        groups: GroupCommands,
        condition_builders: ConditionBuilders,
        matches: ConditionMatchStore,
        names: NameStore,
        forecaster: ImpactForecaster,
        view: ConsoleView,
    ) -> None:
        self._loader = loader
        self._groups = groups
        self._condition_builders = condition_builders
        self._matches = matches
        self._names = names
        self._finder = PersonFinder(names)
        self._forecaster = forecaster
        self._view = view

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        seen = await self._loader.load(request, admin)
        if read_list_query(request).is_file:
            return await self._export_listed_people(seen.group)
        return await self._render_group(request, admin, seen, form_of(seen.group))

    async def _export_listed_people(self, group: Group) -> Response:
        names = await self._names.people_by_id(group.users)
        listed = [(one, names[one].nick if one in names else "") for one in group.users]
        return csv_file(f"{group.title_key}-listed", LISTED_PEOPLE_COLUMNS, listed)

    async def save(self, request: Request, admin: AdminRequest, form: GroupForm) -> Response:
        seen = await self._loader.load(request, admin)
        draft = GroupDraft(
            title=form.title.strip(),
            description=form.description.strip().replace("\r\n", "\n"),
            version=form.version,
        )
        saved = await self._groups.save(admin.actor, seen.group.group_id, draft)
        tags = split_lines(form.tags)
        if tags != list(saved.tags):
            await self._groups.save_tags(admin.actor, saved.group_id, TagsDraft(tags=list(tags)))
        return self._view.redirect_with_flash(seen.path, "saved")

    async def rerender_form(
        self, request: Request, admin: AdminRequest, form: GroupForm, problem: FormProblem
    ) -> Response:
        seen = await self._loader.load(request, admin)
        stored = form_of(seen.group)
        theirs = field_conflicts(form, stored) if problem.is_conflict and form.version != stored.version else ()
        return await self._render_group(request, admin, seen, form, problem=problem, conflicts=theirs)

    async def list_members(self, request: Request, admin: AdminRequest) -> Response:
        seen, query = await self._loader.load(request, admin), read_list_query(request)
        if not sees_members(admin, seen):
            raise NoRight("who meets the group's conditions")
        found = await self._matches.members_of_group(seen.group, query.page_request)
        if query.is_file:
            return csv_file(f"{seen.group.title_key}-members", MEMBER_COLUMNS, found.rows)
        context = GroupMembersContext(head=group_head(admin, seen, "who"), found=found, search=query.q)
        return self._view.render(request, admin, GROUP_ENTRY, context)

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Response:
        return await self._render_removal(request, admin)

    async def remove(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        seen = await self._loader.load(request, admin)
        await self._groups.delete(admin.actor, seen.group.group_id)
        return self._view.redirect_with_flash(f"{GROUP_ENTRY.path}/{seen.group.project_id}/groups", "group_removed")

    async def rerender_removal(
        self,
        request: Request,
        admin: AdminRequest,
        form: CsrfForm,  # noqa: ARG002 - as the other screens take it
        problem: FormProblem,
    ) -> Response:
        return await self._render_removal(request, admin, problem)

    async def _render_removal(
        self, request: Request, admin: AdminRequest, problem: FormProblem | None = None
    ) -> Response:
        seen = await self._loader.load(request, admin)
        about = GuardTarget(project_id=seen.group.project_id, group_id=seen.group.group_id)
        require_operation(admin.rights, Operation.GROUP_DELETE, about)
        listed = access_list_of(seen)
        proposal = GroupProposal(action="delete", group_id=seen.group.group_id)
        context = RemoveGroupContext(
            head=group_head(admin, seen, "group"),
            listed=listed,
            services=0 if listed else len(seen.applications),
            foreseen=() if listed else await self._forecaster.impact_in_each(admin, seen.applications, proposal),
            problem=problem,
        )
        return self._view.render(request, admin, GROUP_ENTRY, context, status=problem.status if problem else None)

    async def _render_group(
        self,
        request: Request,
        admin: AdminRequest,
        loaded: LoadedGroup,
        form: GroupForm,
        *,
        problem: FormProblem | None = None,
        conflicts: tuple[FieldConflict, ...] = (),
    ) -> Response:
        group, search = loaded.group, read_list_query(request).q if request.method == "GET" else ""
        about = await self._condition_builders.load_names(*(one.condition.test for one in group.conditions))
        context = GroupContext(
            head=group_head(admin, loaded, "group"),
            group=group,
            form=form,
            names={**about, **await self._names.people_by_id(group.users)},
            search=search,
            found=await self._find_people(admin, loaded, search),
            call=group_call(group),
            problem=problem,
            clashes=conflicts,
        )
        return self._view.render(request, admin, GROUP_ENTRY, context, status=problem.status if problem else None)

    async def _find_people(self, admin: AdminRequest, loaded: LoadedGroup, search: str) -> Sequence[NamedPerson]:
        """People to add; those of the project's other groups are found by a part of their names."""
        groups = () if loaded.project is None else loaded.project.groups.values()
        known = {user_id for group in groups for user_id in group.users}
        found = await self._finder.find(admin, search, known_ids=known, by_email=sees_members(admin, loaded))
        return [one for one in found if one.user_id not in loaded.group.users]

    def routes(self) -> Sequence[ConsoleRoute]:
        desk, one = self._view, "/projects/{project_id}/groups/{group_id}"
        return [
            desk.page(one, self.show),
            desk.form(one, GroupForm, self.save, rerender=self.rerender_form),
            desk.page(f"{one}/who", self.list_members),
            desk.page(f"{one}/remove", self.confirm_removal, fresh=True),
            desk.form(f"{one}/remove", CsrfForm, self.remove, rerender=self.rerender_removal, fresh=True),
        ]


def form_of(group: Group) -> GroupForm:
    return GroupForm(
        title=group.title, description=group.description, tags=join_lines(group.tags), version=group.version
    )


def access_list_of(loaded: LoadedGroup) -> str:
    if loaded.project is None:
        return ""
    project, group_id = loaded.project.project, loaded.group.group_id
    return "allow" if group_id in project.allow else "disallow" if group_id in project.disallow else ""
