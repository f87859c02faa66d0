"""The effect of applications on a login, and their data in the JWT (R2, R4, R5)."""

from typing import Any

import pytest

from gatehouse.accounts.model import User
from gatehouse.kernel.digests import sha256
from gatehouse.permissions.model.project import ProjectSettings
from gatehouse.permissions.model.rules import ROOT
from tests.support.browser import PASSWORD
from tests.support.builders import a_record, a_user
from tests.support.oauth import an_oidc_client
from tests.support.permission_builders import (
    a_role,
    a_user_record,
    create_application,
    set_fields,
    set_project_fields,
)
from tests.support.service import RunningService
from tests.support.studio import PROJECT, Studio
from tests.wire.accounts.test_login import claims_of

LOGIN = "anna@studio.example"
KICK = {"private_data": {"user": {"kick": {"value": True}}}}


@pytest.fixture
async def anna(service: RunningService) -> User:
    hashed = await service.services.accounts.passwords.hash(PASSWORD)
    user = a_user(login=LOGIN, password_hash=hashed, email_verified=True)
    await service.services.storage.accounts.create_user(user, a_record())
    return user


async def log_in(service: RunningService, **fields: Any) -> dict[str, Any]:
    ask = {"login": LOGIN, "password": PASSWORD, "factor": "f", **fields}
    response = await service.client.post("/proxy/api/login", json=ask)
    bodies: dict[str, Any] = response.json()
    return bodies


async def test_the_login_section_of_a_users_record_outranks_the_applications(studio: Studio, anna: User) -> None:
    storage, shop = studio.service.services.storage, studio.shop.application_id
    for login, status in (
        ({"cannot": {"value": True}}, "DENIED"),
        ({"can": {"value": False}}, "DENIED"),
        ({"can": {"value": True}, "cannot": {"value": False}}, "OK"),
        ({"cannot": {"value": True, "expired": studio.service.clock.now()}}, "OK"),
    ):
        await storage.user_records.edit_record(shop, anna.user_id, set_fields(login=login), 0)
        assert (await log_in(studio.service, app_id=shop))["status"] == status, login


@pytest.mark.usefixtures("anna")
async def test_restricted_domains_let_only_these_in(studio: Studio) -> None:
    storage, shop = studio.service.services.storage, studio.shop.application_id
    for domains, status in ((["other.example"], "DENIED"), (["studio.example"], "OK"), ([], "OK")):
        await storage.applications.edit_application(shop, set_fields(settings={"restricted_domains": domains}))
        assert (await log_in(studio.service, app_id=shop))["status"] == status


@pytest.mark.usefixtures("anna")
async def test_allowed_domains_of_its_project_bind_an_application(studio: Studio) -> None:
    storage, shop = studio.service.services.storage, studio.shop.application_id
    for domains, status in ((("other.example",), "DENIED"), (("studio.example",), "OK")):
        settings = ProjectSettings(allowed_domains=domains)
        await storage.projects.edit_project(PROJECT, set_project_fields(settings=settings))
        assert (await log_in(studio.service, app_id=shop))["status"] == status


@pytest.mark.usefixtures("anna")
async def test_login_to_a_removed_or_unknown_application_is_denied(studio: Studio) -> None:
    storage, shop = studio.service.services.storage, studio.shop.application_id
    assert (await log_in(studio.service, app_id=99_999))["status"] == "DENIED"
    assert (await log_in(studio.service, app_id=shop, gapp_id=99_999))["status"] == "DENIED"
    await storage.projects.edit_project(PROJECT, set_project_fields(removed=True))
    assert (await log_in(studio.service, app_id=shop))["status"] == "DENIED"
    other = studio.other.application_id
    assert (await log_in(studio.service, app_id=other))["status"] == "OK"
    await storage.applications.edit_application(other, set_fields(removed=True))
    assert (await log_in(studio.service, app_id=other))["status"] == "DENIED"


async def test_the_jwt_tells_what_its_owner_holds_in_the_first_application_named(studio: Studio, anna: User) -> None:
    service = studio.service
    storage = service.services.storage
    game = await create_application(storage, a_role("moderator", meta=KICK, params="5"), name="Game")
    record = a_user_record(anna.user_id, {ROOT: ["moderator"]}, game.application_id)
    await storage.user_records.edit_record(game.application_id, anna.user_id, set_fields(scopes=record.scopes), 0)
    claims = claims_of((await log_in(service, app_id=game.application_id, gapp_id=studio.shop.application_id))["jwt"])
    assert (claims["app_perm"], claims["perm"]) == (game.application_id, ["user.kick|5"])
    assert claims["perm_exp"] == service.clock.now() + 300
    assert "app_perm" not in claims_of((await log_in(service))["jwt"])
    by_game = claims_of((await log_in(service, gapp_id=game.application_id))["jwt"])
    assert by_game["app_perm"] == game.application_id


@pytest.mark.usefixtures("anna")
async def test_email_and_token_are_for_the_first_application_named(studio: Studio) -> None:
    service, shop = studio.service, studio.shop.application_id
    await service.services.storage.permissions.add_email_secret(
        shop, sha256("shared"), service.clock.now(), a_record()
    )
    own = await an_oidc_client(service, "own", application_id=shop)
    for named in ({"app_id": shop}, {"gapp_id": shop}, {"service_jwt": await studio.service_jwt()}):
        body = await log_in(service, with_email="shared", **named)
        assert body["login"] == LOGIN, named
        response = await service.client.post(
            "/proxy/oauth/introspect", data={"token": body["token"]}, headers=own.headers
        )
        assert response.json()["active"], named
    beside = await log_in(service, with_email="shared", app_id=studio.other.application_id, gapp_id=shop)
    assert "login" not in beside


@pytest.mark.usefixtures("anna")
async def test_a_service_jwt_names_its_application_and_must_be_valid(studio: Studio) -> None:
    body = await log_in(studio.service, service_jwt=await studio.service_jwt())
    assert claims_of(body["jwt"])["app_perm"] == studio.shop.application_id
    refusal = await studio.service.client.post(
        "/proxy/api/login", json={"login": LOGIN, "password": PASSWORD, "service_jwt": "a.b.c"}
    )
    assert refusal.status_code == 401
    await studio.service.services.storage.user_records.edit_record(
        studio.shop.application_id, str(body["user_id"]), set_fields(login={"cannot": {"value": True}}), 0
    )
    assert (await log_in(studio.service, service_jwt=await studio.service_jwt()))["status"] == "DENIED"
