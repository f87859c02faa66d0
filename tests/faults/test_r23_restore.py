"""The database is restored to an earlier state with PostgreSQL's tools, and nothing ended becomes valid again (R-23).

With our own backup: tests/wire/cli/test_backup.py and tests/adversarial/test_restored_grants.py.
"""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatehouse.accounts.model import SetupLink
from gatehouse.app.services import Services
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.kernel.digests import sha256
from gatehouse.oauth.store import RedeemOutcome, RotationOutcome
from tests.conformance.test_sessions import a_session
from tests.support.builders import ORIGIN, a_client
from tests.support.database_contents import open_services_on, verified_audit_log
from tests.support.oauth import DAY, a_grant
from tests.support.postgres import database_name
from tests.support.postgres_replicas import ArchivingCluster, RestoredCluster
from tests.support.processes import Node
from tests.support.service import FAST_SETTINGS

MOMENT = "ten_minutes_ago"
TEST = AuditOrigin(actor="test")


@pytest.fixture
def original() -> Iterator[ArchivingCluster]:
    with ArchivingCluster() as server:
        yield server
    shutil.rmtree(server.archive)


@pytest.fixture
def copy(original: ArchivingCluster) -> Iterator[RestoredCluster]:
    server = RestoredCluster(original, MOMENT)
    yield server
    server.remove()


class Studio:
    """Create things before the restore point and end them after it."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def fill(self) -> None:
        """Create a person with a session, a redeemed grant, a grant with an unused code, and a link."""
        await self._services.oauth.clients.commands.create(a_client("web"), ORIGIN)
        anna = await self.person("anna")
        for name in ("taken", "waiting"):
            await self._grant(anna, name)
        assert await self.take("taken") is RedeemOutcome.REDEEMED
        ends = self._services.clock.now() + DAY
        session = a_session(await self._services.storage.accounts.user(anna), idle_ends_at=ends, ends_at=ends)
        await self._services.storage.sessions.open_session(session, self._record(AuditEvent.SIGNED_IN), replaces=None)
        await self._services.storage.accounts.put_setup_link(
            SetupLink(digest=b"link", created_at=1, expires_at=self._services.clock.now() + DAY),
            self._record(AuditEvent.SETUP_LINK_MADE),
        )

    async def person(self, name: str) -> str:
        login = f"{name}@studio.example"
        user = await self._services.accounts.administration.create(login=login, nick=name, password=None, origin=TEST)
        return user.user_id

    async def people(self) -> set[str]:
        return {user.nick for user in await self._services.storage.accounts.all_users()}

    async def take(self, name: str) -> RedeemOutcome:
        return await self._services.storage.grants.redeem_code(
            sha256(name),
            self._services.clock.now(),
            generation=1,
            reused=lambda: self._record(AuditEvent.CODE_REUSED),
        )

    async def turn(self, name: str) -> RotationOutcome:
        reused = self._record(AuditEvent.REFRESH_REUSED)
        now = self._services.clock.now()
        return (
            await self._services.storage.grants.rotate(
                grant_id(name), 1, now, kid="key", grace=0, reused=lambda: reused
            )
        ).outcome

    async def end(self) -> None:
        """End things after the restore point."""
        now = self._services.clock.now()
        assert await self.take("waiting") is RedeemOutcome.REDEEMED
        assert await self._services.storage.grants.revoke_grant(
            grant_id("taken"), now, self._record(AuditEvent.GRANT_REVOKED)
        )
        [session] = [await self._services.storage.sessions.find_session(b"cookie", now)]
        assert session is not None
        ended = session.session
        assert await self._services.storage.sessions.end_session(
            ended.user_id, ended.session_id, self._record(AuditEvent.SIGNED_OUT)
        )

    async def revives(self) -> list[str]:
        """Return which of the ended things still work."""
        storage, now = self._services.storage, self._services.clock.now()
        works = {
            "code": await self.take("waiting") is not RedeemOutcome.GONE,
            "refresh token": await self.turn("taken") is not RotationOutcome.GONE,
            "session": await storage.sessions.find_session(b"cookie", now) is not None,
            "link": await storage.accounts.setup_link_is_open(b"link", now),
        }
        return [name for name, does in works.items() if does]

    async def _grant(self, user_id: str, name: str) -> None:
        now = self._services.clock.now()
        grant = a_grant(
            grant_id=grant_id(name),
            user_id=user_id,
            code=sha256(name),
            created_at=now,
            code_ends_at=now + DAY,
            ends_at=now + 90 * DAY,
        )
        assert await self._services.storage.grants.create_grant(grant, self._record(AuditEvent.GRANT_MADE))

    def _record(self, event: AuditEvent) -> AuditRecord:
        return self._services.core.recorder.record(event, TEST, subject="studio")


def grant_id(name: str) -> str:
    return sha256(name).hex()[:32]


async def test_r_23_a_restore_to_an_earlier_moment_keeps_what_was_and_revives_nothing(
    original: ArchivingCluster, copy: RestoredCluster, tmp_path: Path
) -> None:
    url = await original.create_database()
    with Node(data=tmp_path, database_url=url, environment=FAST_SETTINGS):
        async with open_services_on(url, tmp_path) as services:
            studio = Studio(services)
            await studio.fill()
            await asyncio.to_thread(copy.mark_for_recovery)  # while it serves
            await studio.person("bob")
            await original.create_restore_point(MOMENT)
            await studio.end()
            await studio.person("carol")
            await original.create_restore_point("later")
    await asyncio.to_thread(copy.start)
    restored = copy.url(database_name(url))
    with Node(data=tmp_path, database_url=restored, environment=FAST_SETTINGS) as node:
        assert node.terminate() == 0
    async with open_services_on(restored, tmp_path) as services:
        assert await Studio(services).people() == {"anna", "bob"}
        assert await Studio(services).revives() == []
        events = [record.event for record in await verified_audit_log(services)]  # also verifies the chain
        assert events.count("installation.promoted") == 1
