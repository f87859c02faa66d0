"""CORS of the endpoints that clients call from a browser: for registered origins, never with credentials (R3).

Around the table, so that errors carry the header too: a page that may not read why it was refused learns nothing.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatehouse.kernel.errors import Unavailable

CLIENT_PREFLIGHT_MAX_AGE: Final = "600"  # seconds; an origin may be taken away
CORS_ALLOWED_HEADERS: Final = "authorization, content-type"

IsRegisteredOrigin = Callable[[str], Awaitable[bool]]


class ClientCorsMiddleware:
    """`paths` are those the rule is for, each with its methods."""

    def __init__(self, app: ASGIApp, *, paths: Mapping[str, str], is_registered: IsRegisteredOrigin) -> None:
        self._app = app
        self._paths = paths
        self._is_registered = is_registered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        methods = self._paths.get(scope["path"]) if scope["type"] == "http" else None
        if methods is None:
            await self._app(scope, receive, send)
            return
        origin = await self._registered_origin(scope)
        if origin and scope["method"] == "OPTIONS":
            await preflight_response(origin, methods)(scope, receive, send)
        else:
            await self._app(scope, receive, send_with_cors(origin, send) if origin else send)

    async def _registered_origin(self, scope: Scope) -> str:
        """The caller's, if a client registered it; whether the database is there is for the endpoint to say."""
        given = Headers(scope=scope).getlist("origin")
        if len(given) != 1:
            return ""
        try:
            return given[0] if await self._is_registered(given[0]) else ""
        except Unavailable:
            return ""


def preflight_response(origin: str, methods: str) -> Response:
    return Response(
        None,
        204,
        {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": methods,
            "Access-Control-Allow-Headers": CORS_ALLOWED_HEADERS,
            "Access-Control-Max-Age": CLIENT_PREFLIGHT_MAX_AGE,
            "Vary": "Origin",
        },
    )


def send_with_cors(origin: str, send: Send) -> Send:
    async def send_shared(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Access-Control-Allow-Origin"] = origin
            headers.add_vary_header("Origin")
        await send(message)

    return send_shared
