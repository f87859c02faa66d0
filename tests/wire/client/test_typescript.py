"""The TypeScript package for web back ends, compiled and run under Node, against the running service."""

import asyncio
import json
import subprocess
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.game_clients.support.games import TYPESCRIPT
from tests.interop.toolchains import find_node
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import ORIGIN
from tests.support.capabilities import require_program
from tests.support.find_programs import ROOT
from tests.support.oauth import RelyingPartyClient, an_oidc_client, query_of
from tests.support.studio import FACTOR, Studio
from tests.wire.client.conftest import KICK, ClientShop

PACKAGE = ROOT / "clients" / "typescript" / "backend"
DRIVER = Path(__file__).parent / "programs" / "backend_driver.mjs"
LOGIN = "anna@studio.example"


@dataclass(frozen=True, slots=True)
class Backend:
    process: Process

    async def call(self, command: str, **given: object) -> Any:
        """The result of a command, or the name of its error."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"command": command, **given}).encode() + b"\n")
        async with asyncio.timeout(20):
            answer = json.loads(await self.process.stdout.readline())
        return answer.get("error", answer.get("result"))


@pytest.fixture(scope="session")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled package."""
    compiler, node = require_program(TYPESCRIPT), find_node()
    assert node is not None
    home = tmp_path_factory.mktemp("backend")
    (home / "package.json").write_text('{"type": "module"}')
    built = subprocess.run(
        [node[0], str(compiler), "-p", str(PACKAGE), "--outDir", str(home)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return home / "index.js"


@asynccontextmanager
async def running_backend(
    module: Path, studio: Studio, key: str, party: RelyingPartyClient
) -> AsyncIterator[Backend]:
    node = find_node()
    assert node is not None
    base_url = studio.service.base_url
    settings = {
        "module": module.as_uri(),
        "now": studio.service.clock.now(),
        "gatehouse": {
            "baseUrl": base_url,
            "applicationId": studio.shop.application_id,
            "credential": {"accessKey": key},
        },
        "signIn": {
            "baseUrl": base_url,
            "clientId": party.client.client_id,
            "clientSecret": party.secret,
            "redirectUri": party.redirect_uri,
        },
    }
    process = await asyncio.create_subprocess_exec(
        node[0], str(DRIVER), json.dumps(settings), stdin=PIPE, stdout=PIPE
    )
    try:
        yield Backend(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def walk(studio: Studio, party: RelyingPartyClient, url: str) -> str:
    """Sign Anna in through the pages; return where the browser is sent in the end."""
    browser = HttpBrowser(studio.service)
    try:
        return await party.walk_authorize(browser, LOGIN, **query_of(url))
    finally:
        await browser.client.aclose()


async def test_ts_01_package_verifies_jwts_and_checks_permissions(module: Path, shop: ClientShop) -> None:
    studio, person = shop.studio, shop.studio.other_user
    party = await an_oidc_client(studio.service)
    await shop.save(person, private_data=KICK)
    async with running_backend(module, studio, shop.key, party) as backend:
        assert await backend.call("user", jwt=person.jwt, factor=FACTOR) == person.user_id
        assert await backend.call("user", jwt=person.jwt, factor="another device") == "Unauthenticated"
        head, payload, signature = person.jwt.split(".")
        for forged in (
            f"{head}.{payload}.{signature[:-4]}AAAA",
            f"{head}.{payload}.",
            f"{head}..",
            "a.b.c",
            "x" * 9_000,
        ):
            assert await backend.call("user", jwt=forged) == "Unauthenticated"
        assert await backend.call("allows", jwt=person.jwt, rule="user.kick") is True
        before = await backend.call("requests")
        assert await backend.call("allows", jwt=person.jwt, rule="user.ban") is False
        assert await backend.call("allows", jwt=person.jwt, rule="user.kick", place={"project": "p"}) is False
        assert await backend.call("requests") == before  # cached
        await backend.call("advance", seconds=2)
        assert await backend.call("allows", jwt=person.jwt, rule="user.kick") is True
        assert await backend.call("requests") == before + 1
        allowed = {"authorization": f"Bearer {person.jwt}", "factor": FACTOR}
        for style in ("fetch", "express"):
            assert await backend.call(style, headers=allowed, rule="user.kick") == [200, {"user": person.user_id}]
            assert (await backend.call(style, headers=allowed, rule="user.ban"))[0] == 403
            refused = await backend.call(style, headers={})
            assert refused == [401, {"status": "ERROR", "error": "invalid token"}]
        await studio.service.services.administration.block(person.user_id, ORIGIN)
        await backend.call("advance", seconds=2)
        assert await backend.call("allows", jwt=person.jwt, rule="user.kick") == "Unauthenticated"
        await backend.call("advance", seconds=400 * 86_400)
        assert await backend.call("user", jwt=person.jwt) == "Unauthenticated"


async def test_ts_02_package_signs_a_person_in_and_refuses_a_mixed_up_answer(module: Path, shop: ClientShop) -> None:
    studio = shop.studio
    party = await an_oidc_client(studio.service)
    anna = await studio.service.services.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN
    )
    async with running_backend(module, studio, shop.key, party) as backend:
        url = await backend.call("begin")
        back = await walk(studio, party, url)
        assert await backend.call("complete", url=back.replace("state=", "state=x")) == "state"
        assert await backend.call("complete", url=back.replace("iss=http", "iss=https")) == "iss"
        done = await backend.call("complete", url=back)
        assert done["subject"] == anna.user_id
        assert party.client.client_id in done["aud"]
        assert await backend.call("complete", url=back) == "invalid_grant"  # a code is used once
        back = await walk(studio, party, await backend.call("begin"))
        assert await backend.call("complete", url=back, nonce="another") == "nonce"
        denied = f"{party.redirect_uri}?error=access_denied"
        assert await backend.call("complete", url=denied) == "state"
