"""Sign-in, game login and permissions, once each: run before every commit."""

from collections.abc import AsyncIterator

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.game import ANNA, confirm_in_browser, register_game, wait_until_held
from tests.support.oauth import an_oidc_client, claims_of, success_body
from tests.support.service import RunningService

FACTOR = "device-1"


@pytest.fixture
async def anna(service: RunningService) -> User:
    return await service.services.accounts.administration.create(
        login=ANNA, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
    )


@pytest.fixture
async def browser_client(service: RunningService) -> AsyncIterator[HttpBrowser]:
    someone = HttpBrowser(service)
    yield someone
    await someone.client.aclose()


async def test_person_signs_in_to_a_client_and_refreshes(service: RunningService, anna: User) -> None:
    client = await an_oidc_client(service)
    tokens = await client.tokens(await client.sign_in(ANNA))
    assert claims_of(tokens["id_token"])["sub"] == anna.user_id
    assert success_body(await client.userinfo(tokens["access_token"]))["email"] == ANNA
    assert "access_token" in success_body(await client.refresh(tokens["refresh_token"]))


async def test_player_signs_in_from_a_game_and_asks_for_permissions(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    game = await register_game(service, factor=FACTOR)
    polling = game.start_poll()
    await wait_until_held(service)
    assert (await confirm_in_browser(browser_client, game)).status_code in {200, 303}
    login = (await polling).json()
    assert (login["status"], login["user_id"]) == ("OK", anna.user_id)
    headers = {"authorization": f"Bearer {login['jwt']}", "factor": FACTOR}
    question = {"action": "get", "application_id": 1, "data": {}}
    answer = (await service.client.post("/api/permissions/meta/data", json=question, headers=headers)).json()
    assert (answer["status"], answer["user_id"]) == ("OK", anna.user_id)


@pytest.mark.parametrize("path", ["/", "/sign-in", "/docs", "/openapi.json", "/healthz"])
async def test_public_pages_answer(service: RunningService, path: str) -> None:
    assert (await service.client.get(path)).status_code in {200, 303}
