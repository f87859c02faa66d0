"""A process that creates accounts as fast as it can, and prints each once the database has acknowledged it.

`start_writers` starts it, and the test kills it.
"""

import asyncio
import re
import secrets
import sys
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Final

from gatehouse.app.services import Services
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.errors import Unavailable
from tests.support.database_contents import open_services_on, verified_audit_log
from tests.support.processes import WatchedProcess

ROOT: Final = Path(__file__).parents[2]
AT_A_TIME: Final = 8
ACKNOWLEDGED_LINE: Final = re.compile(r"kept \d+ (\d+)\n")  # a line cut short by the kill does not count


def start_writers(url: str, data: Path) -> WatchedProcess:
    return WatchedProcess([sys.executable, "-m", "tests.faults.writers", url, str(data)], cwd=ROOT)


def acknowledged_ids(process: WatchedProcess) -> list[str]:
    """The ids of the accounts it reported as created."""
    return [match[1] for line in process.stdout if (match := ACKNOWLEDGED_LINE.fullmatch(line))]


async def every_account_has_one_record(services: Services, user_ids: list[str]) -> None:
    there = [user.user_id for user in await services.storage.accounts.all_users()]
    assert set(user_ids) <= set(there)
    recorded = Counter(
        record.subject for record in await verified_audit_log(services) if record.event == "user.created"
    )
    assert recorded == Counter(there)


async def run_writers(url: str, data: Path) -> None:
    numbers = count(1)
    async with open_services_on(url, data) as services, asyncio.TaskGroup() as writers:
        for _ in range(AT_A_TIME):
            writers.create_task(keep_writing(services, numbers))


async def keep_writing(services: Services, numbers: "count[int]") -> None:
    while True:
        try:
            await make_account(services, numbers)
        except Unavailable:
            print("unavailable", flush=True)  # noqa: T201 - and it asks again at once


async def make_account(services: Services, numbers: "count[int]") -> None:
    login = f"{secrets.token_hex(8)}@studio.example"
    user = await services.accounts.administration.create(
        login=login, nick="Anna", password=None, origin=AuditOrigin(actor="writer")
    )
    print(f"kept {next(numbers)} {user.user_id}", flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(run_writers(sys.argv[1], Path(sys.argv[2])))
