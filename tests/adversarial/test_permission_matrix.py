"""Checklist PA-12: every act of the permission endpoints with every single permission.

The table below follows interface §5.5 and R5, R6, not the guard. A permission that is expired, or held in a place
where it does not count, gives nothing.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.model.facts import ScopeHoldings
from gatehouse.permissions.model.project import GrantAction, GroupGrant
from gatehouse.permissions.model.rules import NO_END, ROOT, End, Scope, application_scope, group_scope, service_scope
from tests.support.builders import NOW, a_record
from tests.support.permission_builders import (
    a_group,
    a_project,
    a_role,
    connect_application,
    create_application,
    holdings_with,
    publish,
    set_fields,
    set_project_fields,
)
from tests.support.service import running_service
from tests.support.studio import (
    Person,
    Studio,
    a_studio,
    add_passkey_to,
    create_person_with,
    holdings_with_rules,
    write_user_record,
)

Rights = frozenset[str]
SAMPLE: Final = 11  # PostgreSQL runs one in this many pairs
ADMINISTERS: Final = "root:can_administer"

ROOT_RULES: Final = ("can_create_app", "can_remove_apps", "can_publish_services", "can_create_projects")
PROJECT_RULES: Final = (
    *("can_view_project", "can_manage_project", "can_remove_project", "can_manage_applications"),
    "can_manage_groups",
)
APP_RULES: Final = ("can_manage_app_api_keys", "can_modify_schema", "can_manage_users")
SECRETS: Final = ("canCreateJwt", "canModifySchema", "canRead", "canReadSchema", "canSave", "canSeeRoleList")
PARTS: Final = ("roles", "private", "public", "secret")

SINGLE: Final = (
    *(f"root:{rule}" for rule in ROOT_RULES),
    ADMINISTERS,
    *(f"project:{rule}" for rule in PROJECT_RULES),
    *(f"app:{rule}" for rule in APP_RULES),
    "srv:can_manage_service",
    "group:can_manage_group",
    *(f"secret:{rule}" for rule in SECRETS),
    *(f"read:{part}" for part in PARTS),
    *(f"write:{part}" for part in PARTS),
    "role:app_users_manager",  # any role on the application
)
PLACED: Final = tuple(right for right in SINGLE if not right.startswith("root:"))

MANAGES_APPS, SAVES = "project:can_manage_applications", "secret:canSave"
PUBLISHES = "root:can_publish_services"
SERVICE_META = ({PUBLISHES, MANAGES_APPS}, {PUBLISHES, SAVES})
KEYS = ({"secret:canCreateJwt"}, {"app:can_manage_app_api_keys"})
MODIFIES = ({"secret:canModifySchema"}, {"app:can_modify_schema"})
READS_SCHEMA = ({"secret:canReadSchema"}, {"app:can_modify_schema"})
USERS = ({"app:can_manage_users"}, {"role:app_users_manager"})

TABLE: Final[Mapping[str, tuple[set[str], ...]]] = {
    "application get": ({MANAGES_APPS}, {"secret:canRead"}, {"role:app_users_manager"}),
    "application save": ({MANAGES_APPS}, {SAVES}),
    "application create": ({"root:can_create_app"},),
    "application create in project": ({MANAGES_APPS},),
    "application delete": ({"root:can_remove_apps"}, {MANAGES_APPS}),
    "application service_meta": SERVICE_META,
    "application/tags": SERVICE_META,
    "application/keys get": KEYS,
    "application/keys save": KEYS,
    "application/keys delete": KEYS,
    "accessKey get": KEYS,
    "accessKey save": KEYS,
    "accessKey delete": KEYS,
    "meta/schema get": READS_SCHEMA,
    "meta/schema save": MODIFIES,
    "roles get": (*READS_SCHEMA, {"secret:canSeeRoleList"}),
    "roles save": (*MODIFIES, {MANAGES_APPS}),
    "roles save protected": MODIFIES,
    "roles delete": (*MODIFIES, {MANAGES_APPS}),
    "publish": ({"root:can_create_projects"},),
    "project get": ({"project:can_view_project"},),
    "project save": ({"project:can_manage_project"},),
    "project/tags": ({"project:can_manage_project"},),
    "project/membership get": ({"project:can_view_project"},),
    "project/membership save": ({"project:can_manage_project"},),
    "group get": ({"group:can_manage_group"},),
    "group create": ({"project:can_manage_groups"},),
    "group save": ({"project:can_manage_groups"},),
    "group delete": ({"project:can_manage_groups"},),
    "group/access": ({"group:can_manage_group"},),
    "group/tags": ({"project:can_manage_groups"},),
    "meta/data get list": ({"read:private"}, {"read:public"}, *USERS),
    "meta/data get list_short": ({"read:private"}, {"read:public"}, *USERS),
    "meta/data get roles": ({"read:roles"}, *USERS),
    "meta/data get tree": (*({f"read:{part}"} for part in PARTS), *USERS),
    "meta/data save roles": ({"write:roles"}, *USERS),
    "meta/data save private_data": ({"write:private"}, *USERS),
    "meta/data save public_data": ({"write:public"}, *USERS),
    "meta/data save secret_data": ({"write:secret"},),
    "meta/data save login": ({"write:secret"},),
    "meta/data save projectAccess": ({"project:can_manage_project"},),
    "meta/data save nothing in projectAccess": ({"project:can_manage_project"}, {"write:private"}, *USERS),
    "user/info": (set(),),
    "user/tags": (),
    "user/purchases": (),
    "project delete": ({"project:can_remove_project"},),  # the last one, because it deletes the project
}


def is_open(act: str, rights: Rights) -> bool:
    return any(row <= rights for row in TABLE[act]) or ADMINISTERS in rights


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A project with an application and a group."""

    project_id: str
    application_id: int
    group_id: str

    @property
    def project(self) -> Scope:
        return Scope(self.project_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    name: str
    person: Person | None  # None: no credentials
    rights: Rights = frozenset()  # those that count
    place: Place  # the place they send requests about


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixSetup:
    studio: Studio
    callers: list[Caller]
    numbers: Any = field(default_factory=count)


# -- the requests -------------------------------------------------------------------------------------

Request = tuple[str, dict[str, object]]
Ask = Callable[["MatrixSetup", Place, bool], Awaitable[Request]]


def ask_about_application(path: str, action: str, **data: object) -> Ask:
    """A request to an endpoint that takes the application beside the data."""

    async def ask(_setup: MatrixSetup, place: Place, _opens: bool) -> Request:  # noqa: FBT001
        return path, {"action": action, "application_id": place.application_id, "data": data}

    return ask


def of_user(action: str, **data: object) -> Ask:
    async def ask(setup: MatrixSetup, place: Place, _opens: bool) -> Request:  # noqa: FBT001
        user = {"user_id": setup.studio.other_user.user_id}
        return "meta/data", {"action": action, "application_id": place.application_id, "data": {**user, **data}}

    return ask


def of_application(action: str, **data: object) -> Ask:
    async def ask(_setup: MatrixSetup, place: Place, _opens: bool) -> Request:  # noqa: FBT001
        return "application", {"action": action, "data": {"application_id": place.application_id, **data}}

    return ask


def of_project(path: str, action: str | None, **data: object) -> Ask:
    async def ask(_setup: MatrixSetup, place: Place, _opens: bool) -> Request:  # noqa: FBT001
        named = {} if action is None else {"action": action}
        return path, {**named, "data": {"id": place.project_id, **data}}

    return ask


def of_group(path: str, action: str | None, **data: object) -> Ask:
    async def ask(_setup: MatrixSetup, place: Place, _opens: bool) -> Request:  # noqa: FBT001
        named = {} if action is None else {"action": action}
        return path, {**named, "group_id": place.group_id, "data": data}

    return ask


async def create(setup: MatrixSetup, _place: Place, _opens: bool) -> Request:  # noqa: FBT001
    return "application", {"action": "save", "data": {"name": f"New {next(setup.numbers)}"}}


async def create_in_project(setup: MatrixSetup, place: Place, _opens: bool) -> Request:  # noqa: FBT001
    data = {"name": f"New {next(setup.numbers)}", "project_id": place.project_id}
    return "application", {"action": "save", "data": data}


async def describe(setup: MatrixSetup, place: Place, _opens: bool) -> Request:  # noqa: FBT001
    meta = {"env": f"env {next(setup.numbers)}"}
    return "application", {"action": "save", "data": {"application_id": place.application_id, "service_meta": meta}}


async def delete_application(setup: MatrixSetup, place: Place, opens: bool) -> Request:  # noqa: FBT001
    """Callers with permission get an application to delete that nothing depends on."""
    number = place.application_id
    if opens:
        storage = setup.studio.service.services.storage
        name = f"Spare {next(setup.numbers)}"
        number = (await create_application(storage, name=name, project_id=place.project_id)).application_id
    return "application", {"action": "delete", "data": {"application_id": number}}


async def delete_group(setup: MatrixSetup, place: Place, opens: bool) -> Request:  # noqa: FBT001
    group_id = place.group_id
    if opens:
        number = next(setup.numbers)
        group_id = f"{number:024x}"
        spare = a_group(group_id, f"Spare {number}", project_id=place.project_id)
        await setup.studio.service.services.storage.groups.create_group(spare, [a_record()])
    return "group", {"action": "delete", "group_id": group_id}


async def create_group(setup: MatrixSetup, place: Place, _opens: bool) -> Request:  # noqa: FBT001
    data = {"project_id": place.project_id, "title": f"New {next(setup.numbers)}"}
    return "group", {"action": "save", "data": data}


async def get_groups(_setup: MatrixSetup, place: Place, _opens: bool) -> Request:  # noqa: FBT001
    return "group", {"action": "get", "data": {"project_id": place.project_id}}


async def publish_project(setup: MatrixSetup, _place: Place, _opens: bool) -> Request:  # noqa: FBT001
    return "publish", {"project": f"New {next(setup.numbers)}", "user": setup.studio.owner.user_id}


async def project_access(setup: MatrixSetup, place: Place, _opens: bool) -> Request:  # noqa: FBT001
    access = {place.project_id: {"private_data": {f"x{next(setup.numbers)}": {"value": True}}}}
    data = {"user_id": setup.studio.other_user.user_id, "private_data": {"projectAccess": access}}
    return "meta/data", {"action": "save", "application_id": place.application_id, "data": data}


async def nothing_in_projects(setup: MatrixSetup, place: Place, _opens: bool) -> Request:  # noqa: FBT001
    """Save empty holdings for a person without any: it changes nothing, but it is a save."""
    data = {"user_id": setup.studio.owner.user_id, "private_data": {"projectAccess": {place.project_id: {}}}}
    return "meta/data", {"action": "save", "application_id": place.application_id, "data": data}


async def info(_setup: MatrixSetup, _place: Place, _opens: bool) -> Request:  # noqa: FBT001
    return "user/info", {}


def of_account(path: str, fields: str) -> Ask:
    async def ask(setup: MatrixSetup, _place: Place, _opens: bool) -> Request:  # noqa: FBT001
        return path, {"data": {"user_id": setup.studio.other_user.user_id, fields: []}}

    return ask


async def tag_application(_setup: MatrixSetup, place: Place, _opens: bool) -> Request:  # noqa: FBT001
    return "application/tags", {"application_id": place.application_id, "data": {"tags": []}}


ASKS: Final[Mapping[str, Ask]] = {
    "application get": of_application("get"),
    "application save": of_application("save", description="saved"),
    "application create": create,
    "application create in project": create_in_project,
    "application delete": delete_application,
    "application service_meta": describe,
    "application/tags": tag_application,
    "application/keys get": ask_about_application("application/keys", "get"),
    "application/keys save": ask_about_application("application/keys", "save", public_key="none"),
    "application/keys delete": ask_about_application("application/keys", "delete", id="none"),
    "accessKey get": ask_about_application("accessKey", "get"),
    "accessKey save": ask_about_application("accessKey", "save"),
    "accessKey delete": ask_about_application("accessKey", "delete", id="none"),
    "meta/schema get": ask_about_application("meta/schema", "get"),
    "meta/schema save": ask_about_application("meta/schema", "save"),
    "roles get": ask_about_application("roles", "get"),
    "roles save": ask_about_application("roles", "save", name="saved"),
    "roles save protected": ask_about_application("roles", "save", name="guard", protected=True),
    "roles delete": ask_about_application("roles", "delete", name="unheard_of"),
    "publish": publish_project,
    "project get": of_project("project", "get"),
    "project save": of_project("project", "save", description="saved"),
    "project/tags": of_project("project/tags", None, tags=[]),
    "project/membership get": of_project("project/membership", "get"),
    "project/membership save": of_project("project/membership", "save"),
    "group get": get_groups,
    "group create": create_group,
    "group save": of_group("group", "save", description="saved"),
    "group delete": delete_group,
    "group/access": of_group("group/access", None, users=[]),
    "group/tags": of_group("group/tags", None, tags=["project"]),
    **{f"meta/data get {kind}": of_user("get", type=kind) for kind in ("list", "list_short", "roles", "tree")},
    "meta/data save roles": of_user("save", roles=[]),
    "meta/data save private_data": of_user("save", private_data={}),
    "meta/data save public_data": of_user("save", public_data={}),
    "meta/data save secret_data": of_user("save", secret_data={}),
    "meta/data save login": of_user("save", login={}),
    "meta/data save projectAccess": project_access,
    "meta/data save nothing in projectAccess": nothing_in_projects,
    "user/info": info,
    "user/tags": of_account("user/tags", "tags"),
    "user/purchases": of_account("user/purchases", "purchases"),
    "project delete": of_project("project", "delete"),
}


# -- the callers --------------------------------------------------------------------------------------


def scope_of(kind: str, place: Place) -> Scope:
    return {
        "root": ROOT,
        "project": place.project,
        "app": application_scope(place.project_id, place.application_id),
        "srv": service_scope(place.project_id, place.application_id),
        "group": group_scope(place.project_id, place.group_id),
        "role": application_scope(place.project_id, place.application_id),
    }[kind]


def central_holdings(rights: Rights, place: Place, end: End, at: Scope | None) -> dict[Scope, ScopeHoldings]:
    """The Central holdings for these permissions, each in its own scope, or all of them in one."""
    rules_by_scope: dict[Scope, list[str]] = {}
    roles: dict[Scope, ScopeHoldings] = {}
    for kind, _, name in (right.partition(":") for right in sorted(rights)):
        if kind in ("secret", "read", "write"):
            continue
        scope = at or scope_of(kind, place)
        if kind == "role":
            roles[scope] = holdings_with(replace(holdings_with(name).roles[0], end=end))
        else:
            rules_by_scope.setdefault(scope, []).append(name if kind == "root" else f"{kind}.{name}")
    holdings = {scope: holdings_with_rules(*paths, end=end) for scope, paths in rules_by_scope.items()}
    return holdings | {
        scope: replace(holdings.get(scope, ScopeHoldings()), roles=one.roles) for scope, one in roles.items()
    }


def secret_part(rights: Rights, end: End) -> dict[str, Any]:
    ends = {"expired": end.expired} if end.expired else {}
    tree: dict[str, Any] = {"application": {}, "meta": {}}
    for kind, _, name in (right.partition(":") for right in sorted(rights)):
        if kind == "secret":
            tree["application"][name] = {"value": True, **ends}
        elif kind in ("read", "write"):
            verb = "canRead" if kind == "read" else "canWrite"
            tree["meta"].setdefault(name, {})[verb] = {"value": "all", **ends}
    return tree


async def holder(
    studio: Studio, rights: Rights, place: Place, *, end: End = NO_END, at: Scope | None = None
) -> Person:
    return await create_person_with(
        studio,
        central_holdings(rights, place, end, at),
        secret_data=secret_part(rights, end),
        application_id=place.application_id,
    )


async def a_place(studio: Studio, title: str, group_id: str) -> Place:
    """A place in which no secret_data opens anything by default."""
    storage = studio.service.services.storage
    project = await publish(storage, a_project(title), owners=[studio.owner.user_id])
    application = await create_application(storage, name="Application", project_id=project.project_id)
    await storage.applications.edit_schema(
        application.application_id,
        lambda model: set_fields(schema=replace(model.schema, secret_data=closed_schema()))(model),
    )
    await storage.projects.edit_project(project.project_id, connect_application(application.application_id))
    await storage.groups.create_group(a_group(group_id, project_id=project.project_id), [a_record()])
    return Place(project_id=project.project_id, application_id=application.application_id, group_id=group_id)


def closed_schema() -> dict[str, Any]:
    extents = {"canRead": {"value": "none"}, "canWrite": {"value": "none"}}
    return {"application": {}, "meta": dict.fromkeys(PARTS, extents)}


async def by_condition(studio: Studio, rule: str, here: Place) -> Caller:
    """A root rule through a role of application 1 that applies by its condition."""
    who = await create_person_with(studio)
    role = a_role(
        f"by_condition_{rule}",
        1,
        protected=True,
        meta={"private_data": {rule: {"value": True}}},
        condition=parse_condition({"uid": [who.user_id]}),
    )
    storage = studio.service.services.storage
    await storage.applications.edit_schema(1, lambda model: set_fields(roles={**model.roles, role.key: role})(model))
    return Caller(name=f"{rule} by condition", person=who, rights=frozenset({f"root:{rule}"}), place=here)


async def by_group(studio: Studio, here: Place) -> Caller:
    """The application's own rules with the names of Central rules, granted to their group: they open nothing."""
    storage, who = studio.service.services.storage, await create_person_with(studio)
    names = [f"project.{rule}" for rule in PROJECT_RULES] + ["can_administer", "app.can_modify_schema"]
    role = a_role("namesake", here.application_id, meta={"private_data": holdings_with_rules(*names).private_data})
    await storage.applications.edit_schema(
        here.application_id, lambda model: set_fields(roles={**model.roles, role.key: role})(model)
    )
    members = a_group("c" * 24, "Members", project_id=here.project_id, users=(who.user_id,))
    await storage.groups.create_group(members, [a_record()])
    grant = GroupGrant(group_id=members.group_id, roles=("namesake",), action=GrantAction.GRANT)
    await storage.projects.edit_project(here.project_id, connect_application(here.application_id, grant))
    return Caller(name="namesakes by group", person=who, place=here)


async def a_matrix_setup(studio: Studio) -> MatrixSetup:
    storage = studio.service.services.storage
    await add_passkey_to(studio, studio.owner)
    here = await a_place(studio, "Here", "a" * 24)
    there = await a_place(studio, "There", "b" * 24)
    fallen = await a_place(studio, "Fallen", "d" * 24)
    callers = [
        Caller(name="no_one", person=None, place=here),
        Caller(name="no right", person=await create_person_with(studio), place=here),
    ]
    singles = [frozenset({right}) for right in SINGLE]
    pairs = [frozenset({PUBLISHES, MANAGES_APPS}), frozenset({PUBLISHES, SAVES})]
    for rights in (*singles, *pairs):
        who = await holder(studio, rights, here)
        callers.append(Caller(name=" and ".join(sorted(rights)), person=who, rights=rights, place=here))
    for right in (*(f"app:{rule}" for rule in APP_RULES), "group:can_manage_group"):
        rights = frozenset({right})
        who = await holder(studio, rights, here, at=here.project)
        callers.append(Caller(name=f"{right} in the project", person=who, rights=rights, place=here))
    everything, placed = frozenset(SINGLE), frozenset(PLACED)
    central = frozenset(right for right in PLACED if right.partition(":")[0] in ("project", "app", "srv", "group"))
    callers += [
        Caller(name="all, there", person=await holder(studio, placed, there), place=here),
        Caller(name="all, expired", person=await holder(studio, everything, here, end=End(expired=NOW)), place=here),
        Caller(name="all, at the root", person=await holder(studio, central, here, at=ROOT), place=here),
        Caller(name="all, in a removed project", person=await holder(studio, placed, fallen), place=fallen),
        await by_group(studio, here),
        *[await by_condition(studio, rule, here) for rule in (*ROOT_RULES, "can_administer")],
    ]
    await write_user_record(studio, studio.other_user, here.application_id)
    await storage.projects.edit_project(fallen.project_id, set_project_fields(removed=True))
    return MatrixSetup(studio=studio, callers=callers)


# -- the matrix ---------------------------------------------------------------------------------------


async def outcome(setup: MatrixSetup, act: str, caller: Caller) -> str:
    path, body = await ASKS[act](setup, caller.place, is_open(act, caller.rights) and caller.person is not None)
    headers = {} if caller.person is None else caller.person.headers
    response = await setup.studio.post(path, body, headers)
    if response.status_code == 401:
        return "unknown"
    assert response.status_code in (200, 400, 403, 404, 409), f"{act} by {caller.name}: {response.text}"
    shut_out = response.status_code == 403
    if act == "group get" and response.status_code == 200:
        shut_out = caller.place.group_id not in [group["id"] for group in response.json()["data"]["groups"]]
    return "closed" if shut_out else "open"


def expected_outcome(act: str, caller: Caller) -> str:
    if caller.person is None:
        return "unknown"
    return "open" if is_open(act, caller.rights) else "closed"


@pytest.fixture
async def setup(installed_url: str, tmp_path: Path) -> AsyncIterator[MatrixSetup]:
    environment = {"GATEHOUSE__RATES__ADMIN": "1000000"}
    async with running_service(installed_url, tmp_path, environment=environment) as service:
        yield await a_matrix_setup(await a_studio(service))


def test_every_action_in_the_table_has_a_request() -> None:
    assert ASKS.keys() == TABLE.keys()


async def test_pa_12_every_act_is_open_to_exactly_those_the_table_names(
    setup: MatrixSetup, installed_url: str
) -> None:
    # Administrators last: one of them deletes the project that the others need.
    callers = sorted(setup.callers, key=lambda caller: ADMINISTERS in caller.rights)
    pairs = [(act, caller) for act in TABLE for caller in callers]
    if installed_url.startswith("postgres"):
        pairs = pairs[::SAMPLE]
    wrong = []
    for act, caller in pairs:
        result = await outcome(setup, act, caller)
        if result != expected_outcome(act, caller):
            wrong.append(f"{act} by {caller.name}: {result}, not {expected_outcome(act, caller)}")
    assert wrong == []
