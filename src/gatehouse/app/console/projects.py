"""The console: projects, their members, groups, service accounts."""

from gatehouse.admin.home import HomeStore
from gatehouse.app.console.groups import group_access, group_loader, project_loader
from gatehouse.app.console.shared import ConsoleServices
from gatehouse.app.services.people import access_invitations
from gatehouse.web.console.place_bans import PlaceBanScreens, ProjectBansContext, project_place
from gatehouse.web.console.projects.allow_lists import AllowListScreens
from gatehouse.web.console.projects.applications import ProjectApplicationScreens
from gatehouse.web.console.projects.group_effects import GroupEffects
from gatehouse.web.console.projects.groups import GroupListScreens, GroupScreens
from gatehouse.web.console.projects.member_invitations import MemberInvitationScreens
from gatehouse.web.console.projects.members import MemberScreens
from gatehouse.web.console.projects.project import ProjectErasureScreens, ProjectScreens
from gatehouse.web.console.projects.service_accounts import ServiceAccountScreens
from gatehouse.web.console.projects.services import ProjectServiceScreens
from gatehouse.web.console.view import ConsoleRoute


def build(console: ConsoleServices) -> list[ConsoleRoute]:
    services, view, loader, lists = (
        console.services,
        console.view,
        console.shared(project_loader),
        console.project_lists,
    )
    overview = ProjectScreens(
        projects=services.commands.projects,
        publishing=services.commands.publishing,
        lists=lists,
        home=HomeStore(services.storage.runner),
        names=console.names,
        lookup=console.lookup,
        view=view,
        clock=services.clock,
    )
    project_services = ProjectServiceScreens(
        loader=loader,
        projects=services.commands.projects,
        lists=lists,
        forecaster=console.forecaster,
        view=view,
    )
    applications = ProjectApplicationScreens(
        loader=loader, applications=services.commands.applications, lists=lists, view=view
    )
    service_accounts = ServiceAccountScreens(
        loader=loader, accounts=services.commands.service_accounts, lists=lists, view=view
    )
    return [
        *overview.routes(),
        *ProjectErasureScreens(removal=services.commands.full_removal, view=view).routes(),
        *member_screens(console),
        *project_bans(console).routes(),
        *applications.routes(),
        *project_services.routes(),
        *group_screens(console),
        *service_accounts.routes(),
    ]


def project_bans(console: ConsoleServices) -> PlaceBanScreens:
    memberships = console.services.commands.memberships
    return PlaceBanScreens(
        root="/projects/{project_id}/bans",
        load=project_place(console.shared(project_loader), memberships, console.person_finder, console.names),
        context=ProjectBansContext,
        bans=console.services.commands.bans,
        lists=console.people_lists,
        names=console.names,
        lookup=console.lookup,
        view=console.view,
        clock=console.services.clock,
    )


def member_screens(console: ConsoleServices) -> list[ConsoleRoute]:
    """The lists of groups and invitations come before people: their paths could be a person's."""
    memberships = console.services.commands.memberships
    groups = AllowListScreens(
        loader=console.shared(project_loader),
        memberships=memberships,
        forecaster=console.forecaster,
        view=console.view,
    )
    people = MemberScreens(
        loader=console.shared(project_loader),
        memberships=memberships,
        lists=console.project_lists,
        names=console.names,
        finder=console.person_finder,
        forecaster=console.forecaster,
        candidates=console.services.storage.candidates,
        view=console.view,
        clock=console.services.clock,
    )
    invitations = MemberInvitationScreens(
        loader=console.shared(project_loader),
        invitations=access_invitations(console.services),
        lists=console.project_lists,
        view=console.view,
        clock=console.services.clock,
    )
    return [*groups.routes(), *invitations.routes(), *people.routes()]


def group_screens(console: ConsoleServices) -> list[ConsoleRoute]:
    groups, builders, view = console.services.commands.groups, console.condition_builders, console.view
    lists = GroupListScreens(
        loader=console.shared(project_loader), groups=groups, condition_builders=builders, view=view
    )
    screens = GroupScreens(
        loader=console.shared(group_loader),
        groups=groups,
        condition_builders=builders,
        matches=console.condition_matches,
        names=console.names,
        finder=console.person_finder,
        forecaster=console.forecaster,
        effects=GroupEffects(candidates=console.services.storage.candidates, lists=console.project_lists),
        view=view,
    )
    return [*lists.routes(), *screens.routes(), *console.shared(group_access).routes()]
