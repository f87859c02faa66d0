"""What a screen of the console is, and how a table of them answers."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path

from gatehouse.web.console.door import SignInGate
from gatehouse.web.console.places import CONSOLE
from gatehouse.web.responses import see_other

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleRoute:
    """`path` is below /console; what it has in braces is in the request's path_params."""

    method: str
    path: str
    handler: Handler


class ConsoleRouter:
    def __init__(self, routes: Iterable[ConsoleRoute], sign_in_gate: SignInGate, not_found: Handler) -> None:
        """`nowhere` answers whoever asks for a page that there is not."""
        self._sign_in_gate = sign_in_gate
        self._not_found = not_found
        self._routes = []
        for screen in routes:
            pattern, _, convertors = compile_path(f"{CONSOLE}{screen.path}")
            self._routes.append((pattern, convertors, screen))

    async def dispatch(self, request: Request) -> Response:
        """The first screen of that method whose path fits; words stand in the table before what they could be."""
        path, allowed = request.scope["path"], set()
        method = "GET" if request.method == "HEAD" else request.method
        for pattern, convertors, screen in self._routes:
            found = pattern.match(path)
            if found is None:
                continue
            if screen.method == method:
                parts = {name: convertors[name].convert(value) for name, value in found.groupdict().items()}
                request.scope["path_params"] = parts
                return await screen.handler(request)
            allowed.add(screen.method)
        elsewhere = await self._sign_in_gate.redirect_unless_signed_in(request)
        if elsewhere is not None:
            return elsewhere
        if method == "GET":
            return see_other(self._page_above(path)) if allowed else await self._not_found(request)
        raise HTTPException(405 if allowed else 404, headers={"Allow": "GET"} if allowed else None)

    def _page_above(self, path: str) -> str:
        """Where a form is that was sent to this address, which a browser keeps and asks for again (no dead ends)."""
        above = path.rpartition("/")[0]
        shown = (pattern for pattern, _, screen in self._routes if screen.method == "GET")
        return above if any(pattern.match(above) for pattern in shown) else self._page_above(above)
