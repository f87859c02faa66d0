"""Helpers of the checklist's figures: a serving process, many requests, and a number beside its bound."""

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Final

import httpx2

from tests.support.processes import Node
from tests.support.tls import NO_TRUST_STORE

WHOLE: Final = "ADVERSARIAL_WHOLE" in os.environ  # noqa: TID251 - set by `make adversarial`; otherwise a sample
VOLUME: Final = int(os.environ.get("ADVERSARIAL_VOLUME", "1000000"))  # noqa: TID251 - of HT-18, an option of the tests
AT_ONCE: Final = 50
TIMEOUT: Final = 300  # seconds; the bounds limit how long a response may take
MACHINE_NOISE: Final = 0.005  # seconds that the machine itself may add to a response
OPERATOR: Final = "the token of the metrics reader"
QUIET: Final = {"GATEHOUSE__LOG__LEVEL": "error", "GATEHOUSE__OPERATIONS__TOKEN": OPERATOR}
UNLIMITED: Final = {"GATEHOUSE__RATES__ENABLED": "false", **QUIET}
JSON: Final = {"Content-Type": "application/json"}
MAX_KEPT_ANSWERS: Final = 20_000  # responses


@dataclass(frozen=True, slots=True)
class Figure:
    id: str
    what: str
    measured: float
    bound: float
    unit: str
    at_least: bool = False

    @property
    def is_within(self) -> bool:
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    def __str__(self) -> str:
        sign, mark = (">=" if self.at_least else "<="), ("" if self.is_within else "   OUT OF BOUNDS")
        bound = f"{sign} {self.bound:g}"
        return f"{self.id:<6} {self.what:<62} {self.measured:>12.2f} {bound:>12} {self.unit}{mark}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    node: Node
    data: Path
    client: httpx2.AsyncClient

    def memory(self) -> float:
        """The resident memory of the process in megabytes."""
        status = Path(f"/proc/{self.node.process.pid}/status").read_text()
        match = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert match is not None
        return int(match[1]) / 1024

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.node.process.pid}/fd").iterdir()))

    async def metrics(self) -> str:
        response = await self.client.get("/metrics", headers={"Authorization": f"Bearer {OPERATOR}"})
        assert response.status_code == 200, response.text
        return response.text


@asynccontextmanager
async def serve_node(data: Path, environment: Mapping[str, str]) -> AsyncIterator[Target]:
    with Node(data=data, environment=environment) as node:
        async with client_of(node) as client:
            yield Target(node=node, data=data, client=client)


def client_of(node: Node, *, address: str | None = None, connections: int = AT_ONCE) -> httpx2.AsyncClient:
    """An HTTP client of this process, optionally from its own address."""
    limits = httpx2.Limits(max_connections=connections)
    transport = httpx2.AsyncHTTPTransport(local_address=address, verify=NO_TRUST_STORE, limits=limits)
    return httpx2.AsyncClient(base_url=node.address, timeout=TIMEOUT, transport=transport)


def scale_volume(number: int) -> int:
    """The checklist's number, or less in a trial run."""
    return min(number, VOLUME)


def json_body(**fields: object) -> bytes:
    return json.dumps(fields).encode()


async def send_many(
    number: int,
    ask: Callable[[int], Awaitable[httpx2.Response]],
    *,
    begin: int = 0,
    at_once: int = AT_ONCE,
) -> list[httpx2.Response]:
    """Send this many requests, some at a time; return the responses."""
    answers: list[httpx2.Response] = []
    numbers = iter(range(begin, begin + number))

    async def work() -> None:
        for n in numbers:
            try:
                response = await ask(n)
            except httpx2.RemoteProtocolError:  # the kept connection had been idle for too long
                response = await ask(n)
            assert response.status_code < 500, response.text
            if number <= MAX_KEPT_ANSWERS:
                answers.append(response)

    await asyncio.gather(*(work() for _ in range(at_once)))
    return answers


async def p99(client: httpx2.AsyncClient) -> float:
    """The 99th percentile in seconds of a path that costs nothing itself."""
    taken = []
    for _ in range(1_000):
        began = time.perf_counter()
        assert (await client.get("/healthz")).status_code == 200
        taken.append(time.perf_counter() - began)
    return quantiles(taken, n=100)[98]
