"""A name for every request: in the log, in the answer, in what an error shows (S-25)."""

from collections.abc import Iterable
from typing import Final

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars

from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.ids import new_request_id
from gatehouse.logs import AccessLogLine, access_log
from gatehouse.web.http.client_address import CALLER_ADDRESS_KEY, caller_address_of
from gatehouse.web.http.errors import request_id_of
from gatehouse.web.http.metrics import METHODS, OTHER, Metrics
from gatehouse.web.http.responses import Header, with_headers


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


# What every answer tells a browser not to do (S-08, S-09, checklist HT-01).


TWO_YEARS: Final = 2 * 365 * 24 * 3600
UNUSED_FEATURES: Final = (
    "accelerometer",
    "camera",
    "display-capture",
    "geolocation",
    "gyroscope",
    "magnetometer",
    "microphone",
    "midi",
    "payment",
    "usb",
)


def content_security_policy(*, form_action: Iterable[str] = (), images: Iterable[str] = ()) -> str:
    """The strict policy, with these sources beside 'self': a client's redirect origin, `data:` on /docs."""
    return "; ".join(
        [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            f"img-src {policy_sources(images)}",
            "font-src 'self'",
            "connect-src 'self'",
            f"form-action {policy_sources(form_action)}",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ]
    )


def policy_sources(extra: Iterable[str]) -> str:
    allowed = ["'self'", *extra]
    for source in allowed:
        if not source.isascii() or not source.isprintable() or any(mark in source for mark in " ;,"):
            raise ValueError(f"{source!r} would add more than one source to a policy")
    return " ".join(allowed)


SECURITY_HEADERS: Final[tuple[Header, ...]] = (
    (b"content-security-policy", content_security_policy().encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", ", ".join(f"{feature}=()" for feature in UNUSED_FEATURES).encode()),
    (b"cache-control", b"no-store"),
)
HSTS: Final[Header] = (b"strict-transport-security", b"max-age=%d; includeSubDomains" % TWO_YEARS)


class SecurityHeadersMiddleware:
    """Adds what the answer does not say itself: a page may bring its own policy, a static file its caching."""

    def __init__(self, app: ASGIApp, *, https: bool) -> None:
        self._app = app
        self._headers = (*SECURITY_HEADERS, HSTS) if https else SECURITY_HEADERS
        self._names = frozenset(name for name, _ in self._headers)
        self._missing_cache: dict[tuple[bytes, ...], tuple[Header, ...]] = {}  # a handful: answers say few of them

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, with_headers(send, self.missing_headers))

    def missing_headers(self, present: Iterable[Header]) -> Iterable[Header]:
        """What an answer with these headers does not say yet."""
        said = tuple(lower for name, _ in present if (lower := name.lower()) in self._names)
        missing = self._missing_cache.get(said)
        if missing is None:
            missing = tuple(header for header in self._headers if header[0] not in said)
            if len(set(said)) == len(said):  # else an endpoint that repeats itself could make this grow
                self._missing_cache[said] = missing
        return missing


# One log line and one set of figures per request, by the name of the endpoint.
#
# Never the raw path or the query: both can carry codes, session ids and locations (checklist GS-32, AK-11).
# Stands inside the request-id middleware and outside of everything that may refuse a request.


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


# By whose hand a request acts, for the audit log.


def origin_of(request: HTTPConnection, actor: str) -> AuditOrigin:
    caller = caller_address_of(request.scope)
    return AuditOrigin(
        actor=actor,
        address=str(caller.address),
        request_id=request_id_of(request.scope),
        proven=caller.proven,
    )
