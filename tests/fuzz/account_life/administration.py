"""What administrators and moderators do to accounts, over the management API."""

from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from gatehouse.accounts.model import CENTRAL_APPLICATION
from tests.fuzz.account_life.installation import ROLE, RULE, SHOP, Installation
from tests.fuzz.account_life.model.records import IN_PROJECT, INSTALLATION
from tests.fuzz.account_life.people import BAN_TEXT
from tests.support.studio import FACTOR, PROJECT, Person


@dataclass(frozen=True, slots=True, kw_only=True)
class Administration:
    installation: Installation
    administrator: Person
    moderator: Person

    async def post(self, path: str, body: dict[str, Any], by: Person | None = None) -> Any:
        """Send a request; return its response, or None when it was refused."""
        headers = (by or self.administrator).headers
        response = await self.installation.studio.post(path, body, headers)
        assert response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR, response.text
        return response.json() if response.status_code == HTTPStatus.OK else None

    async def user(self, action: str, user_id: str, **data: Any) -> Any:
        return await self.post("user", {"action": action, "data": {"user_id": user_id, **data}})

    async def import_account(self, number: int, entry: str) -> bool:
        data = {"lines": [entry], "format": "jsonl", "import_id": f"life {number}"}
        result = await self.post("user/import", {"action": "import", "data": data})
        assert result is not None
        return bool(result["data"]["imported"])

    def scope_fields(self, scope: str) -> dict[str, Any]:
        if scope == INSTALLATION:
            return {}
        if scope == IN_PROJECT:
            return {"project_id": PROJECT}
        return {"application_id": self.installation.application_id(scope)}

    async def ban(self, user_id: str, scope: str, *, by: Person, until: int, device: bool) -> bool:
        data = {"public_text": BAN_TEXT, "until": until, "device": device, "confirm": True}
        body = {"action": "save", "user_id": user_id, **self.scope_fields(scope), "data": data}
        return await self.post("user/ban", body, by) is not None

    async def lift(self, user_id: str, scope: str) -> bool:
        body = {"action": "lift", "user_id": user_id, **self.scope_fields(scope)}
        return await self.post("user/ban", body) is not None

    async def save_record(self, user_id: str, **data: Any) -> None:
        shop = self.installation.application_id(SHOP)
        body = {"action": "save", "application_id": shop, "data": {"user_id": user_id, **data}}
        assert await self.post("meta/data", body) is not None

    async def edit(self, user_id: str, tags: list[str], *, has_role: bool, is_denied: bool) -> None:
        denied = {"user": {"kick": {"value": False}}} if is_denied else {}
        await self.save_record(user_id, roles=[ROLE] if has_role else [], private_data=denied)
        assert await self.post("user/tags", {"data": {"user_id": user_id, "tags": tags}}) is not None

    async def make_manager(self, user_id: str) -> None:
        data = {"id": PROJECT, "users": {user_id: {"roles": ["project_administrator"]}}}
        assert await self.post("project/membership", {"action": "save", "data": data}) is not None

    async def has_role_rule(self, user_id: str) -> bool:
        return await self.check(user_id, self.installation.application_id(SHOP), rule=RULE)

    async def manages_project(self, user_id: str) -> bool:
        return await self.check(user_id, CENTRAL_APPLICATION, rule="project.can_manage_project", project_id=PROJECT)

    async def check(self, user_id: str, application_id: int, **check: str) -> bool:
        body = {"application_id": application_id, "data": {"user_id": user_id, "checks": [check]}}
        answer = await self.post("check", body)
        assert answer is not None
        return bool(answer["data"][0])

    async def admit_guests_to(self, application: str) -> None:
        """Let guests sign in to this application only; to all without one."""
        numbers = [str(self.installation.application_id(application))] if application else []
        body = {"action": "save", "data": {"settings": {"guests.applications": numbers}}}
        assert await self.post("settings", body) is not None

    @classmethod
    async def of(cls, installation: Installation) -> "Administration":
        """The administrator and the moderator, signed in anew: their JWTs end after 90 days."""
        people = [
            await sign_in_again(installation, one) for one in (installation.administrator, installation.moderator)
        ]
        return cls(installation=installation, administrator=people[0], moderator=people[1])


async def sign_in_again(installation: Installation, person: Person) -> Person:
    services = installation.service.services
    user = await services.storage.accounts.user(person.user_id)
    return replace(person, jwt=await services.user_tokens.issue(user, auth="login", factor=FACTOR))
