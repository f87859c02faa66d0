"""Checklist PA-16, PA-17: every operation that takes a token or key, asked by every kind of caller.

The expected answers are in operations_by_caller.txt. The operations are read from the endpoints and the API document,
so a new one needs a line there and a request here.
"""

import re
import typing
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import UnionType
from typing import Any, Final

import httpx2
import msgspec
import pytest
from msgspec.structs import replace

from gatehouse.app.api_endpoints import key_set_endpoints, permission_endpoints
from gatehouse.app.management import LIST_ACTIONS
from gatehouse.audit.events import AuditEvent
from gatehouse.keys.key_objects import public_pem
from gatehouse.oauth.client_document import ClientPatch
from gatehouse.oauth.model import ClientProfile
from gatehouse.permissions.authentication import access_keys
from gatehouse.permissions.commands.app_schemas import SCHEMA_ROOTS
from gatehouse.permissions.commands.applications import ApplicationDraft
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.rules import ROOT, application_scope, group_scope
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.rights import guard
from gatehouse.permissions.rights.guard import Operation
from gatehouse.throttle.limits import AttemptLimit
from gatehouse.web.api.health import Readiness
from gatehouse.web.api.permissions.settings import PartName
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.server.server import ShutdownSignal
from tests.adversarial.test_permission_matrix import closed_schema
from tests.support.builders import ORIGIN, a_record
from tests.support.guests import Device, turn_guests_on
from tests.support.oauth import REDIRECT, TOKEN, a_native_client, an_oidc_client, basic_auth, success_body
from tests.support.permission_builders import (
    GROUP,
    a_group,
    a_project,
    create_application,
    holdings_with,
    publish,
    set_fields,
    set_project_fields,
)
from tests.support.service import RunningService, running_service
from tests.support.studio import (
    FACTOR,
    IN_PROJECT,
    PROJECT,
    Person,
    Studio,
    a_studio,
    add_passkey_to,
    audit_records,
    bearer_headers,
    create_administrator,
    create_person,
    create_person_with,
    holdings_with_rules,
    put_group,
    secret_document,
    write_user_record,
)
from tests.support.tokens import application_private_key

EXCHANGE_TOKEN: Final = "/proxy/oauth/exchangeToken"
TABLE_FILE: Final = Path(__file__).with_name("operations_by_caller.txt")
ONLY_ADMINISTRATORS: Final = "can_administer"
IN_PERSON: Final = ("adm", "cen")  # who may do what only can_administer opens
OPEN, LESS, CLOSED, UNKNOWN, UNNAMED = "+", ".", "-", "!", "?"
OK: Final = 200
BY_STATUS: Final = {OK: OPEN, 404: OPEN, 409: OPEN, 400: UNNAMED, 401: UNKNOWN, 403: CLOSED}
PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
ASKING_ORDER: Final = (UNKNOWN, CLOSED, UNNAMED, LESS, OPEN)  # those who change something come last
RESOURCE: Final = "https://api.mind.example/matches"
API: Final = {"resource": RESOURCE, "scopes": {"match.read": {"title": "Read matches"}}}
CREDENTIALS: Final = frozenset({"userJwt", "accessToken", "accessKey"})  # of the API document; clients have their own
IGNORED: Final = frozenset({"removed", "created", "updated_at", "tags", "author"})  # in every save (R6)
# Operations of the guard that only screens of the console ask about.
CONSOLE_OPERATIONS: Final = frozenset({Operation.SERVICE_MANAGE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    operation: str  # "application save: name": the path, the action, and what is special about the request
    right: str
    cells: Mapping[str, str]  # by caller

    @property
    def endpoint(self) -> str:
        """The path and the action."""
        return self.operation.partition(":")[0]


def read_table() -> Sequence[Line]:
    lines = [line for line in TABLE_FILE.read_text().splitlines() if line and not line.startswith("#")]
    rows = [tuple(part.strip() for part in line.split("|")) for line in lines]
    callers = rows[0][2].split()
    return [
        Line(operation=operation, right=right, cells=dict(zip(callers, cells.split(), strict=True)))
        for operation, right, cells in rows[1:]
    ]


TABLE: Final = read_table()


# -- the requests -------------------------------------------------------------------------------------

# Texts in braces stand for values of the world, {n} for a number that was not used before.
ABOUT_SHOP: Final = {"application_id": "{app}"}
SHOP: Final = {"data": {"application_id": "{app}"}}
OF_PROJECT: Final = {"data": {"id": "{project}"}}
OF_GROUP: Final = {"group_id": "{group}"}
OF_USER: Final = {"data": {"user_id": "{user}"}}
NEW_USER: Final = {"data": {"login": "user{n}@studio.example", "nick": "Kim"}}
IMPORTED: Final = {"data": {"lines": ["login,nick,email_verified", "user{n}@studio.example,Kim,true"]}}
OF_HOOK: Final = {"data": {"webhook_id": "none"}}
QUESTION: Final = "private_data.user.kick"
NEW_CLIENT: Final = {"client_id": "client-{n}", "name": "New", "profile": "oidc", "redirect_uris": [REDIRECT]}
NATIVE: Final = {"profile": "native"}
RULES: Final = {"user": {"kick": {"value": False, "protected": False, "description": ""}}}


def application_fields(**data: object) -> dict[str, object]:
    return {"data": {"application_id": "{app}", **data}}


def about_shop(**data: object) -> dict[str, object]:
    return {**ABOUT_SHOP, "data": data}


def record_fields(**data: object) -> dict[str, object]:
    return about_shop(user_id="{user}", **data)


def new_client(**data: object) -> dict[str, object]:
    return about_shop(**{**NEW_CLIENT, **data})


def ban_requests() -> Mapping[str, Mapping[str, object]]:
    """The requests of user/ban in each scope, by action and scope."""
    scopes: dict[str, dict[str, object]] = {
        "application": ABOUT_SHOP,
        "project": {"project_id": "{project}"},
        "installation": {},
    }
    return {
        f"user/ban {action}: {scope}": {"user_id": "{player}", **place, **data}
        for action, data in {"save": {"data": {"reason": "x"}}, "lift": {}, "list": {}}.items()
        for scope, place in scopes.items()
    } | {"user/ban save: administrator": {"user_id": "{administrator}", **ABOUT_SHOP, "data": {"reason": "x"}}}


CLIENT_FIELDS: Final[Mapping[str, dict[str, object]]] = {
    "profile": NATIVE,
    "redirect_uris": {"redirect_uris": [REDIRECT]},
    "post_logout_uris": {"post_logout_uris": [REDIRECT]},
    "client_uri": {"client_uri": "https://shop.example/"},
    "policy_uri": {"policy_uri": "https://shop.example/"},
    "tos_uri": {"tos_uri": "https://shop.example/"},
    "scopes": {"scopes": ["openid"]},
    "origins": {"origins": ["https://shop.example"]},
    "backchannel_logout_uri": {"backchannel_logout_uri": "https://shop.example/out"},
    "jwks": {"jwks": None},
    "workload_identities": {"workload_identities": None},
    "claims": {"claims": {"roles": {"application_id": "{app}", "told": "roles"}}},
    "claims_in_id_token": {"claims_in_id_token": True},
    "token_settings": {"token_settings": {"access_seconds": 600}},
    "device_grant": {"device_grant": True},
    "explain_errors": {"explain_errors": True},
    "require_pkce": {"require_pkce": False},
    "may_act": {"may_act": True},
    "may_act_for_others": {"may_act": True, "may_act_for_others": True},
    "require_pushed_authorization_requests": {"require_pushed_authorization_requests": True},
    "public": {"public": True},
    "machine": {"machine": True, "redirect_uris": []},
    "logo": {"logo": None},
    "logo_uri": {"logo_uri": None},
    "redirect_hosts": {**NATIVE, "redirect_hosts": ["shop.example"]},
    "game_id_token": {"game_id_token": True},
    "first_party": {"first_party": True},
    "may_exchange": {"may_exchange": True},
}
# Clients that only administrators may change (R9).
PRIVILEGED: Final[Mapping[str, dict[str, object]]] = {
    "trusted-oidc": {"first_party": True},
    "trusted-native": {**NATIVE, "first_party": True, "may_exchange": False},
    "hosts-native": {**NATIVE, "redirect_hosts": ["shop.example"], "may_exchange": False},
    "exchange-oidc": {"may_exchange": True},
    "acting-oidc": {"may_act": True, "may_act_for_others": True},
    "claims-oidc": {"claims": {"roles": {"application_id": "{elsewhere}", "told": "roles"}}},
    "plain-scheme": {"redirect_uris": ["oc://shop.example"]},
    "claims-native": {
        **NATIVE,
        "may_exchange": False,
        "claims": {"roles": {"application_id": "{elsewhere}", "told": "roles"}},
    },
}
SETTINGS_PARTS: Final = typing.get_args(PartName)

REQUESTS: Final[Mapping[str, Mapping[str, object]]] = {
    "application get": SHOP,
    "application list": {},
    "application save: name": application_fields(name="Shop"),
    "application save: description": application_fields(description="saved {n}"),
    "application save: project_id": application_fields(project_id="{project}"),
    "application save: settings": application_fields(settings={"restricted_domains": []}),
    "application save: api": application_fields(api=API),
    "application save: logo": application_fields(logo=None),
    "application save: logo_uri": application_fields(logo_uri=None),
    "application save: move": application_fields(project_id="annex"),
    "application save: move to a foreign project": application_fields(project_id="elsewhere"),
    "application save: service_meta": application_fields(service_meta={"env": "env {n}"}),
    "application save: protected_sites": application_fields(
        protected_sites={"https://site-{n}.example": "private_data.user.kick"}
    ),
    "application save: create": {"data": {"name": "New {n}"}},
    "application save: create in project": {"data": {"name": "New {n}", "project_id": "{project}"}},
    "application delete": SHOP,
    "application/tags": {**ABOUT_SHOP, "data": {"tags": []}},
    "application/keys get": about_shop(),
    "application/keys save": about_shop(public_key="{public_key}"),
    "application/keys delete": about_shop(id="none"),
    "application/publicKeys/{appID}": {},
    "application/publicKey/{keyID}": {},
    "keys": {},
    "exchangeJwt": {},
    "user/info": {},
    "user/tags": {"data": {"user_id": "{user}", "tags": []}},
    "user/purchases": {"data": {"user_id": "{user}", "purchases": []}},
    "user get: everywhere": OF_USER,
    "user get: in application": {**ABOUT_SHOP, **OF_USER},
    "user check_sign_in: everywhere": OF_USER,
    "user check_sign_in: in application": {**ABOUT_SHOP, **OF_USER},
    "user search: everywhere": {"data": {"query": "Anna"}},
    "user search: in application": about_shop(query="Anna"),
    "user search: by address": {"data": {"filters": {"login": "anna@studio.example"}}},
    "user create": NEW_USER,
    "user invite": NEW_USER,
    "user invitations: of an account": OF_USER,
    "user invitations: into a project": {"data": {"project_id": "{project}"}},
    "user withdraw: of an account": {"data": {"user_id": "{user}", "invitation_id": "none"}},
    "user withdraw: into a project": {"data": {"project_id": "{project}", "invitation_id": "none"}},
    "user save": {"data": {"user_id": "{user}", "nick": "Anna"}},
    **{f"user {action}": OF_USER for action in ("block", "unblock", "end_sessions", "export", "erase")},
    "user reset_factors": {"data": {"user_id": "{user}", "reason": "lost"}},
    "user open_phone": {"data": {"user_id": "{user}", "reason": "mistyped"}},
    **ban_requests(),
    "user/import plan": IMPORTED,
    "user/import import": IMPORTED,
    "user/import invite": {"data": {"import_id": "none"}},
    **{f"user/{part}": OF_USER for part in ("sessions get", "methods get", "roles get", "grants get", "grants end")},
    **{f"meta/data get: {kind}": record_fields(type=kind) for kind in ("list", "list_short", "tree", "roles")},
    "meta/data save: roles": record_fields(roles=[]),
    "meta/data save: private_data": record_fields(private_data={}),
    "meta/data save: public_data": record_fields(public_data={}),
    "meta/data save: projectAccess": record_fields(
        private_data={"projectAccess": {"{project}": {"private_data": {"rule{n}": {"value": True}}}}}
    ),
    "meta/data save: secret_data": record_fields(secret_data={}),
    "meta/data save: login": record_fields(login={}),
    "meta/data save: administrator": {
        "application_id": 1,
        "data": {"user_id": "{user}", "roles": [{"name": "administrator"}]},
    },
    "publish": {"project": "New {n}", "user": "{publisher}"},
    "project get": OF_PROJECT,
    "project list": {},
    "project save": {"data": {"id": "{project}", "description": "saved {n}"}},
    "project delete": OF_PROJECT,
    "project erase": OF_PROJECT,
    "project/tags": {"data": {"id": "{project}", "tags": []}},
    "project/membership get": OF_PROJECT,
    "project/membership save": {"data": {"id": "{project}", "users": {}}},
    "project/membership save: owner": {
        "data": {"id": "{project}", "users": {"{user}": {"roles": ["project_owner"]}}}
    },
    "group get": {"data": {"project_id": "{project}"}},
    "group list": {},
    "group save: create": {"data": {"project_id": "{project}", "title": "New {n}"}},
    "group save": {**OF_GROUP, "data": {"description": "saved {n}"}},
    "group delete": {"group_id": "{spare_group}"},
    "group/access": {**OF_GROUP, "data": {"users": []}},
    "group/tags": {**OF_GROUP, "data": {"tags": ["project"]}},
    "accessKey get": about_shop(),
    "accessKey save": about_shop(),
    "accessKey delete": about_shop(id="none"),
    "roles get": about_shop(),
    "roles save": about_shop(name="saved"),
    "roles save: protected": about_shop(name="guard", protected=True),
    "roles delete": about_shop(name="unknown"),
    "meta/schema get": ABOUT_SHOP,
    "meta/schema save: login": about_shop(login={}),
    "meta/schema save: objects": about_shop(objects={"map": {}}),
    "meta/schema save: private_data": about_shop(private_data=RULES),
    "meta/schema save: public_data": about_shop(public_data={}),
    "meta/schema save: roles": about_shop(roles={"saved": {}, "guard": {"protected": True}}),
    "meta/schema save: secret_data": about_shop(secret_data="{closed_schema}"),
    "meta/schema/versions get": about_shop(),
    "serviceAccount get": {"data": {"project_id": "{project}"}},
    "serviceAccount list": {"data": {"filters": {"project_id": "{project}"}}},
    "serviceAccount list: everywhere": {},
    "serviceAccount save": {"data": {"project_id": "{project}", "name": "account{n}"}},
    "serviceAccount delete": {"data": {"user_id": "{spare_account}"}},
    "check": about_shop(user_id="{user}", checks=[{"rule": QUESTION}]),
    "explain": about_shop(user_id="{user}", rule=QUESTION),
    "members": about_shop(rule=QUESTION),
    "object get": about_shop(objects=[{"object": "map:1"}]),
    "object list": about_shop(),
    "object save": about_shop(objects=[{"object": "map:1"}]),
    "object delete": about_shop(objects=[{"object": "map:1"}]),
    "object/holders list": about_shop(object="map:1"),
    "object/holders save": about_shop(holders=[{"object": "map:1", "user_id": "{user}", "roles": []}]),
    "object/allowed": about_shop(type="map", rule=QUESTION, user_id="{user}"),
    **{
        f"/access/v1/{path}": {
            "subject": {"type": "user", "id": "{user}"},
            "action": {"name": QUESTION},
            "resource": {"type": "project", "id": "{project}"},
        }
        for path in ("evaluation", "evaluations", "search/subject", "search/action", "search/resource")
    },
    "simulate: role": about_shop(change={"kind": "role", "data": {"name": "saved"}}),
    "simulate: membership": about_shop(change={"kind": "membership", "data": {"id": "{project}"}}),
    "client get": about_shop(client_id="plain"),
    "client list": about_shop(),
    "client create": new_client(),
    **{f"client {action}": about_shop(client_id="plain") for action in ("save", "rotate", "revoke", "delete")},
    "client get: of no application": {},
    "client list: of no application": {},
    "client create: of no application": {"data": NEW_CLIENT},
    **{f"client create: {name}": new_client(**fields) for name, fields in CLIENT_FIELDS.items()},
    **{
        f"client {action}: {name}": about_shop(client_id=name)
        for action in ("save", "rotate", "delete")
        for name in PRIVILEGED
    },
    "client save: exchange-native": about_shop(client_id="exchange-native", name="Renamed"),
    "client save: may_exchange": about_shop(client_id="no-exchange", may_exchange=True),
    "client revoke: trusted-oidc": about_shop(client_id="trusted-oidc"),
    **{f"{path} get": about_shop() for path in ("serviceToken", "emailSecret")},
    **{f"{path} create": about_shop() for path in ("serviceToken", "emailSecret")},
    "serviceToken delete": about_shop(jti="none"),
    "emailSecret delete": about_shop(ref="none"),
    "gameSession get": about_shop(ref="a1b2c3d4"),
    "gameSession close": about_shop(ref="a1b2c3d4"),
    "activity get": {"data": {"record_id": "{record}"}},
    "activity list": {"data": {"filters": {"subject": "project {project}"}}},
    **{f"settings get: {part}": {"data": {"part": part}} for part in SETTINGS_PARTS},
    "settings save": {"data": {"settings": {"branding.name": "Studio {n}"}}},
    "settings rotate_key": {"data": {"purpose": "tokens", "alg": "ES256"}},
    "settings test_email": {},
    "settings test_message": {"data": {"phone": "+4915123456789"}},
    "webhook get": {},
    "webhook save": {"data": {"url": "https://shop.example/hook", "events": ["account"]}},
    **{f"webhook {action}": OF_HOOK for action in ("delete", "rotate", "deliveries", "test")},
    "webhook redeliver": {"data": {"webhook_id": "none", "delivery_id": "none"}},
    "changes: application": ABOUT_SHOP,
    "changes: everywhere": {},
    "/proxy/oauth/exchange": {},
    EXCHANGE_TOKEN: {},
    "/proxy/oauth/userinfo": {},
}
# Requests about something that does not exist or cannot be done: the right is checked first (R6).
ABOUT_NOTHING: Final = frozenset(
    {
        *("application/keys delete", "accessKey delete", "serviceToken delete", "emailSecret delete", "roles delete"),
        *("gameSession get", "gameSession close", "project erase"),
        *(f"webhook {action}" for action in ("delete", "rotate", "deliveries", "redeliver", "test")),
    }
)
BY_GET: Final = {"application/publicKeys/{appID}": "GET", "application/publicKey/{keyID}": "GET", "keys": "GET"}


# -- what the answer of an open operation shows --------------------------------------------------------


def lists(name: str, value: str) -> Callable[[Any], bool]:
    """Whether a list has the entry with this value."""
    return lambda body: value in [str(one.get(name)) for one in body["data"]]


SHOWS_ALL: Final[Mapping[str, Callable[[Any], bool]]] = {
    "application list": lists("name", "Shop"),
    "project list": lists("id", PROJECT),
    "group list": lists("id", GROUP),
    "group get": lambda body: GROUP in [group["id"] for group in body["data"]["groups"]],
    "user get: everywhere": lambda body: "login" in body.get("data", {}),
    "user check_sign_in: everywhere": lambda body: body["data"]["of_account"],
    "user search: everywhere": lambda body: any("login" in user for user in body["data"]),
    "user search: in application": lists("user_id", "1000000002"),
    "user/ban save: installation": lambda body: "application_id" not in body["data"],
    "user/ban lift: installation": lambda body: "application_id" not in body["data"],
    "user/ban list: installation": lambda body: any("application_id" not in ban for ban in body["data"]),
    "activity get": lambda body: "data" in body,
    "activity list": lambda body: bool(body["data"]),
    "meta/schema save: secret_data": lambda body: "warnings" not in body,
    "client get: of no application": lists("client_id", "lone"),
    "client list: of no application": lists("client_id", "lone"),
    "client create: of no application": lambda body: body["data"]["application_id"] is None,
}


# -- the callers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    headers: Mapping[str, str]
    fields: Mapping[str, str] = field(default_factory=dict)  # credentials in the body
    user_id: str = ""  # whom they ask about; empty for the player


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    studio: Studio
    values: Mapping[str, object]  # by their names in the requests
    callers: Mapping[str, Caller]
    numbers: Any = field(default_factory=count)

    @property
    def administrator(self) -> Mapping[str, str]:
        return self.callers["adm"].headers


async def a_world(studio: Studio) -> World:
    service = studio.service
    storage = service.services.storage
    elsewhere = await create_elsewhere(studio)
    await storage.applications.edit_schema(
        studio.shop.application_id,
        lambda model: set_fields(schema=replace(model.schema, private_data=RULES, secret_data=closed_schema()))(
            model
        ),
    )
    await publish(storage, a_project("Annex", project_id="annex"), owners=[studio.owner.user_id])
    await put_group(studio)
    await write_user_record(studio, studio.other_user, studio.shop.application_id)
    await add_passkey_to(studio, studio.owner)
    administrator = await create_administrator(studio)
    await create_clients(studio, administrator, elsewhere)
    values: dict[str, object] = {
        "app": studio.shop.application_id,
        "elsewhere": elsewhere.application_id,
        "project": PROJECT,
        "group": GROUP,
        "user": studio.other_user.user_id,
        "player": (await create_person_with(studio)).user_id,
        "administrator": (await create_administrator(studio)).user_id,
        "publisher": studio.owner.user_id,
        "public_key": public_pem(application_private_key().public_key()),
        "closed_schema": closed_schema(),
        "kid": (await service.client.get("/api/permissions/keys")).json()["keys"][0]["kid"],
    }
    callers = await create_callers(studio, administrator, elsewhere)
    saved = await studio.post(
        "project", {"action": "save", "data": {"id": PROJECT, "description": "x"}}, studio.owner.headers
    )
    assert saved.status_code == 200
    [values["record"], *_] = [one.record_id for one in await audit_records(studio, AuditEvent.PROJECT_CHANGED)]
    return World(studio=studio, values=values, callers=callers)


async def create_elsewhere(studio: Studio) -> Application:
    """Another project with an application."""
    storage = studio.service.services.storage
    owner = await create_person(studio.service, "1000000009")
    project = await publish(storage, a_project("Elsewhere", project_id="elsewhere"), owners=[owner.user_id])
    return await create_application(storage, name="Elsewhere", project_id=project.project_id)


async def create_clients(studio: Studio, administrator: Person, elsewhere: Application) -> None:
    values: dict[str, object] = {"app": studio.shop.application_id, "elsewhere": elsewhere.application_id}
    made: dict[str, dict[str, object]] = {
        "plain": {},
        "exchange-native": NATIVE,
        "no-exchange": {**NATIVE, "may_exchange": False},
        **PRIVILEGED,
    }
    for client_id, fields in made.items():
        ask = fill(new_client(**{"client_id": client_id, **fields}), values)
        await studio.expect_ok("client", {"action": "create", **ask}, administrator.headers)
    lone = {"action": "create", "data": {**NEW_CLIENT, "client_id": "lone"}}
    await studio.expect_ok("client", lone, administrator.headers)


async def create_callers(studio: Studio, administrator: Person, elsewhere: Application) -> Mapping[str, Caller]:
    owner = studio.owner
    service_jwt, access_key = await studio.service_jwt(), await studio.access_key()
    central_jwt = (await studio.service.services.permissions.service_tokens.issue(1, origin=ORIGIN)).jwt
    stranger = await create_person_with(studio)
    personal = await personal_token(studio)
    exchanged = success_body(await studio.service.client.post(EXCHANGE_TOKEN, headers=bearer_headers(personal)))
    return {
        "adm": Caller(headers=administrator.headers),
        "cen": Caller(headers=bearer_headers(administrator.jwt, Service_Jwt=central_jwt)),
        "vou": Caller(headers=bearer_headers(administrator.jwt, Service_Jwt=service_jwt)),
        "kad": Caller(headers=bearer_headers(access_key), fields={"jwt": administrator.jwt}),
        "own": Caller(headers=owner.headers),
        "vow": Caller(headers=bearer_headers(owner.jwt, Service_Jwt=service_jwt)),
        "aud": Caller(headers=await headers_for_shop_alone(studio, access_key)),
        "slf": Caller(headers=stranger.headers, user_id=stranger.user_id),
        "gst": Caller(headers=await guest_headers(studio)),
        "acc": Caller(headers=await service_account_headers(studio)),
        "svc": Caller(headers={"Service-Jwt": service_jwt}),
        "key": Caller(headers=bearer_headers(access_key)),
        "tok": Caller(headers=bearer_headers(await access_token(studio))),
        "atj": Caller(headers=bearer_headers(await access_token(studio, resource=RESOURCE, scope="match.read"))),
        "pat": Caller(headers=bearer_headers(personal)),
        "exj": Caller(
            headers=bearer_headers(exchanged["token"], Service_Jwt=service_jwt), user_id=studio.owner.user_id
        ),
        "ban": Caller(headers=await banned_headers(studio, administrator, project_id=PROJECT)),
        "bap": Caller(headers=await banned_headers(studio, administrator, application_id=studio.shop.application_id)),
        "bar": Caller(headers=await barred_headers(studio, administrator)),
        "blk": Caller(headers=await blocked_headers(studio, administrator)),
        "frn": Caller(headers=(await sign_in(studio, "1000000009")).headers),
        "fvo": Caller(headers=bearer_headers(administrator.jwt, Service_Jwt=await studio.service_jwt(elsewhere))),
        "non": Caller(headers={}),
    }


async def sign_in(studio: Studio, user_id: str) -> Person:
    services = studio.service.services
    user = await services.storage.accounts.user(user_id)
    return Person(user_id=user_id, jwt=await services.accounts.user_tokens.issue(user, auth="login", factor=FACTOR))


async def headers_for_shop_alone(studio: Studio, access_key: str) -> Mapping[str, str]:
    ask = {"jwt": studio.owner.jwt, "factor": FACTOR}
    exchanged = await studio.expect_ok("exchangeJwt", ask, bearer_headers(access_key))
    return bearer_headers(exchanged["jwt"], Factor=FACTOR)


async def guest_headers(studio: Studio) -> Mapping[str, str]:
    await turn_guests_on(studio.service)
    answer = await Device().log_in(studio.service, factor=FACTOR)
    return bearer_headers(answer["jwt"], Factor=FACTOR)


async def service_account_headers(studio: Studio) -> Mapping[str, str]:
    ask = {"action": "save", "data": {"project_id": PROJECT, "name": "reader"}}
    return bearer_headers((await studio.expect_ok("serviceAccount", ask, studio.owner.headers))["data"]["jwt"])


async def access_token(studio: Studio, **fields: str) -> str:
    """An access token of a client of the shop itself."""
    declare = {"action": "save", "data": {"application_id": studio.shop.application_id, "api": API}}
    await studio.expect_ok("application", declare, studio.owner.headers)
    client_id = f"machine{len(fields)}"
    machine = await an_oidc_client(
        studio.service, client_id, application_id=studio.shop.application_id, profile=ClientProfile.OIDC
    )
    body = {"grant_type": "client_credentials", **fields}
    headers = {"Authorization": basic_auth(client_id, machine.secret)}
    answer = success_body(await studio.service.client.post(TOKEN, data=body, headers=headers))
    token: str = answer["access_token"]
    return token


async def personal_token(studio: Studio) -> str:
    """An access token of the owner, of a client of the shop."""
    client = await a_native_client(studio.service, "player", application_id=studio.shop.application_id)
    owner = await studio.service.services.storage.accounts.user(studio.owner.user_id)
    token: str = (await client.tokens(await client.issue_code(owner)))["access_token"]
    return token


async def banned_headers(studio: Studio, administrator: Person, **scope: str | int) -> Mapping[str, str]:
    who = await create_person_with(studio, {IN_PROJECT: holdings_with("project_owner")})
    ask = {"action": "save", "user_id": who.user_id, **scope, "data": {"reason": "x"}}
    await studio.expect_ok("user/ban", ask, administrator.headers)
    return who.headers


async def barred_headers(studio: Studio, administrator: Person) -> Mapping[str, str]:
    who = await create_administrator(studio)
    ask = {"action": "save", "user_id": who.user_id, "data": {"reason": "x"}}
    await studio.expect_ok("user/ban", ask, administrator.headers)
    return who.headers


async def blocked_headers(studio: Studio, administrator: Person) -> Mapping[str, str]:
    who = await create_administrator(studio)
    await studio.expect_ok("user", {"action": "block", "data": {"user_id": who.user_id}}, administrator.headers)
    return who.headers


# -- asking --------------------------------------------------------------------------------------------


def fill(template: Any, values: Mapping[str, object]) -> Any:
    """Return the template with the values in place of their names in braces."""
    match template:
        case dict():
            return {fill(name, values): fill(value, values) for name, value in template.items()}
        case list():
            return [fill(one, values) for one in template]
        case str():
            exact = values.get(template[1:-1]) if template.startswith("{") and template.endswith("}") else None
            return exact if exact is not None else PLACEHOLDER.sub(lambda found: str(values[found[1]]), template)
        case _:
            return template


async def spare_objects(world: World, operation: str, *, is_open: bool) -> Mapping[str, object]:
    """Objects that the request may remove."""
    number = next(world.numbers)
    storage = world.studio.service.services.storage
    spare: dict[str, object] = {"n": number}
    if operation == "group delete":
        spare["spare_group"] = f"{number:024x}"
        group = a_group(f"{number:024x}", f"Spare {number}", project_id=PROJECT)
        await storage.groups.create_group(group, [a_record()])
    if operation == "serviceAccount delete":
        ask = {"action": "save", "data": {"project_id": PROJECT, "name": f"spare{number}"}}
        made = await world.studio.expect_ok("serviceAccount", ask, world.studio.owner.headers)
        spare["spare_account"] = made["data"]["user_id"]
    if is_open and operation.startswith("user ") and not operation.endswith(": in application"):
        spare["user"] = (await create_person_with(world.studio)).user_id
    return spare


async def ask(world: World, line: Line, name: str) -> str:
    caller, operation = world.callers[name], line.operation
    values = {**world.values, **await spare_objects(world, operation, is_open=line.cells[name] == OPEN)}
    if caller.user_id:
        values["user"] = values["player"] = caller.user_id
    await prepare(world, line, name, values)
    response = await send(world, line, caller, fill(REQUESTS[operation], values))
    result = BY_STATUS.get(response.status_code, response.text)
    if result == OPEN and name == "adm" and operation not in ABOUT_NOTHING and response.status_code != OK:
        return f"{response.status_code} {response.text}"
    if result == OPEN and operation in SHOWS_ALL and response.status_code != 409:
        result = OPEN if SHOWS_ALL[operation](response.json()) else LESS
    if response.status_code == OK:
        await undo(world, operation)
    return result


async def send(world: World, line: Line, caller: Caller, body: dict[str, Any]) -> httpx2.Response:
    path, _, action = line.endpoint.partition(" ")
    client = world.studio.service.client
    if path.startswith("/"):
        return await client.post(path, json=body or None, headers=caller.headers)
    if path == "changes":  # HEAD answers like GET and does not wait for events
        return await client.request("HEAD", "/api/permissions/changes", params=body, headers=caller.headers)
    if path in BY_GET:
        shop = str(world.values["app"])
        path = path.replace("{appID}", shop).replace("{keyID}", str(world.values["kid"]))
        return await client.get(f"/api/permissions/{path}", headers=caller.headers)
    named = {"action": action} if action else {}
    return await world.studio.post(path, {**named, **body, **caller.fields}, caller.headers)


async def prepare(world: World, line: Line, name: str, values: Mapping[str, object]) -> None:
    """A ban that the next request lifts."""
    if line.endpoint == "user/ban lift" and line.cells[name] in (OPEN, LESS):
        for place in (
            {},
            {"application_id": values["app"]},
            {"project_id": PROJECT},
            {"application_id": values["elsewhere"]},
        ):
            ban = {"action": "save", "user_id": values["player"], **place, "data": {"reason": "x"}}
            await world.studio.expect_ok("user/ban", ban, world.administrator)


async def undo(world: World, operation: str) -> None:
    storage, shop = world.studio.service.services.storage, world.studio.shop.application_id
    match operation:
        case "application delete":
            await storage.applications.edit_application(shop, set_fields(removed=False))
        case "application save: move" | "application save: move to a foreign project":
            await storage.applications.edit_application(shop, set_fields(project_id=PROJECT))
        case "project delete":
            await storage.projects.edit_project(PROJECT, set_project_fields(removed=False))


# -- the tests -----------------------------------------------------------------------------------------


@pytest.fixture
async def world(installed_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    # An access token without a dot is read as an access key that does not exist, once for each line.
    monkeypatch.setattr(access_keys, "KEY_ATTEMPT_LIMIT", AttemptLimit(free_attempts=10_000))
    environment = {"GATEHOUSE__RATES__ADMIN": "1000000", "GATEHOUSE__RATES__TOKEN": "1000000"}
    async with running_service(installed_url, tmp_path, environment=environment) as service:
        yield await a_world(await a_studio(service))


def operations_of(endpoint: Endpoint) -> list[str]:
    """The path with each of its actions."""
    path = endpoint.path.removeprefix("/api/permissions/")
    actions = actions_of(endpoint.request)
    if endpoint.name in LIST_ACTIONS:
        actions.append(LIST_ACTIONS[endpoint.name].action)
    return [f"{path} {action}" for action in actions] or [path]


def actions_of(request: type[msgspec.Struct] | UnionType | None) -> list[object]:
    if isinstance(request, UnionType):  # a type for each action
        return [kind.__struct_config__.tag for kind in typing.get_args(request)]
    hints = {} if request is None else typing.get_type_hints(request)
    return list(typing.get_args(hints.get("action")))


def paths_with_credentials(document: Mapping[str, Any]) -> set[str]:
    """Those beside the permission endpoints."""
    return {
        path
        for path, methods in document["paths"].items()
        if not path.startswith("/api/permissions/")
        for method in methods.values()
        if any(CREDENTIALS & way.keys() for way in method.get("security", ()))
    }


def field_names(draft: type[msgspec.Struct]) -> set[str]:
    return {one.name for one in msgspec.structs.fields(draft)}


async def test_pa_16_every_operation_and_field_has_a_line(installed_url: str, tmp_path: Path) -> None:
    async with running_service(installed_url, tmp_path) as service:
        offered = offered_operations(service) | paths_with_credentials(
            (await service.client.get("/openapi.json")).json()
        )
    assert {line.endpoint for line in TABLE} == offered
    named = {line.operation for line in TABLE}
    assert len(named) == len(TABLE)
    assert named == REQUESTS.keys()
    written = field_names(ApplicationDraft) - IGNORED - {"application_id", "version"}
    for operation, fields in (
        ("application save", written),
        ("client create", field_names(ClientPatch) - {"name"}),  # every request names it
        ("meta/schema save", SCHEMA_ROOTS),
        ("settings get", SETTINGS_PARTS),
    ):
        assert {f"{operation}: {name}" for name in fields} <= named


def offered_operations(service: RunningService) -> set[str]:
    """Those of the permission endpoints."""
    services = service.services
    readiness = Readiness([], clock=services.clock, is_stopping=lambda: False)
    endpoints = [
        endpoint
        for endpoint in (*key_set_endpoints(services), *permission_endpoints(services, readiness, ShutdownSignal()))
        if endpoint.path.startswith("/api/permissions/")
    ]
    return {operation for endpoint in endpoints for operation in operations_of(endpoint)}


def test_pa_17_table_keeps_what_only_can_administer_opens_from_services_of_others() -> None:
    for line in TABLE:
        if line.right == ONLY_ADMINISTRATORS:
            assert {name for name, cell in line.cells.items() if cell == OPEN} == set(IN_PERSON), line.operation


async def test_pa_16_pa_17_every_operation_answers_every_caller_as_the_table_says(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[Operation] = set()
    monkeypatch.setattr(guard, "OPENS", RecordedTable(asked))
    wrong = []
    for line in TABLE:
        for name, cell in sorted(line.cells.items(), key=lambda one: ASKING_ORDER.index(one[1])):
            result = await ask(world, line, name)
            if result != cell:
                wrong.append(f"{line.operation} by {name}: {result}, not {cell}")
    assert not wrong, "\n".join(wrong)
    assert set(Operation) - asked == CONSOLE_OPERATIONS


class RecordedTable(dict[Operation, Any]):
    """The table of the guard; remembers which operations were looked up."""

    def __init__(self, asked: set[Operation]) -> None:
        super().__init__(guard.OPENS)
        self._asked = asked

    def __getitem__(self, operation: Operation) -> Any:
        self._asked.add(operation)
        return super().__getitem__(operation)


# -- lists (R9) ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedKind:
    """A list, and the request that answers one of its objects."""

    path: str
    key: str  # the member that names an object, in the list and in the answer
    get: Callable[[Mapping[str, Any]], Mapping[str, object]]  # the request for an entry
    ask: Mapping[str, object] = field(default_factory=dict)
    group_of: str = ""  # the member of the answer that the objects are in
    is_narrower: bool = False  # with a service JWT the list is about its application
    alike: str = ""  # a member; of the entries with one value in it, the first and the last are asked for

    def find(self, data: Any, entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the object in the answer."""
        records = data[self.group_of] if self.group_of else data
        named = records if isinstance(records, list) else [records]
        return next((one for one in named if one[self.key] == entry[self.key]), None)

    def sample(self, entries: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        if not self.alike:
            return entries
        first = {one[self.alike]: one for one in reversed(entries)}
        last = {one[self.alike]: one for one in entries}
        return [one for one in entries if one in (first[one[self.alike]], last[one[self.alike]])]


LISTED: Final[Mapping[str, ListedKind]] = {
    "application": ListedKind(
        path="application", key="application_id", get=lambda one: {"data": {"application_id": one["application_id"]}}
    ),
    "project": ListedKind(path="project", key="id", get=lambda one: {"data": {"id": one["id"]}}),
    "group": ListedKind(
        path="group", key="id", get=lambda one: {"data": {"project_id": one["project_id"]}}, group_of="groups"
    ),
    "client": ListedKind(
        path="client",
        key="client_id",
        get=lambda one: {**ABOUT_SHOP, "data": {"client_id": one["client_id"]}},
        ask=ABOUT_SHOP,
    ),
    "client everywhere": ListedKind(
        path="client", key="client_id", get=lambda one: {"data": {"client_id": one["client_id"]}}
    ),
    "serviceAccount": ListedKind(
        path="serviceAccount",
        key="user_id",
        get=lambda one: {"data": {"project_id": one["project_id"]}},
        ask={"data": {"filters": {"project_id": "{project}"}}},
    ),
    "serviceAccount everywhere": ListedKind(
        path="serviceAccount", key="user_id", get=lambda one: {"data": {"project_id": one["project_id"]}}
    ),
    "activity": ListedKind(
        path="activity",
        key="record_id",
        get=lambda one: {"data": {"record_id": one["record_id"]}},
        is_narrower=True,
        alike="event",
    ),
}


async def callers_with_some_rights(world: World) -> Mapping[str, Caller]:
    """People who hold a part of what an owner holds."""
    studio, shop = world.studio, world.studio.shop.application_id
    central = {
        "views the project": {IN_PROJECT: holdings_with_rules("project.can_view_project")},
        "manages the project": {IN_PROJECT: holdings_with("project_administrator")},
        "manages its applications": {IN_PROJECT: holdings_with_rules("project.can_manage_applications")},
        "manages its groups": {IN_PROJECT: holdings_with_rules("project.can_manage_groups")},
        "manages a group": {group_scope(PROJECT, GROUP): holdings_with("group_manager")},
        "develops the shop": {application_scope(PROJECT, shop): holdings_with("app_developer")},
        "bans from the shop": {application_scope(PROJECT, shop): holdings_with_rules("app.can_ban")},
        "creates applications": {ROOT: holdings_with_rules("can_create_app")},
        "removes applications": {ROOT: holdings_with_rules("can_remove_apps")},
    }
    in_shop: Mapping[str, Tree] = {
        "saves the shop": secret_document("canSave"),
        "reads the shop": secret_document("canRead"),
        "sees its roles": secret_document("canSeeRoleList"),
        "reads its schema": secret_document("canReadSchema"),
    }
    people = {name: await create_person_with(studio, scopes) for name, scopes in central.items()}
    people |= {name: await create_person_with(studio, secret_data=held) for name, held in in_shop.items()}
    member = await create_person_with(studio)
    await write_user_record(studio, member, shop, scopes={IN_PROJECT: holdings_with_rules("user.kick")})
    owner = await create_person_with(studio, {IN_PROJECT: holdings_with("project_owner")})
    ban = {"action": "save", "user_id": owner.user_id, **fill(ABOUT_SHOP, world.values), "data": {"reason": "x"}}
    await studio.expect_ok("user/ban", ban, world.administrator)
    people |= {"has a rule": member, "owns the project, banned from the shop": owner}
    return {name: Caller(headers=who.headers) for name, who in people.items()}


async def create_more_elsewhere(world: World) -> None:
    """Objects of other projects and of none: what a list must not show to those who may not read them."""
    studio, administrator = world.studio, world.administrator
    elsewhere = str(world.values["elsewhere"])
    for path, ask in (
        ("application", {"data": {"name": "Of no project"}}),
        ("application", {"data": {"name": "In the annex", "project_id": "annex"}}),
        ("group", {"data": {"project_id": "elsewhere", "title": "Elsewhere"}}),
        ("group", {"data": {"project_id": "annex", "title": "Annex"}}),
        ("serviceAccount", {"data": {"project_id": "elsewhere", "name": "elsewhere"}}),
    ):
        await studio.expect_ok(path, {"action": "save", **ask}, administrator)
    client = {"action": "create", "application_id": elsewhere, "data": {**NEW_CLIENT, "client_id": "far"}}
    await studio.expect_ok("client", client, administrator)


async def list_all(world: World, kind: ListedKind, caller: Caller) -> Sequence[Mapping[str, Any]] | None:
    """Return all entries; None if the list is closed to the caller."""
    found: list[Mapping[str, Any]] = []
    after = None
    while True:
        asked = fill(kind.ask, world.values)
        data = {**asked.get("data", {}), "after": after, "limit": 100}
        body = {"action": "list", **asked, "data": data, **caller.fields}
        response = await world.studio.post(kind.path, body, caller.headers)
        if response.status_code != 200:
            assert response.status_code in (401, 403), response.text
            return None
        found += response.json()["data"]
        if (after := response.json()["after"]) is None:
            return found


async def get_one(
    world: World, kind: ListedKind, caller: Caller, entry: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return what `get` answers the caller about an entry; None if it tells nothing of it."""
    body = {"action": "get", **fill(kind.get(entry), world.values), **caller.fields}
    response = await world.studio.post(kind.path, body, caller.headers)
    return kind.find(response.json()["data"], entry) if response.status_code == 200 else None


def tells_more(entry: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Whether the entry of a list says anything that the record does not; members without a value are left out."""
    return any(value and record.get(name) != value for name, value in entry.items())


async def test_pa_18_a_list_shows_what_get_answers_the_same_caller(world: World) -> None:
    await create_more_elsewhere(world)
    callers = {**world.callers, **await callers_with_some_rights(world)}
    wrong = [f"{name}: {one}" for name, kind in LISTED.items() for one in await differences(world, kind, callers)]
    assert not wrong, "\n".join(wrong)


async def differences(world: World, kind: ListedKind, callers: Mapping[str, Caller]) -> Sequence[str]:
    everything = await list_all(world, kind, world.callers["adm"])
    assert everything
    asked_for, known = kind.sample(everything), {one[kind.key] for one in everything}
    wrong = []
    for who, caller in callers.items():
        listed = await list_all(world, kind, caller)
        if listed is None:
            continue
        shown = {one[kind.key]: one for one in listed}
        for entry in asked_for:
            record, own = await get_one(world, kind, caller, entry), shown.get(entry[kind.key])
            if own is not None and (record is None or tells_more(own, record)):
                wrong.append(f"{who} is listed {own}, and get answers {record}")
            if own is None and record is not None and not kind.is_narrower:
                wrong.append(f"{who} is not listed {entry}")
        wrong += [f"{who} is listed {one}, which the administrator is not" for one in shown.keys() - known]
    return wrong
