"""The client side of a game's WebSocket, with a third-party library; and one that sends arbitrary bytes."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.echo import wait_until
from tests.support.game import Game
from tests.support.raw_http import RawConnection, raw_connection
from tests.support.service import RunningService

PATH: Final = "/ws/gameSession/refresh/"
SOCKET_TIMEOUT: Final = 10  # seconds
KEY: Final = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


def connect_socket(service: RunningService, target: str, *, address: str = "127.0.0.1", **headers: str) -> connect:
    """Open a socket; `target` follows the path, `address` is the client's."""
    url = str(service.client.base_url).replace("http", "ws", 1).rstrip("/") + PATH + target
    return connect(
        url,
        ping_interval=None,
        compression=None,
        proxy=None,
        open_timeout=SOCKET_TIMEOUT,
        close_timeout=SOCKET_TIMEOUT,
        local_addr=(address, 0),
        additional_headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def connect_game_socket(game: Game) -> connect:
    """Open a socket for the game that owns the session."""
    return connect_socket(game.service, f"{game.gsid}?location={game.location}")


async def receive_json(socket: ClientConnection) -> Mapping[str, Any]:
    async with asyncio.timeout(SOCKET_TIMEOUT):
        frame: Mapping[str, Any] = json.loads(await socket.recv())
        return frame


async def close_code_and_reason(socket: ClientConnection) -> tuple[int, str]:
    """The code and reason the server closes with; a frame before that fails the test."""
    async with asyncio.timeout(SOCKET_TIMEOUT):
        with pytest.raises(ConnectionClosed) as error:
            await socket.recv()
    close_frame = error.value.rcvd
    assert close_frame is not None
    return close_frame.code, close_frame.reason


async def handshake_status(opening: connect) -> int:
    """The status with which a handshake is refused."""
    with pytest.raises(InvalidStatus) as error:
        async with opening:
            pass
    return error.value.response.status_code


async def wait_until_read(*sockets: ClientConnection) -> None:
    """Wait until the server has read everything these sockets sent, including pongs."""
    async with asyncio.timeout(SOCKET_TIMEOUT):
        for socket in sockets:
            await (await socket.ping())


async def wait_until_idle(service: RunningService) -> None:
    """Wait until no lookups or writes for sockets are pending."""
    await wait_until(lambda: not service.services.games.presence._tasks)


async def expect_no_message(socket: ClientConnection) -> None:
    """Check that nothing has been sent to the socket."""
    await wait_until_read(socket)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await socket.recv()


async def wait_until_connected(service: RunningService, number: int) -> None:
    """Wait until this many sockets are connected."""
    await wait_until(lambda: len(service.services.games.presence) == number)


@asynccontextmanager
async def raw_websocket(port: int, target: bytes) -> AsyncIterator[RawConnection]:
    """An open socket whose client sends nothing by itself, not even pongs."""
    async with raw_connection(port) as connection:
        connection.send(
            b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" % target
        )
        connection.send(KEY + b"\r\n")
        assert (await connection.read_response()).status == 101
        yield connection
