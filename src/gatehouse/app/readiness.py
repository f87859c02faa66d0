"""Checks whether this process can serve, for /readyz and `gatehouse doctor`."""

from collections.abc import Mapping
from typing import Final

from gatehouse.app.services import Services
from gatehouse.kernel.times import seconds_outside
from gatehouse.keys.model import Algorithm, KeyPurpose
from gatehouse.storage.migrations import HEAD
from gatehouse.web.api.health import CheckResult, HealthCheck

MAX_CLOCK_SKEW: Final = 30  # seconds between this node and the database (faults R-10)


def readiness_checks(services: Services) -> Mapping[str, HealthCheck]:
    storage, keyring, clock, masters = services.storage, services.keys.keyring, services.clock, services.core.masters

    async def database() -> CheckResult:
        held = await storage.runner.revision()
        return CheckResult(ok=held == HEAD, detail=f"schema revision {held}, {HEAD} is required")

    async def keys() -> CheckResult:
        await keyring.refresh()  # a node that cannot open the current keys must not decide about tokens
        key = keyring.signing_key(KeyPurpose.TOKENS, Algorithm.RS256, clock.now())
        return CheckResult(ok=True, detail=f"signing with {key.record.kid}")

    async def clocks() -> CheckResult:
        before = clock.now()
        theirs = await storage.runner.database_time()
        apart = 0 if theirs is None else seconds_outside(theirs, before, clock.now())
        return CheckResult(ok=apart <= MAX_CLOCK_SKEW, detail=f"{apart} seconds difference to the database clock")

    async def master_key() -> CheckResult:
        masters.follow(await storage.nodes.master_keys_in_use())
        detail = masters.missing_text if masters.missing else f"encrypting with {masters.sealing_id}"
        return CheckResult(ok=not masters.missing, detail=detail)

    async def commits() -> CheckResult:
        await services.keys.node_reporter.report_if_due()  # a commit every ten seconds; every time after a failure
        return CheckResult(ok=True)

    return {"database": database, "master_key": master_key, "keys": keys, "clock": clocks, "commits": commits}
