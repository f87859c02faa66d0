"""Run docs/guides/connect-a-client.md."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from gatehouse.accounts.model import User
from tests.support.command_line import InstallationPaths
from tests.support.guides import programs_for
from tests.support.oauth import RelyingPartyClient, claims_of
from tests.support.service import RunningService
from tests.support.studio import FACTOR, a_studio

REDIRECT = "http://localhost:3000/callback"


@pytest.fixture
def installation(installed_url: str, tmp_path: Path) -> InstallationPaths:
    """The installation that `service` serves."""
    return InstallationPaths(data=tmp_path, url=installed_url)


def blocks(kind: str) -> list[str]:
    return programs_for(__file__, "connect-a-client", kind)


def run_client_create(words: str, installation: InstallationPaths) -> str:
    """Run one `client create` of the guide; return the secret it prints, if any."""
    return installation.command_line()(*words.removeprefix("$ gatehouse ").split()).strip()


async def run_script(script: str, **values: str) -> str:
    process = await asyncio.create_subprocess_exec(
        "bash", "-euc", script, env={"PATH": "/usr/bin:/bin", **values}, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


def test_every_client_of_the_guide_is_created(installation: InstallationPaths) -> None:
    web, device, native = blocks("console")
    assert len(run_client_create(web, installation)) == len(run_client_create(native, installation)) == 43
    assert run_client_create(device, installation) == ""


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl, which the guide shows")
async def test_guide_commands_exchange_a_code_refresh_tokens_and_read_userinfo(
    service: RunningService, anna: User, installation: InstallationPaths
) -> None:
    secret = await asyncio.to_thread(run_client_create, blocks("console")[2], installation)
    client = await service.services.storage.clients.client("shop")
    shop = RelyingPartyClient(service=service, client=client, secret=secret, redirect_uri=REDIRECT)
    address, exchange, refresh, userinfo, _ = blocks("sh")
    known = {
        "OIDC_ISSUER": service.base_url,
        "OIDC_REDIRECT_URI": REDIRECT,
        "OIDC_CLIENT_SECRET": secret,
    }

    url, verifier = (await run_script(f'{address}\necho "$VERIFIER"', **known, STATE="s1", NONCE="n1")).split()
    wanted = dict(pair.split("=", 1) for pair in url.partition("?")[2].split("&"))
    code = await shop.sign_in(anna.login or "", **{**wanted, "scope": "openid email offline_access"})
    first = json.loads(await run_script(exchange, **known, CODE=code, VERIFIER=verifier))
    assert claims_of(first["id_token"])["nonce"] == "n1"
    second = json.loads(await run_script(refresh, **known, REFRESH_TOKEN=first["refresh_token"]))
    assert second["refresh_token"] != first["refresh_token"]
    body = json.loads(await run_script(userinfo, **known, ACCESS_TOKEN=second["access_token"]))
    assert body == {"status": "ok", "sub": anna.user_id, "email": anna.login}


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl, which the guide shows")
async def test_over_http_a_client_is_made_by_anyone_who_may_save_its_application(service: RunningService) -> None:
    studio = await a_studio(service)
    known = {"GATEHOUSE_URL": service.base_url, "GATEHOUSE_APPLICATION": str(studio.shop.application_id)}
    body = json.loads(await run_script(blocks("sh")[-1], **known, JWT=studio.owner.jwt, FACTOR=FACTOR))
    forum = await service.services.storage.clients.client("forum")
    assert (len(body["data"]["client_secret"]), forum.application_id) == (43, studio.shop.application_id)
