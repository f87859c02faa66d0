"""Warnings of addresses that will be refused: names without an answer hold nothing else up."""

import asyncio
import socket
import threading

import pytest

from gatehouse.app.services.core import call_forecast
from gatehouse.outbound.forecast import LOOKUP_THREADS
from gatehouse.settings.model import Settings

DEFAULT_THREADS = 32  # asyncio's own, at most


async def test_names_without_an_answer_leave_the_shared_threads_free(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, answered = threading.Semaphore(0), threading.Event()

    def look_up(*_: object, **__: object) -> list[object]:
        waiting.release()
        answered.wait()
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    forecast = call_forecast(Settings())
    asked = [
        asyncio.ensure_future(forecast.refusal(f"https://hook{number}.example/")) for number in range(DEFAULT_THREADS)
    ]
    try:
        for _ in range(LOOKUP_THREADS):
            assert await asyncio.to_thread(waiting.acquire, timeout=5)
        assert await asyncio.wait_for(asyncio.to_thread(str, 1), 1) == "1"
        assert not waiting.acquire(blocking=False)
    finally:
        answered.set()
    assert await asyncio.gather(*asked) == [None] * len(asked)
