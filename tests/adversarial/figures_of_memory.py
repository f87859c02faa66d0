"""Figures about memory: many large applications requested in turn."""

import re
from collections.abc import AsyncIterator
from typing import Final

from tests.adversarial.figures_of_callers import API, MeasuredInstallation, measured_installation
from tests.adversarial.measuring import Figure, Target, scale_volume
from tests.adversarial.test_memory import MEGABYTE, RULES, an_application

APPLICATIONS: Final = 1_000
CACHE_MOST: Final = 64  # megabytes; the default of permissions.cache_mb


async def many_applications(target: Target) -> AsyncIterator[Figure]:
    """MM-02 in full."""
    number = scale_volume(APPLICATIONS)
    async with measured_installation(target) as installation:
        storage = installation.services.storage
        ids = [await an_application(storage, rules=RULES, roles=1, name=f"Shop {n}") for n in range(number)]
        await ask_each(installation, ids)
        cached, settled = await cache_of(target), target.memory()
        await ask_each(installation, ids)
        grown = target.memory() - settled
    yield Figure("MM-02", f"cache after {number:,} applications of {RULES:,} rules", cached, CACHE_MOST, "MB")
    yield Figure("MM-02", "memory of the process then", settled, 250, "MB")
    yield Figure("MM-02", "memory that asking for all of them again takes", grown, 10, "MB")


async def ask_each(installation: MeasuredInstallation, ids: list[int]) -> None:
    for application_id in ids:
        ask = {"action": "get", "application_id": application_id, "data": {"type": "list"}}
        response = await installation.target.client.post(f"{API}/meta/data", json=ask, headers=installation.owner)
        assert len(response.json()["data"]) == RULES


async def cache_of(target: Target) -> float:
    match = re.search(r"^gatehouse_permission_cache_bytes (\S+)$", await target.metrics(), re.MULTILINE)
    assert match is not None
    return float(match[1]) / MEGABYTE
