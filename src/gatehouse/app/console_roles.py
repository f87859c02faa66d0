"""The part of the composition root that is the console's roles."""

from gatehouse.app.console_forecast import impact_forecast
from gatehouse.app.house import Services
from gatehouse.app.questions import member_search
from gatehouse.permissions.commands.app_schemas import SchemaCommands
from gatehouse.storage.admin.matching import ConditionMatchStorage
from gatehouse.storage.admin.names import NameStorage
from gatehouse.storage.admin.roles import RoleListStorage
from gatehouse.web.console.conditions import ConditionBuilders
from gatehouse.web.console.desk import ConsoleView
from gatehouse.web.console.role_editor import RoleEditorScreens
from gatehouse.web.console.role_members import RoleMemberScreens
from gatehouse.web.console.roles import RoleScreens
from gatehouse.web.console.screens import ConsoleRoute


def role_screens(services: Services, view: ConsoleView) -> list[ConsoleRoute]:
    storage, clock = services.storage, services.clock
    schemas = SchemaCommands(store=storage.applications, recorder=services.recorder, clock=clock)
    built = conditions(services)
    lists = RoleScreens(
        schemas=schemas, lists=RoleListStorage(storage.runner), condition_builders=built, view=view, clock=clock
    )
    editor = RoleEditorScreens(
        schemas=schemas,
        applications=storage.applications,
        condition_builders=built,
        forecaster=impact_forecast(services, view),
        view=view,
        clock=clock,
    )
    members = RoleMemberScreens(search=member_search(services), names=NameStorage(storage.runner), view=view)
    return [*lists.routes(), *editor.routes(), *members.routes()]


def conditions(services: Services) -> ConditionBuilders:
    runner = services.storage.runner
    return ConditionBuilders(matches=ConditionMatchStorage(runner), names=NameStorage(runner))
