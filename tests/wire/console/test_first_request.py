"""A section of the console is built with its first request, in a thread; other requests do not wait."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from gatehouse.app.console import home
from gatehouse.web.console.view import ConsoleRoute
from tests.support.console import ADA, SHOP, ConsoleBrowsers
from tests.support.service import RunningService


async def test_console_build_blocks_no_requests_and_is_retried_after_a_failure(
    studio: RunningService, console_browsers: ConsoleBrowsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds = 0
    build = home.build
    loop, started, goes_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def build_slowly(*args: Any, **named: Any) -> Sequence[ConsoleRoute]:
        nonlocal builds
        builds += 1
        loop.call_soon_threadsafe(started.set)
        assert goes_on.wait(10)
        if builds == 1:
            raise ImportError
        return build(*args, **named)

    monkeypatch.setattr(home, "build", build_slowly)
    ada = await console_browsers(ADA)
    first = asyncio.create_task(ada.client.get("/console"))
    await started.wait()
    signed_out_response = await studio.client.get("/console/people?page=2")
    assert signed_out_response.headers["location"].startswith("/sign-in?interaction=")
    assert (await studio.client.get("/proxy/oauth/keys")).status_code == 200
    assert not first.done()
    goes_on.set()
    assert (await first).status_code == 500
    assert "Welcome, Ada" in (await ada.get("/console")).text
    assert builds == 2


async def test_op_13_a_stranger_is_not_told_what_there_is_and_no_one_finds_a_debug_page(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    """This holds before and after the console is built."""
    for _ in range(2):
        for path in ("/console/people", "/console/debug", "/console/people/act"):
            for response in (await studio.client.get(path), await studio.client.post(path)):
                assert response.headers["location"].startswith("/sign-in?interaction="), path
        ada = await console_browsers(ADA)
        assert (await ada.get("/console/debug")).status_code == 404


async def test_console_form_urls_redirect_on_get_and_unknown_urls_link_back(
    console_browsers: ConsoleBrowsers,
) -> None:
    """A browser keeps the URL a form was posted to, and requests it again."""
    ada = await console_browsers(ADA)
    for tab in ("matrix", "users"):
        page = f"/console/applications/{SHOP}/{tab}"
        for sent_to in ("review", "apply"):
            response = await ada.get(f"{page}/{sent_to}")
            assert (response.status_code, response.headers["location"]) == (303, page)
    for path in ("/console/nonsense", "/console/people/1/2/3"):
        lost = await ada.get(path)
        assert lost.status_code == 404
        assert "There is nothing at this address." in lost.text
        assert 'href="/console/applications"' in lost.text  # a link back
        assert "Unter dieser Adresse gibt es nichts." in (await ada.get(f"{path}?lang=de")).text
        await ada.get("/console?lang=en")
