"""HTTP clients that send requests to real nodes and record the results."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random  # noqa: TID251 - a seed makes a run repeatable, and nothing here is secret
from typing import Any, Final

import httpx2

from tests.faults.history import Act, Operation, Recorder, Result
from tests.support.processes import Node
from tests.support.tls import NO_TRUST_STORE

CLIENT_TIMEOUT: Final = 20.0  # seconds to wait for a response
NODE_GONE: Final = 1.0  # seconds after which all nodes are tried again; a start of one is told before
STORM_SECONDS: Final = 0.2  # between a request and its repetition (faults R-29)
PROXY_ERRORS: Final = 500
WRITES: Final = frozenset(
    {Act.REDEEM, Act.REFRESH, Act.APPROVE, Act.SPEND, Act.BEGIN, Act.END, Act.ADD, Act.REMOVE, Act.WRITE}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswer:
    """What a response means to a checker."""

    result: Result
    value: str | None = None  # if it differs from the request's
    version: int = 0
    note: str = ""


Judge = Callable[[httpx2.Response], JudgedAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRequest:
    """One request and what it means to a checker."""

    op: Act
    key: str
    path: str
    value: str = ""
    method: str = "POST"
    event: str = ""
    judge: Judge | None = None
    request: Mapping[str, Any]  # body and headers, as keyword arguments of the HTTP client
    repeatable: bool = True  # whether a client repeats it when the response is lost


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedReply:
    operation: Operation
    answer: httpx2.Response | None  # None: no response

    @property
    def ok(self) -> bool:
        return self.operation.ok

    @property
    def json(self) -> Any:
        assert self.answer is not None
        return self.answer.json()


class ClientPool:
    """What the clients of a run share: nodes, history, randomness, and the requests to repeat."""

    def __init__(
        self,
        nodes: Sequence[str],
        recorder: Recorder,
        seed: int,
        *,
        storm: bool = False,
        patience: float = CLIENT_TIMEOUT,
    ) -> None:
        self.nodes = nodes  # base URLs
        self.recorder = recorder
        self.seed = seed
        self.storm = storm
        self.patience = patience
        self.unreached = 0  # requests that reached no node, which are not operations
        self.over = asyncio.Event()
        self._started = asyncio.Event()  # replaced when a node has started
        self.lost: list[tuple[FaultClient, CheckedRequest, Operation]] = []
        self._clients: list[FaultClient] = []

    def client(self, name: str) -> "FaultClient":
        new_client = FaultClient(self, name)
        self._clients.append(new_client)
        return new_client

    def tell_started(self) -> None:
        """A node listens: wake the clients that reached none."""
        self._started.set()
        self._started = asyncio.Event()

    async def wait_for_start(self) -> None:
        """Wait until a node has started, or started by itself: a supervisor tells no one of a new worker."""
        with suppress(TimeoutError):
            async with asyncio.timeout(NODE_GONE):
                await self._started.wait()

    async def wait(self, seconds: float) -> None:
        """Wait that long, or until the run is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.over.wait()

    async def ask_again(self) -> None:
        """Repeat every request whose response was lost, once all faults are over (I14)."""
        lost, self.lost = self.lost, []
        for client, ask, first in lost:
            await client.ask(ask, repeats=first.number)

    async def close(self) -> None:
        for client in self._clients:
            await client.http.aclose()


class FaultClient:
    """Send requests to the nodes in turn, chosen by a random generator of its own.

    So the seed of a run determines the requests of each client.
    """

    def __init__(self, pool: ClientPool, name: str) -> None:
        self.pool = pool
        self.name = name
        self.login = ""  # of the person who uses the browser
        self.chance = Random(f"{pool.seed} {name}")  # noqa: S311 - no secret
        self._turn = self.chance.randrange(len(pool.nodes))
        self.http = httpx2.AsyncClient(timeout=pool.patience, verify=NO_TRUST_STORE, trust_env=False)

    def is_over(self) -> bool:
        return self.pool.over.is_set()

    async def ask(self, ask: CheckedRequest, *, node: int | None = None, repeats: int = 0) -> CheckedReply:
        reply = await self._ask_once(ask, node, repeats)
        if self.pool.storm and ask.op in WRITES and ask.repeatable and not repeats:
            for _ in range(2):
                await self.pool.wait(STORM_SECONDS)
                await self._ask_once(ask, None, reply.operation.number)
        return reply

    async def _ask_once(self, ask: CheckedRequest, node: int | None, repeats: int) -> CheckedReply:
        """Send the request to a node that listens; without a connection, nothing was sent."""
        while True:
            for _ in self.pool.nodes if node is None else [node]:
                with suppress(httpx2.ConnectError):
                    return await self._ask_node(self._next_node() if node is None else node, ask, repeats)
                self.pool.unreached += 1
            await self.pool.wait_for_start()

    def _next_node(self) -> int:
        self._turn = (self._turn + 1) % len(self.pool.nodes)
        return self._turn

    async def _ask_node(self, node_index: int, ask: CheckedRequest, repeats: int) -> CheckedReply:
        loop = asyncio.get_running_loop()
        began = loop.time()
        response, note = None, ""
        try:
            url = self.pool.nodes[node_index] + ask.path
            response = await self.http.request(ask.method, url, **ask.request)
        except httpx2.ConnectError:
            raise
        except httpx2.TransportError as error:
            note = type(error).__name__
        judged = JudgedAnswer(result=Result.INFO, note=note) if response is None else judge_answer(ask, response)
        operation = Operation(
            t0=began,
            t1=loop.time(),
            node=node_index,
            client=self.name,
            op=ask.op,
            key=ask.key,
            value=ask.value if judged.value is None else judged.value,
            result=judged.result,
            status=0 if response is None else response.status_code,
            note=judged.note,
            patient=response is not None and "retry-after" in response.headers,
            version=judged.version,
            request_id="" if response is None else response.headers.get("x-request-id", ""),
            event=ask.event,
            repeats=repeats,
        )
        written = self.pool.recorder.write(operation)
        if written.result is Result.INFO and ask.op in WRITES and ask.repeatable and not repeats:
            self.pool.lost.append((self, ask, written))
        return CheckedReply(operation=written, answer=response)

    async def pause(self, seconds: float = 0.03) -> None:
        """Pause between requests, because other processes need the CPU too."""
        await self.pool.wait(seconds * self.chance.uniform(0.5, 1.5))


def judge_answer(ask: CheckedRequest, response: httpx2.Response) -> JudgedAnswer:
    if response.status_code >= PROXY_ERRORS:
        return JudgedAnswer(result=Result.INFO, note=error_of(response))
    if ask.judge is not None:
        return ask.judge(response)
    good = response.is_success or response.is_redirect
    return JudgedAnswer(result=Result.OK) if good else JudgedAnswer(result=Result.FAIL, note=error_of(response))


def error_of(response: httpx2.Response) -> str:
    """The error's name in its dialect, or the first words of its text."""
    try:
        body = response.json()
    except json.JSONDecodeError:
        return response.text[:80]
    return str(body.get("error", body))[:80] if isinstance(body, dict) else str(body)[:80]


async def ask_nodes_in_turn(client: FaultClient, ask: CheckedRequest) -> list[CheckedReply]:
    """Send the same request to every node in turn."""
    return [await client.ask(ask, node=node_index) for node_index in range(len(client.pool.nodes))]


async def ask_nodes_together(client: FaultClient, ask: CheckedRequest) -> list[CheckedReply]:
    """Send the same request to every node at the same time."""
    return list(
        await asyncio.gather(*(client.ask(ask, node=node_index) for node_index in range(len(client.pool.nodes))))
    )


def addresses(nodes: Sequence[Node]) -> list[str]:
    return [node.address for node in nodes]


async def repeat_until_over(client: FaultClient, *turns: Callable[[FaultClient], Awaitable[object]]) -> None:
    """Repeat randomly chosen turns until the run is over."""
    while not client.is_over():
        await client.chance.choice(turns)(client)
        await client.pause()
