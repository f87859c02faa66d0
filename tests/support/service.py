"""The whole service in the test's process: real server, real database, a clock the test advances."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2
import pytest

from gatehouse.accounts import passwords
from gatehouse.accounts.passwords import PasswordCost
from gatehouse.app.endpoints import build_app
from gatehouse.app.services import Services, accounts, open_services
from gatehouse.images import conversion
from gatehouse.settings.merge import LoadedSettings, load
from gatehouse.web.server.server import ShutdownSignal, serve_in_loop
from tests.support.clock import MovableClock
from tests.support.processes import free_port
from tests.support.tls import NO_TRUST_STORE

# For other processes: the lowest Argon2id cost that is allowed.
FAST_SETTINGS: Final = {
    "GATEHOUSE__PASSWORDS__MEMORY_KIB": "19456",
    "GATEHOUSE__PASSWORDS__TIME_COST": "2",
    "GATEHOUSE__LOG__LEVEL": "error",
    "GATEHOUSE__DATABASE__IDLE_TRANSACTION_SECONDS": "60",  # a node on a busy machine has not stopped
}

PATIENCE: Final = 60  # seconds until a test gives up on a response: a busy machine is not a failure

# In the test's process: a PostgreSQL connection that starts reads the catalogs anew; more open when needed.
ONE_CONNECTION: Final = {"GATEHOUSE__DATABASE__POOL_MIN": "1"}

# Likewise: no test is about how long Argon2id takes, unless it sets the cost.
CHEAP: Final = PasswordCost(memory_kib=64, time_cost=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningService:
    services: Services
    client: httpx2.AsyncClient
    clock: MovableClock
    base_url: str
    stopping: ShutdownSignal


def load_test_settings(url: str, data: Path, *, port: int, **more: str) -> LoadedSettings:
    environment = {**FAST_SETTINGS, **ONE_CONNECTION, "GATEHOUSE__DATABASE__URL": url, **more}
    return load(data=data, config=None, dev=True, environment=environment, flags={"server.port": str(port)})


@asynccontextmanager
async def running_service(
    url: str, data: Path, *, clock: MovableClock | None = None, environment: Mapping[str, str] | None = None
) -> AsyncIterator[RunningService]:
    clock = clock or MovableClock()
    stopping = ShutdownSignal()
    port = free_port()
    loaded = load_test_settings(url, data, port=port, **(environment or {}))
    base_url = loaded.settings.server.base_url
    with pytest.MonkeyPatch.context() as patch:
        # Hashing and pictures give way to the event loop (P15): with other tests running they would wait for all.
        patch.setattr(passwords, "LOWEST_PRIORITY", os.getpriority(os.PRIO_PROCESS, 0))
        patch.setattr(conversion, "LOWEST_PRIORITY", 0)  # added to that of this process
        if not any(name.startswith("GATEHOUSE__PASSWORDS__") for name in environment or {}):
            patch.setattr(accounts, "PasswordCost", lambda **_: CHEAP)
        async with open_services(loaded, clock=clock, serving=True) as services:
            served = build_app(services, stopping=stopping)
            async with (
                serve_in_loop(served.app, port=port, clock=clock, stopping=stopping),
                httpx2.AsyncClient(
                    base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE, verify=NO_TRUST_STORE
                ) as client,
            ):
                yield RunningService(
                    services=services,
                    client=client,
                    clock=clock,
                    base_url=base_url,
                    stopping=stopping,
                )
