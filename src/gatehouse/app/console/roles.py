"""The console: roles."""

from gatehouse.admin.roles import RoleListStore
from gatehouse.app.console.role_lists import role_lists
from gatehouse.app.console.shared import ConsoleServices
from gatehouse.web.console.role_editor import RoleEditorScreens
from gatehouse.web.console.role_members import RoleMemberScreens
from gatehouse.web.console.view import ConsoleRoute


def build(console: ConsoleServices) -> list[ConsoleRoute]:
    services, view, lists = console.services, console.view, console.shared(role_lists)
    store = RoleListStore(services.storage.runner)
    editor = RoleEditorScreens(
        schemas=services.commands.schemas,
        applications=services.storage.applications,
        lists=store,
        condition_builders=console.condition_builders,
        forecaster=console.forecaster,
        view=view,
        clock=services.clock,
    )
    members = RoleMemberScreens(
        search=services.questions.member_search,
        lists=store,
        names=console.names,
        view=view,
        clock=services.clock,
    )
    return [*lists.routes(), *editor.routes(), *members.routes()]
