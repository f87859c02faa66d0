"""The console: game sessions."""

from collections.abc import Sequence

from gatehouse.app.console.shared import ConsoleServices
from gatehouse.web.console.games import GameScreens
from gatehouse.web.console.view import ConsoleRoute


def build(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    return [*game_screens(console).routes()]


def game_screens(console: ConsoleServices) -> GameScreens:
    services = console.services
    return GameScreens(
        lists=services.admin.game_session_lists,
        audit=services.storage.audit,
        administration=services.games.administration,
        names=console.names,
        finding=console.search,
        view=console.view,
        clock=services.clock,
    )
