"""Discovery metadata (checklist UI-14, R3)."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.service import RunningService, running_service

OPENID = "/.well-known/openid-configuration"
PLAIN = "/.well-known/oauth-authorization-server"
REQUIRED = {
    *("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri", "response_types_supported"),
    *("subject_types_supported", "id_token_signing_alg_values_supported"),
}


@pytest.fixture
async def public_service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    """The service as the public sees it: its base_url is https and not the address it listens on."""
    environment = {"GATEHOUSE__SERVER__BASE_URL": "https://localhost:8443"}
    async with running_service(installed_url, tmp_path, environment=environment) as running:
        yield running


async def read(service: RunningService, path: str = OPENID) -> dict[str, Any]:
    response = await service.client.get(path, headers={"Host": "evil.example"})
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    document: dict[str, Any] = json.loads(response.content)
    return document


async def test_ui_14_the_document_is_valid_and_names_the_issuer_byte_for_byte(public_service: RunningService) -> None:
    document = await read(public_service)
    assert document.keys() >= REQUIRED
    assert document["issuer"] == "https://localhost:8443"
    addresses = {name: value for name, value in document.items() if name.endswith(("_endpoint", "_uri"))}
    assert addresses.keys() >= {"userinfo_endpoint", "revocation_endpoint", "introspection_endpoint", "jwks_uri"}
    assert all(address.startswith("https://localhost:8443/proxy/oauth/") for address in addresses.values())
    assert document["id_token_signing_alg_values_supported"] == ["ES256", "RS256", "EdDSA"]
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["response_types_supported"] == ["code"]
    assert document["response_modes_supported"] == ["query", "form_post"]
    assert "openid" in document["scopes_supported"]
    assert document["subject_types_supported"] == ["public"]
    assert set(document["token_endpoint_auth_methods_supported"]) == {
        *("client_secret_basic", "client_secret_post", "private_key_jwt", "none"),
    }
    assert (document["request_parameter_supported"], document["request_uri_parameter_supported"]) == (False, False)
    assert document["ui_locales_supported"] == ["en", "de"]
    assert all(type(value) in (str, bool, list) for value in document.values())


async def test_az_23_discovery_lists_s256_only(service: RunningService) -> None:
    assert (await read(service))["code_challenge_methods_supported"] == ["S256"]


async def test_both_discovery_urls_return_the_same_public_cacheable_document(service: RunningService) -> None:
    assert await read(service) == await read(service, PLAIN)
    response = await service.client.get(OPENID, headers={"Origin": "https://shop.example"})
    assert response.headers["access-control-allow-origin"] == "*"
    assert response.headers["cache-control"] == "public, max-age=3600"
    again = await service.client.get(OPENID, headers={"If-None-Match": response.headers["etag"]})
    assert again.status_code == 304


async def test_every_url_in_the_discovery_document_is_served(service: RunningService) -> None:
    document = await read(service)
    named = {value for name, value in document.items() if name.endswith(("_endpoint", "_uri"))}
    answers = {address: (await service.client.get(address)).status_code for address in [*named, f"{OPENID}/else"]}
    assert [address for address, status in answers.items() if status == 404] == [f"{OPENID}/else"]
