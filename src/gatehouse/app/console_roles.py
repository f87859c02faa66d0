"""The part of the composition root that is the console's roles."""

from gatehouse.app.console_forecast import foresight
from gatehouse.app.house import House
from gatehouse.app.questions import member_search
from gatehouse.permissions.commands.app_schemas import AppSchemas
from gatehouse.storage.admin.matching import MatchStorage
from gatehouse.storage.admin.names import NameStorage
from gatehouse.storage.admin.roles import RoleListStorage
from gatehouse.web.console.conditions import Conditions
from gatehouse.web.console.desk import ConsoleDesk
from gatehouse.web.console.role_editor import RoleEditor
from gatehouse.web.console.role_members import RoleMembers
from gatehouse.web.console.roles import RoleScreens
from gatehouse.web.console.screens import Screen


def role_screens(house: House, desk: ConsoleDesk) -> list[Screen]:
    storage, clock = house.storage, house.clock
    schemas = AppSchemas(store=storage.applications, recorder=house.recorder, clock=clock)
    built = conditions(house)
    lists = RoleScreens(
        schemas=schemas, lists=RoleListStorage(storage.runner), conditions=built, desk=desk, clock=clock
    )
    editor = RoleEditor(
        schemas=schemas,
        applications=storage.applications,
        conditions=built,
        foresight=foresight(house, desk),
        desk=desk,
        clock=clock,
    )
    members = RoleMembers(search=member_search(house), names=NameStorage(storage.runner), desk=desk)
    return [*lists.screens(), *editor.screens(), *members.screens()]


def conditions(house: House) -> Conditions:
    runner = house.storage.runner
    return Conditions(matches=MatchStorage(runner), names=NameStorage(runner))
