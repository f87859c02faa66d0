"""A small application in the real request context, and a client that can send any request."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Scope

from gatehouse.throttle.rate_limiter import RateLimiter
from gatehouse.web.http.context import AccessLog, RequestContext
from gatehouse.web.http.errors import Dialect, ErrorRenderer
from gatehouse.web.http.metrics import Metrics
from gatehouse.web.http.parse import ANY_BODY, JSON_OR_FORM, read_body, read_json, read_json_or_form
from gatehouse.web.http.responses import html_response, json_response
from gatehouse.web.http.routing import (
    Cors,
    Endpoint,
    RateClass,
    RequiredAuth,
    build_application,
)
from tests.support.asgi import UnlimitedRates
from tests.support.clock import MovableClock

Headers = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.body)


def a_scope(
    method: str = "GET", target: str = "/", headers: Headers = (), client: str = "192.0.2.1"
) -> dict[str, Any]:
    """A request as uvicorn describes it: the path decoded once, header names in lower case."""
    path, _, query = target.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "https",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        "client": (client, 40_000),
        "server": ("127.0.0.1", 8080),
    }


def receive_body(body: bytes) -> Callable[[], Awaitable[Message]]:
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return waiting.pop() if waiting else {"type": "http.disconnect"}

    return receive


async def call_app(
    app: ASGIApp,
    method: str,
    target: str,
    *,
    body: bytes = b"",
    headers: Headers = (),
    client: str = "192.0.2.1",
) -> AppResponse:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = a_scope(method, target, headers, client)
    await app(scope, receive_body(body), send)
    start = sent[0]
    answered = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return AppResponse(status=start["status"], headers=answered, body=content)


async def call_app_with_json(app: ASGIApp, target: str, body: bytes) -> AppResponse:
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    return await call_app(app, "POST", target, body=body, headers=headers)


def a_request(body: bytes = b"", *, content_type: str | None = "application/json", target: str = "/") -> Request:
    headers = [] if content_type is None else [("Content-Type", content_type)]
    return Request(a_scope("POST", target, headers), receive_body(body))


class Role(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    user_limit: int = 0
    tags: list[str] = []


class RoleSave(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    action: Literal["get", "save", "delete"]
    application_id: int | str
    data: Role | None = None


class TokenAsk(msgspec.Struct, frozen=True, kw_only=True):
    grant_type: str
    code: str | None = None


class SessionAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    factor: str | None = None
    app_id: int = 0
    fixed_ips: list[str] = msgspec.field(default_factory=list, name="fixed_ips[]")


class Echo(msgspec.Struct, frozen=True, kw_only=True):
    text: str


async def save_role(request: Request) -> Response:
    return json_response({"status": "OK", "data": await read_json(request, RoleSave)})


async def token(request: Request) -> Response:
    ask = await read_body(request, TokenAsk, kinds=JSON_OR_FORM)
    return json_response(Echo(text=ask.grant_type))


async def register(request: Request) -> Response:
    return json_response(await read_json_or_form(request, SessionAsk))


async def key_set(_request: Request) -> Response:
    return json_response({"keys": []})


async def one_key(request: Request) -> Response:
    return json_response(Echo(text=request.path_params["key_id"]))


async def front_page(_request: Request) -> Response:
    return html_response("<h1>Welcome</h1>")


def sample_endpoints() -> list[Endpoint]:
    return [
        Endpoint(
            name="pages.front",
            path="/",
            methods=("GET",),
            handler=front_page,
            dialect=Dialect.PAGE,
            rate_class=RateClass.PUBLIC,
            section="pages",
            hidden=True,
        ),
        Endpoint(
            name="oauth.token",
            path="/proxy/oauth/token",
            methods=("POST",),
            handler=token,
            dialect=Dialect.OAUTH,
            rate_class=RateClass.TOKEN,
            section="interface §4.2",
            summary="Redeem a code or refresh a token",
            request=TokenAsk,
            accepts=JSON_OR_FORM,
            answers={200: Echo},
            auth=RequiredAuth.CLIENT,
        ),
        Endpoint(
            name="oauth.keys",
            path="/proxy/oauth/keys",
            methods=("GET",),
            handler=key_set,
            dialect=Dialect.OAUTH,
            rate_class=RateClass.KEYS,
            section="interface §4.2",
            answers={200: Echo},
            cors=Cors.ANYONE,
        ),
        Endpoint(
            name="game.register",
            path="/proxy/api/gameSession/getGsid",
            methods=("POST",),
            handler=register,
            dialect=Dialect.GAME,
            rate_class=RateClass.LOGIN,
            section="interface §4.3",
            request=SessionAsk,
            accepts=ANY_BODY,
            answers={200: Echo},
        ),
        Endpoint(
            name="permissions.key",
            path="/api/permissions/application/publicKey/{key_id}",
            methods=("GET",),
            handler=one_key,
            dialect=Dialect.PERMISSIONS,
            rate_class=RateClass.KEYS,
            section="interface §4.4",
            answers={200: Echo},
        ),
        Endpoint(
            name="permissions.roles",
            path="/api/permissions/roles",
            methods=("POST",),
            handler=save_role,
            dialect=Dialect.PERMISSIONS,
            rate_class=RateClass.ADMIN,
            section="interface §4.9",
            summary="Read, save or delete a role",
            request=RoleSave,
            answers={200: Echo, 409: None},
            auth=RequiredAuth.USER_JWT_AND_FACTOR,
        ),
    ]


JSON_PATHS = ("/proxy/oauth/token", "/proxy/api/gameSession/getGsid", "/api/permissions/roles")


def a_page(status: int, title: str, message: str, request_id: str, scope: Scope) -> str:  # noqa: ARG001
    return f"<html>{status}|{title}|{message}|{request_id}</html>"


@dataclass(slots=True)
class SampleAsgiApp:
    """The sample application in its request context; add endpoints, then call `app()`."""

    endpoints: list[Endpoint] = field(default_factory=sample_endpoints)
    limiter: RateLimiter = field(default_factory=UnlimitedRates)
    errors: ErrorRenderer = field(default_factory=lambda: ErrorRenderer(render_error=a_page))
    clock: MovableClock = field(default_factory=MovableClock)
    metrics: Metrics = field(init=False)

    def app(self) -> ASGIApp:
        self.metrics = Metrics(endpoint.name for endpoint in self.endpoints)
        served = build_application(self.endpoints, limiter=self.limiter, errors=self.errors)
        log = AccessLog(metrics=self.metrics, clock=self.clock)
        return RequestContext(served, errors=self.errors, https=True, log=log)


def raising_endpoint(
    error: Exception, *, path: str = "/fails", dialect: Dialect = Dialect.PLAIN, name: str = "fails"
) -> Endpoint:
    """An endpoint that always raises this error."""

    async def fail(_request: Request) -> Response:
        raise error

    return Endpoint(
        name=name,
        path=path,
        methods=("GET", "POST"),
        handler=fail,
        dialect=dialect,
        rate_class=RateClass.PUBLIC,
        hidden=True,
    )
