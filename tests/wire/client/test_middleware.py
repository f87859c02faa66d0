"""An application behind the middleware, and the guide that explains it."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from gatehouse.client import AccessKey, Gatehouse, GatehouseMiddleware, peer_address, permission_required, require
from tests.support.builders import ORIGIN
from tests.support.studio import FACTOR, PROJECT
from tests.wire.client.conftest import KICK, ClientShop


async def show(request: Request) -> JSONResponse:
    user = request.user
    assert request.state.user is user
    return JSONResponse({"user": None if user is None else user.user_id, "address": getattr(user, "address", None)})


@permission_required("user.kick")
async def kick(request: Request) -> JSONResponse:
    return JSONResponse({"kicked by": request.user.nick})


@permission_required("user.kick", project=lambda request: request.path_params.get("project"))
async def kick_in_project(request: Request) -> JSONResponse:
    return JSONResponse({"kicked in": request.path_params["project"]})


async def kick_late(request: Request) -> JSONResponse:
    user = await require("user.kick")(request)
    return JSONResponse({"kicked by": user.nick})


async def chat(socket: WebSocket) -> None:
    await socket.accept()
    await require("user.kick")(socket)
    await socket.send_text("hello")
    await socket.close()


def an_app(shop: ClientShop, *, gatehouse: Gatehouse | None = None, **options: Any) -> Starlette:
    routes = [
        Route("/", show),
        Route("/kick", kick, methods=["POST"]),
        Route("/late", kick_late, methods=["POST"]),
        Route("/in/{project}/kick", kick_in_project, methods=["POST"]),
        Route("/in/nothing", kick_in_project, methods=["POST"]),
        WebSocketRoute("/chat", chat),
    ]
    app = Starlette(routes=routes)
    app.add_middleware(GatehouseMiddleware, gatehouse=gatehouse or shop.client(), **options)
    return app


@asynccontextmanager
async def client_of(app: Any, address: str = "192.0.2.7") -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=app, client=(address, 1))
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        yield client


def bearer_headers(jwt: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {jwt}", **more}


async def test_request_with_the_rule_passes_and_others_get_401_or_403(shop: ClientShop) -> None:
    browser_client, owner = bearer_headers(shop.studio.other_user.jwt), bearer_headers(shop.studio.owner.jwt)
    await shop.save(shop.studio.other_user, private_data=KICK)
    async with client_of(an_app(shop)) as client:
        for path in ("/kick", "/late"):
            assert (await client.post(path, headers=browser_client)).json() == {"kicked by": "Anna"}
            refusal = await client.post(path, headers=owner)
            assert (refusal.status_code, refusal.json()["status"]) == (403, "ERROR")
            unknown = await client.post(path)
            assert (unknown.status_code, unknown.json()) == (401, {"status": "ERROR", "error": "invalid token"})
            assert unknown.headers["www-authenticate"] == "Bearer"
            assert unknown.headers["cache-control"] == "no-store"


async def test_the_project_of_the_request_decides(shop: ClientShop) -> None:
    browser_client = bearer_headers(shop.studio.other_user.jwt)
    in_project = {"projectAccess": {PROJECT: {"private_data": KICK}}}
    await shop.save(shop.studio.other_user, private_data={**KICK, **in_project})
    async with client_of(an_app(shop)) as client:
        assert (await client.post(f"/in/{PROJECT}/kick", headers=browser_client)).status_code == 200
        assert (await client.post("/in/another/kick", headers=browser_client)).status_code == 403
        assert (await client.post("/in/nothing", headers=browser_client)).status_code == 403


async def test_request_user_is_set_and_none_with_bad_credentials(shop: ClientShop) -> None:
    jwt = shop.studio.other_user.jwt
    async with client_of(an_app(shop)) as client:
        expected = {"user": shop.studio.other_user.user_id, "address": None}
        assert (await client.get("/", headers=bearer_headers(jwt))).json() == expected
        assert (await client.get("/", headers=bearer_headers(jwt, Factor=FACTOR))).json() == expected
        wrong = [
            {},
            {"Authorization": f"Basic {jwt}"},
            bearer_headers("a.b.c"),
            bearer_headers(shop.key),
            bearer_headers(jwt, Factor="another"),
            bearer_headers(jwt, Factor=""),
            [("Authorization", f"Bearer {jwt}")] * 2,
        ]
        for headers in wrong:
            assert (await client.get("/", headers=headers)).status_code == 401, headers


async def test_a_blocked_user_is_out_within_two_seconds_even_where_no_rule_is_asked_for(shop: ClientShop) -> None:
    headers, services = bearer_headers(shop.studio.other_user.jwt), shop.studio.service.services
    async with client_of(an_app(shop)) as client, client_of(an_app(shop, offline=True)) as offline:
        assert (await client.get("/", headers=headers)).status_code == 200
        await services.accounts.administration.block(shop.studio.other_user.user_id, ORIGIN)
        await services.clock.advance(2)  # type: ignore[attr-defined]
        assert (await client.get("/", headers=headers)).status_code == 401
        assert (await offline.get("/", headers=headers)).status_code == 200
        assert (await offline.post("/kick", headers=headers)).status_code == 401


async def test_strangers_come_in_where_they_may(shop: ClientShop) -> None:
    async with client_of(an_app(shop, open_paths=["/"])) as client:
        assert (await client.get("/")).json()["user"] is None
        assert (await client.get("/", headers=bearer_headers("a.b.c"))).status_code == 401
        assert (await client.post("/kick")).status_code == 401
    async with client_of(an_app(shop, anonymous=True)) as client:
        assert (await client.get("/")).json()["user"] is None
        assert (await client.post("/kick")).status_code == 401


async def test_an_address_is_known_only_to_who_says_how(shop: ClientShop) -> None:
    headers = bearer_headers(await shop.jwt(shop.studio.other_user, fixed_ips=["10.0.0.0/8"]))
    async with client_of(an_app(shop), "10.1.2.3") as client:
        assert (await client.get("/", headers=headers)).status_code == 403
    app = an_app(shop, address=peer_address)
    async with client_of(app, "10.1.2.3") as client:
        assert (await client.get("/", headers=headers)).json()["address"] == "10.1.2.3"
    async with client_of(app, "11.1.2.3") as client:
        assert (await client.get("/", headers=headers)).status_code == 403


async def test_application_answers_503_while_the_service_is_down(shop: ClientShop) -> None:
    headers = bearer_headers(shop.studio.other_user.jwt)
    async with client_of(an_app(shop)) as client:
        assert (await client.get("/", headers=headers)).status_code == 200
        shop.transport.is_disconnected = True
        await shop.studio.service.clock.advance(2)
        response = await client.get("/", headers=headers)
    assert (response.status_code, response.headers["retry-after"]) == (503, "2")


async def test_wrong_application_credentials_are_logged_and_answered_with_503(
    shop: ClientShop, caplog: pytest.LogCaptureFixture
) -> None:
    jwt = shop.studio.other_user.jwt
    other_application = shop.client(application_id=shop.studio.other.application_id)
    for mistaken in (shop.client(credential=AccessKey("0" * 64)), other_application):
        caplog.clear()
        async with client_of(an_app(shop, gatehouse=mistaken)) as client:
            assert (await client.get("/", headers=bearer_headers(jwt))).status_code == 503
        [log_record] = [record for record in caplog.records if record.name == "gatehouse.client"]
        assert log_record.levelname == "WARNING"
        assert "this application's credentials: check that the key is valid" in log_record.getMessage()
    assert not [text for text in (jwt, shop.key, "0" * 64) if text in caplog.text]


async def test_a_service_that_calls_itself_otherwise_is_named_in_the_log(
    shop: ClientShop, caplog: pytest.LogCaptureFixture
) -> None:
    service = shop.studio.service
    elsewhere = Gatehouse(
        "http://127.0.0.1:9",
        application_id=shop.studio.shop.application_id,
        credential=AccessKey(shop.key),
        transport=shop.transport,
        clock=service.clock,
    )
    async with client_of(an_app(shop, gatehouse=elsewhere)) as client:
        assert (await client.get("/", headers=bearer_headers(shop.studio.other_user.jwt))).status_code == 401
    [warning] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warning == f"base_url is http://127.0.0.1:9, but the service there issues JWTs as {service.base_url}"


async def test_a_refusal_is_told_to_who_listens_without_the_token(
    shop: ClientShop, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gatehouse.client")
    jwt = shop.studio.other_user.jwt
    async with client_of(an_app(shop)) as client:
        await client.post("/kick", headers=bearer_headers(jwt))
        await client.get("/", headers=bearer_headers(jwt, Factor="another"))
    messages = [record.getMessage() for record in caplog.records if record.name == "gatehouse.client"]
    assert messages[0].startswith(
        f"answered with 403: 'user {shop.studio.other_user.user_id} does not have user.kick"
    )
    assert messages[1:] == ["answered with 401: 'wrong factor'"]


async def socket_messages(app: Any, jwt: str) -> list[str]:
    """What an application sends to a WebSocket that connects and then waits."""
    sent: list[str] = []
    scope = {
        "type": "websocket",
        "path": "/chat",
        "raw_path": b"/chat",
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {jwt}".encode())],
        "subprotocols": [],
        "client": ("192.0.2.7", 1),
    }

    async def receive() -> dict[str, object]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(f"{message['type']} {message.get('code', '')}".strip())

    await app(scope, receive, send)
    return sent


async def test_a_websocket_is_closed_to_who_may_not(shop: ClientShop) -> None:
    app = an_app(shop)
    await shop.save(shop.studio.other_user, private_data=KICK)
    allowed = await socket_messages(app, shop.studio.other_user.jwt)
    assert allowed == ["websocket.accept", "websocket.send", "websocket.close 1000"]
    assert await socket_messages(app, shop.studio.owner.jwt) == ["websocket.accept", "websocket.close 1008"]
    assert await socket_messages(app, "a.b.c") == ["websocket.close 1008"]
