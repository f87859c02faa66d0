"""Paths of the console's entries, and which addresses are valid return addresses."""

import re
from enum import StrEnum
from typing import Final

CONSOLE: Final = "/console"
# A page of the console and its query, in the few characters that our own links have (a role's name may hold spaces):
# nothing that another program could read as another host, or as a path to a parent (checklist LG-04).
CONSOLE_PAGE: Final = re.compile(
    r"/console(?:/(?!\.{1,2}(?:[/?]|$))(?:[A-Za-z0-9_.-]|%20)+)*(?:\?[A-Za-z0-9_.=&%+-]*)?", re.ASCII
)
MAX_ADDRESS_LENGTH: Final = 1_000


class ConsoleEntry(StrEnum):
    """The main menu; the labels are `nav.<value>`."""

    HOME = "home"
    PEOPLE = "people"
    PROJECTS = "projects"
    APPLICATIONS = "applications"
    ROLES = "roles"
    ACCESS = "access"
    GAMES = "games"
    ACTIVITY = "activity"
    SETTINGS = "settings"

    @property
    def path(self) -> str:
        return CONSOLE if self is ConsoleEntry.HOME else f"{CONSOLE}/{self}"


def is_console_page(address: str) -> bool:
    return len(address) <= MAX_ADDRESS_LENGTH and CONSOLE_PAGE.fullmatch(address) is not None
