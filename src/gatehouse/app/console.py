"""The part of the composition root that is the console; loaded with its first visitor (web/console/door.py)."""

from collections.abc import Mapping
from typing import Final

from gatehouse.admin.risks import find_risks
from gatehouse.admin.sights import VisibilityLoader
from gatehouse.app.console_access import access_screens, activity_screens, game_screens
from gatehouse.app.console_applications import application_screens
from gatehouse.app.console_people import people_screens
from gatehouse.app.console_projects import project_screens
from gatehouse.app.console_roles import role_screens
from gatehouse.app.console_settings import setting_screens
from gatehouse.app.console_tables import table_screens
from gatehouse.app.house import Services
from gatehouse.app.people import AccountServices
from gatehouse.app.permissions import PermissionServices
from gatehouse.app.posture import posture
from gatehouse.app.webhooks import webhooks
from gatehouse.storage.admin.home import HomeStorage
from gatehouse.storage.admin.sight import VisibilityStorage
from gatehouse.storage.admin.webhooks import DeliveryListStorage
from gatehouse.web.console.conditions import condition_words
from gatehouse.web.console.desk import ConsoleView
from gatehouse.web.console.door import ConsoleHandler, SignInGate
from gatehouse.web.console.home import HomeScreens
from gatehouse.web.console.notes import FlashMessages
from gatehouse.web.console.places import ConsoleEntry
from gatehouse.web.console.screens import ConsoleRouter
from gatehouse.web.console.webhooks import WebhookScreens
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.setup import SampleCommands

TEMPLATE_GLOBALS: Final[Mapping[str, object]] = {"Entry": ConsoleEntry, "condition_words": condition_words}


def console(
    house: Services,
    them: AccountServices,
    *,
    threshold: SignInGate,
    rooms: PermissionServices,
    pages: PageRenderer,
    samples: SampleCommands,
) -> ConsoleHandler:
    """Built in a thread: nothing here may need the event loop."""
    https = house.settings.server.base_url.startswith("https:")
    desk = ConsoleView(
        threshold=threshold,
        sessions=them.sessions,
        desk=rooms.desk,
        reading=house.reading,
        sights=VisibilityLoader(VisibilityStorage(house.storage.runner)),
        pages=pages.extended("console", TEMPLATE_GLOBALS),
        notes=FlashMessages(https=https),
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
    return ConsoleRouter(screens, threshold, desk.nowhere).answer


def home_screens(house: Services, desk: ConsoleView, samples: SampleCommands) -> HomeScreens:
    return HomeScreens(
        store=HomeStorage(house.storage.runner),
        tallies=house.storage.tallies,
        desk=desk,
        clock=house.clock,
        sends_mail=bool(house.settings.mail.host),
        risks=find_risks(posture(house.settings, dev=house.dev)),
        samples=samples,
    )


def webhook_screens(house: Services, desk: ConsoleView) -> WebhookScreens:
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
