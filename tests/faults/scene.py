"""What stands in the database before a run: people, an OAuth client, a studio; made through the rooms."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from gatehouse.accounts.model import User
from gatehouse.app.house import House, open_house
from gatehouse.audit.events import Event
from gatehouse.kernel.clock import SystemClock
from gatehouse.kernel.ids import new_user_id
from gatehouse.oauth.model import Client as OAuthClient
from gatehouse.oauth.model import Profile
from gatehouse.permissions.model.scope import ROOT
from tests.support import builders
from tests.support.builders import NOW, ORIGIN, a_passkey, a_record
from tests.support.oauth import REDIRECT, basic
from tests.support.permission_builders import a_person, a_project, becoming, create_application, holding, publish
from tests.support.processes import Node, free_port
from tests.support.service import QUICK, settings_for
from tests.support.studio import FACTOR, PROJECT
from tests.support.studio_people import rules
from tests.support.visitor import PASSWORD

ANY_PORT: Final = 8080
# Everything comes from one address, and what is tested is not how much of it is let in.
UNHURRIED: Final = {
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
class Relying:
    """An OAuth client of the off-the-shelf kind, and its secret."""

    client_id: str
    secret: str = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": basic(self.client_id, self.secret)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """`house` is open only while the scene is set: later the nodes are alone."""

    house: House
    url: str
    data: Path
    owner: Person
    administrator: str  # a login
    relying: Relying


def nodes_of(url: str, data: Path, *, flags: Sequence[Sequence[str]], **settings: str) -> list[Node]:
    """Nodes of one service, not started: one address that clients know, one key, one database."""
    base_url = settings.pop("base_url", "") or f"http://localhost:{free_port()}"
    environment = {**QUICK, **UNHURRIED, "GATEHOUSE__SERVER__BASE_URL": base_url, **settings}
    made = [Node(data=data, database_url=url, environment=environment, flags=one) for one in flags]
    for node in made:
        node.base_url = base_url
    return made


@asynccontextmanager
async def a_scene(url: str, data: Path, base_url: str) -> AsyncIterator[Scene]:
    loaded = settings_for(url, data, port=ANY_PORT, GATEHOUSE__SERVER__BASE_URL=base_url)
    async with open_house(loaded, clock=SystemClock(), serving=False, founding=True) as house:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(builders, "RECORDER", house.recorder)  # what the builders record is to be verified too
            yield await furnished(house, url, data)


async def furnished(house: House, url: str, data: Path) -> Scene:
    boss = await with_password(house, "boss")
    await hold(house, boss.user_id, 1, scopes={ROOT: holding("administrator")})
    owner = await someone(house)
    await publish(house.storage, a_project(), owners=[owner.user_id])
    return Scene(
        house=house,
        url=url,
        data=data,
        owner=owner,
        administrator=boss.login or "",
        relying=await a_relying(house),
    )


async def with_password(house: House, nick: str) -> User:
    login = f"{nick}@studio.example"
    return await house.administration.create(login=login, nick=nick, password=PASSWORD, origin=ORIGIN)


async def someone(house: House, **fields: Any) -> Person:
    user = await a_person(house.storage, new_user_id(), **fields)
    return Person(user=user, jwt=await house.user_tokens.issue(user, auth="login", factor=FACTOR))


async def hold(house: House, user_id: str, application_id: int, **fields: Any) -> None:
    """Write a record past every check."""
    await house.storage.user_records.edit_record(application_id, user_id, becoming(**fields), NOW)


async def publishers(house: House, number: int, limit: int) -> Sequence[Person]:
    """People who may publish so many projects each, with the second factor that takes."""
    found = [await someone(house) for _ in range(number)]
    for one in found:
        await hold(house, one.user_id, 1, scopes={ROOT: rules("can_create_projects", params=str(limit))})
        passkey = a_passkey(user_id=one.user_id, credential_id=one.user_id.encode())
        await house.storage.passkeys.add_passkey(passkey, (), a_record(Event.FACTOR_ADDED), ())
    return found


async def application(house: House, name: str, *roles: str) -> int:
    """In the owner's project."""
    made = await create_application(house.storage, *roles, name=name, project_id=PROJECT)
    return made.application_id


async def a_relying(house: House) -> Relying:
    client = OAuthClient(
        client_id="shelf",
        name="Shelf",
        created_at=house.clock.now(),
        profile=Profile.OIDC,
        redirect_uris=(REDIRECT,),
        first_party=True,
        may_exchange=False,
    )
    return Relying(client_id="shelf", secret=await house.clients.create(client, ORIGIN) or "")
