"""The part of the composition root that is the console's projects and their tabs."""

from gatehouse.app.console_forecast import foresight
from gatehouse.app.console_roles import conditions
from gatehouse.app.full_removal import full_removal
from gatehouse.app.house import House
from gatehouse.app.permissions import service_accounts
from gatehouse.permissions.commands.applications import Applications
from gatehouse.permissions.commands.groups import Groups
from gatehouse.permissions.commands.memberships import Memberships
from gatehouse.permissions.commands.projects import Projects
from gatehouse.permissions.commands.publish import Publishing
from gatehouse.storage.admin.matching import MatchStorage
from gatehouse.storage.admin.names import NameStorage
from gatehouse.storage.admin.projects import ProjectListStorage
from gatehouse.web.console.desk import ConsoleDesk
from gatehouse.web.console.group_access import GroupAccessScreens
from gatehouse.web.console.group_door import GroupDoor
from gatehouse.web.console.project_accounts import AccountScreens
from gatehouse.web.console.project_applications import ProjectApplicationScreens
from gatehouse.web.console.project_door import ProjectDoor
from gatehouse.web.console.project_erasure import ErasureScreens
from gatehouse.web.console.project_group_list import GroupListScreens
from gatehouse.web.console.project_groups import GroupScreens
from gatehouse.web.console.project_lists import ListScreens
from gatehouse.web.console.project_members import MemberScreens
from gatehouse.web.console.project_services import ServiceScreens
from gatehouse.web.console.projects import ProjectScreens
from gatehouse.web.console.screens import Screen


def project_screens(house: House, desk: ConsoleDesk) -> list[Screen]:
    storage = house.storage
    projects = Projects(store=storage.projects, models=storage.permissions, recorder=house.recorder)
    lists = ProjectListStorage(storage.runner)
    overview = ProjectScreens(
        projects=projects,
        publishing=Publishing(
            store=storage.projects, people=storage.permissions, recorder=house.recorder, clock=house.clock
        ),
        lists=lists,
        names=NameStorage(storage.runner),
        desk=desk,
        clock=house.clock,
    )
    door = ProjectDoor(projects=projects, store=storage.projects)
    services = ServiceScreens(door=door, projects=projects, lists=lists, foresight=foresight(house, desk), desk=desk)
    applications = ProjectApplicationScreens(
        door=door, applications=application_commands(house), lists=lists, desk=desk
    )
    accounts = AccountScreens(door=door, accounts=service_accounts(house), lists=lists, desk=desk)
    erasure = ErasureScreens(removal=full_removal(house), desk=desk)
    return [
        *overview.screens(),
        *erasure.screens(),
        *member_screens(house, desk, door, lists),
        *applications.screens(),
        *services.screens(),
        *group_screens(house, desk, door),
        *accounts.screens(),
    ]


def member_screens(house: House, desk: ConsoleDesk, door: ProjectDoor, lists: ProjectListStorage) -> list[Screen]:
    """The lists of groups stand before people: their path could be somebody's."""
    storage = house.storage
    memberships = Memberships(
        projects=storage.projects,
        records=storage.user_records,
        recorder=house.recorder,
        clock=house.clock,
    )
    ahead = foresight(house, desk)
    groups = ListScreens(door=door, memberships=memberships, foresight=ahead, desk=desk)
    people = MemberScreens(
        door=door,
        memberships=memberships,
        lists=lists,
        names=NameStorage(storage.runner),
        foresight=ahead,
        desk=desk,
    )
    return [*groups.screens(), *people.screens()]


def group_screens(house: House, desk: ConsoleDesk, door: ProjectDoor) -> list[Screen]:
    storage, runner = house.storage, house.storage.runner
    groups = Groups(
        store=storage.groups,
        projects=storage.projects,
        people=storage.permissions,
        recorder=house.recorder,
        clock=house.clock,
    )
    built, ahead = conditions(house), foresight(house, desk)
    one = GroupDoor(groups=groups, projects=storage.projects)
    listed = GroupListScreens(door=door, groups=groups, conditions=built, desk=desk)
    pages = GroupScreens(
        door=one,
        groups=groups,
        conditions=built,
        matches=MatchStorage(runner),
        names=NameStorage(runner),
        foresight=ahead,
        desk=desk,
    )
    access = GroupAccessScreens(door=one, groups=groups, conditions=built, foresight=ahead, desk=desk)
    return [*listed.screens(), *pages.screens(), *access.screens()]


def application_commands(house: House) -> Applications:
    return Applications(
        store=house.storage.applications,
        projects=house.storage.projects,
        masters=house.masters,
        recorder=house.recorder,
        clock=house.clock,
        reachable=house.settings.outbound.allow,
    )
