"""Webhooks in a real browser: made, told of what happens, and their deliveries looked through."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.pages.test_look import listen
from tests.support.axe import violations
from tests.support.builders import ORIGIN
from tests.support.console import ADA, come_in, furnish
from tests.support.guide_pictures import Camera
from tests.support.outside import NOTHING, Outsider, Received, answer, listening
from tests.support.service import Service, running_service

pytestmark = pytest.mark.asyncio(loop_scope="session")

PATH: Final = "/console/settings/webhooks"
ALLOWED: Final = {"GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}
BUSY: Final = answer(b"", "503 Service Unavailable")
PEOPLE: Final = 26  # more than a page of deliveries


@pytest_asyncio.fixture(loop_scope="session")
async def service(installed_sqlite_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    """On one database: what is looked at here is the browser's."""
    async with running_service(installed_sqlite_url, tmp_path, environment=ALLOWED) as running:
        yield running


async def something_happens(service: Service) -> None:
    for number in range(PEOPLE):
        await service.house.administration.create(
            login=f"player{number}@players.example", nick="Player", password=None, origin=ORIGIN
        )
        await send(service)
        await service.clock.advance(47)


async def send(service: Service) -> None:
    """What the rounds of a serving process do."""
    await service.house.sealer.seal_all()
    await service.house.webhook_deliveries.run_once()


@pytest.mark.pictures("webhook-deliveries")
async def test_a_webhook_is_made_and_its_deliveries_are_looked_through(
    service: Service, page: Page, picture: Camera
) -> None:
    await furnish(service)
    await service.house.sealer.seal_all()
    complaints = listen(page)
    async with listening(Outsider(say=lambda _: NOTHING)) as receiver:
        await come_in(service, page, ADA, f"{PATH}/new")
        await page.get_by_label("URL").fill(f"http://127.0.0.1:{receiver.port}/gatehouse")
        await page.get_by_label("Description").fill("Customer service")
        await page.get_by_label("sessions").uncheck()
        await page.get_by_role("button", name="Create webhook").click()
        await page.get_by_role("button", name="Done, I saved it").click()
        await expect(page.get_by_text("Nothing sent yet.")).to_be_visible()
        receiver.pause = lambda: asyncio.ensure_future(service.clock.advance(0.018))  # it takes its time
        await something_happens(service)
        receiver.say = refusing_pings
        await page.get_by_role("button", name="Send test").click()
        await send(service)
        await page.reload()
        rows = page.locator("#list tbody tr")
        await expect(rows).to_have_count(25)
        await expect(rows.first).to_contain_text("503")
        await picture(page, "webhook-deliveries", until=page.locator("#list tbody tr").nth(3))
        assert await violations(page) == []
        await page.get_by_role("link", name="Next").click()
        await expect(page.get_by_text("26 to 27 of 27")).to_be_visible()
        await expect(page.locator("#list thead")).to_be_in_viewport()  # not the form above it
        await page.get_by_label("Status").select_option("given_up")
        await expect(rows).to_have_count(1)
        await page.get_by_label("Event name").fill("user.created")
        await expect(page.get_by_text("No results.")).to_be_visible()
        await page.get_by_label("Status").select_option("Any status")
        await expect(page.get_by_text("1 to 25 of 26")).to_be_visible()
    assert complaints == []


def refusing_pings(received: Received) -> bytes:
    return BUSY if b"webhook.ping" in received.body else NOTHING
