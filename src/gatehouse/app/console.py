"""The part of the composition root that is the console; loaded with its first visitor (web/console/door.py)."""

from gatehouse.admin.sights import Sights
from gatehouse.app.console_access import access_screens, activity_screens, game_screens
from gatehouse.app.house import House
from gatehouse.app.people import People, browsers_of
from gatehouse.app.permissions import PermissionRooms
from gatehouse.permissions.commands.projects import Projects
from gatehouse.permissions.commands.publish import Publishing
from gatehouse.storage.admin.projects import ProjectListStorage
from gatehouse.storage.admin.sight import SightStorage
from gatehouse.web.console.desk import ConsoleDesk
from gatehouse.web.console.door import Answer
from gatehouse.web.console.notes import Notes
from gatehouse.web.console.places import Entry
from gatehouse.web.console.projects import ProjectScreens
from gatehouse.web.console.screens import Screens
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.pages.words import load_languages
from gatehouse.web.static import Assets


def console(house: House, them: People, *, rooms: PermissionRooms, assets: Assets) -> Answer:
    https = house.settings.server.base_url.startswith("https:")
    desk = ConsoleDesk(
        browsers=browsers_of(house, them),
        sessions=them.sessions,
        interactions=them.interactions,
        desk=rooms.desk,
        reading=house.reading,
        sights=Sights(SightStorage(house.storage.runner)),
        pages=Pages(assets, https=https, languages=load_languages("console"), choices={"Entry": Entry}),
        notes=Notes(https=https),
        clock=house.clock,
    )
    return Screens(
        [
            *project_screens(house, desk).screens(),
            *access_screens(house, desk, them, rooms),
            *game_screens(house, desk, them).screens(),
            *activity_screens(house, desk).screens(),
        ]
    ).answer


def project_screens(house: House, desk: ConsoleDesk) -> ProjectScreens:
    storage = house.storage
    return ProjectScreens(
        projects=Projects(store=storage.projects, models=storage.permissions, recorder=house.recorder),
        publishing=Publishing(
            store=storage.projects, people=storage.permissions, recorder=house.recorder, clock=house.clock
        ),
        lists=ProjectListStorage(storage.runner),
        desk=desk,
        clock=house.clock,
    )
