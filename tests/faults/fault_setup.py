"""Fill the database before a run with people, an OAuth client and a studio, through the services."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from gatehouse.accounts.model import User
from gatehouse.app.services import Services, open_services
from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.clock import SystemClock
from gatehouse.kernel.ids import new_user_id
from gatehouse.oauth.model import Client as OAuthClient
from gatehouse.oauth.model import ClientProfile
from gatehouse.permissions.model.rules import ROOT
from tests.support import builders
from tests.support.browser import PASSWORD
from tests.support.builders import NOW, ORIGIN, PASSKEY_HOST, a_passkey, a_record
from tests.support.oauth import REDIRECT, basic_auth
from tests.support.permission_builders import (
    a_person,
    a_project,
    create_application,
    holdings_with,
    publish,
    set_fields,
)
from tests.support.processes import Node, free_port
from tests.support.service import FAST_SETTINGS, load_test_settings
from tests.support.studio import FACTOR, PROJECT, holdings_with_rules

ANY_PORT: Final = 8080
# All requests come from one address, and rate limits are not under test.
RELAXED_SETTINGS: Final = {
    "GATEHOUSE__RATES__ENABLED": "false",
    "GATEHOUSE__SESSIONS__FRESH_MINUTES": "120",
    "GATEHOUSE__OAUTH__CODE_SECONDS": "10",
    "GATEHOUSE__GAME__EARLY_POLLS": "100",
}
CODE_SECONDS: Final = 10
DEV: Final = ("--dev",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    user: User
    jwt: str = field(repr=False)

    @property
    def user_id(self) -> str:
        return self.user.user_id

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.jwt}", "Factor": FACTOR}


@dataclass(frozen=True, slots=True, kw_only=True)
class RelyingClient:
    """A standard OpenID Connect client and its secret."""

    client_id: str
    secret: str = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": basic_auth(self.client_id, self.secret)}


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSetup:
    """The initial data of a run; `services` is open only during setup, later only nodes use the database."""

    services: Services
    url: str
    data: Path
    owner: Person
    administrator: str  # a login
    relying: RelyingClient


def nodes_of(url: str, data: Path, *, flags: Sequence[Sequence[str]], **settings: str) -> list[Node]:
    """Nodes of one service, not started: one base_url, one key, one database."""
    base_url = settings.pop("base_url", "") or f"http://localhost:{free_port()}"
    environment = {**FAST_SETTINGS, **RELAXED_SETTINGS, "GATEHOUSE__SERVER__BASE_URL": base_url, **settings}
    created = [Node(data=data, database_url=url, environment=environment, flags=flag) for flag in flags]
    for node in created:
        node.base_url = base_url
    return created


@asynccontextmanager
async def fault_setup(url: str, data: Path, base_url: str) -> AsyncIterator[FaultSetup]:
    loaded = load_test_settings(url, data, port=ANY_PORT, GATEHOUSE__SERVER__BASE_URL=base_url)
    async with open_services(loaded, clock=SystemClock(), serving=False, initialize=True) as services:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(builders, "RECORDER", services.core.recorder)  # so that the builders' records verify too
            yield await fill_installation(services, url, data)


async def fill_installation(services: Services, url: str, data: Path) -> FaultSetup:
    boss = await with_password(services, "boss")
    await write_user_record(services, boss.user_id, 1, scopes={ROOT: holdings_with("administrator")})
    owner = await create_person(services)
    await publish(services.storage, a_project(), owners=[owner.user_id])
    return FaultSetup(
        services=services,
        url=url,
        data=data,
        owner=owner,
        administrator=boss.login or "",
        relying=await create_relying_client(services),
    )


async def with_password(services: Services, nick: str) -> User:
    login = f"{nick}@studio.example"
    return await services.accounts.administration.create(login=login, nick=nick, password=PASSWORD, origin=ORIGIN)


async def create_person(services: Services, **fields: Any) -> Person:
    user = await a_person(services.storage, new_user_id(), **fields)
    return Person(user=user, jwt=await services.accounts.user_tokens.issue(user, auth="login", factor=FACTOR))


async def write_user_record(services: Services, user_id: str, application_id: int, **fields: Any) -> None:
    """Write a record without any check."""
    await services.storage.user_records.edit_record(application_id, user_id, set_fields(**fields), NOW)


async def publishers(services: Services, number: int, limit: int) -> Sequence[Person]:
    """People with a second factor who may each publish this many projects."""
    users = [await create_person(services) for _ in range(number)]
    for user in users:
        await write_user_record(
            services, user.user_id, 1, scopes={ROOT: holdings_with_rules("can_create_projects", params=str(limit))}
        )
        passkey = a_passkey(user_id=user.user_id, credential_id=user.user_id.encode())
        await services.storage.passkeys.add_passkey(
            passkey, (), a_record(AuditEvent.FACTOR_ADDED), (), host=PASSKEY_HOST
        )
    return users


async def create_project_application(services: Services, name: str, *roles: str) -> int:
    """Create an application in the owner's project."""
    application = await create_application(services.storage, *roles, name=name, project_id=PROJECT)
    return application.application_id


async def create_relying_client(services: Services) -> RelyingClient:
    client = OAuthClient(
        client_id="shelf",
        name="Shelf",
        created_at=services.clock.now(),
        profile=ClientProfile.OIDC,
        redirect_uris=(REDIRECT,),
        first_party=True,
        may_exchange=False,
    )
    return RelyingClient(client_id="shelf", secret=await services.oauth.clients.commands.create(client, ORIGIN) or "")
