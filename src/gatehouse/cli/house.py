"""How a command gets at the rooms: settings loaded, database opened, one coroutine run."""

import asyncio
from collections.abc import Awaitable, Callable
from getpass import getuser
from typing import TypeVar

from gatehouse import logs
from gatehouse.app.house import Services, open_services
from gatehouse.audit.model import AuditOrigin
from gatehouse.cli.common import Invocation, load_settings
from gatehouse.cli.opening import refuse_missing_file
from gatehouse.kernel.clock import SystemClock

T = TypeVar("T")


def run_with_services(
    invocation: Invocation, work: Callable[[Services], Awaitable[T]], *, may_create: bool = False
) -> T:
    """Run the work with every room at hand; the server may be running or not.

    Raises NoInstallation where there is no database yet, unless the command is one that founds an installation.
    """
    loaded = load_settings(invocation)
    logs.configure(dev=True, level="warning")
    if not may_create:
        refuse_missing_file(loaded)

    async def run() -> T:
        async with open_services(loaded, clock=SystemClock(), serving=False, initialize=may_create) as house:
            return await work(house)

    return asyncio.run(run())


def operator_origin() -> AuditOrigin:
    """Whoever types commands, as the audit log names him."""
    return AuditOrigin(actor=f"cli:{getuser()}")
