"""The lists of roles, which the search shows too."""

from gatehouse.admin.roles import RoleListStore
from gatehouse.app.console.shared import ConsoleServices
from gatehouse.web.console.roles import RoleScreens


def role_lists(console: ConsoleServices) -> RoleScreens:
    services = console.services
    return RoleScreens(
        schemas=services.commands.schemas,
        lists=RoleListStore(services.storage.runner),
        condition_builders=console.condition_builders,
        view=console.view,
        clock=services.clock,
    )
