"""Webhooks in a real browser: create one, send it events, read its deliveries."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.pages.test_look import listen
from tests.support.axe import axe_violations
from tests.support.builders import ORIGIN
from tests.support.console import ADA, apply_document, sign_in_to_console
from tests.support.guide_pictures import Camera
from tests.support.service import RunningService, running_service
from tests.support.stub_server import NO_CONTENT, ReceivedRequest, StubServer, http_response, run_stub_server

pytestmark = pytest.mark.asyncio(loop_scope="session")

PATH: Final = "/console/settings/webhooks"
ALLOWED: Final = {"GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}
BUSY: Final = http_response(b"", "503 Service Unavailable")
PEOPLE: Final = 26  # more than a page of deliveries


@pytest_asyncio.fixture(loop_scope="session")
async def service(installed_sqlite_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    """Only one database: this tests the browser."""
    async with running_service(installed_sqlite_url, tmp_path, environment=ALLOWED) as running:
        yield running


async def create_event(service: RunningService) -> None:
    for number in range(PEOPLE):
        await service.services.accounts.administration.create(
            login=f"player{number}@players.example", nick="Player", password=None, origin=ORIGIN
        )
        await send(service)
        await service.clock.advance(47)


async def send(service: RunningService) -> None:
    """Deliver events as the rounds of a serving process do."""
    await service.services.audit.sealer.seal_all()
    await service.services.webhooks.deliveries.run_once()


@pytest.mark.pictures("webhook-deliveries")
async def test_a_webhook_is_made_and_its_deliveries_are_looked_through(
    service: RunningService, page: Page, picture: Camera
) -> None:
    await apply_document(service)
    await service.services.audit.sealer.seal_all()
    errors = listen(page)
    async with run_stub_server(StubServer(respond=lambda _: NO_CONTENT)) as receiver:
        await sign_in_to_console(service, page, ADA, f"{PATH}/new")
        await page.get_by_label("URL").fill(f"http://127.0.0.1:{receiver.port}/gatehouse")
        await page.get_by_label("Description").fill("Customer service")
        await page.get_by_label("sessions").uncheck()
        await page.get_by_role("button", name="Create webhook").click()
        await page.get_by_role("button", name="Done, I saved it").click()
        await expect(page.get_by_text("Nothing sent yet.")).to_be_visible()
        receiver.pause = lambda: asyncio.ensure_future(service.clock.advance(0.018))  # a slow receiver
        await create_event(service)
        receiver.respond = refusing_pings
        await page.get_by_role("button", name="Send test").click()
        await send(service)
        await page.reload()
        rows = page.locator("#list tbody tr")
        await expect(rows).to_have_count(25)
        await expect(rows.first).to_contain_text("503")
        await picture(page, "webhook-deliveries", until=page.locator("#list tbody tr").nth(3))
        assert await axe_violations(page) == []
        await page.get_by_role("link", name="Next").click()
        await expect(page.get_by_text("26 to 27 of 27")).to_be_visible()
        await expect(page.locator("#list thead")).to_be_in_viewport()  # not the form above it
        await page.get_by_label("Status").select_option("given_up")
        await expect(rows).to_have_count(1)
        await page.get_by_label("Event name").fill("user.created")
        await expect(page.get_by_text("No results.")).to_be_visible()
        await page.get_by_label("Status").select_option("Any status")
        await expect(page.get_by_text("1 to 25 of 26")).to_be_visible()
    assert errors == []


def refusing_pings(received: ReceivedRequest) -> bytes:
    return BUSY if b"webhook.ping" in received.body else NO_CONTENT
