"""Opens the database an address names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gatehouse.kernel.errors import Misconfigured
from gatehouse.storage.accounts import AccountStorage
from gatehouse.storage.audit import AuditStorage
from gatehouse.storage.installation import InstallationStorage
from gatehouse.storage.keys import KeyStorage
from gatehouse.storage.migrations import ensure_current
from gatehouse.storage.oauth import OAuthStorage
from gatehouse.storage.permissions import PermissionStorage
from gatehouse.storage.postgres import PoolLimits, PostgresRunner
from gatehouse.storage.runner import Runner
from gatehouse.storage.sqlite import SQLiteRunner, path_of
from gatehouse.storage.throttle import ThrottleStorage


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Every room's store on one database."""

    runner: Runner
    accounts: AccountStorage
    audit: AuditStorage
    installation: InstallationStorage
    keys: KeyStorage
    oauth: OAuthStorage
    permissions: PermissionStorage
    throttle: ThrottleStorage


@asynccontextmanager
async def open_storage(
    url: str, *, migrate: bool, limits: PoolLimits | None = None, listen_url: str = ""
) -> AsyncIterator[Storage]:
    """Open the database, its schema exactly the one this code knows.

    Raises SchemaTooNew, or SchemaBehind when it is older and `migrate` is not given.
    """
    runner = await open_runner(url, limits or PoolLimits(), listen_url)
    try:
        await ensure_current(runner, url, migrate=migrate)
        yield over(runner)
    finally:
        await runner.close()


async def open_runner(url: str, limits: PoolLimits, listen_url: str) -> Runner:
    if url.startswith("sqlite:"):
        return SQLiteRunner(path_of(url))
    if url.startswith(("postgresql:", "postgres:")):
        return await PostgresRunner.open(url, limits, listen_url)
    raise Misconfigured("database.url must begin with sqlite:/// or postgresql://")


def over(runner: Runner) -> Storage:
    return Storage(
        runner=runner,
        accounts=AccountStorage(runner),
        audit=AuditStorage(runner),
        installation=InstallationStorage(runner),
        keys=KeyStorage(runner),
        oauth=OAuthStorage(runner),
        permissions=PermissionStorage(runner),
        throttle=ThrottleStorage(runner),
    )
