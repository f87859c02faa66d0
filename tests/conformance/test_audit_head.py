"""The head of the audit log is created with the installation, or at the first start of a version that has one."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import bindparam, delete, update

from gatehouse.app.instance_key import INSTANCE_KEY
from gatehouse.app.services import Services, open_services
from gatehouse.audit.chain import unlinked_seal_message
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.head import HeadCodec
from gatehouse.kernel.clock import SystemClock
from gatehouse.storage.audit import AUDIT_HEAD
from gatehouse.storage.installation import set_value
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.audit import audit_seals
from gatehouse.storage.tables.installation import installation
from tests.support.builders import ORIGIN
from tests.support.command_line import InstallationPaths


@asynccontextmanager
async def open_services_at(url: str, data: Path) -> AsyncIterator[Services]:
    paths = InstallationPaths(data=data, url=url)
    async with open_services(paths.load_settings(), clock=SystemClock(), serving=False) as services:
        yield services


async def note(services: Services) -> None:
    await services.storage.accounts.add_record(
        services.core.recorder.record(AuditEvent.USER_CHANGED, ORIGIN, subject="1000000001")
    )


async def test_a_new_installation_has_a_head_from_the_start(migrated_url: str, tmp_path: Path) -> None:
    async with open_services_at(migrated_url, tmp_path) as services:
        head = HeadCodec(services.core.masters).decode(await services.storage.audit.chain_end())
        assert head is not None
        assert (head.place, head.begins, head.unlinked) == (0, 1, 0)
        assert (await services.audit.make_verifier().verify()).problems == ()


async def test_processes_that_start_together_make_one_key_and_one_head(migrated_url: str, tmp_path: Path) -> None:
    async def start() -> tuple[bytes, str | None]:
        async with open_services_at(migrated_url, tmp_path) as services:
            return services.core.instance_key, (await services.storage.audit.chain_end()).head

    assert len(set(await asyncio.gather(*(start() for _ in range(4))))) == 1


@pytest.mark.parametrize("forgotten", [0, 2], ids=["whole", "after retention"])
async def test_an_installation_from_before_gets_a_head_at_its_first_start(
    migrated_url: str, tmp_path: Path, forgotten: int
) -> None:
    async with open_services_at(migrated_url, tmp_path) as services:
        await services.audit.sealer.seal_all()
        for _ in range(3):
            await note(services)
            await services.audit.sealer.seal_all()
        if forgotten:
            assert await services.audit.retention.delete_before(services.clock.now() + 1) > 0
            await note(services)
            await services.audit.sealer.seal_all()
        await make_older(services)
    async with open_services_at(migrated_url, tmp_path) as services:
        assert (await services.audit.make_verifier().verify()).problems == ()
        await note(services)
        await services.audit.sealer.seal_all()
        assert (await services.audit.make_verifier().verify()).problems == ()
        await delete_records(services, AUDIT_HEAD)
        assert len((await services.audit.make_verifier().verify()).problems) > 0
    async with open_services_at(migrated_url, tmp_path) as services:  # no second head is created
        assert len((await services.audit.make_verifier().verify()).problems) > 0


async def make_older(services: Services) -> None:
    """Change it to the state of the previous version: no mark, no head, and seals without a predecessor."""
    sealed = services.core.masters.seal(services.core.instance_key, purpose=INSTANCE_KEY)
    seals = [
        {"of": seal.place, "signed": services.audit.signer.sign(unlinked_seal_message(seal))[1]}
        for seal in await services.storage.audit.seals_from(1, 100)
    ]

    def verb() -> Verb[None]:
        yield from set_value(INSTANCE_KEY, b64encode(sealed).decode())
        yield Statement(lambda: delete(installation).where(installation.c.name == AUDIT_HEAD))()
        resign = update(audit_seals).where(audit_seals.c.place == bindparam("of"))
        yield Statement(lambda: resign.values(signature=bindparam("signed"))).bulk(seals)

    await services.storage.runner.write(verb)


async def delete_records(services: Services, name: str) -> None:
    def verb() -> Verb[None]:
        yield Statement(lambda: delete(installation).where(installation.c.name == name))()

    await services.storage.runner.write(verb)
