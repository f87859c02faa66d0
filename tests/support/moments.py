"""Wait until a database snapshot is current."""

import asyncio

from gatehouse.storage.runner import Runner


async def renewed(runner: Runner) -> None:
    """Wait for a new snapshot, so that earlier writes are visible to the next reads."""
    if runner.renew is not None:
        event = asyncio.Event()
        runner.renew(event.set)
        await event.wait()
