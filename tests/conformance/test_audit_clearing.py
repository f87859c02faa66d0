"""Breaks that a node found because it lacked the master key are cleared, if the log itself is whole."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import delete

from gatehouse.app.services import Services, open_services
from gatehouse.audit.clearing import LogNotWhole
from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.clock import SystemClock
from gatehouse.keys.sealing import master_key_id, parse_master_key
from gatehouse.storage.audit import AUDIT_HEAD
from gatehouse.storage.installation import MASTER_KEYS
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.audit import audit_events, audit_seals
from gatehouse.storage.tables.installation import installation
from tests.support.builders import ORIGIN
from tests.support.command_line import InstallationPaths

MASTER: Final = "GATEHOUSE__SECURITY__MASTER_KEY"
PREVIOUS: Final = "GATEHOUSE__SECURITY__PREVIOUS_MASTER_KEYS"
OLD: Final = "hJ3oGkP0rVtYw1mXq9Zc5sEdN7uBfLaI2xRkT8vQ4yM"
NEW: Final = "9b1fe07c43d5aa2867f09e3c11d84b6e5a70cf2294be638d0d7715e8fa92c35b"


@asynccontextmanager
async def open_with_keys(url: str, data: Path, *keys: str) -> AsyncIterator[Services]:
    environment = {name: value for name, value in {MASTER: keys[0], PREVIOUS: ",".join(keys[1:])}.items() if value}
    paths = InstallationPaths(data=data, url=url, environment=environment)
    async with open_services(paths.load_settings(), clock=SystemClock(), serving=False) as services:
        yield services


async def seal_record(services: Services) -> None:
    await services.storage.accounts.add_record(
        services.core.recorder.record(AuditEvent.USER_CHANGED, ORIGIN, subject="1000000001")
    )
    await services.audit.sealer.seal_all()


async def delete_fact(services: Services, name: str) -> None:
    def verb() -> Verb[None]:
        yield Statement(lambda: delete(installation).where(installation.c.name == name))()

    await services.storage.runner.write(verb)


async def delete_record(services: Services, place: int) -> None:
    def verb() -> Verb[None]:
        yield Statement(lambda: delete(audit_events).where(audit_events.c.place == place))()

    await services.storage.runner.write(verb)


@pytest.fixture
async def marked(migrated_url: str, tmp_path: Path) -> AsyncIterator[Services]:
    """A log that a node with the old key marked twice, as nodes did before they knew the keys in use."""
    async with (
        open_with_keys(migrated_url, tmp_path, OLD) as old,
        open_with_keys(migrated_url, tmp_path, NEW, OLD) as new,
    ):
        await seal_record(old)
        await delete_fact(new, MASTER_KEYS)
        new.core.masters.follow(master_key_id(parse_master_key(NEW)))
        for _ in range(2):
            await seal_record(new)
            await seal_record(old)
        yield new


async def test_mk_03_a_break_by_a_missing_master_key_is_cleared_and_the_log_verifies(marked: Services) -> None:
    verdict = await marked.audit.make_verifier().verify()
    assert [problem.partition(";")[0].partition(": ")[2] for problem in verdict.problems] == [
        "the head of the log was missing or unreadable"
    ], "the second break replaced the head with the first"
    heads = marked.audit.head_exporter.parse_all(verdict.head)
    assert await marked.audit.break_clearing.clear(heads, ORIGIN) == 1
    await marked.audit.sealer.seal_all()
    after = await marked.audit.make_verifier().verify(heads)
    assert after.problems == ()
    [cleared] = await marked.storage.audit.newest_records(10, "", AuditEvent.LOG_CLEARED)
    assert (cleared.details, cleared.actor) == ({"breaks": 1}, ORIGIN.actor)
    assert len(await marked.storage.audit.newest_records(10, "", AuditEvent.LOG_BROKEN)) == 2
    assert await marked.audit.break_clearing.clear((), ORIGIN) == 0


async def test_mk_03_nothing_is_cleared_if_a_record_is_missing(marked: Services) -> None:
    await delete_record(marked, 3)
    with pytest.raises(LogNotWhole, match="record 3 is missing"):
        await marked.audit.break_clearing.clear((), ORIGIN)
    assert len((await marked.audit.make_verifier().verify()).problems) == 2


async def test_mk_03_nothing_is_cleared_if_the_log_was_cut_as_well(marked: Services) -> None:
    end = await marked.storage.audit.chain_end()
    await delete_record(marked, end.last_place)
    await seal_record(marked)
    with pytest.raises(LogNotWhole, match="its records at record"):
        await marked.audit.break_clearing.clear((), ORIGIN)


async def test_mk_03_nothing_is_cleared_without_a_head(marked: Services) -> None:
    await delete_fact(marked, AUDIT_HEAD)
    with pytest.raises(LogNotWhole, match="missing or was changed"):
        await marked.audit.break_clearing.clear((), ORIGIN)


async def test_mk_03_nothing_is_cleared_if_a_stored_head_shows_that_the_end_was_cut_off(
    migrated_url: str, tmp_path: Path
) -> None:
    """Cut off together with the head, the end is missing without a gap."""
    async with open_with_keys(migrated_url, tmp_path, OLD) as services:
        await seal_record(services)
        cut = (await services.storage.audit.chain_end()).last_place
        await seal_record(services)
        await seal_record(services)
        heads = services.audit.head_exporter.parse_all((await services.audit.make_verifier().verify()).head)
        await delete_after(services, cut)
        await seal_record(services)
        with pytest.raises(LogNotWhole, match="the stored head"):
            await services.audit.break_clearing.clear(heads, ORIGIN)


async def delete_after(services: Services, place: int) -> None:
    def verb() -> Verb[None]:
        yield Statement(lambda: delete(audit_events).where(audit_events.c.place > place))()
        yield Statement(lambda: delete(audit_seals).where(audit_seals.c.place > place))()
        yield Statement(lambda: delete(installation).where(installation.c.name == AUDIT_HEAD))()

    await services.storage.runner.write(verb)
