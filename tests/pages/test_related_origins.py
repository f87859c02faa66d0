"""A move to another host, in a real browser: the passkeys of the old host sign people in at the new one (R11)."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.async_api import async_playwright, expect

from gatehouse.accounts.model import SignInMethod
from gatehouse.audit.model import AuditOrigin
from gatehouse.settings.merge import LoadedSettings
from tests.pages.test_account import NO_AUTOFILL, VirtualKey, add_passkey, open_account_page, sign_in
from tests.support import service as test_service
from tests.support.browser import LOGIN, PASSWORD
from tests.support.capabilities import CHROMIUM, require_program
from tests.support.chromium import ARGUMENTS, SANDBOX
from tests.support.nginx import write_certificate
from tests.support.processes import LOOPBACK
from tests.support.service import RunningService, running_service

pytestmark = pytest.mark.asyncio(loop_scope="session")

OLD, NEW = "id.old.example", "id.new.example"


class TlsProxy:
    """Passes both hosts on to the service that runs now."""

    def __init__(self) -> None:
        self.service_port = 0
        self.port = 0

    @asynccontextmanager
    async def running(self, directory: Path) -> AsyncIterator[None]:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        write_certificate(directory, (OLD, NEW))
        context.load_cert_chain(directory / "tls_certificate", directory / "tls_key")
        server = await asyncio.start_server(self._pass_on, LOOPBACK, 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        service_reader, service_writer = await asyncio.open_connection(LOOPBACK, self.service_port)
        await asyncio.gather(copy(reader, service_writer), copy(service_reader, writer))


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while content := await reader.read(65_536):
            writer.write(content)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def served_at(
    host: str, proxy: TlsProxy, installed_url: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[RunningService]:
    original = test_service.load_test_settings

    def load(url: str, directory: Path, *, port: int, **more: str) -> LoadedSettings:
        proxy.service_port = port
        loaded = original(url, directory, port=port, **more)
        server = replace(loaded.settings.server, base_url=f"https://{host}")
        return replace(loaded, settings=replace(loaded.settings, server=server))

    with monkeypatch.context() as patch:
        patch.setattr(test_service, "load_test_settings", load)
        async with running_service(installed_url, data) as service:
            yield service


async def test_pf_05_passkey_of_the_old_host_signs_in_at_the_new_one(
    installed_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, executable = TlsProxy(), require_program(CHROMIUM)
    async with proxy.running(tmp_path), async_playwright() as playwright:
        rules = ",".join(f"MAP {host} {LOOPBACK}:{proxy.port}" for host in (OLD, NEW))
        browser = await playwright.chromium.launch(
            executable_path=executable,
            chromium_sandbox=SANDBOX,
            args=[*ARGUMENTS, f"--host-resolver-rules={rules}", "--ignore-certificate-errors"],
        )
        page = await (await browser.new_context(locale="en-GB", ignore_https_errors=True)).new_page()
        key = await VirtualKey.plugged_into(page)
        async with served_at(OLD, proxy, installed_url, tmp_path, monkeypatch) as service:
            anna = await service.services.accounts.administration.create(
                login=LOGIN, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
            )
            await sign_in(service, page)
            await add_passkey(page, "Work laptop")
            await page.get_by_role("button", name="Done, I saved them").click()
            await expect(page.get_by_text("Work laptop")).to_be_visible()
        await page.add_init_script(NO_AUTOFILL)
        async with served_at(NEW, proxy, installed_url, tmp_path, monkeypatch) as service:
            await page.goto(f"https://{NEW}/sign-in")
            await page.get_by_role("button", name="Sign in with a passkey").click()
            await open_account_page(page)
            sessions = service.services.storage.sessions
            held = await sessions.sessions_of_user(anna.user_id, service.clock.now())
            assert SignInMethod.PASSKEY in {session.auth for session in held}
            await page.get_by_role("button", name="Add a passkey").click()
            await expect(page.get_by_label("Passkey name")).to_be_visible()
            await key.expect_names((LOGIN, "Anna"))
        await browser.close()
