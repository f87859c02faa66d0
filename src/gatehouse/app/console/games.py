"""The console: game sessions."""

from collections.abc import Sequence

from gatehouse.admin.recent_games import RecentGameStore
from gatehouse.app.console.shared import ConsoleServices
from gatehouse.web.console.games import GameScreens
from gatehouse.web.console.recent_games import RecentGameScreen
from gatehouse.web.console.refusals import RefusalDescriber
from gatehouse.web.console.view import ConsoleRoute


def build(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    services, screens = console.services, game_screens(console)
    recent = RecentGameScreen(
        lists=RecentGameStore(services.storage.runner),
        names=console.names,
        finding=console.search,
        describer=RefusalDescriber(console.activity_store),
        lookup=console.lookup,
        view=console.view,
        clock=services.clock,
        visible_applications=screens.visible_applications,
    )
    return [*recent.routes(), *screens.routes()]


def game_screens(console: ConsoleServices) -> GameScreens:
    services = console.services
    return GameScreens(
        lists=services.admin.game_session_lists,
        audit=services.storage.audit,
        administration=services.games.administration,
        names=console.names,
        finding=console.search,
        describer=RefusalDescriber(console.activity_store),
        view=console.view,
        clock=services.clock,
    )
