"""Reads server-sent events of the running service."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

PATH = "/api/permissions/changes"
SECONDS = 10  # for one event on a busy machine


@dataclass(slots=True)
class EventReader:
    response: httpx2.Response
    lines: AsyncIterator[str]
    last_id: str = ""

    async def next(self) -> dict[str, Any] | None:
        """The data of the next event; None for a heartbeat."""
        data = None
        async with asyncio.timeout(SECONDS):
            async for line in self.lines:
                if not line:
                    return data
                name, _, value = line.partition(": ")
                if name == "id":
                    self.last_id = value
                elif name == "data":
                    data = json.loads(value)
        raise EOFError

    async def changes(self, count: int) -> list[dict[str, Any]]:
        """The next changes; heartbeats between them are skipped."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            data = await self.next()
            if data is not None:
                found.append(data)
        return found

    async def is_ended(self) -> bool:
        """Whether the service ends the stream without a further event."""
        try:
            await self.next()
        except EOFError:
            return True
        return False


@asynccontextmanager
async def open_changes(
    client: httpx2.AsyncClient, headers: Mapping[str, str], last_id: str = "", **query: object
) -> AsyncIterator[EventReader]:
    """A stream that has sent its first position."""
    given = {**headers, **({"Last-Event-ID": last_id} if last_id else {})}
    async with client.stream("GET", PATH, params=query, headers=given) as response:
        if response.status_code != httpx2.codes.OK:
            raise AssertionError(f"{response.status_code} {(await response.aread()).decode()}")
        reader = EventReader(response, response.aiter_lines())
        if not last_id:
            assert await reader.next() is None
        yield reader
