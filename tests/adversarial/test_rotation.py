"""Keys change while the service is used, and nobody notices (checklist OP-06)."""

import asyncio
from pathlib import Path

from joserfc import jws
from joserfc.jwk import KeySet

from gatehouse.accounts.model import User
from gatehouse.app.housekeeping import housekeeping
from gatehouse.audit.model import Origin
from gatehouse.keys.model import Algorithm, KeyLine, Purpose
from gatehouse.keys.rotation import Manner
from tests.support.builders import a_client
from tests.support.service import Service, running_service
from tests.support.visitor import PASSWORD

RSA = KeyLine(Purpose.TOKENS, Algorithm.RS256)
OPERATOR = Origin(actor="test")
ROUNDS = 6


async def log_in_and_verify(service: Service, user: User) -> str:
    """What an application does: get a JWT, then the key set, then look the key up and verify."""
    body = {"login": user.login, "password": PASSWORD, "factor": "device"}
    token = (await service.client.post("/proxy/api/login", json=body)).json()["jwt"]
    keys = KeySet.import_key_set((await service.client.get("/proxy/oauth/keys")).json())
    kid: str = jws.deserialize_compact(token, keys, algorithms=["RS256"]).headers()["kid"]
    return kid


async def test_op_06_signing_keys_rotate_under_load_without_one_token_that_fails(
    migrated_url: str, tmp_path: Path
) -> None:
    async with running_service(migrated_url, tmp_path) as service, housekeeping(service.house):
        user = await service.house.administration.create(
            login="anna@studio.example", nick="Anna", password=PASSWORD, origin=OPERATOR
        )
        before = await log_in_and_verify(service, user)
        seen: set[str] = set()
        for _ in range(ROUNDS):
            rotation = service.house.rotation.rotate(RSA, origin=OPERATOR, manner=Manner.AT_ONCE)
            *kids, _ = await asyncio.gather(*(log_in_and_verify(service, user) for _ in range(4)), rotation)
            seen.update(map(str, kids))
        assert await log_in_and_verify(service, user) != before
        assert len(seen) > 1


async def test_op_06_a_client_secret_rotates_and_the_old_one_is_still_known(
    migrated_url: str, tmp_path: Path
) -> None:
    async with running_service(migrated_url, tmp_path) as service:
        await rotate_a_client_secret(service)


async def rotate_a_client_secret(service: Service) -> None:
    await service.house.clients.create(a_client("shop"), OPERATOR)
    await service.house.clients.rotate_secret("shop", OPERATOR)
    secrets = (await service.house.storage.oauth.client("shop")).secrets
    assert len(secrets) == 2
    assert [secret.expires_at > 0 for secret in secrets] == [True, False]
