"""A game that signs its player in: registers, polls, closes; and the player's own way through the pages."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from tests.support.service import Service
from tests.support.visitor import PASSWORD, Visitor

GET_GSID: Final = "/proxy/api/gameSession/getGsid"
RESULT: Final = "/proxy/api/gameSession/getGsidResult"
INFO: Final = "/proxy/api/gameSession/info"
CLOSE: Final = "/proxy/api/gameSession/closeGsid"
ANNA: Final = "anna@studio.example"


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """One registered session."""

    service: Service
    gsid: str
    location: str
    told: Mapping[str, Any]

    async def poll(self, *, by_address: bool = False, **fields: object) -> httpx2.Response:
        return await self.service.client.post(
            RESULT,
            json={"gsid": self.gsid, **fields},
            params={} if by_address else {"location": self.location},
            timeout=60,
        )

    def polling(self, **fields: Any) -> "asyncio.Task[httpx2.Response]":
        """A poll under way; `held` tells when the service holds it."""
        return asyncio.create_task(self.poll(**fields))

    async def close(self, status: str = "Success") -> httpx2.Response:
        return await self.service.client.post(
            CLOSE, json={"gsid": self.gsid, "status": status}, params={"location": self.location}
        )


async def register(service: Service, **fields: object) -> Game:
    answer = await service.client.post(GET_GSID, json=fields)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    location = answer.headers["location"].partition("location=")[2]
    return Game(service=service, gsid=told["gsid"], location=location, told=told)


async def held(service: Service, number: int = 1) -> None:
    """Until so many polls are held; a hang is the test's own time limit."""
    while len(service.game.waiters) < number or not service.game.waiters.all_numbered():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def confirm(visitor: Visitor, game: Game, *, login: str = ANNA, decision: str = "confirm") -> httpx2.Response:
    """Open the link, sign in if asked to, and decide."""
    page = await visitor.get(f"/?gsid={game.gsid}")
    while page.status_code == 303:
        page = await visitor.follow()
    if page.url.path == "/sign-in":
        await visitor.post("/sign-in", login=login, password=PASSWORD)
        page = await visitor.follow()
    assert page.url.path == "/sign-in/confirm", page.text
    await visitor.post("/sign-in/confirm", decision=decision)
    return await visitor.follow()
