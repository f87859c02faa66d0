"""Waiting for the moment of a database to be that of now."""

import asyncio

from gatehouse.storage.runner import Runner


async def renewed(runner: Runner) -> None:
    """What was written before is history now, so that what is told next can be told again."""
    if runner.renew is not None:
        event = asyncio.Event()
        runner.renew(event.set)
        await event.wait()
