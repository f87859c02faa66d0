"""Builds a section of the console, whose screens are imported then (web/console/path_table.py)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gatehouse.app.console.shared import ConsoleServices
from gatehouse.web.console.lazy_console import SectionHandlers
from gatehouse.web.console.view import ConsoleRoute


def build_section(console: ConsoleServices, section: str) -> SectionHandlers:
    return {(screen.method, screen.path): screen.handler for screen in BUILDERS[section](console)}


def build_home(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    from gatehouse.app.console import home

    return home.build(console)


def build_people(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    from gatehouse.app.console import people

    return people.build(console)


def build_projects(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    from gatehouse.app.console import projects

    return projects.build(console)


def build_roles(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    from gatehouse.app.console import roles

    return roles.build(console)


def build_applications(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    from gatehouse.app.console import applications

    return applications.build(console)


def build_access(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    from gatehouse.app.console import access

    return access.build(console)


def build_games(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    from gatehouse.app.console import games

    return games.build(console)


def build_activity(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    from gatehouse.app.console import activity

    return activity.build(console)


def build_webhooks(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    from gatehouse.app.console import webhooks

    return webhooks.build(console)


def build_settings(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    from gatehouse.app.console import settings

    return settings.build(console)


def build_gallery(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    from gatehouse.app.console import gallery

    return gallery.build(console)


BUILDERS: Final[Mapping[str, Callable[[ConsoleServices], Sequence[ConsoleRoute]]]] = {
    "home": build_home,
    "people": build_people,
    "projects": build_projects,
    "roles": build_roles,
    "applications": build_applications,
    "access": build_access,
    "games": build_games,
    "activity": build_activity,
    "webhooks": build_webhooks,
    "settings": build_settings,
    "gallery": build_gallery,
}
