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


def role_screens(house: Services, desk: ConsoleView) -> list[ConsoleRoute]:
    storage, clock = house.storage, house.clock
    schemas = SchemaCommands(store=storage.applications, recorder=house.recorder, clock=clock)
    built = conditions(house)
    lists = RoleScreens(
        schemas=schemas, lists=RoleListStorage(storage.runner), conditions=built, desk=desk, clock=clock
    )
    editor = RoleEditorScreens(
        schemas=schemas,
        applications=storage.applications,
        conditions=built,
        foresight=impact_forecast(house, desk),
        desk=desk,
        clock=clock,
    )
    members = RoleMemberScreens(search=member_search(house), names=NameStorage(storage.runner), desk=desk)
    return [*lists.screens(), *editor.screens(), *members.screens()]


def conditions(house: Services) -> ConditionBuilders:
    runner = house.storage.runner
    return ConditionBuilders(matches=ConditionMatchStorage(runner), names=NameStorage(runner))
