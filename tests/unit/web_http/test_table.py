from functools import partial
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import WebSocketRoute
from starlette.types import Message
from starlette.websockets import WebSocket

from gatehouse.web.http.errors import Dialect, ErrorRenderer
from gatehouse.web.http.routing import Endpoint, PathTree, RateClass, build_application, not_found, path_applications
from tests.support.sample_asgi_app import (
    SampleAsgiApp,
    UnlimitedRates,
    a_page,
    a_scope,
    call_app,
    call_app_with_json,
    sample_endpoints,
)


class LenientRequest(msgspec.Struct, frozen=True):
    name: str


class RefusingRates(UnlimitedRates):
    def admit(self, rate_class: str, source: str) -> int:  # noqa: ARG002
        return 9


def an_endpoint(**changes: Any) -> Endpoint:
    return replace(sample_endpoints()[0], **changes)


async def test_a_request_reaches_the_handler_of_its_path() -> None:
    response = await call_app_with_json(
        SampleAsgiApp().app(), "/api/permissions/roles", b'{"action":"get","application_id":7}'
    )
    assert (response.status, response.json()["status"]) == (200, "OK")


async def test_a_path_parameter_reaches_the_handler() -> None:
    response = await call_app(SampleAsgiApp().app(), "GET", "/api/permissions/application/publicKey/ab12")
    assert response.json() == {"text": "ab12"}


async def test_an_unknown_path_is_404_in_the_dialect_of_its_prefix() -> None:
    app = SampleAsgiApp().app()
    assert (await call_app(app, "POST", "/proxy/oauth/nothing")).json()["error"] == "invalid_request"
    assert set((await call_app(app, "POST", "/api/permissions/nothing")).json()) == {"status", "error"}
    game = await call_app(app, "POST", "/proxy/api/gameSession/nothing")
    assert game.json()["error"] == game.headers["x-request-id"]
    page = await call_app(app, "GET", "/nothing")
    assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8")


async def test_a_wrong_method_is_405_and_names_the_right_ones() -> None:
    app = SampleAsgiApp().app()
    wrong = await call_app(app, "GET", "/api/permissions/roles")
    assert (wrong.status, wrong.headers["allow"], wrong.json()["status"]) == (405, "POST", "ERROR")
    assert (await call_app(app, "DELETE", "/")).headers["allow"] == "GET, HEAD"


async def test_endpoints_may_share_a_path_by_method() -> None:
    async def handle_post(_request: Request) -> Response:
        return Response("posted")

    both = [an_endpoint(), an_endpoint(name="pages.post", methods=("POST",), handler=handle_post)]
    app = SampleAsgiApp(endpoints=both).app()
    assert (await call_app(app, "POST", "/")).body == b"posted"
    assert (await call_app(app, "GET", "/")).body == b"<h1>Welcome</h1>"
    assert (await call_app(app, "PUT", "/")).headers["allow"] == "GET, HEAD, POST"


def test_a_name_or_a_method_used_twice_is_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"two endpoints are named pages\.front"):
        path_applications([an_endpoint(), an_endpoint(path="/other")], limiter=UnlimitedRates())
    with pytest.raises(ValueError, match="both answer GET /"):
        path_applications([an_endpoint(), an_endpoint(name="other")], limiter=UnlimitedRates())


def test_a_permission_endpoint_must_refuse_unknown_fields() -> None:
    with pytest.raises(TypeError, match="must forbid unknown fields"):
        an_endpoint(dialect=Dialect.PERMISSIONS, request=LenientRequest)
    an_endpoint(
        dialect=Dialect.OAUTH, request=LenientRequest
    )  # RFC 6749 §3.2 requires unknown parameters to be ignored


async def test_every_request_is_counted_by_class_and_source() -> None:
    limiter = UnlimitedRates()
    app = SampleAsgiApp(limiter=limiter).app()
    await call_app(app, "GET", "/proxy/oauth/keys", client="2001:db8:1:2:3::4")
    await call_app(app, "POST", "/proxy/oauth/token")
    assert limiter.asked == [(RateClass.KEYS, "2001:db8:1:2::/64"), (RateClass.TOKEN, "192.0.2.1")]


async def test_a_refused_request_does_not_reach_the_handler() -> None:
    reached = []

    async def reach(request: Request) -> Response:
        reached.append(request)
        return Response()

    app = SampleAsgiApp(endpoints=[an_endpoint(handler=reach)], limiter=RefusingRates()).app()
    response = await call_app(app, "GET", "/")
    assert (response.status, response.headers["retry-after"], reached) == (429, "9", [])


async def test_an_endpoint_has_its_own_body_limit() -> None:
    endpoints = [
        replace(endpoint, body_limit=100) for endpoint in sample_endpoints() if endpoint.name == "oauth.token"
    ]
    response = await call_app_with_json(
        SampleAsgiApp(endpoints=endpoints).app(), "/proxy/oauth/token", b'{"grant_type":"%s"}' % (b"a" * 100)
    )
    assert response.status == 413


async def test_a_client_that_leaves_halfway_is_not_an_error_of_ours() -> None:
    async def disconnect() -> Message:
        return {"type": "http.disconnect"}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [("Content-Type", "application/json")]
    await SampleAsgiApp().app()(a_scope("POST", "/api/permissions/roles", headers), disconnect, send)
    assert sent[0]["status"] == 400


async def test_websockets_go_to_their_own_routes_and_unknown_ones_are_closed() -> None:
    async def greet(socket: WebSocket) -> None:
        await socket.accept()
        await socket.close()

    async def fail(_socket: WebSocket) -> None:
        raise RuntimeError

    more = [WebSocketRoute("/ws/hello", greet), WebSocketRoute("/ws/fail", fail)]
    errors = ErrorRenderer(render_error=a_page)
    app = build_application(sample_endpoints(), limiter=UnlimitedRates(), errors=errors, more_routes=more)

    async def types_sent(path: str) -> list[str]:
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            return {"type": "websocket.connect"}

        await app.respond({**a_scope(target=path), "type": "websocket", "state": {}}, receive, send)
        return [message["type"] for message in sent]

    assert await types_sent("/ws/hello") == ["websocket.accept", "websocket.close"]
    assert await types_sent("/ws/nothing") == ["websocket.close"]
    assert await types_sent("/") == ["websocket.close"]
    assert await types_sent("/ws/fail") == ["websocket.close"]


async def test_the_lifespan_reaches_the_router() -> None:
    app = build_application(sample_endpoints(), limiter=UnlimitedRates(), errors=ErrorRenderer(render_error=a_page))
    steps = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[Message] = []

    async def receive() -> Message:
        return steps.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    await app.respond({"type": "lifespan", "state": {}}, receive, send)
    assert [message["type"] for message in sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


PATTERNS = {
    "/people/new": "new",
    "/people/{user_id}": "person",
    "/people/{user_id}/bans": "bans",
    "/applications/{number:int}": "application",
    "/applications/{name}/rules": "rules",
    "/static/{digest}/{name:path}": "file",
    "/{rest:path}": "unknown",
}


@pytest.mark.parametrize(
    ("path", "name", "parameters"),
    [
        ("/people/new", "new", {}),
        ("/people/17", "person", {"user_id": "17"}),
        ("/people/new/bans", "bans", {"user_id": "new"}),  # the word leads nowhere
        ("/people/", "unknown", {"rest": "people/"}),  # a part is never empty
        ("/applications/17", "application", {"number": 17}),
        ("/applications/\u0661\u0667", "unknown", {"rest": "applications/\u0661\u0667"}),  # digits of another script
        ("/applications/17/rules", "rules", {"name": "17"}),
        (f"/applications/{10**18}", "unknown", {"rest": f"applications/{10**18}"}),
        ("/static/ab/css/page.css", "file", {"digest": "ab", "name": "css/page.css"}),
        ("/", "unknown", {"rest": ""}),
    ],
)
def test_the_most_specific_pattern_is_found(path: str, name: str, parameters: dict[str, object]) -> None:
    tree = PathTree()
    applications = {}
    for pattern, of_pattern in PATTERNS.items():
        applications[of_pattern] = partial(not_found)
        tree.add(pattern, applications[of_pattern])
    assert tree.find(path) == (applications[name], parameters)


def test_nothing_is_found_where_no_pattern_ends() -> None:
    tree = PathTree()
    tree.add("/people/{user_id}/bans", not_found)
    assert [tree.find(path) for path in ("/people", "/people/1", "/people/1/bans/2", "/people//bans")] == [None] * 4
    with pytest.raises(ValueError, match="whole part"):
        tree.add("/people/{user_id}.csv", not_found)
