import msgspec
import pytest
from starlette.types import Receive, Scope, Send

from gatehouse.web.http.routing import DEFAULT_BODY_LIMIT
from tests.support.asgi import RecordingApp, an_asgi_call, at_path, call_asgi

LIMIT = 10


async def test_a_body_of_exactly_the_limit_is_read() -> None:
    app = RecordingApp()
    response = await call_asgi(at_path(app, body_limit=LIMIT), an_asgi_call(chunks=[b"12345", b"67890"]))
    assert (response.status, app.body) == (200, b"1234567890")


async def test_ht_02_an_announced_length_over_the_limit_is_refused_unread() -> None:
    app = RecordingApp()
    exchange = an_asgi_call(headers=[("Content-Length", "11")], chunks=[b"12345678901"])
    response = await call_asgi(at_path(app, body_limit=LIMIT), exchange)
    assert response.status == 413
    assert ("connection", "close") in response.headers
    assert response.received == 0
    assert app.scopes == []


async def test_ht_02_a_body_that_grows_over_the_limit_is_refused_and_the_application_not_heard() -> None:
    app = RecordingApp()
    response = await call_asgi(at_path(app, body_limit=LIMIT), an_asgi_call(chunks=[b"12345"] * 100))
    assert response.status == 413
    assert ("connection", "close") in response.headers
    assert b"The request is too large." in response.body
    assert len(response.sent) == 2
    assert response.received == 3
    assert app.client_left


async def test_ht_02_a_lying_length_does_not_help() -> None:
    exchange = an_asgi_call(headers=[("Content-Length", "5")], chunks=[b"12345678901"])
    assert (await call_asgi(at_path(RecordingApp(), body_limit=LIMIT), exchange)).status == 413


@pytest.mark.parametrize("length", ["", "x", "-1", "+5", "0" * 5_000 + "5", "\N{ARABIC-INDIC DIGIT NINE}"])
async def test_an_odd_length_is_no_crash(length: str) -> None:
    exchange = an_asgi_call(chunks=[b"12345"])
    exchange.scope["headers"] = [(b"content-length", length.encode())]
    assert (await call_asgi(at_path(RecordingApp(), body_limit=LIMIT), exchange)).status == 200


async def test_an_answer_already_begun_is_not_cut_off_by_a_refusal() -> None:
    seen: list[str] = []

    async def answer_first(_scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        seen.extend([(await receive())["type"], (await receive())["type"]])
        await send({"type": "http.response.body", "body": b"done"})

    response = await call_asgi(
        at_path(answer_first, body_limit=LIMIT, streaming={"/"}), an_asgi_call(chunks=[b"12345678901", b""])
    )
    assert (response.status, response.body) == (200, b"done")
    assert seen == ["http.disconnect", "http.disconnect"]


async def test_an_application_that_reads_on_past_the_limit_gets_nothing_more() -> None:
    seen: list[str] = []

    async def read_on(_scope: Scope, receive: Receive, _send: Send) -> None:
        seen.extend([(await receive())["type"] for _ in range(3)])

    answer = await call_asgi(at_path(read_on, body_limit=LIMIT), an_asgi_call(chunks=[b"12345678901"] * 5))
    assert seen == ["http.disconnect"] * 3
    assert answer.received == 1
    assert len(answer.sent) == 2


async def test_a_path_named_exactly_may_have_more() -> None:
    limited = at_path(RecordingApp(), path="/schema", body_limit=DEFAULT_BODY_LIMIT + 20)
    more = [("Content-Length", str(DEFAULT_BODY_LIMIT + 15))]
    most = [("Content-Length", str(DEFAULT_BODY_LIMIT + 30))]
    assert (await call_asgi(limited, an_asgi_call(path="/schema", headers=more))).status == 200
    assert (await call_asgi(limited, an_asgi_call(path="/schema/", headers=more))).status == 413
    assert (await call_asgi(limited, an_asgi_call(path="/schema", headers=most))).status == 413


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity, gzip", "", "x"])
async def test_ht_07_an_encoded_body_is_refused_unread(encoding: str) -> None:
    app = RecordingApp()
    response = await call_asgi(at_path(app), an_asgi_call(headers=[("Content-Encoding", encoding)]))
    assert response.status == 415
    assert ("connection", "close") in response.headers
    assert app.scopes == []


async def test_ht_07_identity_is_no_encoding() -> None:
    response = await call_asgi(at_path(RecordingApp()), an_asgi_call(headers=[("Content-Encoding", "Identity")]))
    assert response.status == 200


async def test_ht_07_a_second_encoding_line_counts_too() -> None:
    twice = [("Content-Encoding", "identity"), ("Content-Encoding", "gzip")]
    assert (await call_asgi(at_path(RecordingApp()), an_asgi_call(headers=twice))).status == 415


async def test_a_refusal_speaks_the_dialect_of_its_endpoint() -> None:
    response = await call_asgi(at_path(RecordingApp(), body_limit=LIMIT), an_asgi_call(chunks=[b"12345"] * 3))
    assert msgspec.json.decode(response.body)["status"] == "ERROR"
    assert dict(response.headers)["content-type"] == "application/json"


async def test_an_unknown_path_has_the_usual_limit() -> None:
    known = at_path(RecordingApp(), path="/known", body_limit=LIMIT)
    announced = [("Content-Length", str(DEFAULT_BODY_LIMIT))]
    assert (await call_asgi(known, an_asgi_call(path="/other", headers=announced))).status == 404
    announced = [("Content-Length", str(DEFAULT_BODY_LIMIT + 1))]
    response = await call_asgi(known, an_asgi_call(path="/other", headers=announced))
    assert (response.status, response.received) == (413, 0)
