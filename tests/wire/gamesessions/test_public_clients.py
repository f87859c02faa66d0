"""Two public game clients define the wire: what each of them sends, and what it depends on (R2, R4)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.game import ANNA, GET_GSID, RESULT, approve_in_storage, game_from_response, wait_until_held
from tests.support.oauth import claims_of
from tests.support.service import RunningService, running_service

NEEDED = {
    *(
        "status",
        "gsid",
        "token",
        "started",
        "user_id",
        "tags",
        "token_exp",
        "jwt",
        "country",
        "reg_time",
        "ts",
        "lang",
    ),
}


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    environment = {"GATEHOUSE__TOKENS__JWT_WITHOUT_FACTOR": "true"}
    async with running_service(installed_url, tmp_path, environment=environment) as running:
        yield running


@pytest.fixture
async def anna(service: RunningService) -> User:
    return await service.services.accounts.administration.create(
        login=ANNA, nick="Anna", password=None, origin=AuditOrigin(actor="test")
    )


async def test_multipart_client_polls_without_a_factor_until_the_result(service: RunningService, anna: User) -> None:
    fields: dict[str, Any] = {"files": {"app_id": (None, "0")}}
    game = game_from_response(service, await service.client.post(GET_GSID, **fields))
    for _ in range(2):
        polling = asyncio.create_task(multipart_poll(service, game.gsid))
        await wait_until_held(service)
        await service.clock.advance(31)
        body = (await polling).json()
        assert body["status"] == "RETRY"
        assert isinstance(body["delay"], int)
        await service.clock.advance(body["delay"])
    polling = asyncio.create_task(multipart_poll(service, game.gsid))
    await wait_until_held(service)
    await approve_in_storage(game, anna)
    body = (await polling).json()
    assert (body["status"], body["gsid"], body["nick"]) == ("OK", game.gsid, "Anna")
    assert body["user_id"] == anna.user_id
    assert isinstance(body["user_id"], str)
    assert "fac" not in claims_of(body["jwt"])


async def multipart_poll(service: RunningService, gsid: str) -> httpx2.Response:
    files: Any = {"gsid": (None, gsid)}
    return await service.client.post(RESULT, files=files, timeout=60)


async def test_the_other_posts_nothing_polls_by_form_and_gives_up_after_ten_seconds(
    service: RunningService, anna: User
) -> None:
    game = game_from_response(service, await service.client.post(GET_GSID))
    for _ in range(3):
        polling = asyncio.create_task(service.client.post(RESULT, data={"gsid": game.gsid}, timeout=60))
        await wait_until_held(service)
        await service.clock.advance(10)
        polling.cancel()  # its HTTP library times out, and it polls again immediately
        await asyncio.gather(polling, return_exceptions=True)
    polling = asyncio.create_task(service.client.post(RESULT, data={"gsid": game.gsid}, timeout=60))
    while service.services.games.waiters.newest_number(game.gsid) < 4:  # noqa: ASYNC110 - until this one is held
        await asyncio.sleep(0.001)
    await approve_in_storage(game, anna)
    body = (await polling).json()
    assert body["status"] == "OK"
    assert body.keys() >= NEEDED
