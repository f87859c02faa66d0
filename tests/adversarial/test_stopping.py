"""Shutdown: held requests are answered, requests in progress finish (checklist OP-07)."""

import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.support.echo import GET, echo_server, request_seen_by_app, wait_until
from tests.support.processes import WatchedProcess
from tests.support.raw_http import raw_connection

ROOT: Final = Path(__file__).parents[2]
HOST: Final = b"Host: gatehouse.example\r\n"
HOLD: Final = b"GET /hold HTTP/1.1\r\n" + HOST + b"\r\n"
WRITE: Final = b"POST /write HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello"
# A separate process: signals, the event loop of a release, the system clock. /write ends when /hold ends.
PROGRAM: Final = """
import asyncio
from gatehouse.kernel.clock import SystemClock
from gatehouse.web.server.server import make_server
from tests.support.echo import EchoApp

class AnnouncingApp(EchoApp):
    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            print("begun", scope["path"], flush=True)
        await super().__call__(scope, receive, send)
        if scope.get("path") == "/hold":
            self.released.set()

echo = AnnouncingApp()

def ready():
    print("ready", server.port, type(asyncio.get_running_loop()).__module__, flush=True)

server = make_server(
    echo, host="127.0.0.1", port=0, clock=SystemClock(), stopping=echo.stopping, when_ready=ready
)
server.run()
print("clean", flush=True)
"""


async def test_op_07_held_requests_are_answered_and_writes_finish_before_the_end() -> None:
    async with AsyncExitStack() as stack, echo_server() as services:
        polls = [await stack.enter_async_context(raw_connection(services.port)) for _ in range(50)]
        writes = [await stack.enter_async_context(raw_connection(services.port)) for _ in range(10)]
        idle = await stack.enter_async_context(raw_connection(services.port))
        idle.send(GET)
        request_seen_by_app(await idle.read_response())
        for poll in polls:
            poll.send(HOLD)
        for write in writes:
            write.send(WRITE)
        await wait_until(lambda: len(services.echo.started) == 61)
        port = services.port
        ending = asyncio.create_task(services.server.shutdown())
        answers = [await poll.read_response() for poll in polls]
        assert {response.body for response in answers} == {b"RETRY"}
        assert {response.header("connection") for response in answers} == {"close"}
        assert await idle.read_to_end() == b""
        assert not ending.done()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        services.echo.released.set()
        assert {(await write.read_response()).body for write in writes} == {b"written"}
        await ending
        assert services.server.state.tasks == set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_op_07_a_signal_answers_held_requests_and_ends_the_process_cleanly(
    number: signal.Signals,
) -> None:
    with WatchedProcess([sys.executable, "-c", PROGRAM], cwd=ROOT) as process:
        ready = await asyncio.to_thread(process.wait_until_started, r"^ready (\d+) (\S+)", process.stdout)
        async with raw_connection(int(ready[1])) as poll, raw_connection(int(ready[1])) as write:
            poll.send(HOLD)
            write.send(WRITE)
            for path in ("/hold", "/write"):
                await asyncio.to_thread(process.wait_for_line, f"^begun {path}$", process.stdout)
            process.send(number)
            assert (await poll.read_response()).body == b"RETRY"
            assert (await write.read_response()).body == b"written"
        assert await asyncio.to_thread(process.wait) == 0
        assert process.stdout[-1] == "clean\n"
        assert ready[2].startswith("uvloop")
