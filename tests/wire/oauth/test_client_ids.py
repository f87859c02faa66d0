"""Client IDs are told apart from user IDs and from the built-in actors of the audit log."""

import ast
import dataclasses
import re
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from msgspec.structs import replace

import gatehouse
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import BUILT_IN_ACTORS
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import Client
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.store import EditResult
from tests.support.builders import ORIGIN, a_record
from tests.support.oauth import REDIRECT, RelyingPartyClient, an_oidc_client, oauth_error, success_body
from tests.support.service import RunningService
from tests.support.studio import Studio, a_studio, audit_records
from tests.wire.oauth.test_machines import API, RESOURCE, ask_token, create_account, declare_api

SOURCE: Final = Path(gatehouse.__file__).parent
NAMES_ACTORS: Final = re.compile(r"ACTOR|AuditOrigin\(|origin_of\(")
RESERVED_IDS: Final = ("1000000001", "7", "cli", "apply", "System", "service", "client")


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


async def ask(studio: Studio, client_id: str, secret: str) -> httpx2.Response:
    return await ask_token(studio.service, client_id, secret, resource=RESOURCE)


async def an_old_client(service: RunningService, client_id: str, **fields: object) -> RelyingPartyClient:
    """A client that was created before its ID was reserved."""
    made = await an_oidc_client(service, "template", **fields)
    old = replace(made.client, client_id=client_id)
    await service.services.storage.clients.create_client(old, a_record(AuditEvent.CLIENT_CREATED))
    return dataclasses.replace(made, client=old)


async def test_ci_01_a_new_client_has_no_id_of_digits_and_of_no_built_in_actor(studio: Studio) -> None:
    for client_id in RESERVED_IDS:
        client = Client(client_id=client_id, name="Shop", redirect_uris=(REDIRECT,), created_at=0)
        with pytest.raises(BadClient, match="digits only or a reserved name"):
            await studio.service.services.oauth.clients.commands.create(client, ORIGIN)
        data = {"client_id": client_id, "name": "Shop", "profile": "oidc", "redirect_uris": [REDIRECT]}
        body = {"action": "create", "application_id": studio.shop.application_id, "data": data}
        answer = await studio.post("client", body, studio.owner.headers)
        assert answer.status_code == 400, client_id
        assert "data.client_id" in answer.text


async def test_ci_01_a_client_that_has_such_an_id_is_changed_and_works(studio: Studio) -> None:
    old = await an_old_client(studio.service, "4711", application_id=studio.shop.application_id, first_party=False)
    await declare_api(studio, API)
    data = {"client_id": "4711", "name": "Renamed"}
    body = {"action": "save", "application_id": studio.shop.application_id, "data": data}
    await studio.expect_ok("client", body, studio.owner.headers)
    assert success_body(await ask(studio, "4711", old.secret))["token_type"] == "Bearer"


def test_ci_01_every_actor_that_the_code_names_is_reserved() -> None:
    texts = [path.read_text() for path in SOURCE.rglob("*.py")]
    found = {actor for text in texts if NAMES_ACTORS.search(text) for actor in actors_in(ast.parse(text))}
    assert {"service", "game", "setup", "visitor", "guest", "passkey"} <= found
    assert found <= BUILT_IN_ACTORS


def actors_in(tree: ast.AST) -> set[str]:
    """The literal actors: AuditOrigin(actor=…), origin_of(request, …), and constants named …ACTOR."""
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found += [node.value] if node.target.id.split("_")[-1] == "ACTOR" else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found += node.args[1:2] if node.func.id == "origin_of" else []
            found += [word.value for word in node.keywords if (node.func.id, word.arg) == ("AuditOrigin", "actor")]
    return {one.value for one in found if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value}


async def test_ci_02_an_entry_of_digits_lists_a_service_account_and_never_a_client(studio: Studio) -> None:
    account = await create_account(studio)
    user_id = account["user_id"]
    twin = await an_old_client(studio.service, "4711", application_id=studio.other.application_id)
    named = await an_oidc_client(studio.service, "bot", application_id=studio.other.application_id)

    async def listed(*entries: str) -> list[bool]:
        assert (await declare_api(studio, {**API, "access": "listed", "clients": list(entries)})).status_code == 200
        answers = [await ask(studio, "4711", twin.secret), await ask(studio, "bot", named.secret)]
        assert all(one.status_code == 200 or oauth_error(one) == (400, "invalid_target") for one in answers)
        return [one.status_code == 200 for one in answers]

    assert await listed("4711", "bot") == [False, True]
    assert await listed("client:4711") == [True, False]
    assert await listed("client:bot", user_id) == [False, True]
    refused = await declare_api(studio, {**API, "access": "listed", "clients": ["client:", "account:1"]})
    assert (refused.status_code, "data.api.clients[0]" in refused.text) == (400, True)


async def test_ci_02_a_listed_service_account_of_another_project_gets_a_token(studio: Studio) -> None:
    """The list names it by its user ID, and a client of the same ID on the list does not admit it."""
    account = await create_account(studio)
    await change_shop(studio, project_id=None)
    for entry, is_listed in ((account["user_id"], True), (f"client:{account['user_id']}", False)):
        await change_shop(studio, api={**API, "access": "listed", "clients": [entry]})
        answer = await ask(studio, account["user_id"], account["jwt"])
        assert (answer.status_code == 200) is is_listed, entry


@pytest.mark.both_databases
async def test_ci_03_a_client_is_an_actor_under_its_own_kind(studio: Studio) -> None:
    machine = await an_oidc_client(studio.service, "reporter", application_id=studio.shop.application_id)
    account = await create_account(studio)
    await declare_api(studio, API)
    token = success_body(await ask(studio, "reporter", machine.secret))["access_token"]
    assert (await ask(studio, account["user_id"], account["jwt"])).status_code == 200
    await studio.service.client.post("/proxy/oauth/revoke", data={"token": token}, headers=machine.headers)
    made = await audit_records(studio, AuditEvent.MACHINE_TOKEN_MADE)
    assert {(record.actor, record.subject) for record in made} == {
        ("client:reporter", "reporter"),
        (account["user_id"], account["user_id"]),
    }
    [revoked] = await audit_records(studio, AuditEvent.MACHINE_TOKEN_REVOKED)
    assert (revoked.actor, revoked.subject) == ("client:reporter", "reporter")


async def change_shop(studio: Studio, **fields: Any) -> None:
    def change(state: Application) -> EditResult[Application]:
        return EditResult(replace(state, **fields), ())

    await studio.service.services.storage.applications.edit_application(studio.shop.application_id, change)
