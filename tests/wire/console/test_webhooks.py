"""Webhooks in the console."""

import csv
import re
from collections.abc import Sequence
from ipaddress import ip_address

import msgspec
import pytest

from gatehouse.kernel.addresses import Address
from gatehouse.outbound.client import SystemResolver
from gatehouse.web.api.permissions.webhooks import DeliveryEntry, webhook_entry
from gatehouse.webhooks.model import Delivery, DeliveryState, Webhook
from tests.support.builders import NOW
from tests.support.console import ADA, OLGA, ConsoleBrowsers
from tests.support.service import RunningService

PATH = "/console/settings/webhooks"


async def test_a_webhook_is_made_changed_tried_and_removed_by_mouse(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    await ada.get(f"{PATH}/new")
    wrong = await ada.post(f"{PATH}/new", url="http://receiver.example/", events="account")
    assert wrong.status_code == 400
    assert "http://receiver.example/" in wrong.text
    response = await ada.post(
        f"{PATH}/new", url="https://receiver.example/hook", events="account", description="Ledger"
    )
    secret = re.search(r"whsec_[A-Za-z0-9+/=]+", response.text)
    assert secret is not None
    (webhook,) = await studio.services.storage.webhooks.webhooks()
    webhook_path = f"{PATH}/{webhook.webhook_id}"
    page = await ada.get(webhook_path)
    assert secret[0] not in page.text  # shown once
    await ada.post(f"{webhook_path}/test")
    assert "webhook.ping" in (await ada.follow()).text
    rotated = await ada.post(f"{webhook_path}/rotate")
    assert secret[0] not in rotated.text
    await ada.get(webhook_path)
    fields = {
        "csrf": csrf_of(ada.page.text if ada.page else ""),
        "version": "2",
        "url": "https://receiver.example/other",
        "events": ["session", "permission"],
    }
    refused = await ada.client.post(webhook_path, data=fields)
    assert (refused.status_code, "Another URL needs a new secret." in refused.text) == (400, True)
    saved = await ada.client.post(webhook_path, data={**fields, "new_secret": "1"})
    assert (saved.status_code, "whsec_" in saved.text) == (200, True)
    (changed,) = await studio.services.storage.webhooks.webhooks()
    assert (changed.url, changed.enabled) == ("https://receiver.example/other", False)
    page = await ada.get(f"{webhook_path}/remove")
    assert "<strong>1</strong> pending event is dropped" in page.text
    await ada.post(f"{webhook_path}/remove")
    assert list(await studio.services.storage.webhooks.webhooks()) == []


async def test_webhook_form_warns_of_an_address_that_is_not_called(
    studio: RunningService, console_browsers: ConsoleBrowsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(resolver: SystemResolver, host: str, port: int) -> Sequence[Address]:  # noqa: ARG001
        return [ip_address({"inner.example": "10.1.2.3", "outer.example": "93.184.215.14"}[host])]

    monkeypatch.setattr(SystemResolver, "resolve", resolve)
    ada = await console_browsers(ADA)
    for host, is_refused in (("inner.example", True), ("outer.example", False)):
        await ada.get(f"{PATH}/new")
        await ada.post(f"{PATH}/new", url=f"https://{host}/hook", events="account", description=host)
        stored = await studio.services.storage.webhooks.webhooks()
        (made,) = (one for one in stored if one.description == host)
        page = (await ada.get(f"{PATH}/{made.webhook_id}")).text
        assert ("Gatehouse will not call inner.example: 10.1.2.3 is not a public address." in page) == is_refused


async def test_deliveries_are_searched_paged_and_downloaded(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, store = await console_browsers(ADA), studio.services.storage.webhooks
    await ada.get(f"{PATH}/new")
    await ada.post(f"{PATH}/new", url="https://receiver.example/hook", events="account")
    (webhook,) = await store.webhooks()
    webhook_path = f"{PATH}/{webhook.webhook_id}"
    page = await ada.get(webhook_path)
    assert "Nothing sent yet." in page.text
    assert await store.enqueue_and_advance(
        webhook, webhook.place + 60, [a_delivery(webhook, number) for number in range(60)]
    )
    page = await ada.get(webhook_path)
    assert "1 to 25 of 60" in page.text
    assert page.text.index("user.e59") < page.text.index("user.e35")  # newest first
    page = await ada.get(f"{webhook_path}?page=3")
    assert "51 to 60 of 60" in page.text
    assert re.findall(r"<code>(user\.e\d+)</code>", page.text) == [
        f"user.e{number:02}" for number in range(9, -1, -1)
    ]
    page = await ada.get(f"{webhook_path}?q=E4&state=given_up")
    assert "1 to 5 of 5" in page.text
    assert "?q=E4&state=given_up&format=csv" in page.text.replace("&amp;", "&")
    [row] = csv.DictReader((await ada.get(f"{PATH}?format=csv")).text.splitlines())
    entry = msgspec.to_builtins(webhook_entry(webhook))
    del entry["kind"]
    assert row == {
        "stopped": "",
        "old_secret_until": "",
        **{name: str(value) for name, value in entry.items()},
        "events": "account",
        "enabled": "yes",
    }
    file = await ada.get(f"{webhook_path}?q=E4&state=given_up&format=csv")
    assert set(file.text.splitlines()[0].split(",")) == set(DeliveryEntry.__struct_fields__)
    assert [line.split(",")[2] for line in file.text.splitlines()[1:]] == [
        f"user.e{number}" for number in (48, 46, 44, 42, 40)
    ]
    assert len((await ada.get(f"{webhook_path}?format=csv")).text.splitlines()) == 61
    assert "No results." in (await ada.get(f"{webhook_path}?q=project")).text


def a_delivery(webhook: Webhook, number: int) -> Delivery:
    """A delivery; every second one has failed."""
    return Delivery(
        delivery_id=f"{number:032x}",
        webhook_id=webhook.webhook_id,
        event_id=f"{number:032x}",
        event=f"user.e{number:02}",
        place=number,
        body="{}",
        state=DeliveryState.DELIVERED if number % 2 else DeliveryState.GIVEN_UP,
        next_try_at=NOW,
        ends_at=NOW,
        created_at=NOW + number // 2,
    )


async def test_webhooks_are_hidden_from_people_who_are_not_administrators(console_browsers: ConsoleBrowsers) -> None:
    olga = await console_browsers(OLGA)
    assert (await olga.get(PATH)).status_code == 403
    assert (await olga.get(f"{PATH}/new")).status_code == 403


def csrf_of(page: str) -> str:
    match = re.search(r'name="csrf" value="([0-9a-f]+)"', page)
    assert match is not None
    return match[1]
