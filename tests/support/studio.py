"""A studio on the running service: a project with an owner, two applications, and people who send requests."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.digests import hmac_sha256
from gatehouse.kernel.ids import new_user_id
from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.condition import GroupCondition
from gatehouse.permissions.model.facts import ScopeHoldings, UserRecord
from gatehouse.permissions.model.project import GrantAction, GroupGrant, ProjectSettings
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.model.rules import NO_END, ROOT, End, Scope
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.store import EditResult
from tests.support.builders import NOW, ORIGIN, PASSKEY_HOST, a_passkey, a_record
from tests.support.database_contents import read_all_tables
from tests.support.permission_builders import (
    GROUP,
    a_group,
    a_person,
    a_project,
    a_role,
    a_user_record,
    create_application,
    holdings_with,
    publish,
    set_fields,
    set_project_fields,
)
from tests.support.service import RunningService

FACTOR: Final = "the device"
OWNER: Final = "1000000001"
OTHER_USER: Final = "1000000002"
PROJECT: Final = "mind_games"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person who sends their JWT and factor."""

    user_id: str
    jwt: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.jwt}", "Factor": FACTOR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Studio:
    service: RunningService
    shop: Application  # in the project
    other: Application  # in no project
    owner: Person
    other_user: Person  # has no permissions

    async def post(self, path: str, body: Mapping[str, object], headers: Mapping[str, str]) -> httpx2.Response:
        return await self.service.client.post(f"/api/permissions/{path}", json=body, headers=headers)

    async def expect_ok(self, path: str, body: Mapping[str, object], headers: Mapping[str, str]) -> Any:
        """Send a request that must succeed; return the response."""
        response = await self.post(path, body, headers)
        assert (response.status_code, response.json()["status"]) == (200, "OK"), response.text
        return response.json()

    async def expect_error(
        self, status: int, path: str, body: Mapping[str, object], headers: Mapping[str, str]
    ) -> str:
        """Send a request that must be refused; return the error."""
        response = await self.post(path, body, headers)
        assert (response.status_code, response.json()["status"]) == (status, "ERROR"), response.text
        error: str = response.json()["error"]
        return error

    async def service_jwt(self, application: Application | None = None) -> str:
        about = (application or self.shop).application_id
        issued = await self.service.services.permissions.service_tokens.issue(about, origin=ORIGIN)
        return issued.jwt

    async def access_key(self, application: Application | None = None) -> str:
        """A new access key, created by the owner."""
        about = (application or self.shop).application_id
        ask = {"action": "save", "application_id": about, "data": {}}
        created: str = (await self.expect_ok("accessKey", ask, self.owner.headers))["data"]["hash"]
        return created


def own_record(application: Application, **more: object) -> dict[str, object]:
    """Get the person's own record with meta/data."""
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
    owner, other_user = await create_person(service, OWNER), await create_person(service, OTHER_USER)
    await publish(storage, a_project(), owners=[OWNER])
    return Studio(
        service=service,
        shop=await create_application(storage, name="Shop", project_id=PROJECT),
        other=await create_application(storage, name="Other"),
        owner=owner,
        other_user=other_user,
    )


async def create_person(service: RunningService, user_id: str) -> Person:
    user = await a_person(service.services.storage, user_id)
    jwt = await service.services.accounts.user_tokens.issue(user, auth="login", factor=FACTOR)
    return Person(user_id=user_id, jwt=jwt)


# More people for a studio, each with exactly the permissions a test is about.


IN_PROJECT: Final = Scope(PROJECT)


def holdings_with_rules(*paths: str, value: bool = True, params: str = "", end: End = NO_END) -> ScopeHoldings:
    """Holdings with these private rules assigned directly."""
    leaf: dict[str, object] = {"value": value}
    if params:
        leaf["params"] = params
    if end.expired:
        leaf["expired"] = end.expired
    tree: dict[str, Any] = {}
    for path in paths:
        *way, last = path.split(".")
        node = tree
        for segment in way:
            node = node.setdefault(segment, {})
        node[last] = leaf
    return ScopeHoldings(private_data=tree)


def secret_document(*application: str, **meta: tuple[str, str]) -> dict[str, object]:
    """The rules of an application, and which parts of its data can be read and written.

    `secret("canSave", roles=("all", "self"))`
    """
    return {
        "application": {rule: {"value": True} for rule in application},
        "meta": {
            part: {"canRead": {"value": reads}, "canWrite": {"value": writes}}
            for part, (reads, writes) in meta.items()
        },
    }


def bearer_headers(token: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **{name.replace("_", "-"): value for name, value in more.items()}}


async def create_person_with(
    studio: Studio,
    scopes: Mapping[Scope, ScopeHoldings] | None = None,
    *,
    secret_data: Tree | None = None,
    application_id: int | None = None,
) -> Person:
    """A new person with these Central rules and roles, and this secret_data in the shop or a given application."""
    person = await create_person(studio.service, new_user_id())
    await write_user_record(studio, person, 1, scopes=scopes or {})
    if secret_data is not None:
        about = studio.shop.application_id if application_id is None else application_id
        await write_user_record(studio, person, about, secret_data=secret_data)
    return person


async def write_user_record(studio: Studio, who: Person, application_id: int, **fields: Any) -> None:
    """Write a record without any check."""
    records = studio.service.services.storage.user_records
    await records.edit_record(application_id, who.user_id, set_fields(**fields), NOW)


async def create_administrator(studio: Studio) -> Person:
    return await create_person_with(studio, {ROOT: holdings_with("administrator")})


async def add_passkey_to(studio: Studio, who: Person) -> Person:
    """Give the person a passkey; return them signed in with it."""
    passkey = a_passkey(user_id=who.user_id, credential_id=who.user_id.encode())
    await studio.service.services.storage.passkeys.add_passkey(
        passkey, (), a_record(AuditEvent.FACTOR_ADDED), (), host=PASSKEY_HOST
    )
    return who


async def audit_records(studio: Studio, event: AuditEvent) -> Sequence[Any]:
    """The audit records of this event, oldest first."""
    rows = await read_all_tables(studio.service.services.storage)
    return [row for row in rows["audit_events"] if row.event == event.value]


# A studio with permissions to query: rules, roles, groups, and people who have them.


P: Final = Scope(PROJECT)
REQUIRE: Final = ConditionMode.REQUIRE
STAFF: Final = "1000000003"
GUEST: Final = "1000000004"
SPELLED_LIKE_NO_PROJECT: Final = ("no-such-project", "MIND GAMES", "Minds", "", "a/b", "ü", "x" * 1_000)


def role_meta(**rules: bool) -> dict[str, object]:
    """The meta of a role: `user_kick=True` sets the private rule user.kick."""
    tree: dict[str, Any] = {}
    for name, value in rules.items():
        head, _, tail = name.partition("_")
        tree.setdefault(head, {})[tail] = {"value": value}
    return {"private_data": tree}


def role_granting(name: str, **fields: Any) -> Role:
    return a_role(name, **{"meta": role_meta(user_kick=True), **fields})


def rule_leaf(*, value: bool = False) -> dict[str, object]:
    return {"value": value, "protected": False, "description": ""}


RULES: Final = {
    "private_data": {"user": {"kick": rule_leaf(), "ban": rule_leaf()}},
    "public_data": {"shown": {"name": rule_leaf()}},
}


async def put_roles(studio: Studio, *roles: Role, **schema: Any) -> None:
    """Set the roles of the shop, and a schema with user.kick, user.ban and public_data.shown.name."""

    def change(state: Any) -> EditResult[Any]:
        rules = {
            "private_data": {"user": {"kick": rule_leaf(), "ban": rule_leaf()}},
            "public_data": {"shown": {"name": rule_leaf()}},
        }
        new = set_fields(**{**rules, **schema})(state.schema).state
        return set_fields(schema=new, roles={role.key: role for role in roles})(state)

    await studio.service.services.storage.applications.edit_schema(studio.shop.application_id, change)


async def set_user_roles(
    studio: Studio, user_id: str, scopes: Mapping[Scope, Sequence[Any]], *, application_id: int = 0, **fields: Any
) -> None:
    """Replace all roles of the user in the shop or in the given application."""
    there = application_id or studio.shop.application_id
    record = a_user_record(user_id, scopes, there, **fields)
    await write_record(studio, record)


async def set_user_holdings(studio: Studio, user_id: str, scopes: Mapping[Scope, ScopeHoldings]) -> None:
    await write_record(studio, UserRecord(application_id=studio.shop.application_id, user_id=user_id, scopes=scopes))


async def write_record(studio: Studio, record: UserRecord) -> None:
    await studio.service.services.storage.user_records.edit_record(
        record.application_id, record.user_id, lambda _: EditResult(record, ()), studio.service.clock.now()
    )


async def put_group(studio: Studio, *users: str, conditions: Sequence[Mapping[str, object]] = ()) -> None:
    rows = tuple(GroupCondition(title="rule", condition=parse_condition(condition)) for condition in conditions)
    group = a_group(project_id=PROJECT, users=users, conditions=rows)
    await studio.service.services.storage.groups.create_group(group, ())


async def grant_roles_to_group(studio: Studio, *roles: str, action: GrantAction = GrantAction.GRANT) -> None:
    """Grant the group these roles of the shop in the project."""
    grants = (GroupGrant(group_id=GROUP, roles=roles, action=action),)
    settings = ProjectSettings(services={studio.shop.application_id: grants})
    await studio.service.services.storage.projects.edit_project(PROJECT, set_project_fields(settings=settings))


async def create_staff(studio: Studio, user_id: str = STAFF) -> Person:
    return await create_person(studio.service, user_id)


def question_body(studio: Studio, **data: object) -> dict[str, object]:
    return {"application_id": studio.shop.application_id, "data": data}
