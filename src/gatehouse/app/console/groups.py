"""Projects and groups as their screens read them, and what groups may do."""

from gatehouse.app.console.shared import ConsoleServices
from gatehouse.web.console.projects.group_access import GroupAccessScreens
from gatehouse.web.console.projects.groups import GroupLoader
from gatehouse.web.console.projects.project import ProjectLoader


def project_loader(console: ConsoleServices) -> ProjectLoader:
    services = console.services
    return ProjectLoader(projects=services.commands.projects, store=services.storage.projects)


def group_loader(console: ConsoleServices) -> GroupLoader:
    services = console.services
    return GroupLoader(groups=services.commands.groups, projects=services.storage.projects)


def group_access(console: ConsoleServices) -> GroupAccessScreens:
    return GroupAccessScreens(
        loader=console.shared(group_loader),
        groups=console.services.commands.groups,
        condition_builders=console.condition_builders,
        forecaster=console.forecaster,
        view=console.view,
    )
