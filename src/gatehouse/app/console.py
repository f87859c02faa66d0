"""The part of the composition root that is the console; loaded with its first visitor (web/console/door.py)."""

from collections.abc import Mapping
from typing import Final

from gatehouse.admin.risks import risks
from gatehouse.admin.sights import Sights
from gatehouse.app.console_access import access_screens, activity_screens, game_screens
from gatehouse.app.console_applications import application_screens
from gatehouse.app.console_people import people_screens
from gatehouse.app.console_projects import project_screens
from gatehouse.app.console_roles import role_screens
from gatehouse.app.console_settings import setting_screens
from gatehouse.app.console_tables import table_screens
from gatehouse.app.house import House
from gatehouse.app.people import People
from gatehouse.app.permissions import PermissionRooms
from gatehouse.app.posture import posture
from gatehouse.app.webhooks import webhooks
from gatehouse.storage.admin.home import HomeStorage
from gatehouse.storage.admin.sight import SightStorage
from gatehouse.storage.admin.webhooks import DeliveryListStorage
from gatehouse.web.console.conditions import condition_words
from gatehouse.web.console.desk import ConsoleDesk
from gatehouse.web.console.door import Answer, Threshold
from gatehouse.web.console.home import HomeScreens
from gatehouse.web.console.notes import Notes
from gatehouse.web.console.places import Entry
from gatehouse.web.console.screens import Screens
from gatehouse.web.console.webhooks import WebhookScreens
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.pages.setup import SampleCommands

CHOICES: Final[Mapping[str, object]] = {"Entry": Entry, "condition_words": condition_words}


def console(
    house: House,
    them: People,
    *,
    threshold: Threshold,
    rooms: PermissionRooms,
    pages: Pages,
    samples: SampleCommands,
) -> Answer:
    """Built in a thread: nothing here may need the event loop."""
    https = house.settings.server.base_url.startswith("https:")
    desk = ConsoleDesk(
        threshold=threshold,
        sessions=them.sessions,
        desk=rooms.desk,
        reading=house.reading,
        sights=Sights(SightStorage(house.storage.runner)),
        pages=pages.extended("console", CHOICES),
        notes=Notes(https=https),
        clock=house.clock,
    )
    screens = [
        *home_screens(house, desk, samples).screens(),
        *people_screens(house, them, desk, rooms),
        *project_screens(house, desk),
        *role_screens(house, desk),
        *application_screens(house, desk),
        *table_screens(house, desk),
        *access_screens(house, desk, them, rooms),
        *game_screens(house, desk, them).screens(),
        *activity_screens(house, desk, rooms),
        *webhook_screens(house, desk).screens(),
        *setting_screens(house, them, desk, rooms.readiness),
    ]
    return Screens(screens, threshold, desk.nowhere).answer


def home_screens(house: House, desk: ConsoleDesk, samples: SampleCommands) -> HomeScreens:
    return HomeScreens(
        store=HomeStorage(house.storage.runner),
        tallies=house.storage.tallies,
        desk=desk,
        clock=house.clock,
        sends_mail=bool(house.settings.mail.host),
        risks=risks(posture(house.settings, dev=house.dev)),
        samples=samples,
    )


def webhook_screens(house: House, desk: ConsoleDesk) -> WebhookScreens:
    return WebhookScreens(
        webhooks=webhooks(
            house.settings,
            store=house.storage.webhooks,
            masters=house.masters,
            recorder=house.recorder,
            clock=house.clock,
        ),
        lists=DeliveryListStorage(house.storage.runner),
        desk=desk,
    )
