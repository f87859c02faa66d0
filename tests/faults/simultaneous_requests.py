"""Requests that start together: written into open connections without a pause."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Self
from urllib.parse import urlencode

import httpx2

from tests.faults.clients import CheckedRequest, ClientPool, FaultClient, judge_answer
from tests.faults.history import Operation
from tests.support.processes import Node
from tests.support.raw_http import RawConnection, RawResponse, raw_connection


class SimultaneousSender:
    """Open `each` connections to every node; requests go to the nodes in turn."""

    def __init__(self, pool: ClientPool, nodes: Sequence[Node], *, each: int) -> None:
        self._pool = pool
        self._nodes = nodes
        self._each = each
        self._stack = AsyncExitStack()
        self._connections: list[tuple[int, RawConnection]] = []
        self.spreads: list[float] = []  # seconds between the first and the last request of each round

    async def __aenter__(self) -> Self:
        for _ in range(self._each):
            for node_index, node in enumerate(self._nodes):
                self._connections.append(
                    (node_index, await self._stack.enter_async_context(raw_connection(node.port)))
                )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def send_together(self, client: FaultClient, asks: Sequence[CheckedRequest]) -> list[Operation]:
        """Send all requests at once, one per connection; return their results."""
        loop = asyncio.get_running_loop()
        shots = [(barrel, ask, request_bytes(ask)) for barrel, ask in zip(self._connections, asks, strict=False)]
        begins = []
        for (_, connection), _, data in shots:
            begins.append(loop.time())
            connection.send(data)
        self.spreads.append(loop.time() - begins[0])
        return list(
            await asyncio.gather(
                *(
                    self._judge_response(client, node_index, connection, ask, began)
                    for ((node_index, connection), ask, _), began in zip(shots, begins, strict=True)
                )
            )
        )

    async def _judge_response(
        self, client: FaultClient, node_index: int, connection: RawConnection, ask: CheckedRequest, began: float
    ) -> Operation:
        response = httpx_response(await connection.read_response())
        judged = judge_answer(ask, response)
        return self._pool.recorder.write(
            Operation(
                t0=began,
                t1=asyncio.get_running_loop().time(),
                node=node_index,
                client=client.name,
                op=ask.op,
                key=ask.key,
                value=ask.value if judged.value is None else judged.value,
                result=judged.result,
                status=response.status_code,
                note=judged.note,
                patient="retry-after" in response.headers,
                request_id=response.headers.get("x-request-id", ""),
                event=ask.event,
            )
        )


def request_bytes(ask: CheckedRequest) -> bytes:
    """The bytes of a request that a client would send."""
    form = ask.request.get("data")
    body = urlencode(form).encode() if form is not None else json.dumps(ask.request.get("json", {})).encode()
    kind = "application/x-www-form-urlencoded" if form is not None else "application/json"
    headers = {
        "Host": "gatehouse.example",
        "Content-Type": kind,
        "Content-Length": str(len(body)),
        **ask.request.get("headers", {}),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{ask.method} {ask.path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def httpx_response(response: RawResponse) -> httpx2.Response:
    """The response as an httpx response, for the judges."""
    headers = [
        (name, value) for name, value in response.headers if name not in {"content-encoding", "content-length"}
    ]
    return httpx2.Response(response.status, headers=headers, content=response.body)
