"""Which API resources an application may declare, and what becomes of those that were declared before (R9)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import bindparam, update

from gatehouse.permissions.errors import ResourceTaken
from gatehouse.provision.model import Unfit
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.permissions import applications
from tests.support.builders import ORIGIN
from tests.support.console import apply_document
from tests.support.oauth import RelyingPartyClient, an_oidc_client, oauth_error, success_body
from tests.support.permission_builders import create_application, set_fields, set_project_fields
from tests.support.service import RunningService, running_service
from tests.support.studio import PROJECT, Studio, a_studio
from tests.wire.oauth.test_machines import API, RESOURCE, ask_token, declare_api, introspect

DOCUMENT_HOST: Final = "clients.example"
SET_API = Statement(
    lambda: (
        update(applications)
        .where(applications.c.application_id == bindparam("of"))
        .values(api=bindparam("to"), api_resource=bindparam("named"))
    )
)


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    environment = {"GATEHOUSE__OAUTH__CLIENT_DOCUMENT_HOSTS": DOCUMENT_HOST}
    async with running_service(installed_url, tmp_path, environment=environment) as running:
        yield running


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


def api(resource: str) -> dict[str, Any]:
    return {**API, "resource": resource}


async def declare_by_old_rules(studio: Studio, resource: str) -> RelyingPartyClient:
    """Declare the API of the shop as if no resource were reserved; return a client of the shop."""

    def write() -> Verb[None]:
        yield SET_API(of=studio.shop.application_id, to=api(resource), named=resource)

    await studio.service.services.storage.runner.write(write)
    return await an_oidc_client(studio.service, "reporter", application_id=studio.shop.application_id)


async def remove_shop(studio: Studio) -> None:
    await studio.service.services.storage.applications.edit_application(
        studio.shop.application_id, set_fields(removed=True)
    )


async def test_ci_05_no_application_declares_this_service_or_a_host_of_client_documents(studio: Studio) -> None:
    own = studio.service.base_url
    for resource in (
        *(own, f"{own}/", f"{own}/proxy/oauth/token", f"{own}?x", own.replace("localhost", "LocalHost")),
        *(own.replace("://", "://x@"), own.replace("localhost", "localhost.") + "/api"),
        *(own.replace("://", ":"), own.replace("://", ":/"), own.replace("://", ":///")),
        *(
            own.replace("local", "loc%61l"),
            own.replace("localhost:", "localhost%3A"),
            own.replace("localhost:", "localhost:0"),
        ),
        *(f"https://{DOCUMENT_HOST}", f"https://{DOCUMENT_HOST}:443/client.json", "https://CLIENTS.example/"),
        *(f"https://{DOCUMENT_HOST}:8443/", "https://clients%2Eexample/", f"https:{DOCUMENT_HOST}"),
    ):
        answer = await declare_api(studio, api(resource))
        assert (answer.status_code, "data.api.resource: " in answer.text) == (400, True), resource
    for resource in (
        f"{own}0/api",
        "https://api.clients.example",
        f"urn:api:{own}",
        f"https://{DOCUMENT_HOST}.example",
    ):
        assert (await declare_api(studio, api(resource))).status_code == 200, resource


async def test_ci_05_a_file_declares_none_of_them_either(studio: Studio) -> None:
    entry = f"applications: [{{application_id: {studio.shop.application_id}, api: {{resource: '%s'}}}}]"
    with pytest.raises(Unfit, match="this address belongs to this service"):
        await apply_document(studio.service, entry % f"{studio.service.base_url}/api")


@pytest.mark.both_databases
async def test_ci_06_the_resource_of_another_application_is_taken_whatever_its_case_and_slash(studio: Studio) -> None:
    storage = studio.service.services.storage
    await declare_api(studio, API)
    for resource in (RESOURCE, f"{RESOURCE}/", RESOURCE.upper().replace("HTTPS", "https")):
        with pytest.raises(ResourceTaken):
            await create_application(storage, name="Copy", project_id=PROJECT, api=api(resource))
        with pytest.raises(ResourceTaken):
            await storage.applications.edit_application(studio.other.application_id, set_fields(api=api(resource)))
    assert (await declare_api(studio, api(f"{RESOURCE}/"))).status_code == 200, "its own may change"


@pytest.mark.both_databases
async def test_ci_06_the_resource_of_a_removed_application_stays_with_its_project(studio: Studio) -> None:
    """People allowed clients access to it, which must not be access to an API of others."""
    storage = studio.service.services.storage
    await declare_api(studio, API)
    await remove_shop(studio)
    with pytest.raises(ResourceTaken):
        await create_application(storage, name="Copy", api=API)
    heir = await create_application(storage, name="Heir", project_id=PROJECT, api=api(f"{RESOURCE}/"))
    assert heir.api_resource == f"{RESOURCE}/"
    with pytest.raises(ResourceTaken):  # nor does it leave the project with an application that moves
        await storage.applications.edit_application(heir.application_id, set_fields(project_id=None))


@pytest.mark.both_databases
async def test_ci_06_the_resource_of_a_deleted_application_is_never_declared_again(studio: Studio) -> None:
    storage = studio.service.services.storage
    await declare_api(studio, API)
    await storage.projects.edit_project(PROJECT, set_project_fields(removed=True))
    await studio.service.services.commands.full_removal.remove_as_operator(PROJECT, ORIGIN)
    for resource in (RESOURCE, f"{RESOURCE}/"):
        with pytest.raises(ResourceTaken):
            await create_application(storage, name="Copy", api=api(resource))
    assert await create_application(storage, name="Copy", api=api(f"{RESOURCE}/new"))


@pytest.mark.both_databases
async def test_ci_07_a_resource_of_this_service_that_was_declared_stops_at_once(studio: Studio) -> None:
    resource = f"{studio.service.base_url}/api"
    machine = await declare_by_old_rules(studio, resource)
    answer = await ask_token(studio.service, "reporter", machine.secret, resource=resource)
    assert oauth_error(answer) == (400, "invalid_target")
    assert (await declare_api(studio, API)).status_code == 200, "another one can be declared"
    token = success_body(await ask_token(studio.service, "reporter", machine.secret, resource=RESOURCE))
    assert (await introspect(machine, token["access_token"]))["active"] is True


async def test_ci_07_a_resource_that_is_reserved_now_keeps_working_and_cannot_be_changed(studio: Studio) -> None:
    resource = f"https://{DOCUMENT_HOST}/api"
    machine = await declare_by_old_rules(studio, resource)
    answer = await ask_token(studio.service, "reporter", machine.secret, resource=resource)
    token = success_body(answer)["access_token"]
    assert (await introspect(machine, token))["active"] is True
    assert (await declare_api(studio, api(resource))).status_code == 200, "saved back unchanged"
    assert (await declare_api(studio, {**api(resource), "scopes": {}})).status_code == 400
    assert (await declare_api(studio, None)).status_code == 200


async def test_ci_07_two_resources_that_differ_in_case_keep_working_and_cannot_be_changed(studio: Studio) -> None:
    storage = studio.service.services.storage
    twin = RESOURCE.replace("matches", "Matches")
    await create_application(storage, name="Twin", api=API)
    machine = await declare_by_old_rules(studio, twin)
    assert success_body(await ask_token(studio.service, "reporter", machine.secret, resource=twin))
    await storage.applications.edit_application(studio.shop.application_id, set_fields(description="Changed"))
    assert (await declare_api(studio, {**api(twin), "scopes": {}})).status_code == 409
