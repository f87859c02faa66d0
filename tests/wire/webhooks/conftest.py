"""A studio whose events go to a receiver on loopback, on each database."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD
from tests.support.service import RunningService, running_service
from tests.support.stub_server import StubServer, run_stub_server
from tests.support.studio import Person, Studio, a_studio, create_administrator

OPERATOR = AuditOrigin(actor="cli:root", address="10.9.8.7")
ALLOWED = {"GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSetup:
    studio: Studio
    receiver: StubServer
    admin: Person

    @property
    def service(self) -> RunningService:
        return self.studio.service

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.receiver.port}/events"

    async def ask(self, action: str, **data: object) -> Any:
        answer = await self.studio.expect_ok("webhook", {"action": action, "data": data}, self.admin.headers)
        return answer.get("data")

    async def expect_error(self, status: int, action: str, **data: object) -> str:
        return await self.studio.expect_error(status, "webhook", {"action": action, "data": data}, self.admin.headers)

    async def create_webhook(self, *events: str, **data: object) -> Any:
        """Create a webhook and return the response; earlier events are sealed before, and not sent to it."""
        await self.service.services.audit.sealer.seal_all()
        return await self.ask("save", **{"url": self.url, "events": events or ["account"], **data})

    async def delivery_log(self, hook: Any, **data: object) -> Any:
        return await self.ask("deliveries", webhook_id=hook["webhook_id"], **data)

    async def deliver_once(self) -> None:
        """Deliver events as the rounds of a serving process do."""
        await self.service.services.audit.sealer.seal_all()
        await self.service.services.webhooks.deliveries.run_once()

    async def create_user(self, login: str = "anna@studio.example") -> User:
        """Create a user, which is an event of the account topic."""
        administration = self.service.services.accounts.administration
        return await administration.create(login=login, nick="Anna", password=PASSWORD, origin=OPERATOR)


@pytest.fixture
async def webhook_setup(migrated_url: str, tmp_path: Path) -> AsyncIterator[WebhookSetup]:
    async with (
        run_stub_server(StubServer()) as receiver,
        running_service(migrated_url, tmp_path, environment=ALLOWED) as service,
    ):
        studio = await a_studio(service)
        yield WebhookSetup(studio=studio, receiver=receiver, admin=await create_administrator(studio))
