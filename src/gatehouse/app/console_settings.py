"""Settings in the console, composed."""

from gatehouse.app.house import House
from gatehouse.app.installation import installation_desk
from gatehouse.app.people import People
from gatehouse.web.console.desk import ConsoleDesk
from gatehouse.web.console.screens import Screen
from gatehouse.web.console.settings import SettingScreens
from gatehouse.web.console.settings_keys import KeyScreens
from gatehouse.web.health import Readiness


def setting_screens(house: House, them: People, desk: ConsoleDesk, readiness: Readiness) -> list[Screen]:
    installation = installation_desk(house, readiness)
    screens = SettingScreens(installation=installation, composer=them.composer, postman=house.postman, desk=desk)
    return [*KeyScreens(office=installation.keys, desk=desk).screens(), *screens.screens()]
