"""The way to one group: who manages it comes to it, whether or not he may view its project."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request

from gatehouse.permissions.commands.groups import GroupCommands
from gatehouse.permissions.errors import GroupNotFound
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.permissions.store import ProjectStore
from gatehouse.web.console.desk import AdminRequest
from gatehouse.web.console.places import ConsoleEntry

ENTRY: Final = ConsoleEntry.PROJECTS


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedGroup:
    group: Group
    project: ProjectModel | None  # None: he may not view it
    applications: frozenset[int]  # in which a change of its members may be felt, of those he may know of

    @property
    def path(self) -> str:
        return f"{ENTRY.path}/{self.group.project_id}/groups/{self.group.group_id}"

    @property
    def trail(self) -> Sequence[tuple[str, str]]:
        if self.project is None:
            return ()
        home = f"{ENTRY.path}/{self.group.project_id}"
        return [(self.project.project.title, f"{home}/groups")]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHead:
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


class GroupLoader:
    def __init__(self, *, groups: GroupCommands, projects: ProjectStore) -> None:
        self._groups = groups
        self._projects = projects

    async def load(self, request: Request, admin: AdminRequest) -> LoadedGroup:
        """Raises NoRight before GroupNotFound (R6)."""
        listed = await self._groups.list_in_project(admin.actor, request.path_params["project_id"])
        wanted = request.path_params["group_id"]
        group = next((one for one in listed if one.group_id == wanted), None)
        if group is None:
            raise GroupNotFound
        if not is_open(admin.rights, Operation.PROJECT_GET, GuardTarget(project_id=group.project_id)):
            return LoadedGroup(group=group, project=None, applications=frozenset())
        project = await self._projects.project(group.project_id)
        return LoadedGroup(group=group, project=project, applications=affected_applications(project, group))


def affected_applications(model: ProjectModel, group: Group) -> frozenset[int]:
    """Services that give or take something by the group; all of them when it decides who is let in."""
    project = model.project
    services = project.settings.services
    if group.group_id in (*project.allow, *project.disallow):
        return frozenset(services)
    return frozenset(
        number for number, grants in services.items() if any(one.group_id == group.group_id for one in grants)
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
    """Whom conditions hold for is told to who manages the project's groups.

    In an application of the project such a person could ask the same by a role. Who manages this group alone could
    not: to him a count would tell the tags and purchases of people he only knows the ids of.
    """
    return is_open(admin.rights, Operation.GROUP_SAVE, GuardTarget(project_id=loaded.group.project_id))
