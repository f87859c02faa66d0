"""oidc-provider for Node as the provider that people sign in with at Gatehouse (R10)."""

from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import httpx2
import pytest

from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import SystemClock
from tests.interop.toolchains import find_downloaded_node, find_peer
from tests.support.browser import HttpBrowser
from tests.support.capabilities import Capability, require_program
from tests.support.clock import MovableClock
from tests.support.processes import WatchedProcess, free_port
from tests.support.service import RunningService, running_service
from tests.support.tls import NO_TRUST_STORE

UPSTREAM: Final = Capability(name="oidc-provider", find=cache(find_peer), optional=True)
CLIENT: Final = ("gatehouse", "a secret of the client at the provider")
CALLBACK: Final = "/sign-in/with/upstream/callback"
SUBJECT: Final = "1001"  # the person of bench/oidc_provider/server.mjs
EMAIL: Final = "anna@studio.example"
MAX_REDIRECTS: Final = 10
REAL_TIME: Final = SystemClock()


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    """A service at the real time, as the provider signs with it."""
    url, allow = f"sqlite:///{tmp_path}/gatehouse.db", {"GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8,::1/128"}
    async with running_service(
        url, tmp_path, clock=MovableClock(start=REAL_TIME.now()), environment=allow
    ) as running:
        yield running


@pytest.fixture(params=["RS256", "ES256"])
def upstream(request: pytest.FixtureRequest, service: RunningService) -> Iterator[str]:
    """The issuer of a running oidc-provider."""
    home, node, port = require_program(UPSTREAM), find_downloaded_node(), free_port()
    assert node is not None
    words = (str(port), "memory", request.param, *CLIENT, f"{service.base_url}{CALLBACK}")
    links = ("--preserve-symlinks", "--preserve-symlinks-main", "--no-deprecation")
    process = WatchedProcess((node[0], *links, str(home / "programs" / "server.mjs"), *words))
    try:
        process.wait_for_line("ready", process.stdout)
        yield f"http://localhost:{port}"
    finally:
        process.kill()


async def walk_pages(address: str, callback: str) -> str:
    """Follow the redirects of the provider, which asks nothing; return the address that it sends the browser to."""
    async with httpx2.AsyncClient(verify=NO_TRUST_STORE) as client:
        for _ in range(MAX_REDIRECTS):
            if address.startswith(callback):
                return address
            response = await client.get(address)
            assert response.is_redirect, response.text
            address = str(response.url.join(response.headers["location"]))
    raise AssertionError(f"the provider did not send the browser back: {address}")


async def sign_in(service: RunningService, browser: HttpBrowser) -> httpx2.Response:
    response = await browser.get("/sign-in/with/upstream")
    assert response.status_code == 303, response.text
    back = await walk_pages(response.headers["location"], f"{service.base_url}{CALLBACK}")
    await service.clock.advance(max(0, REAL_TIME.now() - service.clock.now()))
    return await browser.get(back.removeprefix(service.base_url))


async def test_a_person_signs_in_with_oidc_provider_and_is_found_again(
    service: RunningService, upstream: str
) -> None:
    settings = {"issuer": upstream, "client_id": CLIENT[0], "client_secret": CLIENT[1], "create_accounts": True}
    wanted = {f"providers.upstream.{name}": value for name, value in settings.items()}
    await service.services.settings_editor.save(wanted, AuditOrigin(actor="test"))
    found = []
    for _ in range(2):
        browser = HttpBrowser(service)
        response = await sign_in(service, browser)
        assert response.headers.get("location") == "/account", response.text
        user = await service.services.storage.profile.user_by_identity(upstream, SUBJECT)
        assert user is not None
        assert (user.login, user.email_verified) == (EMAIL, True)
        found.append(user.user_id)
        again = await browser.get(str(response.url).removeprefix(service.base_url))
        assert again.status_code >= 400, "the answer of a provider works once"
        await browser.client.aclose()
    assert len(set(found)) == 1
