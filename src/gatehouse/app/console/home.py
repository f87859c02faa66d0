"""The console: home, search and lists to choose from; unknown pages."""

from collections.abc import Sequence

from gatehouse.admin.home import HomeStore
from gatehouse.admin.risks import find_risks
from gatehouse.app.console.activity_log import log_verification, record_describer
from gatehouse.app.console.role_lists import role_lists
from gatehouse.app.console.shared import ConsoleServices
from gatehouse.app.services.activity import visible_audit_log
from gatehouse.app.services.installation import posture
from gatehouse.storage.permissions.sample_factors import SampleFactorStorage
from gatehouse.web.console.home import HomeScreens
from gatehouse.web.console.path_table import UNKNOWN_PAGE
from gatehouse.web.console.search import GlobalSearchScreens
from gatehouse.web.console.view import ConsoleRoute


def build(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    return [
        *home_screens(console).routes(),
        *console.lookup.routes(),
        *search_screens(console).routes(),
        ConsoleRoute(method="GET", path=UNKNOWN_PAGE, handler=console.view.not_found),
    ]


def home_screens(console: ConsoleServices) -> HomeScreens:
    services = console.services
    return HomeScreens(
        store=HomeStore(services.storage.runner),
        log=visible_audit_log(services),
        activity=console.activity_store,
        describer=console.shared(record_describer),
        verification=console.shared(log_verification),
        view=console.view,
        clock=services.clock,
        sends_mail=console.sends_mail,
        risks=lambda: find_risks(posture(services.settings, dev=services.core.dev)),
        sample_factors=SampleFactorStorage(services.storage.runner),
        samples=console.samples,
    )


def search_screens(console: ConsoleServices) -> GlobalSearchScreens:
    return GlobalSearchScreens(
        finding=console.search, roles=console.shared(role_lists), lookup=console.lookup, view=console.view
    )
