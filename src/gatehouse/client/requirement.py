"""`require("user.kick")`: a dependency for FastAPI; `guarded("user.kick")`: the same around an endpoint."""

import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from gatehouse.client.errors import Denied, Unauthenticated
from gatehouse.client.gatehouse import Gatehouse
from gatehouse.client.middleware import SCOPE_KEY
from gatehouse.client.permissions import Resource
from gatehouse.client.user import User


class Connection(Protocol):
    """A request or WebSocket of Starlette, or whatever else has a scope."""

    @property
    def scope(self) -> MutableMapping[str, Any]: ...


V = TypeVar("V")
R = TypeVar("R")
P = ParamSpec("P")
C = TypeVar("C", bound=Connection)
# A value, or how to find it in the request: `lambda request: request.path_params["project"]`.
ValueOrGetter: TypeAlias = V | Callable[[Any], V]


class FastApiSignature:
    """A signature as FastAPI wants to see it: it hands the request to a parameter of Starlette's class only.

    Whoever asks that way has Starlette loaded, so it need not be imported here.
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
) -> Callable[[Callable[Concatenate[C, P], Awaitable[R]]], Callable[Concatenate[C, P], Awaitable[R]]]:
    """Around an endpoint whose first argument is the request."""
    needed = require(rule, project=project, resource=resource)

    def around(endpoint: Callable[Concatenate[C, P], Awaitable[R]]) -> Callable[Concatenate[C, P], Awaitable[R]]:
        @functools.wraps(endpoint)
        async def checked(connection: C, /, *args: P.args, **kwargs: P.kwargs) -> R:
            await needed(connection)
            return await endpoint(connection, *args, **kwargs)

        return checked

    return around


def resolve_value(given: ValueOrGetter[V] | None, connection: Connection) -> V | None:
    """Raise Denied when the request should say and does not: None would ask about the root instead."""
    if not callable(given):
        return given
    value: V | None = given(connection)
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
