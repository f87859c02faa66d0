"""Checks around endpoints.

`require("user.kick")` is a dependency for FastAPI, `permission_required("user.kick")` is around any other endpoint,
and `scopes_required("match.read")` around an endpoint of an API that takes access tokens.
"""

import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar, cast

from gatehouse.client.errors import ClientError, Denied, Unauthenticated
from gatehouse.client.gatehouse import Gatehouse
from gatehouse.client.middleware import SCOPE_KEY
from gatehouse.client.permissions import Resource
from gatehouse.client.protected_resource import TOKEN_KEY, ResourceToken
from gatehouse.client.verification import User
from gatehouse.client.wsgi import current_request, refusal_response, token_and_resource, user_and_sync_client


class Connection(Protocol):
    """A request or WebSocket of Starlette, or another object with a scope."""

    @property
    def scope(self) -> MutableMapping[str, Any]: ...


V = TypeVar("V")
R = TypeVar("R")
P = ParamSpec("P")
# A value, or how to find it in the request: `lambda request: request.path_params["project"]`.
ValueOrGetter: TypeAlias = V | Callable[[Any], V]


class FastApiSignature:
    """A signature for FastAPI, which passes the request only to a parameter of Starlette's class.

    The caller has Starlette loaded, so it need not be imported here.
    """

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        if instance is None:
            raise AttributeError  # the class has an ordinary one
        kind = getattr(sys.modules.get("starlette.requests"), "HTTPConnection", Connection)
        one = inspect.Parameter("connection", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind)
        return inspect.Signature([one], return_annotation=User)


@dataclass(frozen=True, kw_only=True)
class Requirement:
    rule: str
    project: ValueOrGetter[str] | None = None
    resource: ValueOrGetter[Resource] | None = None

    __signature__ = FastApiSignature()

    async def __call__(self, connection: Connection) -> User:
        """The user, who holds the rule; raise Unauthenticated or Denied, which the middleware answers."""
        user, gatehouse = user_and_client(connection)
        project, resource = resolve_value(self.project, connection), resolve_value(self.resource, connection)
        await gatehouse.require(user, self.rule, project, resource)
        return user


def require(
    rule: str, *, project: ValueOrGetter[str] | None = None, resource: ValueOrGetter[Resource] | None = None
) -> Requirement:
    """`Depends(require("user.kick"))`."""
    return Requirement(rule=rule, project=project, resource=resource)


def permission_required(
    rule: str, *, project: ValueOrGetter[str] | None = None, resource: ValueOrGetter[Resource] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Around an asynchronous endpoint whose first argument is the request, or around a view behind WSGI middleware.

    A view of Django or Flask answers a refusal by itself, because these turn exceptions into a 500. `project` and
    `resource` are given Django's request, or the WSGI environment.
    """
    needed = require(rule, project=project, resource=resource)

    def around(endpoint: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(endpoint)
        async def checked(*args: P.args, **kwargs: P.kwargs) -> object:
            await needed(cast("Connection", args[0]))
            return await cast("Awaitable[object]", endpoint(*args, **kwargs))

        @functools.wraps(endpoint)
        def checked_view(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                check_view(needed, args)
            except ClientError as error:
                return cast("R", refusal_response(error, args))
            return endpoint(*args, **kwargs)

        return cast("Callable[P, R]", checked) if inspect.iscoroutinefunction(endpoint) else checked_view

    return around


def scopes_required(*scopes: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Around an endpoint behind ProtectedResourceMiddleware, or a view behind ProtectedResourceWsgiMiddleware.

    A token that lacks one of the scopes is answered with `insufficient_scope` and all of them, so that the client can
    ask the person for more.
    """

    def around(endpoint: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(endpoint)
        async def checked(*args: P.args, **kwargs: P.kwargs) -> object:
            token_of(cast("Connection", args[0])).require(*scopes)
            return await cast("Awaitable[object]", endpoint(*args, **kwargs))

        @functools.wraps(endpoint)
        def checked_view(*args: P.args, **kwargs: P.kwargs) -> R:
            token, resource = token_and_resource()
            try:
                token.require(*scopes)
            except ClientError as error:
                return cast("R", refusal_response(error, args, resource.challenge(error)))
            return endpoint(*args, **kwargs)

        return cast("Callable[P, R]", checked) if inspect.iscoroutinefunction(endpoint) else checked_view

    return around


def token_of(connection: Connection) -> ResourceToken:
    state = connection.scope.get("state", {})
    if TOKEN_KEY not in state:
        raise RuntimeError("ProtectedResourceMiddleware is missing")
    token: ResourceToken = state[TOKEN_KEY]
    return token


def check_view(needed: Requirement, args: tuple[object, ...]) -> None:
    """Raise Unauthenticated or Denied unless the user of the WSGI request holds the rule."""
    user, gatehouse = user_and_sync_client()
    request = current_request(args)
    project, resource = resolve_value(needed.project, request), resolve_value(needed.resource, request)
    gatehouse.require(user, needed.rule, project, resource)


def resolve_value(given: ValueOrGetter[V] | None, request: object) -> V | None:
    """Return the value from the request. Raises Denied when it is missing: None would mean the root."""
    if not callable(given):
        return given
    value: V | None = given(request)
    if value is None:
        raise Denied("the request does not contain the resource")
    return value


def user_and_client(connection: Connection) -> tuple[User, Gatehouse]:
    scope = connection.scope
    if SCOPE_KEY not in scope:
        raise RuntimeError("GatehouseMiddleware is missing")
    if scope["user"] is None:
        raise Unauthenticated("no user JWT")
    return scope["user"], scope[SCOPE_KEY]
