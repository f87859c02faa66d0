"""Keys rotate during use without a failed request (checklist OP-06)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from joserfc import jws
from joserfc.jwk import KeySet

from gatehouse.accounts.model import User
from gatehouse.app.housekeeping import housekeeping
from gatehouse.audit.model import AuditOrigin
from gatehouse.keys.model import Algorithm, KeyLine, KeyPurpose
from gatehouse.keys.rotation import RotationMode
from gatehouse.oauth.client_commands import OLD_SECRET_LIFETIME
from tests.support.browser import PASSWORD
from tests.support.oauth import RelyingPartyClient, a_native_client, an_oidc_client, oauth_error, success_body
from tests.support.service import RunningService, running_service

RSA = KeyLine(KeyPurpose.TOKENS, Algorithm.RS256)
OPERATOR = AuditOrigin(actor="test")
ROUNDS = 6
REVOKE = "/proxy/oauth/revoke"


async def log_in_and_verify(service: RunningService, user: User) -> str:
    """Do what an application does: get a JWT, then the key set, then find the key and verify."""
    body = {"login": user.login, "password": PASSWORD, "factor": "device"}
    token = (await service.client.post("/proxy/api/login", json=body)).json()["jwt"]
    keys = KeySet.import_key_set((await service.client.get("/proxy/oauth/keys")).json())
    kid: str = jws.deserialize_compact(token, keys, algorithms=["RS256"]).headers()["kid"]
    return kid


async def test_op_06_r_24_signing_keys_rotate_under_load_without_one_token_that_fails(
    migrated_url: str, tmp_path: Path
) -> None:
    async with running_service(migrated_url, tmp_path) as service, housekeeping(service.services):
        user = await service.services.accounts.administration.create(
            login="anna@studio.example", nick="Anna", password=PASSWORD, origin=OPERATOR
        )
        before = await log_in_and_verify(service, user)
        seen: set[str] = set()
        for _ in range(ROUNDS):
            rotation = service.services.keys.rotation.rotate(RSA, origin=OPERATOR, mode=RotationMode.AT_ONCE)
            *kids, _ = await asyncio.gather(*(log_in_and_verify(service, user) for _ in range(4)), rotation)
            seen.update(map(str, kids))
        assert await log_in_and_verify(service, user) != before
        assert len(seen) > 1


class Shop:
    """A client that refreshes, revokes and signs people in continuously, and gets each new secret late."""

    def __init__(self, client: RelyingPartyClient, user: User) -> None:
        self._client = client
        self._user = user
        self._stop = False
        self._rounds: asyncio.Queue[None] = asyncio.Queue()

    async def run(self) -> None:
        token = (await self._client.tokens(await self._client.issue_code(self._user)))["refresh_token"]
        while not self._stop:
            token = success_body(await self._client.refresh(token))["refresh_token"]
            other = await self._client.tokens(await self._client.issue_code(self._user))
            body = {"client_id": self._client.client.client_id, "client_secret": self._client.secret}
            revoked = await self._client.service.client.post(REVOKE, data={**body, "token": other["access_token"]})
            assert revoked.status_code == 200, revoked.text
            self._rounds.put_nowait(None)

    async def rounds(self, number: int) -> None:
        """Wait until it has completed that many more rounds."""
        while not self._rounds.empty():
            self._rounds.get_nowait()
        for _ in range(number):
            await self._rounds.get()

    def set_secret(self, secret: str) -> None:
        self._client = replace(self._client, secret=secret)

    def stop(self) -> None:
        self._stop = True


async def all_have(shops: list[Shop], rounds: int) -> None:
    await asyncio.gather(*(shop.rounds(rounds) for shop in shops))


@pytest.mark.parametrize("kind", [a_native_client, an_oidc_client])
async def test_op_06_a_client_secret_rotates_under_load_without_one_failed_request(
    migrated_url: str, tmp_path: Path, kind: Callable[[RunningService], Awaitable[RelyingPartyClient]]
) -> None:
    unlimited = {"GATEHOUSE__RATES__ENABLED": "false"}
    async with running_service(migrated_url, tmp_path, environment=unlimited) as service:
        anna = await service.services.accounts.administration.create(
            login="anna@studio.example", nick="Anna", password=PASSWORD, origin=OPERATOR
        )
        client = first = await kind(service)
        shops = [Shop(client, anna) for _ in range(3)]
        async with asyncio.TaskGroup() as working:  # its failure ends the test
            for shop in shops:
                working.create_task(shop.run())
            for _ in range(ROUNDS):
                await all_have(shops, 1)
                secret = await service.services.oauth.clients.commands.rotate_secret(
                    client.client.client_id, OPERATOR
                )
                await all_have(shops, 2)  # still with the old one
                for shop in shops:
                    shop.set_secret(secret)
                await all_have(shops, 2)  # from here on the old one is not used
                client = replace(client, secret=secret)
                await service.clock.advance(1)
            for shop in shops:
                shop.stop()
        code = await client.issue_code(anna)
        assert (await first.redeem(code)).status_code == 401
        assert success_body(await client.redeem(code))


@pytest.mark.parametrize("kind", [a_native_client, an_oidc_client])
async def test_op_06_the_former_secret_of_a_client_ends_on_its_second(
    migrated_url: str, tmp_path: Path, kind: Callable[[RunningService], Awaitable[RelyingPartyClient]]
) -> None:
    async with running_service(migrated_url, tmp_path) as service:
        anna = await service.services.accounts.administration.create(
            login="anna@studio.example", nick="Anna", password=PASSWORD, origin=OPERATOR
        )
        old = await kind(service)
        new = replace(
            old, secret=await service.services.oauth.clients.commands.rotate_secret(old.client.client_id, OPERATOR)
        )
        await service.clock.advance(OLD_SECRET_LIFETIME - 1)
        for client in (old, new):
            assert success_body(await client.redeem(await client.issue_code(anna)))
        await service.clock.advance(1)
        assert oauth_error(await old.redeem(await old.issue_code(anna))) == (401, "invalid_client")
        assert success_body(await new.redeem(await new.issue_code(anna)))
