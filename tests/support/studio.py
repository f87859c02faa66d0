"""A studio on the running service: a project with an owner, two applications, and people who call endpoints."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from gatehouse.app.callers import service_tokens
from gatehouse.kernel.digests import hmac_sha256
from gatehouse.permissions.model.application import Application
from tests.support.builders import ORIGIN
from tests.support.permission_builders import a_person, a_project, create_application, publish
from tests.support.service import RunningService

FACTOR: Final = "the device"
OWNER: Final = "1000000001"
STRANGER: Final = "1000000002"
PROJECT: Final = "mind_games"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Someone who shows his JWT and factor."""

    user_id: str
    jwt: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.jwt}", "Factor": FACTOR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Studio:
    service: RunningService
    shop: Application  # of the project
    other: Application  # of no project
    owner: Person
    stranger: Person  # who has no rights at all

    async def post(self, path: str, body: Mapping[str, object], headers: Mapping[str, str]) -> httpx2.Response:
        return await self.service.client.post(f"/api/permissions/{path}", json=body, headers=headers)

    async def expect_ok(self, path: str, body: Mapping[str, object], headers: Mapping[str, str]) -> Any:
        """The answer to a request that must succeed."""
        answer = await self.post(path, body, headers)
        assert (answer.status_code, answer.json()["status"]) == (200, "OK"), answer.text
        return answer.json()

    async def expect_error(
        self, status: int, path: str, body: Mapping[str, object], headers: Mapping[str, str]
    ) -> str:
        """What is said to a request that must be refused."""
        answer = await self.post(path, body, headers)
        assert (answer.status_code, answer.json()["status"]) == (status, "ERROR"), answer.text
        said: str = answer.json()["error"]
        return said

    async def service_jwt(self, application: Application | None = None) -> str:
        about = (application or self.shop).application_id
        issued = await service_tokens(self.service.services).issue(about, origin=ORIGIN)
        return issued.jwt

    async def access_key(self, application: Application | None = None) -> str:
        """A new one, made by the owner."""
        about = (application or self.shop).application_id
        ask = {"action": "save", "application_id": about, "data": {}}
        made: str = (await self.expect_ok("accessKey", ask, self.owner.headers))["data"]["hash"]
        return made


def own_record(application: Application, **more: object) -> dict[str, object]:
    """meta/data get of one's own record."""
    return {"action": "get", "application_id": application.application_id, "data": {}, **more}


def signed_request(body: Mapping[str, object], key: str, application: Application) -> tuple[bytes, dict[str, str]]:
    """The bytes of a meta/data request, and the headers that sign them."""
    raw = json.dumps(body).encode()
    message = b"\n".join((b"POST", b"/api/permissions/meta/data", b"", raw))
    return raw, {
        "Signature": hmac_sha256(key.encode(), message).hex(),
        "Application-Id": str(application.application_id),
        "Content-Type": "application/json",
    }


async def a_studio(service: RunningService) -> Studio:
    storage = service.services.storage
    owner, visitor = await create_person(service, OWNER), await create_person(service, STRANGER)
    await publish(storage, a_project(), owners=[OWNER])
    return Studio(
        service=service,
        shop=await create_application(storage, name="Shop", project_id=PROJECT),
        other=await create_application(storage, name="Other"),
        owner=owner,
        stranger=visitor,
    )


async def create_person(service: RunningService, user_id: str) -> Person:
    user = await a_person(service.services.storage, user_id)
    jwt = await service.services.user_tokens.issue(user, auth="login", factor=FACTOR)
    return Person(user_id=user_id, jwt=jwt)
