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


def project_screens(services: Services, view: ConsoleView) -> list[ConsoleRoute]:
    storage = services.storage
    projects = ProjectCommands(store=storage.projects, models=storage.permissions, recorder=services.recorder)
    lists = ProjectListStorage(storage.runner)
    overview = ProjectScreens(
        projects=projects,
        publishing=ProjectPublisher(
            store=storage.projects, people=storage.permissions, recorder=services.recorder, clock=services.clock
        ),
        lists=lists,
        names=NameStorage(storage.runner),
        view=view,
        clock=services.clock,
    )
    door = ProjectLoader(projects=projects, store=storage.projects)
    service_screens = ProjectServiceScreens(
        loader=door, projects=projects, lists=lists, forecaster=impact_forecast(services, view), view=view
    )
    applications = ProjectApplicationScreens(
        loader=door, applications=project_application_commands(services), lists=lists, view=view
    )
    accounts = ServiceAccountScreens(loader=door, accounts=service_accounts(services), lists=lists, view=view)
    erasure = ProjectErasureScreens(removal=full_removal(services), view=view)
    return [
        *overview.routes(),
        *erasure.routes(),
        *member_screens(services, view, door, lists),
        *applications.routes(),
        *service_screens.routes(),
        *group_screens(services, view, door),
        *accounts.routes(),
    ]


def member_screens(
    services: Services, view: ConsoleView, door: ProjectLoader, lists: ProjectListStorage
) -> list[ConsoleRoute]:
    """The lists of groups stand before people: their path could be somebody's."""
    storage = services.storage
    memberships = MembershipCommands(
        projects=storage.projects,
        records=storage.user_records,
        recorder=services.recorder,
        clock=services.clock,
    )
    ahead = impact_forecast(services, view)
    groups = AllowListScreens(loader=door, memberships=memberships, forecaster=ahead, view=view)
    people = MemberScreens(
        loader=door,
        memberships=memberships,
        lists=lists,
        names=NameStorage(storage.runner),
        forecaster=ahead,
        view=view,
    )
    return [*groups.routes(), *people.routes()]


def group_screens(services: Services, view: ConsoleView, door: ProjectLoader) -> list[ConsoleRoute]:
    storage, runner = services.storage, services.storage.runner
    groups = GroupCommands(
        store=storage.groups,
        projects=storage.projects,
        people=storage.permissions,
        recorder=services.recorder,
        clock=services.clock,
    )
    built, ahead = conditions(services), impact_forecast(services, view)
    one = GroupLoader(groups=groups, projects=storage.projects)
    listed = GroupListScreens(loader=door, groups=groups, condition_builders=built, view=view)
    pages = GroupScreens(
        loader=one,
        groups=groups,
        condition_builders=built,
        matches=ConditionMatchStorage(runner),
        names=NameStorage(runner),
        forecaster=ahead,
        view=view,
    )
    access = GroupAccessScreens(loader=one, groups=groups, condition_builders=built, forecaster=ahead, view=view)
    return [*listed.routes(), *pages.routes(), *access.routes()]


def project_application_commands(services: Services) -> ApplicationCommands:
    return ApplicationCommands(
        store=services.storage.applications,
        projects=services.storage.projects,
        masters=services.masters,
        recorder=services.recorder,
        clock=services.clock,
        reachable=services.settings.outbound.allow,
    )
