"""One log line and one set of figures per request, by the name of the endpoint.

Never the raw path or the query: both can carry codes, session ids and locations (checklist GS-32, AK-11).
Stands inside the request-id middleware and outside of everything that may refuse a request.
"""

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars

from gatehouse.kernel.clock import Clock
from gatehouse.logs import AccessLogLine, access_log
from gatehouse.web.dialects import request_id_of
from gatehouse.web.metrics import METHODS, OTHER, Metrics
from gatehouse.web.middleware.client_address import CALLER_ADDRESS_KEY

MILLISECONDS: Final = 1_000
NO_SOURCE: Final = "-"


class AccessLogMiddleware:
    def __init__(self, app: ASGIApp, *, metrics: Metrics, clock: Clock) -> None:
        self._app = app
        self._metrics = metrics
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        bind_contextvars(request_id=request_id_of(scope))  # never unbound: every request is a task of its own
        await (self._log_request if scope["type"] == "http" else self._app)(scope, receive, send)

    async def _log_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = self.start_timer()
        status = 0

        async def noting(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            state = scope["state"]
            self.record_request(
                endpoint=str(state.get("endpoint", OTHER)),
                method=scope["method"],
                status=status,
                begun=begun,
                source=str(getattr(state.get(CALLER_ADDRESS_KEY), "source", NO_SOURCE)),
                request_id=state["request_id"],
            )

    def start_timer(self) -> float:
        return self._clock.monotonic()

    def record_request(
        self, *, endpoint: str, method: str, status: int, begun: float, source: str, request_id: str
    ) -> None:
        seconds = self._clock.monotonic() - begun
        self._metrics.observe(endpoint=endpoint, method=method, status=status, seconds=seconds)
        access_log.write(
            AccessLogLine(
                endpoint=endpoint,
                method=method if method in METHODS else OTHER,
                status=status,
                ms=round(seconds * MILLISECONDS, 1),
                source=source,
                request_id=request_id,
            )
        )
