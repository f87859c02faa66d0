"""The part of the composition root that is the console; loaded with its first visitor (web/console/door.py)."""

from gatehouse.admin.sights import Sights
from gatehouse.app.console_people import people_screens
from gatehouse.app.console_settings import setting_screens
from gatehouse.app.house import House
from gatehouse.app.people import People, browsers_of
from gatehouse.app.permissions import PermissionRooms
from gatehouse.permissions.commands.projects import Projects
from gatehouse.permissions.commands.publish import Publishing
from gatehouse.storage.admin.home import HomeStorage
from gatehouse.storage.admin.projects import ProjectListStorage
from gatehouse.storage.admin.sight import SightStorage
from gatehouse.web.console.desk import ConsoleDesk
from gatehouse.web.console.door import Answer
from gatehouse.web.console.home import HomeScreens
from gatehouse.web.console.notes import Notes
from gatehouse.web.console.places import Entry
from gatehouse.web.console.projects import ProjectScreens
from gatehouse.web.console.screens import Screens
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.pages.setup import SampleCommands


def console(house: House, them: People, *, rooms: PermissionRooms, pages: Pages, samples: SampleCommands) -> Answer:
    https = house.settings.server.base_url.startswith("https:")
    desk = ConsoleDesk(
        browsers=browsers_of(house, them),
        sessions=them.sessions,
        interactions=them.interactions,
        desk=rooms.desk,
        reading=house.reading,
        sights=Sights(SightStorage(house.storage.runner)),
        pages=pages.extended("console", {"Entry": Entry}),
        notes=Notes(https=https),
        clock=house.clock,
    )
    return Screens(
        [
            *home_screens(house, desk, samples).screens(),
            *people_screens(house, them, desk),
            *project_screens(house, desk).screens(),
            *setting_screens(house, them, desk),
        ]
    ).answer


def home_screens(house: House, desk: ConsoleDesk, samples: SampleCommands) -> HomeScreens:
    return HomeScreens(
        store=HomeStorage(house.storage.runner),
        tallies=house.storage.tallies,
        desk=desk,
        clock=house.clock,
        sends_mail=bool(house.settings.mail.host),
        samples=samples,
    )


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
