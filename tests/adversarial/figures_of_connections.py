"""Figures about connections: thousands of sockets, floods of frames, two users on one connection, and shutdown."""

import asyncio
import json
import re
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Final

from gatehouse.gamesessions.model import POLL_HOLD_SECONDS
from gatehouse.settings.model import GameSettings
from tests.adversarial.figures_of_callers import API, MeasuredInstallation, measured_installation
from tests.adversarial.measuring import MACHINE_NOISE, Figure, Target, json_body, p99, scale_volume, send_many
from tests.support.game import GET_GSID, RESULT
from tests.support.raw_http import (
    BINARY,
    CONT,
    PING,
    PONG,
    TEXT,
    RawConnection,
    close_frame_code,
    flood_connection,
    raw_connection,
    websocket_frame,
)
from tests.support.studio import OTHER_USER, OWNER
from tests.support.websockets import KEY, PATH

GAME: Final = GameSettings()
UPGRADE: Final = b" HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + KEY
MEGABYTE: Final = 1_000_000
SLACK: Final = 50  # short-lived descriptors: the database, connections being refused
EXIT_WITHIN: Final = 35  # seconds
HEAD_WITHIN: Final = 12  # seconds: ten for a request head, and the interval of the check
RACING: Final = 100  # handshakes at a time
SIGN_EVERY: Final = 3  # seconds; after ten without a sign the service closes


# -- HT-17 ----------------------------------------------------------------------------------------------


async def series(target: Target) -> AsyncIterator[Figure]:
    """Paths, client ids and causes of refusal, different each time."""
    number = scale_volume(100_000)
    kinds = (
        lambda one: target.client.get(f"/nowhere/{one}"),
        lambda one: target.client.get(f"/proxy/oauth/authorize?client_id=c{one}"),
        lambda one: target.client.request(f"VERB{one}", f"{API}/roles"),
        lambda one: target.client.post(f"{API}/{one}", content=b"{" * (one % 9), headers={"User-Agent": f"a{one}"}),
    )
    for kind in kinds:
        await send_many(100, kind)
    await target.metrics()
    before = len((await target.metrics()).splitlines())
    for kind in kinds:
        await send_many(number // len(kinds), kind, begin=number)
    after = len((await target.metrics()).splitlines())
    yield Figure(
        "HT-17", f"series more than {before} after {number:,} paths, clients, errors", after - before, 0, "lines"
    )
    public = [(await target.client.get(path)).text for path in ("/metrics", "/readyz", "/healthz")]
    leaking = sum("gatehouse_" in text or "checks" in text for text in public)
    yield Figure("HT-17", "of metrics and health, those that tell strangers more than ok", leaking, 0, "pages")


# -- HT-20 ----------------------------------------------------------------------------------------------


async def shared_connection(target: Target) -> AsyncIterator[Figure]:
    number, mixed = scale_volume(10_000), 0
    async with measured_installation(target) as installation:
        for begin in range(0, number, 10):
            async with raw_connection(target.node.port) as connection:
                for n in range(begin, min(begin + 10, number)):
                    answers = await ask_both(connection, installation, n)
                    mixed += answers != [(OWNER, 1 + n % 7), (OTHER_USER, 1 + n % 5)]
                whole = check_request(installation, installation.owner, 3, n)
                connection.send(whole[: 1 + n % (len(whole) - 1)])  # disconnects in the middle of it
                connection.abort()
    yield Figure("HT-20", f"of {number:,} pairs on shared connections, answered with another's", mixed, 0, "pairs")


async def ask_both(
    connection: RawConnection, installation: MeasuredInstallation, number: int
) -> list[tuple[str, int]]:
    """Send both users' requests on one connection; return whose responses came, and how many."""
    request = check_request(installation, installation.owner, 1 + number % 7, number)
    request += check_request(installation, installation.other_user, 1 + number % 5, number + 1)
    cut = number % len(request)  # a different position each time
    connection.send(request[:cut])
    await connection.drain()
    connection.send(request[cut:])
    bodies = [json.loads((await connection.read_response()).body) for _ in range(2)]
    return [(body["user_id"], len(body["data"])) for body in bodies]


def check_request(installation: MeasuredInstallation, who: dict[str, str], questions: int, number: int) -> bytes:
    checks = [{"rule": f"rule_{number}"} for number in range(questions)]
    content = json_body(application_id=installation.application_id, data={"checks": checks})
    named = "".join(f"{name}: {value}\r\n" for name, value in who.items())
    head = f"POST {API}/check HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{named}".encode()
    if number % 3 == 0:
        return head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(content), content)
    return head + b"Content-Length: %d\r\n\r\n%b" % (len(content), content)


# -- WS-06 ----------------------------------------------------------------------------------------------


async def sockets(target: Target) -> AsyncIterator[Figure]:
    one_session, one_source = scale_volume(5_000), scale_volume(10_000)
    usual, descriptors = await p99(target.client), target.descriptors()
    async with AsyncExitStack() as stack:
        opened: list[RawConnection] = []
        living = asyncio.create_task(keep_alive(opened))
        stack.callback(living.cancel)
        [alone] = await sessions(target, 1)
        await open_sockets(target, stack, [alone] * one_session, opened)
        what = f"open of {one_session:,} sockets on one gsid"
        yield Figure("WS-06", what, len(opened), GAME.sockets_per_session, "sockets")
        more = await sessions(target, -(-one_source // GAME.sockets_per_session))
        each = [gsid for gsid in more for _ in range(GAME.sockets_per_session)][:one_source]
        await open_sockets(target, stack, each, opened)
        what = f"open of {one_source:,} sockets from one source"
        yield Figure("WS-06", what, len(opened), GAME.sockets_per_source, "sockets")
        beside = await p99(target.client)
        yield Figure("WS-06", "p99 beside them", beside * 1_000, max(2 * usual, MACHINE_NOISE) * 1_000, "ms")
        open_sockets_count = target.descriptors() - descriptors
        yield Figure(
            "WS-06",
            "descriptors of the process for them",
            open_sockets_count,
            GAME.sockets_per_source + SLACK,
            "files",
        )


async def keep_alive(opened: Sequence[RawConnection]) -> None:
    """Send a sign of life on each socket, as a game does; a silent one would be closed."""
    while True:
        await asyncio.sleep(SIGN_EVERY)
        for connection in opened:
            connection.send(websocket_frame(PONG))


async def sessions(target: Target, number: int) -> list[bytes]:
    """The socket paths of new game sessions, each with its Location."""
    responses = await send_many(number, lambda _: target.client.post(GET_GSID))
    return [
        f"{PATH}{response.json()['gsid']}?location={response.headers['location'].partition('location=')[2]}".encode()
        for response in responses
    ]


async def open_sockets(
    target: Target, stack: AsyncExitStack, paths: Sequence[bytes], opened: list[RawConnection]
) -> None:
    """Open the sockets; those that are accepted stay open."""
    waiting = iter(paths)

    async def work() -> None:
        for path in waiting:
            connection = raw_connection(target.node.port)
            created = await connection.__aenter__()
            created.send(b"GET " + path + UPGRADE + b"\r\n")
            status = (await created.read_response()).status
            assert status in (101, 429), status
            if status == 101:
                opened.append(created)
                stack.push_async_exit(connection)
            else:
                await connection.__aexit__(None, None, None)

    await asyncio.gather(*(work() for _ in range(RACING)))


# -- WS-07 ----------------------------------------------------------------------------------------------

FLOODS: Final = {
    "16 MB in a frame": (b"\x82\xff" + (16 * MEGABYTE).to_bytes(8) + bytes(65_536), 250, 1009),
    "1,000,000 empty frames": (websocket_frame(TEXT) * 10_000, 100, 1008),
    "1,000,000 fragments": (
        websocket_frame(BINARY, fin=False) + websocket_frame(CONT, b"x", fin=False) * 10_000,
        100,
        1008,
    ),
    "pings with 12 MB": (websocket_frame(PING, b"x" * 100) * 600, 200, 1008),
    "frames said to be deflated": (websocket_frame(TEXT, b"\x4b\x4c\x04\x00" * 1_000, rsv1=True), 100, 1002),
    "text that is none": (websocket_frame(TEXT, b"\xff" * 1_000), 100, 1007),
    "frames without a mask": (websocket_frame(TEXT, b"x" * 1_000, masked=False), 100, 1002),
}


async def frames(target: Target) -> AsyncIterator[Figure]:
    for what, (piece, times, code) in FLOODS.items():
        await expect_close(target, piece, times, code)  # fill the buffers first
        before = target.memory()
        for _ in range(scale_volume(10)):
            await expect_close(target, piece, times, code)
        yield Figure("WS-07", f"memory after {what}, closed with {code}, 10 times", target.memory() - before, 5, "MB")
    number, before, began = scale_volume(500), target.memory(), time.perf_counter()
    async with AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(raw_connection(target.node.port)) for _ in range(number)]
        for connection in slow:
            connection.send(b"GET " + PATH.encode() + b"x" + UPGRADE)  # the last line never comes
        for connection in slow:
            await connection.read_to_end(within=HEAD_WITHIN * 2)
    taken = time.perf_counter() - began
    yield Figure("WS-07", f"until {number} handshakes without an end are closed", taken, HEAD_WITHIN, "s")
    yield Figure("WS-07", "memory after them", target.memory() - before, 5, "MB")


async def expect_close(target: Target, piece: bytes, times: int, code: int) -> None:
    [path] = await sessions(target, 1)
    async with raw_connection(target.node.port) as connection:
        connection.send(b"GET " + path + UPGRADE + b"\r\n")
        assert (await connection.read_response()).status == 101
        flooding = asyncio.create_task(flood_connection(connection, piece, times))
        assert close_frame_code(await connection.read_to_end()) == code
        await flooding


# -- OP-07 ----------------------------------------------------------------------------------------------


async def stopping(target: Target) -> AsyncIterator[Figure]:
    """The last measurement, because it ends the process."""
    polls, writes = scale_volume(1_000), scale_volume(100)
    async with AsyncExitStack() as stack:
        answers = await send_many(polls, lambda _: target.client.post(GET_GSID))
        polling = []
        for response in answers:
            connection = await stack.enter_async_context(raw_connection(target.node.port))
            location = response.headers["location"].partition("location=")[2]
            content = json_body(gsid=response.json()["gsid"])
            connection.send(head_of(f"{RESULT}?location={location}", content) + b"\r\n" + content)
            polling.append(connection)
        writing = [await stack.enter_async_context(raw_connection(target.node.port)) for _ in range(writes)]
        for connection in writing:  # each has begun: the service waits for its body
            connection.send(head_of(GET_GSID, b"{}") + b"Expect: 100-continue\r\n\r\n")
            assert (await connection.read_response()).status == 100
        await wait_until_held(target, polls)
        began = time.perf_counter()
        target.node.process.send(signal.SIGTERM)
        responses = [await connection.read_response() for connection in polling]
        for connection in writing:
            connection.send(b"{}")
        written = [await connection.read_response() for connection in writing]
        code = await asyncio.to_thread(target.node.process.wait, EXIT_WITHIN * 2)
        taken = time.perf_counter() - began
    assert code == 0
    retried = sum(response.status == 200 and json.loads(response.body)["status"] == "RETRY" for response in responses)
    finished = sum(response.status == 200 and "gsid" in json.loads(response.body) for response in written)
    yield Figure("OP-07", f"of {polls:,} held polls at SIGTERM, told RETRY", retried, polls, "polls", at_least=True)
    yield Figure("OP-07", f"of {writes} writes that had begun, finished", finished, writes, "writes", at_least=True)
    errors = sum(response.status >= 500 for response in (*responses, *written))
    yield Figure("OP-07", "answers of them that were 5xx", errors, 0, "answers")
    yield Figure("OP-07", "until the process was gone", taken, EXIT_WITHIN, "s")


def head_of(path: str, content: bytes) -> bytes:
    """The head of a request with this body, without the empty line."""
    length = f"Content-Length: {len(content)}\r\n"
    return f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{length}".encode()


async def wait_until_held(target: Target, number: int) -> None:
    """Wait until the process reports that many held polls; a poll not held in time never will be."""
    async with asyncio.timeout(POLL_HOLD_SECONDS):
        while held_count(await target.metrics()) < number:
            pass


def held_count(metrics: str) -> float:
    match = re.search(r"^gatehouse_held_requests (\S+)$", metrics, re.MULTILINE)
    assert match is not None
    return float(match[1])
