"""The part of the composition root that is the console's projects and their tabs."""

from gatehouse.app.console_forecast import impact_forecast
from gatehouse.app.console_roles import conditions
from gatehouse.app.full_removal import full_removal
from gatehouse.app.house import Services
from gatehouse.app.permissions import service_accounts
from gatehouse.permissions.commands.applications import ApplicationCommands
from gatehouse.permissions.commands.groups import GroupCommands
from gatehouse.permissions.commands.memberships import MembershipCommands
from gatehouse.permissions.commands.projects import ProjectCommands
from gatehouse.permissions.commands.publish import ProjectPublisher
from gatehouse.storage.admin.matching import ConditionMatchStorage
from gatehouse.storage.admin.names import NameStorage
from gatehouse.storage.admin.projects import ProjectListStorage
from gatehouse.web.console.desk import ConsoleView
from gatehouse.web.console.group_access import GroupAccessScreens
from gatehouse.web.console.group_door import GroupLoader
from gatehouse.web.console.project_accounts import ServiceAccountScreens
from gatehouse.web.console.project_applications import ProjectApplicationScreens
from gatehouse.web.console.project_door import ProjectLoader
from gatehouse.web.console.project_erasure import ProjectErasureScreens
from gatehouse.web.console.project_group_list import GroupListScreens
from gatehouse.web.console.project_groups import GroupScreens
from gatehouse.web.console.project_lists import AllowListScreens
from gatehouse.web.console.project_members import MemberScreens
from gatehouse.web.console.project_services import ProjectServiceScreens
from gatehouse.web.console.projects import ProjectScreens
from gatehouse.web.console.screens import ConsoleRoute


def project_screens(house: Services, desk: ConsoleView) -> list[ConsoleRoute]:
    storage = house.storage
    projects = ProjectCommands(store=storage.projects, models=storage.permissions, recorder=house.recorder)
    lists = ProjectListStorage(storage.runner)
    overview = ProjectScreens(
        projects=projects,
        publishing=ProjectPublisher(
            store=storage.projects, people=storage.permissions, recorder=house.recorder, clock=house.clock
        ),
        lists=lists,
        names=NameStorage(storage.runner),
        desk=desk,
        clock=house.clock,
    )
    door = ProjectLoader(projects=projects, store=storage.projects)
    services = ProjectServiceScreens(
        door=door, projects=projects, lists=lists, foresight=impact_forecast(house, desk), desk=desk
    )
    applications = ProjectApplicationScreens(
        door=door, applications=project_application_commands(house), lists=lists, desk=desk
    )
    accounts = ServiceAccountScreens(door=door, accounts=service_accounts(house), lists=lists, desk=desk)
    erasure = ProjectErasureScreens(removal=full_removal(house), desk=desk)
    return [
        *overview.screens(),
        *erasure.screens(),
        *member_screens(house, desk, door, lists),
        *applications.screens(),
        *services.screens(),
        *group_screens(house, desk, door),
        *accounts.screens(),
    ]


def member_screens(
    house: Services, desk: ConsoleView, door: ProjectLoader, lists: ProjectListStorage
) -> list[ConsoleRoute]:
    """The lists of groups stand before people: their path could be somebody's."""
    storage = house.storage
    memberships = MembershipCommands(
        projects=storage.projects,
        records=storage.user_records,
        recorder=house.recorder,
        clock=house.clock,
    )
    ahead = impact_forecast(house, desk)
    groups = AllowListScreens(door=door, memberships=memberships, foresight=ahead, desk=desk)
    people = MemberScreens(
        door=door,
        memberships=memberships,
        lists=lists,
        names=NameStorage(storage.runner),
        foresight=ahead,
        desk=desk,
    )
    return [*groups.screens(), *people.screens()]


def group_screens(house: Services, desk: ConsoleView, door: ProjectLoader) -> list[ConsoleRoute]:
    storage, runner = house.storage, house.storage.runner
    groups = GroupCommands(
        store=storage.groups,
        projects=storage.projects,
        people=storage.permissions,
        recorder=house.recorder,
        clock=house.clock,
    )
    built, ahead = conditions(house), impact_forecast(house, desk)
    one = GroupLoader(groups=groups, projects=storage.projects)
    listed = GroupListScreens(door=door, groups=groups, conditions=built, desk=desk)
    pages = GroupScreens(
        door=one,
        groups=groups,
        conditions=built,
        matches=ConditionMatchStorage(runner),
        names=NameStorage(runner),
        foresight=ahead,
        desk=desk,
    )
    access = GroupAccessScreens(door=one, groups=groups, conditions=built, foresight=ahead, desk=desk)
    return [*listed.screens(), *pages.screens(), *access.screens()]


def project_application_commands(house: Services) -> ApplicationCommands:
    return ApplicationCommands(
        store=house.storage.applications,
        projects=house.storage.projects,
        masters=house.masters,
        recorder=house.recorder,
        clock=house.clock,
        reachable=house.settings.outbound.allow,
    )
