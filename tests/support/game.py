"""A game client: registers, polls and closes game sessions; and the player who confirms them in a browser."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import httpx2

from gatehouse.accounts.model import User
from gatehouse.audit.model import Refusal
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import a_confirmation, a_record
from tests.support.service import RunningService
from tests.support.tls import NO_TRUST_STORE

GET_GSID: Final = "/proxy/api/gameSession/getGsid"
RESULT: Final = "/proxy/api/gameSession/getGsidResult"
INFO: Final = "/proxy/api/gameSession/info"
CLOSE: Final = "/proxy/api/gameSession/closeGsid"
ANNA: Final = "anna@studio.example"
OTHER_ADDRESS: Final = "127.0.0.2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """A registered game session."""

    service: RunningService
    gsid: str
    location: str
    answer: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)  # sent with every request

    async def poll(self, *, by_address: bool = False, **fields: object) -> httpx2.Response:
        return await self.service.client.post(
            RESULT,
            json={"gsid": self.gsid, **fields},
            params={} if by_address else {"location": self.location},
            headers=self.headers,
            timeout=60,
        )

    def start_poll(self, **fields: Any) -> "asyncio.Task[httpx2.Response]":
        """Start a poll in the background; `held` is set once the service holds it."""
        return asyncio.create_task(self.poll(**fields))

    async def close(self, status: str = "Success") -> httpx2.Response:
        return await self.service.client.post(
            CLOSE,
            json={"gsid": self.gsid, "status": status},
            params={"location": self.location},
            headers=self.headers,
        )


async def register_game(service: RunningService, headers: Mapping[str, str] | None = None, **fields: object) -> Game:
    game = game_from_response(service, await service.client.post(GET_GSID, json=fields, headers=headers))
    return replace(game, headers=headers or {})


async def register_game_elsewhere(service: RunningService, *, forwarded_for: str = "", **fields: object) -> Game:
    """Register a game from a different address, or behind a proxy there."""
    transport = httpx2.AsyncHTTPTransport(local_address=OTHER_ADDRESS, verify=NO_TRUST_STORE)
    headers = {"X-Forwarded-For": forwarded_for} if forwarded_for else {}
    async with httpx2.AsyncClient(transport=transport, base_url=service.client.base_url, headers=headers) as far:
        return game_from_response(service, await far.post(GET_GSID, json=fields))


def game_from_response(service: RunningService, response: httpx2.Response) -> Game:
    assert response.status_code == 200, response.text
    body = response.json()
    location = response.headers["location"].partition("location=")[2]
    return Game(service=service, gsid=body["gsid"], location=location, answer=body)


async def wait_until_held(service: RunningService, number: int = 1) -> None:
    """Wait until this many polls are held; the test's time limit ends a hang."""
    while len(service.services.games.waiters) < number or not service.services.games.waiters.all_numbered():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def poll_ended_session(game: Game, **fields: Any) -> httpx2.Response:
    """Poll a session that has ended."""
    return await advance_through_delay(game.service, game.start_poll(**fields))


async def advance_through_delay(service: RunningService, polling: "asyncio.Task[httpx2.Response]") -> httpx2.Response:
    """Advance the clock until the usual response delay has passed."""
    while not polling.done():
        if service.clock.has_timer(within=1):
            await service.clock.advance(1)
        await asyncio.sleep(0.001)
    return await polling


async def wait_until_marks_stored(game: Game) -> None:
    """Wait until the poll marks are stored; the clock may have passed their due time."""
    while game.service.services.games.write_behind.newest_poll_number(game.gsid):  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def approve_in_storage(game: Game, user: User) -> None:
    """Approve the session in storage, as the confirm page does."""
    store, now = game.service.services.storage.game_sessions, game.service.clock.now()
    assert await store.confirm_session(a_confirmation(game.gsid, user), now, a_record(subject=user.user_id))


async def refusal_reason(service: RunningService, response: httpx2.Response, status: int = 403) -> str:
    """Why the request was refused: the audit log's reason for the error id in the response."""
    assert response.status_code == status, response.text
    body = response.json()
    assert body.keys() == {"status", "error"}
    assert body["status"] == "ERROR"
    record = await service.services.storage.audit.find_record(body["error"])
    assert isinstance(record, Refusal), body
    return record.reason


async def confirm_in_browser(
    browser: HttpBrowser, game: Game, *, login: str = ANNA, decision: str = "confirm"
) -> httpx2.Response:
    """Open the link, sign in if asked to, and approve or deny."""
    page = await browser.get(f"/?gsid={game.gsid}")
    while page.status_code == 303:
        page = await browser.follow()
    if page.url.path == "/sign-in":
        await browser.post("/sign-in", login=login, password=PASSWORD)
        page = await browser.follow()
    assert page.url.path == "/sign-in/confirm", page.text
    await browser.post("/sign-in/confirm", decision=decision)
    return await browser.follow()
