"""A backup during load: nothing that clients had before works after `gatehouse restore` (OP-05)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from gatehouse.kernel.clock import SystemClock
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import ORIGIN
from tests.support.clock import MovableClock
from tests.support.command_line import InstallationPaths
from tests.support.oauth import (
    TOKEN,
    RelyingPartyClient,
    a_native_client,
    a_public_client,
    an_oidc_client,
    oauth_error,
    success_body,
)
from tests.support.permission_builders import create_application
from tests.support.processes import free_port
from tests.support.service import RunningService, running_service

MASTER: Final = "GATEHOUSE__SECURITY__MASTER_KEY"
LOGIN: Final = "anna@studio.example"
RESOURCE: Final = "https://api.mind.example/matches"
DEVICE: Final = "urn:ietf:params:oauth:grant-type:device_code"
LINES: Final = 3
BACKUPS_MOST: Final = 10
ENOUGH: Final = 6  # sign-ins per load before the backup begins


@dataclass(slots=True)
class Issued:
    """Everything ever issued; `refresh` has the valid token of each sign-in."""

    access: list[str] = field(default_factory=list)
    refresh: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    jwts: list[str] = field(default_factory=list)


class Load:
    """Sign in, refresh and exchange repeatedly; every response must be a success."""

    def __init__(self, client: RelyingPartyClient) -> None:
        self._client = client
        self._stop = False
        self.enough = asyncio.Event()
        self.issued = Issued()

    def stop(self) -> None:
        self._stop = True

    async def run(self) -> None:
        browser = HttpBrowser(self._client.service)
        while not self._stop:
            await self._sign_in(browser)
            if len(self.issued.codes) >= ENOUGH:
                self.enough.set()
        await browser.client.aclose()

    async def _sign_in(self, browser: HttpBrowser) -> None:
        tokens = await self._client.tokens(self._client.code_from(await self._client.walk_authorize(browser, LOGIN)))
        again = success_body(await self._client.refresh(tokens["refresh_token"]))
        self.issued.access += [tokens["access_token"], again["access_token"]]
        self.issued.refresh.append(again["refresh_token"])
        self.issued.jwts.append(success_body(await exchange(self._client, again["access_token"]))["token"])
        self.issued.codes.append(self._client.code_from(await self._client.walk_authorize(browser, LOGIN)))


async def exchange(client: RelyingPartyClient, access_token: str) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {access_token}"}
    return await client.service.client.post("/proxy/oauth/exchangeToken", headers=headers)


async def ask_permissions(client: RelyingPartyClient, jwt: str) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {jwt}"}
    return await client.service.client.post("/api/permissions/user/info", json={}, headers=headers)


async def poll(tv: RelyingPartyClient, device_code: str) -> httpx2.Response:
    fields = {"grant_type": DEVICE, "device_code": device_code, "client_id": "tv"}
    return await tv.service.client.post(TOKEN, data=fields)


async def device_code(tv: RelyingPartyClient, browser: HttpBrowser | None) -> str:
    """A device code, confirmed in this browser or not."""
    fields = {"client_id": "tv", "scope": "openid offline_access"}
    body = success_body(await tv.service.client.post("/proxy/oauth/device_authorization", data=fields))
    if browser is not None:
        await browser.get("/device")
        await browser.post("/device", user_code=body["user_code"])
        await browser.follow()
        await browser.post("/sign-in/confirm", decision="confirm")
        assert "Return to your device" in (await browser.follow()).text
    return str(body["device_code"])


@pytest.fixture
def installation(migrated_url: str, tmp_path: Path) -> InstallationPaths:
    same = {"GATEHOUSE__SERVER__BASE_URL": f"http://localhost:{free_port()}"}
    return InstallationPaths(
        data=tmp_path / "data", url=migrated_url, environment={**same, "GATEHOUSE__RATES__ENABLED": "false"}
    )


@pytest.fixture(params=["the same database", "another machine"])
def restored_installation(
    installation: InstallationPaths, tmp_path: Path, request: pytest.FixtureRequest
) -> InstallationPaths:
    """The target of the restore: the existing database, or an empty one of the other kind."""
    installation.command_line()("key", "list")  # creates the master key
    if request.param == "the same database":
        return installation
    kind = "postgres" if installation.url.startswith("sqlite:") else "sqlite"
    key = (installation.data / "dev.key").read_text().strip()
    url: str = request.getfixturevalue(f"{kind}_url")
    return InstallationPaths(
        data=tmp_path / "elsewhere", url=url, environment={**installation.environment, MASTER: key}
    )


@asynccontextmanager
async def serve(installation: InstallationPaths, clock: MovableClock) -> AsyncIterator[RunningService]:
    async with running_service(
        installation.url, installation.data, clock=clock, environment=installation.environment
    ) as service:
        yield service


async def clients_of(service: RunningService) -> tuple[RelyingPartyClient, RelyingPartyClient, RelyingPartyClient]:
    theirs: dict[str, Any] = {"first_party": False, "may_exchange": True}
    return (
        await a_native_client(service),
        await an_oidc_client(service, **theirs),
        await a_public_client(service, "tv", redirect_uris=(), device_grant=True),
    )


async def backed_up_while_busy(installation: InstallationPaths, file: Path, loads: Sequence[Load]) -> None:
    """Make a backup during load; on a slow machine one may end before any code is issued, so retry."""
    for _ in range(BACKUPS_MOST):
        before = sum(len(load.issued.codes) for load in loads)
        file.unlink(missing_ok=True)  # noqa: ASYNC240 - a moment
        await asyncio.to_thread(installation.command_line(), "backup", file)
        if sum(len(load.issued.codes) for load in loads) > before:
            return
    raise AssertionError("no code was issued during a backup")


async def test_op_05_r_23_nothing_that_clients_held_before_a_restore_works_after_it(
    installation: InstallationPaths, restored_installation: InstallationPaths, tmp_path: Path
) -> None:
    file, clock = tmp_path / "backup.gz", MovableClock(SystemClock().now())
    async with serve(installation, clock) as service:
        await service.services.accounts.administration.create(
            login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN
        )
        web, oidc_client, tv = await clients_of(service)
        browser = HttpBrowser(service)
        await browser.sign_in(LOGIN)
        device_codes = [await device_code(tv, None), await device_code(tv, browser)]
        loads = [Load(client) for client in (web, oidc_client) * LINES]
        async with asyncio.TaskGroup() as working:  # its failure ends the test
            for load in loads:
                working.create_task(load.run())
            await asyncio.gather(*(load.enough.wait() for load in loads))
            await backed_up_while_busy(installation, file, loads)
            for load in loads:
                load.stop()
        ended = loads[0].issued.refresh[0]  # revoked after the backup, in which it is valid
        body = {"client_id": "web", "client_secret": web.secret, "refresh_token": ended}
        assert success_body(await service.client.post(f"{TOKEN}/revoke", json=body))
        assert success_body(await oidc_client.userinfo(loads[1].issued.access[0])), (
            "tokens were valid before the restore"
        )
        assert (await ask_permissions(web, loads[2].issued.jwts[0])).status_code == 200
        await browser.client.aclose()

    await asyncio.to_thread(restored_installation.command_line(), "restore", file, "--replace")
    async with serve(restored_installation, clock) as service:
        for load, client in zip(loads, (web, oidc_client) * LINES, strict=True):
            await nothing_works(replace(client, service=service), load.issued)
        for code in device_codes:
            assert oauth_error(await poll(replace(tv, service=service), code)) == (400, "invalid_grant")
        for client in (replace(web, service=service), replace(oidc_client, service=service)):
            assert success_body(
                await client.userinfo((await client.tokens(await client.sign_in(LOGIN)))["access_token"])
            )


async def nothing_works(client: RelyingPartyClient, issued: Issued) -> None:
    for token in issued.access:
        assert oauth_error(await client.userinfo(token)) == (401, "invalid_token")
        assert oauth_error(await exchange(client, token)) == (401, "invalid_token")
    for token in issued.refresh:
        assert oauth_error(await client.refresh(token)) == (400, "invalid_grant")
    for code in issued.codes:
        assert oauth_error(await client.redeem(code)) == (400, "invalid_grant")
    for jwt in issued.jwts:
        assert (await ask_permissions(client, jwt)).status_code == 401


async def machine_tokens(machine: RelyingPartyClient) -> list[str]:
    """A token for the machine's own API, and an opaque one."""
    answers = []
    for resource in ({"resource": RESOURCE}, {}):
        fields = {"grant_type": "client_credentials", **resource}
        answers.append(await machine.service.client.post(TOKEN, data=fields, headers=machine.headers))
    return [success_body(answer)["access_token"] for answer in answers]


async def live_tokens(machine: RelyingPartyClient, tokens: Sequence[str]) -> list[bool]:
    path = "/proxy/oauth/introspect"
    post = machine.service.client.post
    answers = [await post(path, data={"token": token}, headers=machine.headers) for token in tokens]
    return [success_body(answer)["active"] for answer in answers]


async def test_ci_04_no_revoked_token_of_a_machine_works_after_a_restore(
    installation: InstallationPaths, restored_installation: InstallationPaths, tmp_path: Path
) -> None:
    file, clock = tmp_path / "backup.gz", MovableClock(SystemClock().now())
    async with serve(installation, clock) as service:
        api = {"resource": RESOURCE}
        application = await create_application(service.services.storage, name="Matches", api=api)
        machine = await an_oidc_client(service, "reporter", application_id=application.application_id)
        tokens = [*await machine_tokens(machine), *await machine_tokens(machine)]
        await asyncio.to_thread(installation.command_line(), "backup", file)
        for token in tokens[:2]:  # the others are only unknown to be alive
            await service.client.post("/proxy/oauth/revoke", data={"token": token}, headers=machine.headers)
        assert await live_tokens(machine, tokens) == [False, False, True, True]
    await asyncio.to_thread(restored_installation.command_line(), "restore", file, "--replace")
    async with serve(restored_installation, clock) as service:
        again = replace(machine, service=service)
        assert await live_tokens(again, tokens) == [False] * 4
        assert await live_tokens(again, await machine_tokens(again)) == [True, True]
