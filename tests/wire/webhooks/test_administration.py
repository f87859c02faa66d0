"""Managing webhooks: permissions, refusals, secrets shown once, commands."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from gatehouse.app.rewrapping import SEALED_COLUMNS, rewrap_row
from gatehouse.webhooks.model import MAX_WEBHOOKS
from tests.support.command_line import InstallationPaths
from tests.support.database_contents import read_all_tables
from tests.wire.webhooks.conftest import ALLOWED, WebhookSetup
from tests.wire.webhooks.test_delivery import is_signed

DAY = 86_400


async def test_only_administrators_without_a_vouching_service_manage_webhooks(
    webhook_setup: WebhookSetup,
) -> None:
    hook = await webhook_setup.create_webhook()
    vouched = {
        "Authorization": f"Bearer {webhook_setup.admin.jwt}",
        "Service-Jwt": await webhook_setup.studio.service_jwt(),
    }
    named = {"webhook_id": hook["webhook_id"]}
    for action, data in {
        "get": {},
        "save": {"url": webhook_setup.url, "events": ["account"]},
        "delete": named,
        "rotate": named,
        "deliveries": named,
        "redeliver": {**named, "delivery_id": "none"},
        "test": named,
    }.items():
        for headers in (webhook_setup.studio.owner.headers, webhook_setup.studio.other_user.headers, vouched):
            await webhook_setup.studio.expect_error(403, "webhook", {"action": action, "data": data}, headers)
        await webhook_setup.studio.expect_error(401, "webhook", {"action": action, "data": data}, {})
    assert len(await webhook_setup.ask("get")) == 1


WRONG: tuple[tuple[dict[str, object], str], ...] = (
    ({"url": "https://10.0.0.1/"}, "data.url: private"),
    ({"url": "https://[::1]/"}, "data.url: private"),
    ({"url": "ftp://shop.example/"}, "data.url"),
    ({"url": "https://shop.example/#here"}, "data.url"),
    ({"url": None}, "data.url"),
    ({"events": ["accounts"]}, "data.events"),
    ({"events": []}, "data.events"),
    ({"events": ["account", "account"]}, "data.events"),
    ({"events": [7]}, "data.events"),
    ({"events": ["account", 7]}, "data.events"),
    ({"description": "a\nb"}, "data.description"),
    ({"enabled": "yes"}, "enabled"),
    ({"secret": "mine"}, "secret"),
)


async def test_invalid_webhook_field_is_refused_by_name(webhook_setup: WebhookSetup) -> None:
    usual = {"url": "https://shop.example/", "events": ["account"]}
    for data, place in WRONG:
        assert place in await webhook_setup.expect_error(400, "save", **{**usual, **data})
    for missing in usual:
        fields = {name: value for name, value in usual.items() if name != missing}
        assert "url and events are required" in await webhook_setup.expect_error(400, "save", **fields)
    assert await webhook_setup.ask("get") == []


async def test_a_webhook_is_made_changed_read_back_and_removed_with_every_step_on_record(
    webhook_setup: WebhookSetup,
) -> None:
    hook = await webhook_setup.create_webhook("session", "account", description="CRM")
    public = {name: value for name, value in hook.items() if name != "secret"}
    assert await webhook_setup.ask("get") == [public]
    assert (public["events"], public["enabled"], public["version"]) == (["account", "session"], True, 1)
    assert public["created_by"] == webhook_setup.admin.user_id
    named = {"webhook_id": hook["webhook_id"]}
    changed = await webhook_setup.ask("save", **{**public, "events": ["permission"]})
    assert (changed["events"], changed["description"], changed["version"]) == (["permission"], "CRM", 2)
    assert "changed in the meantime" in await webhook_setup.expect_error(
        409, "save", **named, description="late", version=1
    )
    await webhook_setup.expect_error(400, "deliveries", **named, state="lost")
    await webhook_setup.expect_error(404, "redeliver", **named, delivery_id="none")
    await webhook_setup.ask("test", **named)
    await webhook_setup.ask("rotate", **named)
    await webhook_setup.ask("delete", **named)
    for action in ("get", "save", "delete", "rotate", "deliveries", "test"):
        await webhook_setup.expect_error(404, action, **named)
    records = await webhook_setup.service.services.storage.audit.newest_records(
        9, f"webhook {hook['webhook_id']}", ""
    )
    assert {(record.event, record.actor) for record in records} == {
        (f"webhook.{event}", webhook_setup.admin.user_id)
        for event in ("created", "changed", "tested", "secret_rotated", "removed")
    }
    assert hook["secret"] not in str(records)
    assert (await read_all_tables(webhook_setup.service.services.storage))["webhook_deliveries"] == []


async def test_a_secret_is_shown_once_and_while_it_is_changed_both_sign(webhook_setup: WebhookSetup) -> None:
    hook = await webhook_setup.create_webhook()
    new = (await webhook_setup.ask("rotate", webhook_id=hook["webhook_id"]))["secret"]
    newest = (await webhook_setup.ask("rotate", webhook_id=hook["webhook_id"]))["secret"]
    assert len({hook["secret"], new, newest}) == 3
    assert [len(secret) for secret in (new, newest)] == [len("whsec_") + 44] * 2
    assert "secret" not in (await webhook_setup.ask("get"))[0]
    for seconds, signing in ((0, [False, True, True]), (7 * DAY, [False, False, True])):
        await webhook_setup.service.clock.advance(seconds)
        await webhook_setup.create_user(f"after{seconds}@studio.example")
        await webhook_setup.deliver_once()
        received = webhook_setup.receiver.received[-1]
        assert [is_signed(received, secret) for secret in (hook["secret"], new, newest)] == signing


async def test_secrets_move_to_another_master_key_like_every_secret(webhook_setup: WebhookSetup) -> None:
    hook = await webhook_setup.create_webhook()
    await webhook_setup.ask("rotate", webhook_id=hook["webhook_id"])
    services = webhook_setup.service.services
    places = [place for place in SEALED_COLUMNS if place.name == "webhooks"]
    for place in places:
        rows = await services.storage.runner.snapshot_read(partial(place.read_page, b"another", None, 10))
        assert [rewrap_row(place, row, services.core.masters) is not None for row in rows] == [True]
    assert len(places) == 2


async def test_command_line_has_the_records_of_the_api(
    webhook_setup: WebhookSetup, migrated_url: str, tmp_path: Path
) -> None:
    """Under the same names, with times as text."""
    paths = InstallationPaths(data=tmp_path, url=migrated_url, environment=ALLOWED)
    run = partial(asyncio.to_thread, paths.command_line().json, "webhook")
    created = await run("add", webhook_setup.url, "--event", "account", "--event", "session", "--description", "CRM")
    [record] = await webhook_setup.ask("get")
    assert await run("list") == [record]
    assert created == {**record, "secret": created["secret"]}
    assert set(await run("rotate-secret", record["webhook_id"])) == {*record, "secret", "old_secret_until"}
    await run("test", record["webhook_id"])
    [delivery] = await webhook_setup.delivery_log(record)
    assert await run("deliveries", record["webhook_id"]) == [delivery]
    assert all(delivery[name].endswith("Z") for name in ("created", "done"))


async def test_webhooks_are_limited_in_number(webhook_setup: WebhookSetup) -> None:
    created = [await webhook_setup.create_webhook() for _ in range(MAX_WEBHOOKS)]
    ask = {"url": webhook_setup.url, "events": ["account"]}
    assert "at most 32" in await webhook_setup.expect_error(409, "save", **ask)
    await webhook_setup.ask("delete", webhook_id=created[5]["webhook_id"])
    await webhook_setup.ask("save", **ask)


async def test_the_openapi_document_tells_of_it(webhook_setup: WebhookSetup) -> None:
    document: Any = (await webhook_setup.service.client.get("/openapi.json")).json()
    operation = document["paths"]["/api/permissions/webhook"]["post"]
    assert operation["operationId"] == "permissions.webhook"
    answered = document["components"]["schemas"]["WebhookResponse"]["properties"]["data"]["anyOf"]
    assert {one["$ref"].rpartition("/")[2] for one in answered if "$ref" in one} <= {"WebhookEntry", "DeliveryEntry"}


async def test_op_88_another_url_of_a_webhook_needs_a_new_secret(webhook_setup: WebhookSetup) -> None:
    hook = await webhook_setup.create_webhook()
    rotated = await webhook_setup.ask("rotate", webhook_id=hook["webhook_id"])
    other = f"{webhook_setup.url}/other"
    before = await webhook_setup.ask("get")
    refusal = await webhook_setup.expect_error(400, "save", webhook_id=hook["webhook_id"], url=other, description="x")
    assert "data.url: another URL needs a new secret" in refusal
    assert await webhook_setup.ask("get") == before
    same = await webhook_setup.ask("save", webhook_id=hook["webhook_id"], url=webhook_setup.url, description="y")
    assert "secret" not in same
    changed = await webhook_setup.ask("save", webhook_id=hook["webhook_id"], url=other, new_secret=True)
    assert "old_secret_until" not in changed
    await webhook_setup.ask("test", webhook_id=hook["webhook_id"])
    await webhook_setup.deliver_once()
    received = webhook_setup.receiver.received[-1]
    assert [is_signed(received, secret) for secret in (hook["secret"], rotated["secret"], changed["secret"])] == [
        False,
        False,
        True,
    ]
