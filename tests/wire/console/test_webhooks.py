"""Webhooks in the console."""

import re

from tests.support.console import ADA, OLGA, Visitors
from tests.support.service import Service

PATH = "/console/settings/webhooks"


async def test_a_webhook_is_made_changed_tried_and_removed_by_mouse(studio: Service, inside: Visitors) -> None:
    ada = await inside(ADA)
    await ada.get(f"{PATH}/new")
    wrong = await ada.post(f"{PATH}/new", url="http://receiver.example/", events="account")
    assert wrong.status_code == 400
    assert "http://receiver.example/" in wrong.text
    made = await ada.post(f"{PATH}/new", url="https://receiver.example/hook", events="account", description="Ledger")
    secret = re.search(r"whsec_[A-Za-z0-9+/=]+", made.text)
    assert secret is not None
    (webhook,) = await studio.house.storage.webhooks.webhooks()
    one = f"{PATH}/{webhook.webhook_id}"
    page = await ada.get(one)
    assert secret[0] not in page.text  # shown once
    await ada.post(f"{one}/test")
    assert "webhook.ping" in (await ada.follow()).text
    rotated = await ada.post(f"{one}/rotate")
    assert secret[0] not in rotated.text
    await ada.get(one)
    saved = await ada.client.post(
        one,
        data={
            "csrf": csrf_of(ada.page.text if ada.page else ""),
            "version": "2",
            "url": "https://receiver.example/other",
            "events": ["session", "permission"],
        },
    )
    assert saved.status_code == 303, saved.text
    (changed,) = await studio.house.storage.webhooks.webhooks()
    assert (changed.url, changed.enabled) == ("https://receiver.example/other", False)
    page = await ada.get(f"{one}/remove")
    assert "<strong>1</strong> message that waits is dropped" in page.text
    await ada.post(f"{one}/remove")
    assert list(await studio.house.storage.webhooks.webhooks()) == []


async def test_whoever_does_not_administer_sees_none(inside: Visitors) -> None:
    olga = await inside(OLGA)
    assert (await olga.get(PATH)).status_code == 403
    assert (await olga.get(f"{PATH}/new")).status_code == 403


def csrf_of(page: str) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', page)
    assert found is not None
    return found[1]
