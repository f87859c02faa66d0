import pytest
from starlette.types import Receive, Scope, Send

from gatehouse.web.http.responses import refuse_in_plain_text
from gatehouse.web.http.routing import BodyLimitMiddleware
from tests.support.asgi import RecordingApp, an_asgi_call, call_asgi

LIMIT = 10


async def test_a_body_of_exactly_the_limit_is_read() -> None:
    app = RecordingApp()
    answer = await call_asgi(BodyLimitMiddleware(app, default=LIMIT), an_asgi_call(chunks=[b"12345", b"67890"]))
    assert (answer.status, app.body) == (200, b"1234567890")


async def test_ht_02_an_announced_length_over_the_limit_is_refused_unread() -> None:
    app = RecordingApp()
    exchange = an_asgi_call(headers=[("Content-Length", "11")], chunks=[b"12345678901"])
    answer = await call_asgi(BodyLimitMiddleware(app, default=LIMIT), exchange)
    assert answer.status == 413
    assert ("connection", "close") in answer.headers
    assert answer.received == 0
    assert app.scopes == []


async def test_ht_02_a_body_that_grows_over_the_limit_is_refused_and_the_application_not_heard() -> None:
    app = RecordingApp()
    answer = await call_asgi(BodyLimitMiddleware(app, default=LIMIT), an_asgi_call(chunks=[b"12345"] * 100))
    assert answer.status == 413
    assert ("connection", "close") in answer.headers
    assert answer.body == b"Request Entity Too Large"
    assert len(answer.sent) == 2
    assert answer.received == 3
    assert app.client_left


async def test_ht_02_a_lying_length_does_not_help() -> None:
    exchange = an_asgi_call(headers=[("Content-Length", "5")], chunks=[b"12345678901"])
    assert (await call_asgi(BodyLimitMiddleware(RecordingApp(), default=LIMIT), exchange)).status == 413


@pytest.mark.parametrize("length", ["", "x", "-1", "+5", "0" * 5_000 + "5", "\N{ARABIC-INDIC DIGIT NINE}"])
async def test_an_odd_length_is_no_crash(length: str) -> None:
    exchange = an_asgi_call(chunks=[b"12345"])
    exchange.scope["headers"] = [(b"content-length", length.encode())]
    assert (await call_asgi(BodyLimitMiddleware(RecordingApp(), default=LIMIT), exchange)).status == 200


async def test_an_answer_already_begun_is_not_cut_off_by_a_refusal() -> None:
    seen: list[str] = []

    async def answer_first(_scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        seen.extend([(await receive())["type"], (await receive())["type"]])
        await send({"type": "http.response.body", "body": b"done"})

    answer = await call_asgi(
        BodyLimitMiddleware(answer_first, default=LIMIT), an_asgi_call(chunks=[b"12345678901", b""])
    )
    assert (answer.status, answer.body) == (200, b"done")
    assert seen == ["http.disconnect", "http.disconnect"]


async def test_an_application_that_reads_on_past_the_limit_gets_nothing_more() -> None:
    seen: list[str] = []

    async def read_on(_scope: Scope, receive: Receive, _send: Send) -> None:
        seen.extend([(await receive())["type"] for _ in range(3)])

    answer = await call_asgi(BodyLimitMiddleware(read_on, default=LIMIT), an_asgi_call(chunks=[b"12345678901"] * 5))
    assert seen == ["http.disconnect"] * 3
    assert answer.received == 1
    assert len(answer.sent) == 2


async def test_a_path_named_exactly_may_have_more() -> None:
    limited = BodyLimitMiddleware(RecordingApp(), default=LIMIT, limits_by_path={"/schema": 20})
    fifteen = [b"123456789012345"]
    assert (await call_asgi(limited, an_asgi_call(path="/schema", chunks=fifteen))).status == 200
    assert (await call_asgi(limited, an_asgi_call(path="/schema/", chunks=fifteen))).status == 413
    assert (await call_asgi(limited, an_asgi_call(path="/schema", chunks=fifteen * 2))).status == 413


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity, gzip", "", "x"])
async def test_ht_07_an_encoded_body_is_refused_unread(encoding: str) -> None:
    app = RecordingApp()
    answer = await call_asgi(BodyLimitMiddleware(app), an_asgi_call(headers=[("Content-Encoding", encoding)]))
    assert answer.status == 415
    assert ("connection", "close") in answer.headers
    assert app.scopes == []


async def test_ht_07_identity_is_no_encoding() -> None:
    answer = await call_asgi(
        BodyLimitMiddleware(RecordingApp()), an_asgi_call(headers=[("Content-Encoding", "Identity")])
    )
    assert answer.status == 200


async def test_ht_07_a_second_encoding_line_counts_too() -> None:
    twice = [("Content-Encoding", "identity"), ("Content-Encoding", "gzip")]
    assert (await call_asgi(BodyLimitMiddleware(RecordingApp()), an_asgi_call(headers=twice))).status == 415


async def test_a_refusal_is_worded_by_whoever_knows_the_dialect() -> None:
    asked: list[int] = []

    async def refuse(status: int, scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(status)
        await refuse_in_plain_text(status, scope, receive, send)

    limited = BodyLimitMiddleware(RecordingApp(), default=LIMIT, refuse=refuse)
    answer = await call_asgi(limited, an_asgi_call(headers=[("Content-Length", "11")]))
    assert asked == [413]
    assert ("connection", "close") in answer.headers


async def test_other_kinds_of_scope_pass_untouched() -> None:
    app = RecordingApp()
    await call_asgi(
        BodyLimitMiddleware(app, default=0), an_asgi_call(kind="websocket", headers=[("Content-Length", "5")])
    )
    assert len(app.scopes) == 1
