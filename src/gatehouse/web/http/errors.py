"""Errors: the five dialects of error responses, and the only place where an exception becomes a response."""

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from html import escape
from http import HTTPStatus
from typing import Final, Literal

import msgspec
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketClose
from structlog.typing import FilteringBoundLogger

from gatehouse.accounts.bans.model import Banned, UserBan
from gatehouse.kernel.errors import (
    BadInput,
    Conflict,
    GatehouseError,
    NotFound,
    Refused,
    TooMany,
    Unavailable,
)
from gatehouse.oauth.errors import DeviceDenied, MayNotExchange, NoClientCredentials, NoDeviceGrant, NoPushedRequests
from gatehouse.permissions.errors import AdministratorsOnly, ApplicationTooLarge, ProtectedHeld, TooMuch
from gatehouse.tokens.claims import InvalidToken
from gatehouse.web.http.responses import html_response, json_response


class Dialect(Enum):
    PAGE = "page"  # HTML, for a person
    OAUTH = "oauth"  # RFC 6749 §5.2, interface §7
    PERMISSIONS = "permissions"  # interface §4.1, R6
    GAME = "game"  # interface §4.3, R4
    PLAIN = "plain"  # ours


# The dialect before a route is known. The longest prefix that ends at a slash decides.
DIALECT_PREFIXES: Final[tuple[tuple[str, Dialect], ...]] = (
    ("/proxy/api/gameSession", Dialect.GAME),
    ("/api/permissions", Dialect.PERMISSIONS),
    ("/proxy/oauth", Dialect.OAUTH),
    ("/openapi.json", Dialect.PLAIN),
    ("/.well-known", Dialect.PLAIN),
    ("/access", Dialect.PLAIN),
    ("/healthz", Dialect.PLAIN),
    ("/metrics", Dialect.PLAIN),
    ("/readyz", Dialect.PLAIN),
    ("/proxy", Dialect.PLAIN),
    ("/api", Dialect.PLAIN),
)


class OAuthFailure(msgspec.Struct, frozen=True, kw_only=True):
    error: str
    error_description: str


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Error envelope of the permission and game session endpoints."""

    error: str
    status: Literal["ERROR"] = "ERROR"


class BannedFailure(Failure, frozen=True, kw_only=True):
    """What a banned person is told."""

    public_text: str
    until: int  # Unix seconds; 0 for no end
    reason: Literal["banned"] = "banned"


class PlainFailure(msgspec.Struct, frozen=True, kw_only=True):
    error: str
    request_id: str
    status: Literal["ERROR"] = "ERROR"


def dialect_for_path(path: str) -> Dialect:
    for prefix, dialect in DIALECT_PREFIXES:
        if path == prefix or path.startswith(f"{prefix}/"):
            return dialect
    return Dialect.PAGE


def dialect_of(scope: Scope) -> Dialect:
    """Return the dialect of the endpoint, or of the path while no endpoint is known."""
    known = scope.get("state", {}).get("dialect")
    return known if isinstance(known, Dialect) else dialect_for_path(scope["path"])


def request_id_of(scope: Scope) -> str:
    """Return the id of the request; empty if it was refused before it got one."""
    return str(scope.get("state", {}).get("request_id", ""))


# An exception becomes a response in the dialect of its endpoint.
#
# A package's error has a public part, which may be shown, and a private part, which is logged with the request id. An
# unexpected exception is a 500 that shows only that id (checklist HT-14).


REALM: Final = "gatehouse"
UNAVAILABLE_RETRY_SECONDS: Final = 5  # seconds until a caller may ask again after a 503
WEBSOCKET_FAILED: Final = 1011
SERVER_ERROR: Final = 500
UNAUTHORIZED: Final = 401

log: FilteringBoundLogger = structlog.get_logger("gatehouse.web.http.errors")


class TooLarge(BadInput):
    """The request is larger than the limit: 413."""

    public = "The request is too large."


class UnsupportedMediaType(BadInput):
    """The endpoint does not accept this kind of body: 415."""

    public = "The Content-Type is not supported here."


IdentifyReader = Callable[[Request], Awaitable[object]]


async def identify_no_reader(request: Request) -> None:
    """Identify no one; for applications that show no page to a signed-in person."""


# Stores why the request got an error page.
StoreRefusal = Callable[[Request, str], Awaitable[object]]


async def store_no_refusal(request: Request, reason: str) -> None:
    """Store nothing; for applications without a database."""


# Status, title, message, reference and scope become the HTML of an error page, in the language of the reader.
RenderError = Callable[[int, str, str, str, Scope], str]


class HttpProblem(msgspec.Struct, frozen=True, kw_only=True):
    """The part of an exception that may be shown."""

    status: int
    code: str = "invalid_request"
    public: str  # the fixed text of its class
    message: str  # that text, or the error in the caller's own input
    record_id: str = ""
    ban: UserBan | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)


ERROR_STATUSES: Final[Mapping[type, tuple[int, str]]] = {
    BadInput: (400, "invalid_request"),
    TooLarge: (413, "invalid_request"),
    TooMuch: (413, "invalid_request"),
    UnsupportedMediaType: (415, "invalid_request"),
    InvalidToken: (401, "invalid_token"),
    Refused: (403, "access_denied"),
    NotFound: (404, "invalid_request"),
    Conflict: (409, "invalid_request"),
    TooMany: (429, "temporarily_unavailable"),
    Unavailable: (503, "temporarily_unavailable"),
}

# An error with its own OAuth code has the status of that code; all others are 400 (R3, RFC 6749 §5.2).
CODE_STATUSES: Final[Mapping[str, int]] = {
    "invalid_client": 401,
    "invalid_token": 401,
    "insufficient_scope": 403,
    "unauthorized_client": 403,
    "access_denied": 403,
    "server_error": 500,
    "temporarily_unavailable": 503,
}

# Whatever others with their code are.
ALWAYS_400: Final = (DeviceDenied, MayNotExchange, NoClientCredentials, NoDeviceGrant, NoPushedRequests)

# Pages without a reference: they say what there is to say, and strangers cause any number of them.
SELF_EXPLANATORY: Final = frozenset({404, 405, 429, 503})

INTERNAL_PROBLEM: Final = HttpProblem(
    status=SERVER_ERROR,
    code="server_error",
    public="Something went wrong on our side.",
    message="Something went wrong on our side.",
)

STATUS_MESSAGES: Final[Mapping[int, str]] = {
    400: "The request is malformed.",
    401: "Authentication is required.",
    403: "This is not allowed.",
    404: "There is nothing at this address.",
    405: "This method is not allowed here.",
    408: "The request took too long to arrive.",
    413: "The request is too large.",
    414: "The URL is too long.",
    415: "The Content-Type is not supported here.",
    429: "Too many requests.",
    431: "The request headers are too large.",
    503: "The service is temporarily unavailable.",
}

STATUS_TITLES: Final[Mapping[int, str]] = {
    400: "Invalid request",
    401: "Sign-in required",
    403: "Not allowed",
    404: "Page not found",
    429: "Too many requests",
    500: "Something went wrong",
    503: "Temporarily unavailable",
}


def problem_of(error: Exception) -> HttpProblem:
    if isinstance(error, HTTPException):
        return problem_of_status(error.status_code, error.headers)
    if isinstance(error, ClientDisconnect):
        return problem_of_status(400)  # no client reads it, and the metrics must not count it as a server error
    if not isinstance(error, GatehouseError):
        return INTERNAL_PROBLEM
    status, code = _status_and_code(error)
    if status >= SERVER_ERROR and not isinstance(error, Unavailable):
        return INTERNAL_PROBLEM
    detail = (
        error.detail if isinstance(error, BadInput | ProtectedHeld | AdministratorsOnly | ApplicationTooLarge) else ""
    )
    return HttpProblem(
        status=status,
        code=code,
        public=error.public,
        message=detail or error.public,
        record_id=str(getattr(error, "record_id", "")),
        ban=error.ban if isinstance(error, Banned) else None,
        headers=_retry_after(error),
    )


def problem_of_status(status: int, headers: Mapping[str, str] | None = None) -> HttpProblem:
    words = STATUS_MESSAGES.get(status, HTTPStatus(status).phrase)
    code = "temporarily_unavailable" if status in (429, 503) else "invalid_request"
    return HttpProblem(status=status, code=code, public=words, message=words, headers=headers or {})


def _status_and_code(error: GatehouseError) -> tuple[int, str]:
    code = getattr(error, "code", "")
    if isinstance(code, str) and code:
        return 400 if isinstance(error, ALWAYS_400) else CODE_STATUSES.get(code, 400), code
    known = (ERROR_STATUSES[kind] for kind in type(error).__mro__ if kind in ERROR_STATUSES)
    return next(known, (SERVER_ERROR, "server_error"))


def _retry_after(error: GatehouseError) -> Mapping[str, str]:
    if isinstance(error, TooMany):
        return {"Retry-After": str(error.retry_after)}
    if isinstance(error, Unavailable):
        return {"Retry-After": str(UNAVAILABLE_RETRY_SECONDS)}
    return {}


def reason_of(error: Exception, problem: HttpProblem) -> str:
    """Return the reason for operators; the text of an unexpected exception may hold anything, so only its kind."""
    if isinstance(error, GatehouseError):
        return str(error)
    return problem.message if isinstance(error, HTTPException) else f"unexpected error {type(error).__name__}"


class WebSocketErrorClose(Response):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await WebSocketClose(WEBSOCKET_FAILED)(scope, receive, send)


class ErrorRenderer:
    """Renders problems; `render_error` makes the page of the PAGE dialect.

    `identify_reader` finds the signed-in person, so that the page is in their language. `store_refusal` stores why a
    page shows an error, under its reference.
    """

    def __init__(
        self,
        *,
        render_error: RenderError,
        identify_reader: IdentifyReader = identify_no_reader,
        store_refusal: StoreRefusal = store_no_refusal,
        permissions_always_200: bool = False,
    ) -> None:
        self._render_error = render_error
        self._identify_reader = identify_reader
        self._store_refusal = store_refusal
        self._always_200 = permissions_always_200

    async def response_for(self, scope: Scope, error: Exception) -> Response:
        """Return the response to an exception; a WebSocket is closed without a reason."""
        problem = problem_of(error)
        _log_problem(problem, error)
        if scope["type"] == "websocket":
            return WebSocketErrorClose()
        if dialect_of(scope) is Dialect.PAGE:
            if problem.status < SERVER_ERROR:
                await self._try_identify_reader(scope)
            if problem.status not in SELF_EXPLANATORY:
                await self._store_refusal(Request(scope), reason_of(error, problem))
                return self.render(problem, scope, reference=request_id_of(scope))
        return self.render(problem, scope)

    async def _try_identify_reader(self, scope: Scope) -> None:
        """Identify the reader; a failure is only logged, because the response is an error already."""
        try:
            await self._identify_reader(Request(scope))
        except Exception:
            log.exception("could not determine the user of an error page")

    async def refuse(self, status: int, scope: Scope, receive: Receive, send: Send) -> None:
        """End a request before any endpoint has seen it."""
        if scope["type"] == "websocket":
            await WebSocketErrorClose()(scope, receive, send)
            return
        await self.render(problem_of_status(status), scope)(scope, receive, send)

    def render(self, problem: HttpProblem, scope: Scope, *, reference: str = "") -> Response:
        """`reference`: what a page shows, for people to report."""
        headers = dict(problem.headers)
        if problem.status == UNAUTHORIZED:
            headers.setdefault("WWW-Authenticate", _challenge(problem, scope))
        match dialect_of(scope):
            case Dialect.PAGE:
                return self._page_response(problem, scope, reference, headers)
            case Dialect.OAUTH:
                return _oauth_response(problem, headers)
            case Dialect.PERMISSIONS:
                return self._permissions_response(problem, headers)
            case Dialect.GAME:
                return _game_response(problem, request_id_of(scope), headers)
            case Dialect.PLAIN:
                body = PlainFailure(error=problem.message, request_id=request_id_of(scope))
                return json_response(body, status=problem.status, headers=headers)

    def _permissions_response(self, problem: HttpProblem, headers: Mapping[str, str]) -> Response:
        words = "invalid token" if problem.status == UNAUTHORIZED else problem.message  # interface §7
        status = 200 if self._always_200 else problem.status
        body = Failure(error=words)
        if problem.ban is not None:
            body = BannedFailure(error=words, public_text=problem.ban.public_text, until=problem.ban.until)
        return json_response(body, status=status, headers=headers)

    def _page_response(
        self, problem: HttpProblem, scope: Scope, reference: str, headers: Mapping[str, str]
    ) -> Response:
        title = STATUS_TITLES.get(problem.status, HTTPStatus(problem.status).phrase)
        try:
            page = self._render_error(problem.status, title, problem.message, reference, scope)
        except Exception:
            log.exception("error page failed")
            page = plain_error_page(problem.status, title, problem.message, reference, scope)
        return html_response(page, status=problem.status, headers=headers)


def _oauth_response(problem: HttpProblem, headers: Mapping[str, str]) -> Response:
    """Render an OAuth error with fixed texts only: the token endpoint echoes no input (checklist TK-30)."""
    body = OAuthFailure(error=problem.code, error_description=oauth_description(problem.public))
    status = 400 if problem.status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE else problem.status  # R3
    return json_response(body, status=status, headers=headers)


def _game_response(problem: HttpProblem, request_id: str, headers: Mapping[str, str]) -> Response:
    """Render a record id without a reason (interface §4.3), except for input that cannot be read."""
    readable = problem.status in (HTTPStatus.BAD_REQUEST, 413, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    error = problem.message if readable else problem.record_id or request_id
    return json_response(Failure(error=error), status=problem.status, headers=headers)


def oauth_description(text: str) -> str:
    """Return printable ASCII without quote and backslash, which is all that RFC 6749 §5.2 allows in a description."""
    return "".join(letter for letter in text if " " <= letter <= "~" and letter not in '"\\')


def _challenge(problem: HttpProblem, scope: Scope) -> str:
    """Return the challenge: Basic if the client tried Basic (RFC 6749 §5.2), Bearer for all others (RFC 6750 §3)."""
    given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    if problem.code == "invalid_client" and given[:6].lower() == b"basic ":
        return f'Basic realm="{REALM}"'
    return f'Bearer realm="{REALM}", error="{problem.code}"'


def plain_error_page(status: int, title: str, message: str, reference: str, scope: Scope) -> str:  # noqa: ARG001
    """An error page without templates, for when the templates are broken."""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<h1>{escape(title)}</h1><p>{escape(message)}</p><p>{status} {escape(reference)}</p></html>"
    )


def _log_problem(problem: HttpProblem, error: Exception) -> None:
    if isinstance(error, HTTPException | ClientDisconnect):
        return  # the access log line is enough
    kind = type(error).__name__
    if problem.status == SERVER_ERROR:
        log.error("request failed", kind=kind, exc_info=error)
    elif problem.status > SERVER_ERROR:
        log.warning("unavailable", kind=kind, detail=str(error))
    else:
        log.info("refused", kind=kind, detail=str(error))
