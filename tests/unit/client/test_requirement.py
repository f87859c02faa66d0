"""`require` in FastAPI, and the error without the middleware."""

import inspect
import subprocess
import sys

import pytest
from starlette.requests import HTTPConnection, Request

from gatehouse.client import GatehouseMiddleware, require


def test_fastapi_sees_one_parameter_that_takes_the_connection() -> None:
    [parameter] = inspect.signature(require("user.kick"), eval_str=True).parameters.values()
    assert parameter.annotation is HTTPConnection
    assert parameter.default is inspect.Parameter.empty


def test_fastapi_awaits_it_and_asks_equal_ones_once() -> None:
    assert inspect.iscoroutinefunction(require("user.kick").__call__)
    assert {require("user.kick"), require("user.kick")} == {require("user.kick")}
    assert require("user.kick") != require("user.kick", project="games")


async def test_requirement_raises_without_the_middleware() -> None:
    request = Request({"type": "http", "headers": [], "user": object()})
    with pytest.raises(RuntimeError, match="GatehouseMiddleware"):
        await require("user.kick")(request)


async def test_non_http_scope_passes_the_middleware_unchanged() -> None:
    seen = []

    async def app(scope: object, _receive: object, _send: object) -> None:
        seen.append(scope)

    scope = {"type": "lifespan"}
    middleware = GatehouseMiddleware(app, gatehouse=None)  # type: ignore[arg-type]
    await middleware(scope, None, None)  # type: ignore[arg-type]
    assert seen == [scope]


def test_the_client_carries_no_part_of_the_server() -> None:
    code = "import sys, gatehouse.client; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    ours = {name for name in loaded if name.startswith("gatehouse.") and not name.startswith("gatehouse.client")}
    assert ours == set()
    assert not {"starlette", "sqlalchemy", "uvicorn", "structlog", "httpx2"} & set(loaded)
