"""Groups of a project, for those who manage them, whether or not they may view the project."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.conditions import ConditionMatchStore, GroupMember
from gatehouse.admin.names import NamedPerson, NameStore
from gatehouse.admin.paging import PAGE_SIZE, Page
from gatehouse.fields.derive import FormRows, form_rows, with_members
from gatehouse.permissions.commands.groups import GroupCommands, GroupDraft
from gatehouse.permissions.documents.fields import RecordField
from gatehouse.permissions.errors import GroupNotFound, NoRight
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.group import GROUP_FORM_FIELDS, Group
from gatehouse.permissions.questions.proposals import GroupProposal
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open, require_operation
from gatehouse.permissions.store import ProjectStore
from gatehouse.web.api.permissions.groups import group_list as groups_listed
from gatehouse.web.console.condition_builder import ConditionBuilders
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.field_forms import form_members, form_values, typed_values
from gatehouse.web.console.forms import VersionedForm
from gatehouse.web.console.frame import ApiCall, group_call
from gatehouse.web.console.impact import ImpactForecaster
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen, page_of_list
from gatehouse.web.console.lookup import FoundNames, PersonFinder
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.projects.group_effects import GroupEffects, IdleGrant
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


class LoadedGroup(Struct, frozen=True, kw_only=True):
    group: Group
    project: ProjectModel | None  # None: they may not view it
    applications: frozenset[int]  # that a change of its members may affect, as far as they may see them

    @property
    def path(self) -> str:
        return f"{ENTRY.path}/{self.group.project_id}/groups/{self.group.group_id}"

    @property
    def trail(self) -> Sequence[tuple[str, str]]:
        if self.project is None:
            return ()
        return [(self.project.project.title, project_path(self.group.project_id, "groups"))]


class GroupHead(Struct, frozen=True, kw_only=True):
    """What every page of a group shows above itself."""

    title: str
    path: str
    trail: Sequence[tuple[str, str]]
    tab: str
    may_save: bool
    may_change_access: bool
    may_remove: bool
    sees_members: bool

    @property
    def tabs(self) -> Sequence[tuple[str, str]]:
        shown = [("group", self.path)]
        return [*shown, ("who", f"{self.path}/who")] if self.sees_members else shown


class GroupLoader(Struct, kw_only=True, eq=False):
    groups: GroupCommands
    projects: ProjectStore

    async def load(self, request: Request, admin: AdminRequest) -> LoadedGroup:
        """Raises NoRight before GroupNotFound (R6)."""
        return await self.load_group(admin, request.path_params["project_id"], request.path_params["group_id"])

    async def load_group(self, admin: AdminRequest, project_id: str, wanted: str) -> LoadedGroup:
        """Raises NoRight before GroupNotFound (R6)."""
        listed = await self.groups.list_in_project(admin.actor, project_id)
        group = next((one for one in listed if one.group_id == wanted), None)
        if group is None:
            raise GroupNotFound
        if not is_open(admin.rights, Operation.PROJECT_GET, GuardTarget(project_id=group.project_id)):
            return LoadedGroup(group=group, project=None, applications=frozenset())
        project = await self.projects.project(group.project_id)
        return LoadedGroup(group=group, project=project, applications=affected_applications(project, group))


def affected_applications(model: ProjectModel, group: Group) -> frozenset[int]:
    """Services that give or take something by the group; all of them when it decides who is let in."""
    project = model.project
    services = project.settings.services
    if group.group_id in (*project.allow, *project.disallow):
        return frozenset(services)
    return frozenset(
        number for number, grants in services.items() if any(grant.group_id == group.group_id for grant in grants)
    )


def group_head(admin: AdminRequest, loaded: LoadedGroup, tab: str) -> GroupHead:
    about = GuardTarget(project_id=loaded.group.project_id, group_id=loaded.group.group_id)
    live = loaded.project is None or not loaded.project.project.removed
    may: Mapping[Operation, bool] = {
        operation: live and is_open(admin.rights, operation, about)
        for operation in (Operation.GROUP_SAVE, Operation.GROUP_ACCESS, Operation.GROUP_DELETE)
    }
    return GroupHead(
        title=loaded.group.title,
        path=loaded.path,
        trail=loaded.trail,
        tab=tab,
        may_save=may[Operation.GROUP_SAVE],
        may_change_access=may[Operation.GROUP_ACCESS],
        may_remove=may[Operation.GROUP_DELETE],
        sees_members=sees_members(admin, loaded),
    )


def sees_members(admin: AdminRequest, loaded: LoadedGroup) -> bool:
    """Only those who manage all groups of the project see the people that conditions hold for.

    They could learn the same from a role in one of its applications. Those who manage this group alone could not: a
    count would reveal tags and purchases of people they know only by ID.
    """
    return is_open(admin.rights, Operation.GROUP_SAVE, GuardTarget(project_id=loaded.group.project_id))


# The groups of a project that one manages, and a new one.


GROUP_COLUMNS: Final = {
    "id": lambda group: group.group_id,
    "title": lambda group: group.title,
    "description": lambda group: group.description,
    "tags": lambda group: group.tags,
    "listed": lambda group: len(group.users),
    "conditions": lambda group: [one.title for one in group.conditions],
}


class GroupsContext(PageContext, frozen=True, kw_only=True):
    template = "console/projects/groups.html"

    head: ProjectHead
    found: Page[Group]
    names: Mapping[str, NamedPerson]
    query: ListQuery
    may_create: bool
    call: ApiCall | None  # None: they manage none


class NewGroupForm(CsrfForm, frozen=True, kw_only=True):
    title: str = ""


class GroupListScreens:
    def __init__(
        self,
        *,
        loader: ProjectLoader,
        groups: GroupCommands,
        condition_builders: ConditionBuilders,
        view: ConsoleView,
    ) -> None:
        self._loader = loader
        self._groups = groups
        self._condition_builders = condition_builders
        self._view = view

    async def _create(self, _request: Request, admin: AdminRequest, model: ProjectModel, form: NewGroupForm) -> Saved:
        draft = GroupDraft(project_id=model.project.project_id, title=form.title.strip())
        group = await self._groups.save(admin.actor, None, draft)
        return Saved(address=f"{ENTRY.path}/{group.project_id}/groups/{group.group_id}", message="group_created")

    async def _page(
        self, request: Request, admin: AdminRequest, model: ProjectModel, _draft: FormDraft[NewGroupForm]
    ) -> GroupsContext:
        query = read_query(request, ListQuery)
        text = query.page_request.search.lower()
        managed = await self._managed_groups(admin, model.project.project_id)
        groups = [
            group for group in managed or () if text in f"{group.title} {group.description} {group.group_id}".lower()
        ]
        found = page_of_list(groups, query.page_request)
        tests = [condition.condition.test for group in found.rows for condition in group.conditions]
        return GroupsContext(
            head=project_head(admin, model.project, "groups"),
            found=found,
            names=await self._condition_builders.load_names(*tests),
            query=query,
            may_create=may_in_project(admin, Operation.GROUP_SAVE, model),
            call=None if managed is None else groups_call(model.project.project_id, managed),
        )

    async def _managed_groups(self, admin: AdminRequest, project_id: str) -> Sequence[Group] | None:
        """None for those who may view the project and manage none of its groups."""
        try:
            return await self._groups.list_in_project(admin.actor, project_id)
        except NoRight:
            return None

    def routes(self) -> Sequence[ConsoleRoute]:
        return EditScreen(
            view=self._view,
            path="/projects/{project_id}/groups",
            form=NewGroupForm,
            load=self._loader.load,
            page=self._page,
            save=self._create,
            file=groups_file,
        ).routes()


def groups_file(page: GroupsContext) -> CsvFile[Group]:
    return CsvFile(name=f"{page.head.project_id}-groups", columns=GROUP_COLUMNS, rows=page.found.rows)


def groups_call(project_id: str, managed: Sequence[Group]) -> ApiCall:
    """Return the call for the groups; if they fill more than a page, each group shows its own call."""
    return ApiCall(
        path="group",
        body={"action": "get", "data": {"project_id": project_id}},
        record=groups_listed(managed) if len(managed) <= PAGE_SIZE else None,
    )


# Groups of a project: the list, a new one, one group with what it says of itself, who is in it, its removal.


MEMBER_COLUMNS: Final = {
    "user_id": lambda line: line.user_id,
    "nick": lambda line: line.nick,
    "listed": lambda line: line.listed,
    "conditions": lambda line: line.conditions,
}


LISTED_PEOPLE_COLUMNS: Final = {"user_id": lambda one: one[0], "nick": lambda one: one[1]}


@with_members(lambda: form_members(GROUP_FORM_FIELDS))
class GroupForm(VersionedForm, frozen=True, kw_only=True):
    """The described fields of a group."""


class GroupContext(PageContext, frozen=True, kw_only=True):
    template = "console/groups/group.html"

    head: GroupHead
    group: Group
    rows: FormRows[RecordField]
    names: Mapping[str, NamedPerson]  # of listed people, and of the first ones that conditions name
    idle: Mapping[str, Sequence[IdleGrant]]  # what listed people do not get
    search: str
    found: FoundNames
    call: ApiCall


class GroupMembersContext(PageContext, frozen=True, kw_only=True):
    template = "console/groups/who.html"

    head: GroupHead
    found: Page[GroupMember]
    people: Mapping[str, NamedPerson]
    idle: Mapping[str, Sequence[IdleGrant]]


class GroupScreens:
    def __init__(
        self,
        *,
        loader: GroupLoader,
        groups: GroupCommands,
        condition_builders: ConditionBuilders,
        matches: ConditionMatchStore,
        names: NameStore,
        finder: PersonFinder,
        forecaster: ImpactForecaster,
        effects: GroupEffects,
        view: ConsoleView,
    ) -> None:
        self._effects = effects
        self._loader = loader
        self._groups = groups
        self._condition_builders = condition_builders
        self._matches = matches
        self._names = names
        self._finder = finder
        self._forecaster = forecaster
        self._view = view

    async def _page(
        self, request: Request, admin: AdminRequest, loaded: LoadedGroup, _draft: FormDraft[GroupForm]
    ) -> GroupContext:
        group, search = loaded.group, read_query(request, ListQuery).q if request.method == "GET" else ""
        about = await self._condition_builders.load_names(
            *(condition.condition.test for condition in group.conditions)
        )
        return GroupContext(
            head=group_head(admin, loaded, "group"),
            group=group,
            rows=form_rows(GROUP_FORM_FIELDS),
            names={**about, **await self._names.people_by_id(group.users)},
            idle=await self._idle_grants(loaded, group.users),
            search=search,
            found=await self._find_people(admin, loaded, search),
            call=group_call(group),
        )

    async def _save(self, _request: Request, admin: AdminRequest, loaded: LoadedGroup, form: GroupForm) -> Saved:
        values = typed_values(form, GROUP_FORM_FIELDS)
        await self._groups.save_fields(admin.actor, loaded.group, values, form.version)
        return Saved(address=loaded.path)

    async def _members(self, request: Request, admin: AdminRequest, query: ListQuery) -> GroupMembersContext:
        loaded = await self._loader.load(request, admin)
        if not sees_members(admin, loaded):
            raise NoRight("who meets the group's conditions")
        found = await self._matches.members_of_group(loaded.group, query.page_request)
        user_ids = [member.user_id for member in found.rows]
        return GroupMembersContext(
            head=group_head(admin, loaded, "who"),
            found=found,
            people=await self._names.people_by_id(user_ids),
            idle=await self._idle_grants(loaded, user_ids),
        )

    async def _idle_grants(self, loaded: LoadedGroup, user_ids: Sequence[str]) -> Mapping[str, Sequence[IdleGrant]]:
        """What members do not get, for those who may view the project."""
        return (
            {} if loaded.project is None else await self._effects.idle_grants(loaded.project, loaded.group, user_ids)
        )

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Confirmation:
        loaded, t = await self._loader.load(request, admin), self._view.words(request)
        group = loaded.group
        about = GuardTarget(project_id=group.project_id, group_id=group.group_id)
        require_operation(admin.rights, Operation.GROUP_DELETE, about)
        title, trail = t("groups.remove_title", title=group.title), [*loaded.trail, (group.title, loaded.path)]
        if access_list := access_list_of(loaded):
            warning = t(f"groups.stands_in_{access_list}")
            return Confirmation(title=title, trail=trail, warning=warning, text=t("groups.take_it_out"), button="")
        proposal = GroupProposal(action="delete", group_id=group.group_id)
        return Confirmation(
            title=title,
            trail=trail,
            text=t("groups.remove_text"),
            consequences=[t("groups.breaks_services", count=len(loaded.applications)), t("groups.breaks_managers")],
            impacts=await self._forecaster.impact_in_each(admin, loaded.applications, proposal),
            button=t("groups.remove"),
        )

    async def remove(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        loaded = await self._loader.load(request, admin)
        await self._groups.delete(admin.actor, loaded.group.group_id)
        return self._view.redirect_with_flash(project_path(loaded.group.project_id, "groups"), "group_removed")

    async def _find_people(self, admin: AdminRequest, loaded: LoadedGroup, search: str) -> FoundNames:
        """People to add; those of the project's other groups are found by a part of their names."""
        groups = () if loaded.project is None else loaded.project.groups.values()
        known = {user_id for group in groups for user_id in group.users}
        found = await self._finder.find(admin, search, known_ids=known, by_email=sees_members(admin, loaded))
        return replace(found, people=[one for one in found.people if one.user_id not in loaded.group.users])

    def routes(self) -> Sequence[ConsoleRoute]:
        view, one = self._view, "/projects/{project_id}/groups/{group_id}"
        group = EditScreen(
            view=view,
            path=one,
            form=GroupForm,
            load=self._loader.load,
            form_of=form_of,
            page=self._page,
            save=self._save,
            undoable=True,
            file=listed_people_file,
        )
        members = ListScreen(
            view=view, path=f"{one}/who", query=ListQuery, page=self._members, file=group_members_file
        )
        return [
            *group.routes(),
            *members.routes(),
            *view.confirmation(f"{one}/remove", CsrfForm, self.confirm_removal, self.remove),
        ]


def listed_people_file(page: GroupContext) -> CsvFile[tuple[str, str]]:
    group, names = page.group, page.names
    listed = [(member_id, names[member_id].nick if member_id in names else "") for member_id in group.users]
    return CsvFile(name=f"{group.title_key}-listed", columns=LISTED_PEOPLE_COLUMNS, rows=listed)


def group_members_file(page: GroupMembersContext) -> CsvFile[GroupMember]:
    return CsvFile(name=f"{page.head.title.lower()}-members", columns=MEMBER_COLUMNS, rows=page.found.rows)


def form_of(loaded: LoadedGroup) -> GroupForm:
    return GroupForm(version=loaded.group.version, **form_values(loaded.group, GROUP_FORM_FIELDS))


def access_list_of(loaded: LoadedGroup) -> str:
    if loaded.project is None:
        return ""
    project, group_id = loaded.project.project, loaded.group.group_id
    return "allow" if group_id in project.allow else "disallow" if group_id in project.disallow else ""
