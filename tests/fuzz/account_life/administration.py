"""What administrators and moderators do to accounts, over the management API."""

from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final

from gatehouse.accounts.model import CENTRAL_APPLICATION
from tests.fuzz.account_life.installation import ROLE, RULE, SHOP, Installation, reload_settings
from tests.fuzz.account_life.model.records import IN_PROJECT, INSTALLATION, SCOPES
from tests.fuzz.account_life.people import BAN_TEXT
from tests.support.studio import FACTOR, PROJECT, Person

ADMINISTRATORS_ACTIONS: Final = ("block", "unblock", "invite", "end_sessions", "reset_factors", "export", "erase")


@dataclass(frozen=True, slots=True, kw_only=True)
class Administration:
    installation: Installation
    administrator: Person
    moderator: Person

    async def post(self, path: str, body: dict[str, Any], by: Person | None = None) -> Any:
        """Send a request; return its response, or None when it was refused."""
        return await self.send(path, body, (by or self.administrator).headers)

    async def send(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> Any:
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

    async def accepted_of(self, jwt: str, factor: str, user_id: str) -> list[str]:
        """Send what only administrators, owners and moderators may; return the paths of what was accepted."""
        shop, person = self.installation.application_id(SHOP), Person(user_id=user_id, jwt=jwt)
        roles = {"roles": [{"role": "administrator"}]}
        requests: list[tuple[str, dict[str, Any]]] = [
            *(("user", {"action": one, "data": {"user_id": user_id}}) for one in ADMINISTRATORS_ACTIONS),
            ("user", {"action": "save", "data": {"user_id": user_id, "email_verified": True, "tags": ["stolen"]}}),
            ("user/tags", {"data": {"user_id": user_id, "tags": ["stolen"]}}),
            *(("user/ban", {"action": "lift", "user_id": user_id, **self.scope_fields(one)}) for one in SCOPES),
            *(
                ("user/ban", {"action": "save", "user_id": user_id, **self.scope_fields(one), "data": {}})
                for one in SCOPES
            ),
            ("meta/data", {"action": "save", "application_id": shop, "data": {"user_id": user_id, "roles": [ROLE]}}),
            ("meta/data", {"action": "save", "application_id": 1, "data": {"user_id": user_id, **roles}}),
            ("project/membership", {"action": "save", "data": self.membership_of(user_id)}),
            ("settings", {"action": "save", "data": {"settings": {"guests.applications": []}}}),
        ]
        headers = person.headers | {"Factor": factor}
        return [path for path, body in requests if await self.send(path, body, headers) is not None]

    async def make_manager(self, user_id: str) -> None:
        body = {"action": "save", "data": self.membership_of(user_id)}
        assert await self.post("project/membership", body) is not None

    def membership_of(self, user_id: str) -> dict[str, Any]:
        return {"id": PROJECT, "users": {user_id: {"roles": ["project_administrator"]}}}

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
        await reload_settings(self.installation.nodes.values())

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
    return replace(person, jwt=await services.accounts.user_tokens.issue(user, auth="login", factor=FACTOR))
