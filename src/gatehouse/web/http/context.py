"""The context of a request: its id, the address of its caller, the headers of its response, its log line.

`RequestContext` is the ASGI application that the server calls. It asks the dispatcher of routing.py for a response,
and sends a whole one in one write. It is plain ASGI, because Starlette's BaseHTTPMiddleware hides a disconnect.
"""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from operator import itemgetter
from typing import Final, Protocol

from msgspec import Struct
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.addresses import Network
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.ids import new_request_id
from gatehouse.logs import AccessLogLine, access_log, current_request_id
from gatehouse.web.http.client_address import (
    CALLER_ADDRESS_KEY,
    FOREIGN_SITE_KEY,
    UnreadableChain,
    caller_address_of,
    resolve_caller_address,
)
from gatehouse.web.http.errors import ErrorRenderer, request_id_of
from gatehouse.web.http.metrics import METHODS, OTHER, Metrics
from gatehouse.web.http.responses import WRITE_RESPONSE_KEY, Header, header_lines

MILLISECONDS: Final = 1_000
AUTHZEN_PREFIX: Final = "/access/v1/"
REQUEST_ID: Final = re.compile(rb"[\x21-\x7e]{1,256}")
NO_SOURCE: Final = "-"
name_of: Final = itemgetter(0)
CONNECTION_HEADERS: Final = frozenset({b"connection", b"transfer-encoding"})
RESPONSE_STARTS: Final = ("http.response.start", "websocket.http.response.start")

# Headers of every response (S-08, S-09, checklist HT-01).

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


def content_security_policy(
    *,
    form_action: Iterable[str] = (),
    own_forms: bool = True,
    scripts: bool = True,
    frames: bool = False,
    framed: bool = False,
) -> str:
    """Return the strict policy, in which forms may also lead to these origins: those that a client redirects to.

    Without `own_forms` the forms of the page lead to those sources only. `frames`: the page shows others of this
    service in frames; `framed`: it is one of those.
    """
    own, none = "'self'", "'none'"
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {own if scripts else none}",
            "style-src 'self'",
            "img-src 'self'",
            "font-src 'self'",
            "connect-src 'self'",
            f"form-action {policy_sources(form_action, own=own_forms)}",
            *(["frame-src 'self'"] if frames else []),
            f"frame-ancestors {own if framed else none}",
            "base-uri 'none'",
        ]
    )


def policy_sources(extra: Iterable[str], *, own: bool = True) -> str:
    allowed = ["'self'", *extra] if own else [*extra] or ["'none'"]
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


class AccessLog:
    """Writes one log line and one set of metrics per request, by the name of the endpoint.

    The raw path and query are never logged: both can contain codes, session ids and locations (checklist GS-32,
    AK-11).
    """

    def __init__(self, *, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self.monotonic = clock.monotonic

    def record_request(
        self, *, endpoint: str, method: str, status: int, begun: float, source: str, request_id: str
    ) -> None:
        seconds = self.monotonic() - begun
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


class MissingHeaders(Struct, frozen=True):
    """The common headers that a response lacks."""

    headers: tuple[Header, ...]
    lines: bytes | None  # the same as the server sends them; None if the response says itself how it is framed


class RespondingApp(Protocol):
    async def respond(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Return a response that is whole, or send it and return None."""


class ResponseSender(Struct, eq=False):
    """Sends the messages of a response, with the common headers."""

    context: "RequestContext"
    send: Send
    state: Mapping[str, object]
    own: Header  # of this request only
    status: int = 0  # of the response; 0 before it begins

    async def __call__(self, message: Message) -> None:
        if message["type"] in RESPONSE_STARTS:
            self.status = message["status"]
            present = message.get("headers", ())
            missing: Iterable[Header] = self.context.missing_headers(present).headers
            if FOREIGN_SITE_KEY in self.state:  # its owner decides about https on its subdomains
                missing = [header for header in missing if header is not HSTS]
            message["headers"] = [*present, *missing, self.own]
        await self.send(message)


class RequestContext:
    """Gives a request its id and its caller, and adds the common headers to every response.

    The id is always new and never taken from the caller, who could otherwise reuse the id of another request's log
    lines. AuthZEN wants the caller's own in the header of the response; logs and errors have ours there too.
    `log`: None where requests are neither logged nor counted.
    """

    def __init__(
        self,
        app: RespondingApp,
        *,
        errors: ErrorRenderer,
        https: bool,
        trusted_proxies: tuple[Network, ...] = (),
        log: AccessLog | None = None,
    ) -> None:
        self._app = app
        self._errors = errors
        self._headers = (*SECURITY_HEADERS, HSTS) if https else SECURITY_HEADERS
        self._missing_cache: dict[tuple[bytes, ...], MissingHeaders] = {}  # by names: endpoints set few
        self._trusted_proxies = trusted_proxies
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app.respond(scope, receive, send)
            return
        request_id = new_request_id()
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        current_request_id.set(request_id)  # never reset: every request is a task of its own
        begun = self._log.monotonic() if self._log else 0.0
        own = (b"x-request-id", callers_request_id(scope) or request_id.encode())
        sender = ResponseSender(self, send, state, own)
        try:
            try:
                state[CALLER_ADDRESS_KEY] = resolve_caller_address(scope, self._trusted_proxies)
            except UnreadableChain:
                await self._errors.refuse(HTTPStatus.BAD_REQUEST, scope, receive, sender)
                return
            response = await self._app.respond(scope, receive, sender)
            if response is not None:
                missing = self.missing_headers(response.raw_headers)
                write = scope.get(WRITE_RESPONSE_KEY)
                if write is None or missing.lines is None or FOREIGN_SITE_KEY in state:
                    await response(scope, receive, sender)
                else:
                    sender.status = response.status_code
                    try:
                        await write(sender.status, [*response.raw_headers, own], missing.lines, response.body)
                    except ValueError as error:  # a header with a line break; nothing is sent yet
                        response = await self._errors.response_for(scope, error)
                        await response(scope, receive, sender)
        finally:
            if self._log is not None and scope["type"] == "http":
                caller = state.get(CALLER_ADDRESS_KEY)
                self._log.record_request(
                    endpoint=state.get("endpoint", OTHER),
                    method=scope["method"],
                    status=sender.status,
                    begun=begun,
                    source=caller.source if caller else NO_SOURCE,
                    request_id=request_id,
                )

    def missing_headers(self, present: Iterable[Header]) -> "MissingHeaders":
        """Return the common headers that a response lacks.

        A page may set its own policy, a static file its own caching.
        """
        names = tuple(map(name_of, present))
        missing = self._missing_cache.get(names)
        if missing is None:
            set_already = {name.lower() for name in names}
            headers = tuple(header for header in self._headers if header[0] not in set_already)
            is_plain = b"content-length" in set_already and not CONNECTION_HEADERS & set_already
            missing = MissingHeaders(headers, header_lines(headers) if is_plain else None)
            if len(set_already) == len(names):  # else an endpoint that repeats a header could make the cache grow
                self._missing_cache[names] = missing
        return missing


def callers_request_id(scope: Scope) -> bytes:
    """Return the X-Request-ID that AuthZEN takes back in its response (AuthZEN 1.0 §10); b"" for none."""
    if not str(scope["path"]).startswith(AUTHZEN_PREFIX):
        return b""
    sent = [value for name, value in scope["headers"] if name == b"x-request-id"]
    return sent[0] if len(sent) == 1 and REQUEST_ID.fullmatch(sent[0]) else b""


def origin_of(request: HTTPConnection, actor: str) -> AuditOrigin:
    """Return the origin of an action for the audit log: the actor, the address and the request."""
    caller = caller_address_of(request.scope)
    return AuditOrigin(
        actor=actor,
        address=str(caller.address),
        request_id=request_id_of(request.scope),
        proven=caller.proven,
    )
