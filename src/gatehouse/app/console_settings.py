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
    house: Services, them: AccountServices, desk: ConsoleView, readiness: Readiness
) -> list[ConsoleRoute]:
    installation = installation_admin(house, readiness)
    screens = SettingScreens(installation=installation, composer=them.composer, postman=house.postman, desk=desk)
    return [*SigningKeyScreens(office=installation.keys, desk=desk).screens(), *screens.screens()]
