"""The way into the console: its paths, and nothing of it until somebody comes."""

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.web.console.places import CONSOLE
from gatehouse.web.dialects import Dialect
from gatehouse.web.routes.table import SCHEMA_BODY, Endpoint, RateClass

BELOW: Final = f"{CONSOLE}/{{rest:path}}"
METHODS: Final = {"GET": "show", "POST": "act"}

Answer = Callable[[Request], Awaitable[Response]]


class Door:
    def __init__(self, furnish: Callable[[], Answer]) -> None:
        """`furnish` builds the console; it is called once, by the first visitor."""
        self._furnish = furnish
        self._answer: Answer | None = None

    async def enter(self, request: Request) -> Response:
        if self._answer is None:
            self._answer = self._furnish()
        return await self._answer(request)

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                name=f"console.{verb}" if path == BELOW else f"console.{verb}_home",
                path=path,
                methods=(method,),
                handler=self.enter,
                dialect=Dialect.PAGE,
                rate_class=RateClass.ADMIN,
                section="pages",
                summary="The administration console",
                hidden=True,
                body_limit=SCHEMA_BODY,  # a whole schema may come back in a form
            )
            for path in (CONSOLE, BELOW)
            for method, verb in METHODS.items()
        ]
