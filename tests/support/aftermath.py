"""What a test finds in a database once the processes that wrote to it are gone."""

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION
from gatehouse.app.house import Services, open_services
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.clock import SystemClock
from tests.support.capabilities import POSTGRES, require_program
from tests.support.service import load_test_settings

ANY_PORT: Final = 8080
MAX_RECORDS: Final = 1_000_000


def dump_database(url: str) -> list[bytes]:
    """All a database that nobody serves holds, schema and rows, to be compared with what it held before."""
    if url.startswith("sqlite:"):
        path = Path(url.removeprefix("sqlite:///"))
        return [file.read_bytes() for file in (path, *sorted(path.parent.glob(f"{path.name}-*")))]
    dump = subprocess.run([require_program(POSTGRES) / "pg_dump", url], check=True, capture_output=True)
    # Newer programs wrap what they print in a password of their own.
    return [line for line in dump.stdout.splitlines() if not line.startswith((b"\\restrict", b"\\unrestrict"))]


@asynccontextmanager
async def open_services_on(url: str, data: Path) -> AsyncIterator[Services]:
    """The rooms over this database, as a command opens them."""
    async with open_services(
        load_test_settings(url, data, port=ANY_PORT), clock=SystemClock(), serving=False, initialize=True
    ) as house:
        yield house


async def administrator_logins(services: Services) -> list[str]:
    """The logins of all who hold that role."""
    now = services.clock.now()
    return [
        user.login or ""
        for user in await services.storage.accounts.all_users()
        if ADMINISTRATOR_ROLE in await services.storage.permissions.root_roles(CENTRAL_APPLICATION, user.user_id, now)
    ]


async def verified_audit_log(services: Services) -> list[AuditRecord]:
    """Every record, in order; the chain was verified and holds them all."""
    await services.audit_sealer.seal_all()
    verdict = await services.audit_verification().verify()
    assert (verdict.problems, verdict.unsealed) == ((), 0)
    return list(await services.storage.audit.records_from(1, MAX_RECORDS))
