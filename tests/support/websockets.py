"""A game's end of its WebSocket, with a client that others wrote; and one that sends whatever bytes it likes."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.echo import until
from tests.support.game import Game
from tests.support.rawhttp import RawConnection, raw_connection
from tests.support.service import Service

PATH: Final = "/ws/gameSession/refresh/"
PATIENCE: Final = 10  # seconds
KEY: Final = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


def socket_at(service: Service, target: str, *, address: str = "127.0.0.1", **headers: str) -> connect:
    """`target`: what follows the path; `address`: where the client is."""
    url = str(service.client.base_url).replace("http", "ws", 1).rstrip("/") + PATH + target
    return connect(
        url,
        ping_interval=None,
        compression=None,
        proxy=None,
        open_timeout=PATIENCE,
        close_timeout=PATIENCE,
        local_addr=(address, 0),
        additional_headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def socket_of(game: Game) -> connect:
    """Of the session's owner."""
    return socket_at(game.service, f"{game.gsid}?location={game.location}")


async def told(socket: ClientConnection) -> Mapping[str, Any]:
    async with asyncio.timeout(PATIENCE):
        frame: Mapping[str, Any] = json.loads(await socket.recv())
        return frame


async def closing(socket: ClientConnection) -> tuple[int, str]:
    """The code and reason the server closes it with; a frame before that fails."""
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
    said = closed.value.rcvd
    assert said is not None
    return said.code, said.reason


async def refused(opening: connect) -> int:
    """The status a handshake is refused with."""
    with pytest.raises(InvalidStatus) as refusal:
        async with opening:
            pass
    return refusal.value.response.status_code


async def in_step(*sockets: ClientConnection) -> None:
    """Until the server has read all that these sent, the answers to its pings among it."""
    async with asyncio.timeout(PATIENCE):
        for socket in sockets:
            await (await socket.ping())


async def settled(service: Service) -> None:
    """Until nothing is being looked up or stored for the sake of sockets."""
    await until(lambda: not service.game.presence._tasks)


async def hears_nothing(socket: ClientConnection) -> None:
    """What was sent to it has come by now, and there was nothing."""
    await in_step(socket)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await socket.recv()


async def present(service: Service, number: int) -> None:
    """Until so many sockets take part."""
    await until(lambda: len(service.game.presence) == number)


@asynccontextmanager
async def bare_socket(port: int, target: bytes) -> AsyncIterator[RawConnection]:
    """An open socket whose client says nothing by itself, not even pong."""
    async with raw_connection(port) as connection:
        connection.send(
            b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" % target
        )
        connection.send(KEY + b"\r\n")
        assert (await connection.answer()).status == 101
        yield connection
