from tests.support.asgi import RecordingApp, an_asgi_call, call_asgi, in_context


async def test_each_request_gets_an_id_of_its_own_in_its_state_and_answer() -> None:
    app = RecordingApp()
    responses = [await call_asgi(in_context(app), an_asgi_call()) for _ in range(2)]
    request_ids = [dict(response.headers)["x-request-id"] for response in responses]
    assert request_ids == [scope["state"]["request_id"] for scope in app.scopes]
    assert request_ids[0] != request_ids[1]


async def test_the_callers_own_id_is_never_taken() -> None:
    response = await call_asgi(in_context(RecordingApp()), an_asgi_call(headers=[("X-Request-Id", "mine")]))
    assert "mine" not in dict(response.headers).values()


async def test_the_answers_own_headers_stay() -> None:
    response = await call_asgi(in_context(RecordingApp(answer_headers=[("x-kept", "yes")])), an_asgi_call())
    assert ("x-kept", "yes") in response.headers


async def test_a_scope_without_state_gets_one() -> None:
    app = RecordingApp()
    exchange = an_asgi_call()
    del exchange.scope["state"]
    await call_asgi(in_context(app), exchange)
    assert app.scopes[0]["state"]["request_id"]


async def test_the_lifespan_passes_untouched() -> None:
    app = RecordingApp()
    await call_asgi(in_context(app), an_asgi_call(kind="lifespan"))
    assert app.scopes[0]["state"] == {}
