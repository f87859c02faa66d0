"""The synchronous face of the client, and its WSGI middleware, which answers as the ASGI middleware does."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest

from gatehouse.client import (
    CallRefused,
    GatehouseWsgiMiddleware,
    Person,
    ProtectedResourceWsgiMiddleware,
    SyncGatehouse,
    SyncManagement,
    SyncProtectedResource,
    SyncTokenSource,
    peer_address,
    permission_required,
    scopes_required,
)
from tests.support.builders import ORIGIN
from tests.support.service import RunningService
from tests.support.studio import FACTOR, create_administrator
from tests.wire.client.conftest import KICK, ClientShop
from tests.wire.client.test_protected_resource import RESOURCE, run_guide


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: Any


async def call(app: Callable[..., Iterable[bytes]], path: str = "/", jwt: str = "", **more: str) -> Answer:
    """What a WSGI application answers in a thread of its server, checked against PEP 3333."""
    environ: dict[str, Any] = {
        "PATH_INFO": path,
        "SCRIPT_NAME": "",
        "QUERY_STRING": "",
        "REMOTE_ADDR": "10.1.2.3",
        **more,
    }
    setup_testing_defaults(environ)
    if jwt:
        environ["HTTP_AUTHORIZATION"] = f"Bearer {jwt}"
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def serve() -> bytes:
        parts = validator(app)(environ, lambda status, headers, _error=None: started.append((status, headers)))
        content = b"".join(parts)
        parts.close()
        return content

    content = await asyncio.to_thread(serve)
    [(status, headers)] = started
    return Answer(int(status.split()[0]), {name.lower(): value for name, value in headers}, json.loads(content))


def a_wsgi_app(gatehouse: SyncGatehouse, **options: Any) -> Callable[..., Iterable[bytes]]:
    @permission_required("user.kick")
    def kick(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        return answer(start_response, environ["gatehouse.user"].nick)

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/kick":
            view = kick(environ, start_response)
            return view(environ, start_response) if callable(view) else view
        user = environ["gatehouse.user"]
        return answer(start_response, None if user is None else [user.user_id, user.address])

    return GatehouseWsgiMiddleware(app, gatehouse=gatehouse, **options)


def answer(start_response: Callable[..., Any], content: object) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(content).encode()]


@pytest.fixture
async def gatehouse(shop: ClientShop) -> AsyncIterator[SyncGatehouse]:
    client = SyncGatehouse(
        shop.studio.service.base_url,
        application_id=shop.studio.shop.application_id,
        credential=shop.client()._credential,
        transport=shop.transport,
        clock=shop.studio.service.clock,
    )
    yield client
    await asyncio.to_thread(client.close)


async def test_wsgi_middleware_answers_as_the_asgi_middleware(shop: ClientShop, gatehouse: SyncGatehouse) -> None:
    anna, owner, app = shop.studio.other_user, shop.studio.owner, a_wsgi_app(gatehouse)
    await shop.save(anna, private_data=KICK)
    assert (await call(app, "/kick", anna.jwt)).body == "Anna"
    assert (await call(app, "/", anna.jwt)).body == [anna.user_id, None]
    refused = await call(app, "/kick", owner.jwt)
    assert (refused.status, refused.body["status"]) == (403, "ERROR")
    unknown = await call(app, "/")
    assert (unknown.status, unknown.body["error"], unknown.headers["www-authenticate"]) == (
        *(401, "invalid token", "Bearer"),
    )
    for wrong in ({"HTTP_AUTHORIZATION": f"Bearer {anna.jwt},Bearer {owner.jwt}"}, {"HTTP_AUTHORIZATION": "Basic x"}):
        assert (await call(app, "/", **wrong)).status == 401
    assert (await call(app, "/", anna.jwt, HTTP_FACTOR=FACTOR)).status == 200
    assert (await call(app, "/", anna.jwt, HTTP_FACTOR="another")).status == 401
    assert (await call(a_wsgi_app(gatehouse, open_paths=["/"]), "/")).body is None
    assert (await call(a_wsgi_app(gatehouse, anonymous=True), "/kick")).status == 401
    at_address = a_wsgi_app(gatehouse, address=peer_address)
    assert (await call(at_address, "/", anna.jwt)).body == [anna.user_id, "10.1.2.3"]


async def test_blocked_user_and_silent_service_count_behind_wsgi(shop: ClientShop, gatehouse: SyncGatehouse) -> None:
    anna, app = shop.studio.other_user, a_wsgi_app(gatehouse)
    assert (await call(app, "/", anna.jwt)).status == 200
    await shop.studio.service.services.accounts.administration.block(anna.user_id, ORIGIN)
    await shop.studio.service.clock.advance(2)
    assert (await call(app, "/", anna.jwt)).status == 401
    assert (await call(a_wsgi_app(gatehouse, offline=True), "/", anna.jwt)).status == 200
    shop.transport.is_disconnected = True
    silent = await call(app, "/", shop.studio.owner.jwt)
    assert (silent.status, silent.headers["retry-after"]) == (503, "2")
    with pytest.raises(RuntimeError, match="GatehouseWsgiMiddleware is missing"):
        permission_required("user.kick")(lambda: None)()


async def test_scripts_manage_people_without_an_event_loop(shop: ClientShop) -> None:
    admin, base_url = await create_administrator(shop.studio), shop.studio.service.base_url

    def script() -> None:
        with SyncManagement(base_url, token=admin.jwt, factor=FACTOR) as gatehouse:
            made = gatehouse.create_person(login="new@studio.example", nick="Newcomer")
            assert isinstance(made, Person)
            assert [one.user_id for one in gatehouse.search_people("newcom")] == [made.user_id]
            assert "Shop" in [one["name"] for one in gatehouse.list("application")]
            gatehouse.erase_person(made.user_id)
            with pytest.raises(CallRefused):
                gatehouse.get_person(made.user_id)
        with pytest.raises(ValueError, match="must be https"):
            SyncManagement("http://sso.studio.example", token="none")

    await asyncio.to_thread(script)


def views_with_scopes() -> Callable[..., Iterable[bytes]]:
    """Views of a framework as Flask, which take no request and may return a WSGI application."""

    @scopes_required("match.read")
    def read() -> Any:
        return "read"

    @scopes_required("match.report")
    def report() -> Any:
        return "report"

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        response = report() if environ["PATH_INFO"] == "/matches/report" else read()
        content: Iterable[bytes] = (
            response(environ, start_response) if callable(response) else answer(start_response, response)
        )
        return content

    return app


async def test_mt_13_api_behind_wsgi_accepts_its_tokens_and_names_the_missing_scope(
    service: RunningService,
) -> None:
    guide = await run_guide(service)
    source = SyncTokenSource(service.base_url, client_id="x", secret="x", resource=RESOURCE, scopes=["match.read"])
    resource = SyncProtectedResource(service.base_url, resource=RESOURCE, clock=service.clock)

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        return answer(start_response, environ["gatehouse.token"].subject)

    source._client._headers = guide["tokens"]._headers
    token = await asyncio.to_thread(source.token)
    reading = ProtectedResourceWsgiMiddleware(app, resource=resource, scopes=["match.read"])
    reporting = ProtectedResourceWsgiMiddleware(app, resource=resource, scopes=["match.report"])
    assert (await call(reading, "/matches", token)).body == "client:match-server"
    where = 'resource_metadata="https://api.sky.example/.well-known/oauth-protected-resource/matches"'
    assert (await call(reading, "/matches")).headers["www-authenticate"] == f"Bearer {where}"
    refused = await call(reporting, "/matches", token)
    assert (refused.status, refused.headers["www-authenticate"]) == (
        403,
        f'Bearer error="insufficient_scope", scope="match.report", {where}',
    )
    by_view = ProtectedResourceWsgiMiddleware(views_with_scopes(), resource=resource)
    assert (await call(by_view, "/matches", token)).body == "read"
    refused_view = await call(by_view, "/matches/report", token)
    assert (refused_view.status, refused_view.headers, refused_view.body) == (403, refused.headers, refused.body)
    with pytest.raises(RuntimeError, match="ProtectedResourceWsgiMiddleware is missing"):
        scopes_required("match.read")(lambda: None)()
    document = await call(reading, "/.well-known/oauth-protected-resource/matches")
    assert document.body["authorization_servers"] == [service.base_url]
    await asyncio.to_thread(lambda: (source.close(), resource.close()))
    await guide["matches"].close()
    await guide["tokens"].close()
