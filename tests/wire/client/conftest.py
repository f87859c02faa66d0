"""A studio whose shop is an application with the client library, on each database."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from gatehouse.client import AccessKey, Gatehouse, Reply, Request, StandardTransport, Unavailable
from gatehouse.client.transport import EventStream
from tests.support.service import RunningService
from tests.support.studio import FACTOR, Person, Studio, a_studio

KICK = {"user": {"kick": {"value": True}}}


@dataclass
class WatchedTransport:
    """The client's transport, which records requests and responses and can be disconnected."""

    inner: StandardTransport
    seen: list[tuple[str, int]] = field(default_factory=list)
    is_disconnected: bool = False

    async def send(self, request: Request) -> Reply:
        if self.is_disconnected:
            raise Unavailable("disconnected by the test")
        reply = await self.inner.send(request)
        self.seen.append((request.path.rpartition("/")[2], reply.status))
        return reply

    def open_stream(self, request: Request) -> EventStream:
        return self.inner.open_stream(request)

    async def close(self) -> None:
        await self.inner.close()

    def statuses_from(self, last: str) -> list[int]:
        """The statuses of all responses from there."""
        return [status for path, status in self.seen if path == last]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientShop:
    """The studio's shop, and the client in it."""

    studio: Studio
    transport: WatchedTransport
    key: str

    def client(self, **changes: Any) -> Gatehouse:
        wanted: dict[str, Any] = {
            "application_id": self.studio.shop.application_id,
            "credential": AccessKey(self.key),
            "transport": self.transport,
            "clock": self.studio.service.clock,
        }
        return Gatehouse(self.studio.service.base_url, **{**wanted, **changes})

    async def save(self, person: Person, **data: object) -> None:
        """Change what a person has in the shop, as the owner."""
        ask = {
            "action": "save",
            "application_id": self.studio.shop.application_id,
            "data": {"user_id": person.user_id, **data},
        }
        await self.studio.expect_ok("meta/data", ask, self.studio.owner.headers)

    async def a_role(self, name: str) -> None:
        """A role that grants user.kick."""
        ask = {
            "action": "save",
            "application_id": self.studio.shop.application_id,
            "data": {"name": name, "meta": {"private_data": KICK}},
        }
        await self.studio.expect_ok("roles", ask, self.studio.owner.headers)

    async def jwt(self, person: Person, **more: Any) -> str:
        """A new user JWT of the person."""
        services = self.studio.service.services
        user = await services.storage.accounts.user(person.user_id)
        return await services.accounts.user_tokens.issue(user, auth="login", factor=FACTOR, **more)


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


@pytest.fixture
async def shop(studio: Studio) -> AsyncIterator[ClientShop]:
    transport = WatchedTransport(StandardTransport(studio.service.base_url))
    yield ClientShop(studio=studio, transport=transport, key=await studio.access_key())
    await transport.close()
