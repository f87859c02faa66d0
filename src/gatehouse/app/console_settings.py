"""Settings in the console, composed."""

from gatehouse.app.house import Services
from gatehouse.app.installation import installation_admin
from gatehouse.app.people import AccountServices
from gatehouse.web.console.desk import ConsoleView
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.console.settings import SettingScreens
from gatehouse.web.console.settings_keys import SigningKeyScreens
from gatehouse.web.health import Readiness


def setting_screens(
    services: Services, accounts: AccountServices, view: ConsoleView, readiness: Readiness
) -> list[ConsoleRoute]:
    installation = installation_admin(services, readiness)
    screens = SettingScreens(
        installation=installation, composer=accounts.composer, outbox_worker=services.outbox_worker, view=view
    )
    return [*SigningKeyScreens(key_admin=installation.keys, view=view).routes(), *screens.routes()]
