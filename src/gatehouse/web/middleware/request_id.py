"""A name for every request: in the log, in the answer, in what an error shows (S-25)."""

from starlette.types import ASGIApp, Receive, Scope, Send

from gatehouse.kernel.ids import new_request_id
from gatehouse.web.middleware.answers import with_headers


class RequestIdMiddleware:
    """Always ours, never the caller's: he could otherwise point at another request's log lines."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request_id = new_request_id()
        scope.setdefault("state", {})["request_id"] = request_id
        header = (b"x-request-id", request_id.encode())
        await self._app(scope, receive, with_headers(send, lambda _: [header]))
