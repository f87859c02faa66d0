"""The contents of the demo's studio; test_serve_demo.py uses it on SQLite."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gatehouse.app.services import open_services
from gatehouse.app.services.provisioning import build_provisioning
from gatehouse.demo.seeding import FACT, STARTED, HalfADemo, NotADemo, seed
from tests.support.clock import MovableClock
from tests.support.processes import free_port
from tests.support.service import load_test_settings

HAPPENED = {
    "session.opened",
    "session.ended",
    "login.done",
    "grant.made",
    "consent.given",
    "game.confirmed",
    "user.blocked",
    "role.saved",
    "access_key.made",
    "user_schema.saved",
    "group.created",
    "project.changed",
}
SIZES = {"users": 10, "projects": 2, "clients": 1, "groups": 6, "service_accounts": 1}


async def test_an_empty_database_becomes_a_studio_with_a_day_behind_it(postgres_url: str, tmp_path: Path) -> None:
    clock = MovableClock()
    loaded = load_test_settings(postgres_url, tmp_path, port=free_port())
    assert await seed(loaded, clock) is not None
    assert await seed(loaded, clock) is None  # it exists, and is not changed
    async with open_services(loaded, clock=clock, serving=True) as services:
        described: dict[str, Any] = await build_provisioning(services).export(secrets=False)
        assert {name: len(described[name]) for name in SIZES} == SIZES
        own = [application for application in described["applications"] if application["application_id"] != 1]
        assert [one["application_id"] for one in own] == [50001, 50002, 50003, 50004]
        assert all(12 <= count_leaves(one["schema"]) <= 25 for one in own)
        records = await services.storage.audit.newest_records(1_000, "", "")
        events = Counter(record.event for record in records if record.at >= clock.now() - 86_400)
        assert events.keys() >= HAPPENED
        assert events["game.confirmed"] == 20
        assert max(record.at for record in records) <= clock.now()
        assert (await services.storage.mail.outbox_status()).waiting == 0


def count_leaves(tree: Mapping[str, Any]) -> int:
    return sum(
        1 if "value" in below else count_leaves(below)
        for name, below in tree.items()
        if name not in {"secret_data", "objects"}
    )


async def test_a_database_that_is_no_demo_or_half_of_one_is_left_alone(migrated_url: str, tmp_path: Path) -> None:
    clock = MovableClock()
    loaded = load_test_settings(migrated_url, tmp_path, port=free_port())
    with pytest.raises(NotADemo):
        await seed(loaded, clock)
    async with open_services(loaded, clock=clock, serving=True) as services:
        await services.storage.installation.set_value(FACT, STARTED)
    with pytest.raises(HalfADemo):
        await seed(loaded, clock)
