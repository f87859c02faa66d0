"""The part of the composition root that is the console; loaded with its first visitor (web/console/door.py)."""

from collections.abc import Mapping
from typing import Final

from gatehouse.admin.sights import Sights
from gatehouse.app.console_projects import project_screens
from gatehouse.app.console_roles import role_screens
from gatehouse.app.house import House
from gatehouse.app.people import People, browsers_of
from gatehouse.app.permissions import PermissionRooms
from gatehouse.storage.admin.sight import SightStorage
from gatehouse.web.console.conditions import condition_words
from gatehouse.web.console.desk import ConsoleDesk
from gatehouse.web.console.door import Answer
from gatehouse.web.console.notes import Notes
from gatehouse.web.console.places import Entry
from gatehouse.web.console.screens import Screens
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.pages.words import load_languages
from gatehouse.web.static import Assets

CHOICES: Final[Mapping[str, object]] = {"Entry": Entry, "condition_words": condition_words}


def console(house: House, them: People, *, rooms: PermissionRooms, assets: Assets) -> Answer:
    https = house.settings.server.base_url.startswith("https:")
    desk = ConsoleDesk(
        browsers=browsers_of(house, them),
        sessions=them.sessions,
        interactions=them.interactions,
        desk=rooms.desk,
        reading=house.reading,
        sights=Sights(SightStorage(house.storage.runner)),
        pages=Pages(assets, https=https, languages=load_languages("console"), choices=CHOICES),
        notes=Notes(https=https),
        clock=house.clock,
    )
    return Screens([*project_screens(house, desk), *role_screens(house, desk)]).answer
