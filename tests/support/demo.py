"""The demo's studio on a running service, for whoever wants to see a console that is full."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gatehouse.app.front import front
from gatehouse.app.house import open_house
from gatehouse.demo.cast import Secrets
from gatehouse.demo.seeding import seed
from gatehouse.kernel.clock import SystemClock
from gatehouse.web.server import Stopping, serving
from tests.support.processes import free_port
from tests.support.service import settings_for


@asynccontextmanager
async def running_demo(url: str, data: Path) -> AsyncIterator[tuple[str, Secrets]]:
    """Its address, and the passwords of its people."""
    clock, stopping, port = SystemClock(), Stopping(), free_port()
    loaded = settings_for(url, data, port=port)
    secrets = await seed(loaded, clock)
    assert secrets is not None
    async with open_house(loaded, clock=clock, serving=True) as house:
        await house.sealer.seal_all()
        served = front(house, stopping=stopping, demo=True)
        async with serving(served.app, port=port, clock=clock, stopping=stopping, ready=served.ready):
            yield loaded.settings.server.base_url, secrets
