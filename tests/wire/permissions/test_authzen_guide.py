"""The guide "Ask about permissions with AuthZEN": its file, its commands and programs, and its gateway, run."""

import asyncio
import json
import shutil
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import httpx2
import pytest

from tests.support.builders import ORIGIN
from tests.support.console import apply_document
from tests.support.echo import echo_server
from tests.support.guides import programs_for
from tests.support.oauth import an_oidc_client
from tests.support.processes import LOOPBACK, free_port
from tests.support.service import RunningService
from tests.support.site_proxies import replace_each, running_nginx_with_lua
from tests.support.studio import bearer_headers

GUIDE: Final = "authzen"
BASE_URL: Final = "https://sso.studio.example"
APPLICATION: Final = 50060
USERS: Final = """
users:
  - {login: morty@studio.example, nick: Morty, user_id: "1001", email_verified: true}
  - {login: beth@studio.example, nick: Beth, user_id: "1002", email_verified: true}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """What the file of the guide made, for the gateway that uses it."""

    service: RunningService
    key: str
    secret: str

    async def token(self, user_id: str) -> str:
        """An access token of a person, for a client of the application."""
        user = await self.service.services.storage.accounts.user(user_id)
        party = await an_oidc_client(self.service, f"web-{user_id}", application_id=APPLICATION)
        return str((await party.tokens(await party.issue_code(user)))["access_token"])


@pytest.fixture
async def gateway(service: RunningService) -> Gateway:
    (document,) = programs_for(__file__, GUIDE, "yaml")
    key = token_hex(32)
    document = replace_each(document, {"{comment: gateway}": f'{{comment: gateway, hash: "{key}"}}'})
    await apply_document(service, USERS + document)
    secret = await service.services.oauth.clients.commands.rotate_secret("gateway", ORIGIN)
    return Gateway(service=service, key=key, secret=secret)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl, which the guide shows")
async def test_the_commands_of_the_guide_get_a_token_and_an_answer(gateway: Gateway, tmp_path: Path) -> None:
    (script,) = programs_for(__file__, GUIDE, "sh")
    jq = tmp_path / "jq"  # few machines have it
    jq.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.load(sys.stdin)[sys.argv[2][1:]])\n")
    jq.chmod(0o700)
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euc", script.replace(BASE_URL, gateway.service.base_url)),
        env={"OIDC_CLIENT_SECRET": gateway.secret, "PATH": f"{tmp_path}:/usr/local/bin:/usr/bin:/bin"},
        stdout=PIPE,
    )
    output, _ = await process.communicate()
    assert json.loads(output) == {"decision": True}


async def test_the_program_of_the_guide_finds_people(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = programs_for(__file__, GUIDE, "python")
    monkeypatch.setenv("OIDC_CLIENT_SECRET", gateway.secret)
    names: dict[str, Any] = {}
    exec(compile(program.replace(BASE_URL, gateway.service.base_url), GUIDE, "exec"), names)  # noqa: S102 - our guide
    assert await names["who_may_create"]() == ["1001"]


@contextmanager
def nginx_of_the_guide(gateway: Gateway, site: int, service: int) -> Iterator[str]:
    port = free_port()
    (server,) = programs_for(__file__, GUIDE, "nginx")
    (script,) = programs_for(__file__, GUIDE, "lua")
    changes = {
        "listen 8081;": f"listen {LOOPBACK}:{port};",
        "<the access key>": gateway.key,
        "/etc/nginx/gatehouse.lua": "gatehouse.lua",
        "127.0.0.1:3000": f"{LOOPBACK}:{site}",
        "127.0.0.1:8080": f"{LOOPBACK}:{service}",
    }
    with running_nginx_with_lua(replace_each(server, changes), script, port):
        yield f"http://{LOOPBACK}:{port}"


async def test_pa_24_the_gateway_of_the_guide_lets_only_allowed_requests_through(gateway: Gateway) -> None:
    service = gateway.service.client.base_url.port
    assert service is not None
    morty, beth = bearer_headers(await gateway.token("1001")), bearer_headers(await gateway.token("1002"))
    async with echo_server() as site:
        with nginx_of_the_guide(gateway, site.port, service) as url:
            async with httpx2.AsyncClient(base_url=url) as client:
                seen = (await client.get("/todos", headers={**morty, "X-User": "1"})).json()["headers"]
                assert [value for name, value in seen if name in {"x-user", "authorization"}] == ["1001"]
                made = await client.post("/todos", headers=morty, content=b"milk")
                assert (made.status_code, made.json()["body"]) == (200, "milk")
                reached = len(site.echo.started)
                for method, path, headers, status in (
                    ("DELETE", "/todos/7", morty, 403),
                    ("PUT", "/todos/7", morty, 403),
                    ("GET", "/todos", beth, 403),
                    ("GET", "/admin", morty, 403),
                    ("GET", "/todos", {}, 401),
                    ("GET", "/todos", bearer_headers("guessed"), 401),
                    ("POST", "/gatehouse/evaluation", morty, 404),
                ):
                    answer = await client.request(method, path, headers=headers)
                    assert answer.status_code == status, (method, path)
                    assert ("www-authenticate" in answer.headers) is (status == 401)
                assert len(site.echo.started) == reached
        with nginx_of_the_guide(gateway, site.port, free_port()) as url:
            async with httpx2.AsyncClient(base_url=url) as client:
                assert (await client.get("/todos", headers=morty)).status_code == 503
        assert len(site.echo.started) == reached
