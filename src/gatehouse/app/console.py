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
    services: Services,
    accounts: AccountServices,
    *,
    threshold: SignInGate,
    rooms: PermissionServices,
    pages: PageRenderer,
    samples: SampleCommands,
) -> ConsoleHandler:
    """Built in a thread: nothing here may need the event loop."""
    https = services.settings.server.base_url.startswith("https:")
    desk = ConsoleView(
        sign_in_gate=threshold,
        sessions=accounts.sessions,
        authenticator=rooms.authenticator,
        permission_loader=services.permission_loader,
        visibility=VisibilityLoader(VisibilityStorage(services.storage.runner)),
        pages=pages.with_part("console", TEMPLATE_GLOBALS),
        flash=FlashMessages(https=https),
        clock=services.clock,
    )
    screens = [
        *home_screens(services, desk, samples).routes(),
        *people_screens(services, accounts, desk, rooms),
        *project_screens(services, desk),
        *role_screens(services, desk),
        *application_screens(services, desk),
        *table_screens(services, desk),
        *access_screens(services, desk, accounts, rooms),
        *game_screens(services, desk, accounts).routes(),
        *activity_screens(services, desk, rooms),
        *webhook_screens(services, desk).routes(),
        *setting_screens(services, accounts, desk, rooms.readiness),
    ]
    return ConsoleRouter(screens, threshold, desk.not_found).dispatch


def home_screens(services: Services, view: ConsoleView, samples: SampleCommands) -> HomeScreens:
    return HomeScreens(
        store=HomeStorage(services.storage.runner),
        tallies=services.storage.tallies,
        view=view,
        clock=services.clock,
        sends_mail=bool(services.settings.mail.host),
        risks=find_risks(posture(services.settings, dev=services.dev)),
        samples=samples,
    )


def webhook_screens(services: Services, view: ConsoleView) -> WebhookScreens:
    return WebhookScreens(
        webhooks=webhooks(
            services.settings,
            store=services.storage.webhooks,
            masters=services.masters,
            recorder=services.recorder,
            clock=services.clock,
        ),
        lists=DeliveryListStorage(services.storage.runner),
        view=view,
    )
