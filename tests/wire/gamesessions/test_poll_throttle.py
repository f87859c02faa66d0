"""Clients that poll before their delay is over (R4, checklist GS-25)."""

import asyncio
from dataclasses import replace
from pathlib import Path

import httpx2

from gatehouse.accounts.model import User
from tests.support.game import (
    Game,
    approve_in_storage,
    refusal_reason,
    register_game,
    wait_until_held,
    wait_until_marks_stored,
)
from tests.support.service import RunningService, running_service
from tests.wire.gamesessions.test_proof import service_from

# The first poll after RETRY is in time, and the second displaces it: the third is the first early one.
EARLY = 2 + 5


async def early_polls(game: Game, number: int = EARLY, *, by_address: bool = False) -> httpx2.Response | None:
    """Get a RETRY, then poll this often before its delay is over; return the refusal, if there is one.

    Each poll displaces the previous one, which then gets RETRY: the delay starts again every time.
    """
    polling = game.start_poll(by_address=by_address)
    await wait_until_held(game.service)
    await game.service.clock.advance(31)
    assert (await polling).json()["status"] == "RETRY"
    await wait_until_marks_stored(game)
    await game.service.clock.advance(2)  # the clock passed the response; now its delay is surely over
    newest = game.start_poll(by_address=by_address)
    await wait_until_held(game.service)
    refusal = None
    for _ in range(number - 1):
        displaced, newest = newest, game.start_poll(by_address=by_address)
        await asyncio.wait({displaced, newest}, return_when=asyncio.FIRST_COMPLETED)
        if newest.done():
            refusal, newest = newest.result(), displaced
    newest.cancel()
    await asyncio.gather(newest, return_exceptions=True)
    while len(game.service.services.games.waiters):  # noqa: ASYNC110 - until its end was noticed
        await asyncio.sleep(0.001)
    return refusal


async def test_gs_25_the_fifth_early_poll_within_a_minute_is_blocked_and_released_in_time(
    service: RunningService, anna: User
) -> None:
    game, neighbour = await register_game(service), await register_game(service)
    blocked = await early_polls(game)
    assert blocked is not None
    assert blocked.headers["retry-after"] == "60"
    assert await refusal_reason(service, blocked, status=429) == "polled before the delay was over; blocked for 60 s"
    await approve_in_storage(game, anna)
    assert (await game.poll()).status_code == 429  # whatever has happened since
    await approve_in_storage(neighbour, anna)
    assert (await neighbour.poll()).json()["status"] == "OK"
    await service.clock.advance(60)
    assert (await game.poll()).json()["status"] == "OK"


async def test_gs_25_four_early_polls_are_no_offence(service: RunningService, anna: User) -> None:
    game = await register_game(service)
    assert await early_polls(game, EARLY - 1) is None
    await approve_in_storage(game, anna)
    await service.clock.advance(2)
    assert (await game.poll()).json()["status"] == "OK"


async def test_gs_25_each_further_block_lasts_twice_as_long(service: RunningService) -> None:
    game = await register_game(service)
    for lasts in (60, 120):
        blocked = await early_polls(game)
        assert blocked is not None
        assert blocked.headers["retry-after"] == str(lasts)
        await service.clock.advance(1)
        await wait_until_marks_stored(game)
        await service.clock.advance(lasts)


async def test_gs_25_the_same_session_from_another_address_is_not_blocked(service: RunningService) -> None:
    game = await register_game(service)
    assert await early_polls(game) is not None
    await service.clock.advance(2)
    async with service_from(service) as other:
        polling = replace(game, service=other).start_poll()
        await wait_until_held(service)
        service.stopping.begin()
        assert (await polling).json()["status"] == "RETRY"


async def test_gs_25_twenty_blocked_sessions_block_their_address_but_no_one_with_a_location(
    installed_url: str, tmp_path: Path
) -> None:
    environment = {"GATEHOUSE__GAME__BLOCKED_MOST": "2"}
    async with running_service(installed_url, tmp_path, environment=environment) as service:
        games = [await register_game(service) for _ in range(3)]
        for game in games[:2]:
            assert await early_polls(game, by_address=True) is not None
        assert (await games[2].poll(by_address=True)).status_code == 429
        polling = games[2].start_poll()
        await wait_until_held(service)
        service.stopping.begin()
        assert (await polling).json()["status"] == "RETRY"
