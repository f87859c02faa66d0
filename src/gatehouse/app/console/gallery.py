"""The console: every component in every state, for development."""

from collections.abc import Sequence

from gatehouse.app.console.shared import ConsoleServices
from gatehouse.web.console.gallery import ComponentGallery
from gatehouse.web.console.view import ConsoleRoute


def build(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    return ComponentGallery(console.view).routes()
