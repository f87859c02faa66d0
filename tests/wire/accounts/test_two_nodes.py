"""What an administrator switches at one node applies at the other within a second (R10)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from gatehouse.app.housekeeping import housekeeping
from gatehouse.audit.model import AuditOrigin
from gatehouse.permissions.model.application import Application
from tests.support.browser import LOGIN, PASSWORD
from tests.support.builders import ORIGIN
from tests.support.game import GET_GSID
from tests.support.guests import GUEST
from tests.support.oauth import a_public_client
from tests.support.permission_builders import create_application
from tests.support.processes import free_port
from tests.support.service import RunningService, running_service

WITHIN: Final = 1.0  # seconds until a change applies everywhere
PROVIDER: Final = {"kind": "google", "client_id": "hub", "client_secret": "s3cret"}
TERMS: Final = {"title": "Terms of use", "url": "https://studio.example/terms", "version": "1"}
BACK_END: Final = "raiders-backend"


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoNodes:
    here: RunningService
    there: RunningService  # with its background jobs
    changed: asyncio.Queue[None]  # an entry for each change of settings that it applied

    async def save(self, **settings: object) -> None:
        """Save settings here and wait until they apply there; the clock stands still, so a notice tells of them."""
        wanted = {name.replace("__", "."): value for name, value in settings.items()}
        await self.here.services.settings_editor.save(wanted, AuditOrigin(actor="test"))
        async with asyncio.timeout(WITHIN):
            await self.changed.get()


@pytest.fixture
async def nodes(
    installed_postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[TwoNodes]:
    environment = {"GATEHOUSE__SERVER__BASE_URL": f"http://localhost:{free_port()}"}
    async with AsyncExitStack() as stack:
        here, there = [
            await stack.enter_async_context(
                running_service(installed_postgres_url, tmp_path, environment=environment)
            )
            for _ in range(2)
        ]
        changed: asyncio.Queue[None] = asyncio.Queue()
        live = there.services.core.live_settings
        reload = live.reload

        async def reload_and_tell() -> bool:
            has_changed = await reload()
            if has_changed:
                changed.put_nowait(None)
            return has_changed

        monkeypatch.setattr(live, "reload", reload_and_tell)
        await stack.enter_async_context(housekeeping(there.services))
        yield TwoNodes(here=here, there=there, changed=changed)


async def test_guests_terms_and_providers_are_switched_within_a_second(nodes: TwoNodes) -> None:
    client = nodes.there.client
    assert (await client.post(GUEST)).status_code == 403
    await nodes.save(guests__enabled=True)
    assert (await client.post(GUEST)).json()["status"] == "CHALLENGE"
    await nodes.save(guests__enabled=False)
    assert (await client.post(GUEST)).status_code == 403

    await nodes.here.services.accounts.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN
    )
    log_in = {"login": LOGIN, "password": PASSWORD}
    assert (await client.post("/proxy/api/login", json=log_in)).json()["status"] == "OK"
    await nodes.save(**{f"terms__terms__{name}": value for name, value in TERMS.items()})
    assert (await client.post("/proxy/api/login", json=log_in)).json()["status"] == "TERMS"
    await nodes.save(terms__terms__enabled=False)
    assert (await client.post("/proxy/api/login", json=log_in)).json()["status"] == "OK"

    await nodes.save(**{f"providers__google__{name}": value for name, value in PROVIDER.items()})
    assert "/sign-in/with/google" in (await client.get("/sign-in")).text
    await nodes.save(providers__google__enabled=False)
    assert "/sign-in/with/google" not in (await client.get("/sign-in")).text
    assert (await client.get("/sign-in/with/google")).status_code == 404


async def status_of_request(service: RunningService, application: Application) -> int:
    wish = {"app_id": application.application_id, "id_token_client": BACK_END, "nonce": "n"}
    return (await service.client.post(GET_GSID, json=wish)).status_code


async def test_id_tokens_for_a_client_are_switched_at_once(nodes: TwoNodes) -> None:
    application = await create_application(nodes.here.services.storage, name="Sky Raiders")
    clients, there = nodes.here.services.oauth.clients.commands, nodes.there
    await a_public_client(
        nodes.here, BACK_END, application_id=application.application_id, redirect_uris=(), game_id_token=True
    )
    assert await status_of_request(there, application) == 200
    for switched, status in ((False, 400), (True, 200)):
        back_end = await clients.get(BACK_END)
        changed = replace(back_end, game_id_token=switched, redirect_uris=("https://a.example/cb",))
        await clients.change(changed, ORIGIN)
        assert await status_of_request(there, application) == status
