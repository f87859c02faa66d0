"""WSGI middleware, for Django, Flask and other synchronous frameworks.

It is plain WSGI: around Django's `get_wsgi_application()`, or as Flask's `app.wsgi_app`. It answers as the ASGI
middleware does.
"""

import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import msgspec

from gatehouse.client.errors import ClientError, Unauthenticated
from gatehouse.client.middleware import (
    AddressOf,
    decode_header,
    log_refusal,
    no_address,
    parse_bearer,
    refusal_content,
)
from gatehouse.client.protected_resource import ProtectedResource, ResourceToken
from gatehouse.client.sync import SyncGatehouse, SyncProtectedResource
from gatehouse.client.verification import User

Environ: TypeAlias = dict[str, Any]
StartResponse: TypeAlias = Callable[..., Any]
WsgiApp: TypeAlias = Callable[[Environ, StartResponse], Iterable[bytes]]

USER_KEY: Final = "gatehouse.user"  # in the environment: the User, or None
TOKEN_KEY: Final = "gatehouse.token"  # noqa: S105 - in the environment: the ResourceToken
CLIENT_KEY: Final = "gatehouse.client"
RESOURCE_KEY: Final = "gatehouse.resource"
REQUEST: Final[ContextVar[Environ]] = ContextVar("gatehouse_request")  # of this thread, for the decorators


class GatehouseWsgiMiddleware:
    """Adds the user to every request, as `environ["gatehouse.user"]`; options are those of GatehouseMiddleware.

    `open_paths` are compared with PATH_INFO.
    """

    def __init__(
        self,
        app: WsgiApp,
        *,
        gatehouse: SyncGatehouse,
        anonymous: bool = False,
        open_paths: Iterable[str] = (),
        address: AddressOf = no_address,
        offline: bool = False,
    ) -> None:
        self._app = app
        self._gatehouse = gatehouse
        self._anonymous = anonymous
        self._open = frozenset(open_paths)
        self._address = address
        self._offline = offline

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        try:
            user = self._user(environ)
        except ClientError as error:
            return RefusalApp(error)(environ, start_response)
        environ[USER_KEY], environ[CLIENT_KEY] = user, self._gatehouse
        known = REQUEST.set(environ)
        try:
            return self._app(environ, start_response)
        finally:
            REQUEST.reset(known)

    def _user(self, environ: Environ) -> User | None:
        jwt = parse_bearer(header_bytes(environ, "HTTP_AUTHORIZATION"))
        if jwt is None:
            path = environ.get("PATH_INFO", "").encode("latin-1").decode("utf-8", "replace")
            if self._anonymous or path in self._open:
                return None
            raise Unauthenticated("no user JWT")
        factor = decode_header(header_bytes(environ, "HTTP_FACTOR"))
        user = self._gatehouse.user(jwt, factor=factor, address=self._address(environ))
        if not self._offline:
            self._gatehouse.permissions(user)
        return user


class ProtectedResourceWsgiMiddleware:
    """Serves the metadata document and verifies the token of every other request: `environ["gatehouse.token"]`."""

    def __init__(self, app: WsgiApp, *, resource: SyncProtectedResource, scopes: Iterable[str] = ()) -> None:
        self._app = app
        self._resource = resource
        self._scopes = tuple(scopes)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        described = self._resource.description
        if environ.get("PATH_INFO", "") == described.metadata_path:
            start_response("200 OK", [("content-type", "application/json"), ("access-control-allow-origin", "*")])
            return [msgspec.json.encode(described.metadata())]
        try:
            token = parse_bearer(header_bytes(environ, "HTTP_AUTHORIZATION")) or ""
            environ[TOKEN_KEY] = self._resource.verify(token, scopes=self._scopes)
        except ClientError as error:
            challenge = described.challenge(error) if error.status in (401, 403) else ""
            return RefusalApp(error, challenge)(environ, start_response)
        environ[RESOURCE_KEY] = described
        known = REQUEST.set(environ)
        try:
            return self._app(environ, start_response)
        finally:
            REQUEST.reset(known)


class RefusalApp:
    """A WSGI application that answers with the refusal."""

    def __init__(self, error: ClientError, challenge: str = "") -> None:
        log_refusal(error)
        self.status = error.status
        self.headers, self.body = refusal_content(error, challenge)

    def __call__(self, _environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        start_response(f"{self.status} {HTTPStatus(self.status).phrase}", self.headers)
        return [self.body]


def header_bytes(environ: Environ, name: str) -> bytes | None:
    """Return a header value as it was sent; of repeated ones servers pass the joined values (PEP 3333)."""
    value: str | None = environ.get(name)
    return None if value is None else value.encode("latin-1")


def user_and_sync_client() -> tuple[User, SyncGatehouse]:
    environ = REQUEST.get({})
    if CLIENT_KEY not in environ:
        raise RuntimeError("GatehouseWsgiMiddleware is missing")
    if environ[USER_KEY] is None:
        raise Unauthenticated("no user JWT")
    return environ[USER_KEY], environ[CLIENT_KEY]


def token_and_resource() -> tuple[ResourceToken, ProtectedResource]:
    environ = REQUEST.get({})
    if TOKEN_KEY not in environ:
        raise RuntimeError("ProtectedResourceWsgiMiddleware is missing")
    return environ[TOKEN_KEY], environ[RESOURCE_KEY]


def current_request(args: tuple[object, ...]) -> object:
    """Return Django's request if it is among the arguments of the view, else the WSGI environment."""
    environ = REQUEST.get()
    return next((one for one in args if getattr(one, "META", None) is environ), environ)


def refusal_response(error: ClientError, args: tuple[object, ...], challenge: str = "") -> object:
    """Return what a view returns: for Django its own response, for Flask and others a WSGI application."""
    refusal = RefusalApp(error, challenge)
    if current_request(args) is REQUEST.get():
        return refusal
    response = sys.modules["django.http"].HttpResponse(refusal.body, status=refusal.status)
    for name, value in refusal.headers:
        response[name] = value
    return response
