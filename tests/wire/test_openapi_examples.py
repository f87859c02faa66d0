"""The OpenAPI document has examples of what standard clients, machines and scripts send, and they are well formed."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.support.oauth import success_body
from tests.support.service import RunningService
from tests.support.studio import Studio, a_studio, create_administrator

PERMISSIONS = "/api/permissions/"
TOKEN = "/proxy/oauth/token"
# The credentials of the client are in a header, and an audience is always refused, as an actor_token is.
NOT_SENT = {"client_id", "client_secret", "client_assertion", "client_assertion_type", "audience"}
MANAGED = {
    "user": {
        *("get", "create", "search", "save", "block", "unblock", "invite"),
        *("end_sessions", "reset_factors", "export", "erase"),
    },
    **{path: {"list"} for path in ("application", "project", "group", "client", "serviceAccount", "activity")},
    "settings": {"save", "rotate_key", "test_email"},
    "serviceToken": {"create", "delete"},
    "emailSecret": {"create", "delete"},
    "gameSession": {"close"},
}


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


async def document_of(service: RunningService) -> Mapping[str, Any]:
    return success_body(await service.client.get("/openapi.json"))


def bodies(operation: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The examples of an operation's body, by title."""
    [content, *_] = operation.get("requestBody", {"content": {"": {}}})["content"].values()
    return {title: example["value"] for title, example in content.get("examples", {}).items()}


def parameter_values(operation: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for parameter in operation["parameters"]:
        for example in parameter.get("examples", {}).values():
            yield parameter["name"], example["value"]


async def test_every_grant_type_and_token_parameter_has_an_example(service: RunningService) -> None:
    document = await document_of(service)
    examples = bodies(document["paths"][TOKEN]["post"]).values()
    discovery = success_body(await service.client.get("/.well-known/openid-configuration"))
    assert {example["grant_type"] for example in examples} == set(discovery["grant_types_supported"])
    fields = set(document["components"]["schemas"]["TokenFields"]["properties"])
    shown = {name for example in examples for name in example}
    assert {name for name in fields - NOT_SENT - shown if not name.startswith("actor_token")} == set()
    for example in examples:
        response = await service.client.post(TOKEN, data=example)
        assert response.json()["error"] != "unsupported_grant_type"


async def test_authorize_forward_auth_and_the_change_stream_have_examples_of_their_parameters(
    service: RunningService,
) -> None:
    paths = (await document_of(service))["paths"]
    authorize = set(parameter_values(paths["/proxy/oauth/authorize"]["get"]))
    assert {("response_mode", "form_post"), ("prompt", "select_account")} <= authorize
    assert {"acr_values", "claims", "resource", "max_age"} <= {name for name, _ in authorize}
    assert {name for name, _ in parameter_values(paths["/proxy/auth"]["get"])} == {
        "application_id",
        "rule",
        "redirect",
    }
    changes = paths[f"{PERMISSIONS}changes"]["get"]
    assert {name for name, _ in parameter_values(changes)} == {"application_id", "kind"}


async def test_every_action_of_the_management_api_has_an_example(service: RunningService) -> None:
    paths = (await document_of(service))["paths"]
    for path, actions in MANAGED.items():
        shown = {example["action"] for example in bodies(paths[f"{PERMISSIONS}{path}"]["post"]).values()}
        assert actions <= shown, path
    saves = bodies(paths[f"{PERMISSIONS}application"]["post"]).values()
    assert {"api", "protected_sites"} <= {name for example in saves for name in example["data"]}


async def test_no_example_of_the_permissions_interface_is_malformed(studio: Studio) -> None:
    admin = await create_administrator(studio)
    paths = (await document_of(studio.service))["paths"]
    sent = 0
    for path, operations in paths.items():
        if path.startswith(PERMISSIONS) and "post" in operations:
            for title, body in bodies(operations["post"]).items():
                response = await studio.post(path.removeprefix(PERMISSIONS), body, admin.headers)
                assert response.status_code in (200, 404, 409), (path, title, response.text)
                sent += 1
    assert sent >= 30
