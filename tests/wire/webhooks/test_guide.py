"""Run docs/guides/webhooks.md: commands, with no server running."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import InstallationPaths
from tests.support.guides import programs_for, session_steps, type_command
from tests.support.stub_server import ReceivedRequest, StubServer, run_stub_server
from tests.wire.webhooks.conftest import ALLOWED


@pytest.fixture
def place(migrated_url: str, tmp_path: Path) -> InstallationPaths:
    return InstallationPaths(data=tmp_path / "data", url=migrated_url, environment=ALLOWED)


def verifier() -> Callable[..., bool]:
    [source] = programs_for(__file__, "webhooks", "python")
    names: dict[str, Any] = {}
    exec(source, names)  # noqa: S102 - our own guide
    assert len(source.split("def ")[1].splitlines()) <= 10
    is_genuine: Callable[..., bool] = names["is_genuine"]
    return is_genuine


async def test_commands_make_try_repair_and_remove_a_webhook(place: InstallationPaths) -> None:
    gatehouse = place.command_line()

    async def run_webhook(*words: str) -> Any:
        return await asyncio.to_thread(gatehouse.json, "webhook", *words)

    async with run_stub_server(StubServer()) as receiver:
        url = f"http://127.0.0.1:{receiver.port}/gatehouse"
        created = await run_webhook("add", url, "--event", "account", "--event", "session", "--description", "CRM")
        name = created["webhook_id"]
        [listed] = await run_webhook("list")
        assert {**listed, "secret": created["secret"]} == created
        [tried] = await run_webhook("test", name)
        assert (tried["state"], tried["status"], tried["event"]) == ("delivered", 204, "webhook.ping")
        [again] = await run_webhook("redeliver", name, tried["delivery_id"])
        assert (again["event_id"], again["state"]) == (tried["event_id"], "delivered")
        assert [one["delivery_id"] for one in await run_webhook("deliveries", name, "--state", "given_up")] == []
        changed = await run_webhook("change", name, "--event", "permission", "--disable")
        assert (changed["events"], changed["enabled"], changed["url"]) == (["permission"], False, url)
        output = await asyncio.to_thread(gatehouse, "webhook", "change", name, "--description", "CRM of sales")
        assert ["created", created["created"]] in [line.split(maxsplit=1) for line in output.splitlines()]
        rotated = await run_webhook("rotate-secret", name)
        await run_webhook("test", name)
    first, _, last = receiver.received
    assert check_signatures(first, created["secret"]) == (True, False, False)
    assert check_signatures(last, created["secret"])[0]
    assert check_signatures(last, rotated["secret"])[0]
    assert not check_signatures(first, rotated["secret"])[0]
    deliveries = await asyncio.to_thread(gatehouse, "webhook", "deliveries", name)
    assert deliveries.count("delivered") == 3
    await asyncio.to_thread(gatehouse, "webhook", "remove", name)
    assert "Webhook not found." in await asyncio.to_thread(gatehouse.expect_failure, "webhook", "test", name)
    unknown = ("webhook", "add", "https://10.0.0.1/", "--event", "account")
    assert "private and local addresses" in await asyncio.to_thread(gatehouse.expect_failure, *unknown)


async def test_commands_of_the_guide_add_a_webhook_list_its_deliveries_and_enable_it(
    place: InstallationPaths,
) -> None:
    gatehouse = place.command_line()
    [add], repair = map(session_steps, programs_for(__file__, "webhooks", "console"))

    async def run(command: str, **replaced: str) -> str:
        return await asyncio.to_thread(
            type_command, gatehouse, command, {f"<{name}>": to for name, to in replaced.items()}
        )

    async with run_stub_server(StubServer()) as receiver:
        url = f"http://127.0.0.1:{receiver.port}/gatehouse"
        printed = await run(add[0].replace("https://crm.studio.example/gatehouse", url))
        name, secret, *rest = printed.splitlines()
        shown = add[1].splitlines()
        assert ([len(name), len(secret)], rest) == ([len(one) for one in shown[:2]], shown[2:])
        [tried] = await asyncio.to_thread(gatehouse.json, "webhook", "test", name)
        listed, redelivered, enabled = [await run(step, id=name, delivery=tried["delivery_id"]) for step, _ in repair]
    assert tried["delivery_id"] not in listed
    assert "webhook.ping" in redelivered
    assert name in enabled


def check_signatures(received: ReceivedRequest, secret: str) -> tuple[bool, bool, bool]:
    """The results of the guide's receiver for a delivery, for a changed body, and for the same ten minutes later."""
    names = ("Webhook-Id", "Webhook-Timestamp", "Webhook-Signature")
    headers = {name: received.headers[name.lower()] for name in names}
    is_genuine, now = verifier(), float(headers["Webhook-Timestamp"])
    return (
        is_genuine(headers, received.body, secret, now),
        is_genuine(headers, received.body + b" ", secret, now),
        is_genuine(headers, received.body, secret, now + 600),
    )
