"""Client credentials: clients and service accounts get access tokens for APIs of applications (R9)."""

from secrets import token_hex
from typing import Any, Final

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from gatehouse.audit.events import AuditEvent
from gatehouse.oauth.model import SCOPES
from gatehouse.oauth.vocabulary import ASSERTION_TYPE, GROUPS, PERMISSIONS, ROLES
from gatehouse.permissions.documents.apis import RESERVED_SCOPES
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.rules import ROOT
from tests.support.authenticator import from_base64url, to_base64url
from tests.support.builders import ORIGIN
from tests.support.oauth import (
    TOKEN,
    RelyingPartyClient,
    a_native_client,
    a_public_client,
    an_oidc_client,
    basic_auth,
    claims_of,
    header_of,
    oauth_error,
    success_body,
)
from tests.support.service import RunningService
from tests.support.signed_tokens import distrust_all
from tests.support.studio import (
    PROJECT,
    Studio,
    a_studio,
    audit_records,
    own_record,
    put_roles,
    role_granting,
    set_user_roles,
)

RESOURCE: Final = "https://api.mind.example/matches"
API: Final = {
    "resource": RESOURCE,
    "scopes": {
        "match.report": {"title": "Report match results", "description": "Write results of finished matches."},
        "match.read": {"title": "Read matches"},
    },
}


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


@pytest.fixture
async def api(studio: Studio) -> Application:
    """The shop, which declares an API for its own clients."""
    await declare_api(studio, API)
    return studio.shop


@pytest.fixture
async def machine(studio: Studio, api: Application) -> RelyingPartyClient:
    """A confidential client of the shop."""
    return await an_oidc_client(studio.service, "reporter", application_id=api.application_id)


async def declare_api(studio: Studio, api: object) -> httpx2.Response:
    data = {"application_id": studio.shop.application_id, "api": api}
    ask = {"action": "save", "data": data, "options": {"full": True}}
    return await studio.post("application", ask, studio.owner.headers)


async def ask_token(service: RunningService, client_id: str, secret: str, **fields: str) -> httpx2.Response:
    body = {"grant_type": "client_credentials", **fields}
    return await service.client.post(TOKEN, data=body, headers={"Authorization": basic_auth(client_id, secret)})


async def machine_token(machine: RelyingPartyClient, **fields: str) -> dict[str, Any]:
    """A token for the API; with an empty `resource` one that no API accepts, which has no scope."""
    scope = "" if fields.get("resource") == "" else "match.report"
    fields = {"resource": RESOURCE, "scope": scope, **fields}
    return success_body(await ask_token(machine.service, machine.client.client_id, machine.secret, **fields))


async def introspect(machine: RelyingPartyClient, token: str) -> dict[str, Any]:
    response = await machine.service.client.post(
        "/proxy/oauth/introspect", data={"token": token}, headers=machine.headers
    )
    return success_body(response)


async def test_an_application_declares_its_api_and_reads_it_back(studio: Studio) -> None:
    saved = success_body(await declare_api(studio, API))["data"]
    assert saved["api"] == API
    assert (await declare_api(studio, None)).json()["data"].keys().isdisjoint({"api"})


MALFORMED: Final = (
    ({}, "data.api.resource"),
    ({"resource": "matches"}, "data.api.resource"),
    ({"resource": RESOURCE + "#x"}, "data.api.resource"),
    ({"resource": "https://x/" + "a" * 256}, "data.api.resource"),
    ({**API, "scopes": {"openid": {"title": "x"}}}, "data.api.scopes.openid"),
    ({**API, "scopes": {"a b": {"title": "x"}}}, "data.api.scopes.a b"),
    ({**API, "scopes": {"a": {}}}, "data.api.scopes.a.title"),
    ({**API, "access": "all"}, "data.api.access"),
    ({**API, "clients": ["x"]}, "data.api.clients"),
    ({**API, "token_seconds": 59}, "data.api.token_seconds"),
    ({**API, "more": 1}, "data.api.more"),
)


async def test_malformed_api_is_refused_with_its_place(studio: Studio) -> None:
    for api, place in MALFORMED:
        response = await declare_api(studio, api)
        assert response.status_code == 400, api
        assert place in response.text


def test_reserved_scopes_contain_all_openid_scopes() -> None:
    assert {*SCOPES, ROLES, GROUPS, PERMISSIONS} <= RESERVED_SCOPES


async def test_mt_01_a_confidential_client_gets_a_jwt_for_the_api_it_names(
    studio: Studio, machine: RelyingPartyClient
) -> None:
    body = await machine_token(machine, scope="match.report openid roles unknown")
    token, now = body.pop("access_token"), studio.service.clock.now()
    assert body == {"token_type": "Bearer", "expires_in": 300, "scope": "match.report"}
    assert header_of(token).keys() == {"alg", "kid", "typ"}
    assert header_of(token)["typ"] == "at+jwt"
    keys = KeySet.import_key_set((await studio.service.client.get("/proxy/oauth/keys")).json())
    claims = jwt.decode(token, keys, algorithms=["RS256"]).claims
    assert claims.pop("jti").startswith("client.")
    assert claims == {
        "iss": studio.service.base_url,
        "iat": now,
        "exp": now + 300,
        "sub": "client:reporter",
        "aud": RESOURCE,
        "client_id": "reporter",
        "scope": "match.report",
    }


async def test_mt_02_only_clients_that_the_api_admits_get_a_token_for_it(
    studio: Studio, machine: RelyingPartyClient
) -> None:
    service = studio.service
    stranger = await an_oidc_client(service, "stranger", application_id=studio.other.application_id)

    async def ask(relying: RelyingPartyClient, **fields: str) -> httpx2.Response:
        return await ask_token(service, relying.client.client_id, relying.secret, **{"resource": RESOURCE, **fields})

    assert oauth_error(await ask(stranger)) == (400, "invalid_target")
    assert oauth_error(await ask(machine, resource=RESOURCE + "/")) == (400, "invalid_target")
    assert oauth_error(await ask(machine, scope='match.report "')) == (400, "invalid_scope")
    await declare_api(studio, {**API, "access": "any"})  # with consent, which no machine has
    assert oauth_error(await ask(stranger)) == (400, "invalid_target")
    await declare_api(studio, {**API, "access": "listed", "clients": ["stranger"], "token_seconds": 60})
    assert success_body(await ask(stranger))["expires_in"] == 60
    public = await a_public_client(service, application_id=studio.shop.application_id)
    fields = {"grant_type": "client_credentials", "client_id": public.client.client_id, "resource": RESOURCE}
    assert oauth_error(await service.client.post(TOKEN, data=fields)) == (400, "unauthorized_client")
    assert oauth_error(await ask_token(service, "reporter", "wrong")) == (401, "invalid_client")


async def test_mt_03_a_token_of_a_machine_is_accepted_nowhere_else(
    studio: Studio, machine: RelyingPartyClient
) -> None:
    service = studio.service
    jwts = [
        (await machine_token(machine))["access_token"],
        (await machine_token(machine, resource=""))["access_token"],
    ]
    account = await create_account(studio)
    jwts.append(
        success_body(await ask_token(service, account["user_id"], account["jwt"], resource=RESOURCE))["access_token"]
    )
    for token in jwts:
        bearer = {"Authorization": f"Bearer {token}"}
        own = own_record(studio.shop)
        for headers in (bearer, {**bearer, "Factor": "x"}, {**studio.owner.headers, "Service-Jwt": token}):
            response = await studio.post("meta/data", own, headers)
            assert response.status_code in (401, 403), response.text
        for path in ("userinfo", "exchange", "exchangeToken"):
            answer = await service.client.post(f"/proxy/oauth/{path}", headers=bearer)
            assert oauth_error(answer) == (401, "invalid_token")
        hint = {"id_token_hint": token, "client_id": "reporter"}
        logout = await service.client.get("/proxy/oauth/logout", params=hint)
        assert logout.status_code == 400
        assert oauth_error(await machine.refresh(token)) == (400, "invalid_grant")


@pytest.mark.both_databases
async def test_mt_04_introspection_and_revocation_cover_tokens_of_machines(
    studio: Studio, machine: RelyingPartyClient
) -> None:
    service = studio.service
    stranger = await an_oidc_client(service, "stranger", application_id=studio.other.application_id)
    sibling = await an_oidc_client(service, "sibling", application_id=studio.shop.application_id)
    for fields, audience in (({}, RESOURCE), ({"resource": ""}, service.base_url)):
        first, second = [(await machine_token(machine, **fields))["access_token"] for _ in range(2)]
        for relying in (machine, sibling):
            about = await introspect(relying, first)
            assert (about["active"], about["sub"], about["aud"]) == (True, "client:reporter", [audience])
        assert await introspect(stranger, first) == {"active": False}
        for relying in (stranger, sibling):  # only the machine itself revokes, and the answer tells nothing
            answer = await service.client.post("/proxy/oauth/revoke", data={"token": first}, headers=relying.headers)
            assert answer.status_code == 200
        assert (await introspect(machine, first))["active"] is True
        for _ in range(2):
            await service.client.post("/proxy/oauth/revoke", data={"token": first}, headers=machine.headers)
        assert await introspect(machine, first) == {"active": False}
        assert (await introspect(machine, second))["active"] is True
    [_, _] = await audit_records(studio, AuditEvent.MACHINE_TOKEN_REVOKED)
    await declare_api(studio, None)
    third = (await machine_token(machine, resource=""))["access_token"]
    assert (await introspect(machine, third))["active"] is True
    await service.clock.advance(300)
    assert await introspect(machine, third) == {"active": False}


async def test_mt_04_a_forged_token_and_one_from_before_a_distrust_are_inactive(
    studio: Studio, machine: RelyingPartyClient
) -> None:
    opaque = (await machine_token(machine, resource=""))["access_token"]
    signed = (await machine_token(machine))["access_token"]
    forged = to_base64url(from_base64url(opaque).replace(b"client:reporter", b"client:reportes"))
    assert len(forged) == len(opaque)
    assert await introspect(machine, forged) == {"active": False}
    await distrust_all(studio.service.services)
    for token in (opaque, signed):
        assert await introspect(machine, token) == {"active": False}


@pytest.mark.both_databases
async def test_ci_04_revoking_the_tokens_of_a_client_ends_those_it_got_for_itself(
    studio: Studio, machine: RelyingPartyClient
) -> None:
    sibling = await an_oidc_client(studio.service, "sibling", application_id=studio.shop.application_id)
    old = [(await machine_token(machine, **fields))["access_token"] for fields in ({}, {"resource": ""})]
    other = (await machine_token(sibling))["access_token"]
    body = {"action": "revoke", "application_id": studio.shop.application_id, "data": {"client_id": "reporter"}}
    assert (await studio.expect_ok("client", body, studio.owner.headers))["revoked"] == 0
    for token in old:
        assert await introspect(machine, token) == {"active": False}
    for fields in ({}, {"resource": ""}):  # within the same second
        assert (await introspect(machine, (await machine_token(machine, **fields))["access_token"]))["active"] is True
    assert (await introspect(sibling, other))["active"] is True


async def test_machine_tokens_are_recorded_once_an_hour(studio: Studio, machine: RelyingPartyClient) -> None:
    for _ in range(3):
        await machine_token(machine)
    [record] = await audit_records(studio, AuditEvent.MACHINE_TOKEN_MADE)
    assert (record.actor, record.subject) == ("client:reporter", "reporter")
    await studio.service.clock.advance(3_600)
    await machine_token(machine)
    assert len(await audit_records(studio, AuditEvent.MACHINE_TOKEN_MADE)) == 2


async def test_mt_05_a_service_account_gets_tokens_with_its_jwt_until_it_is_revoked(
    studio: Studio, machine: RelyingPartyClient
) -> None:
    service = studio.service
    await put_roles(studio, role_granting("reporter"))
    account = await create_account(studio)
    await set_user_roles(studio, account["user_id"], {ROOT: ["reporter"]})
    fields = {"resource": RESOURCE, "scope": "match.report roles"}
    body = success_body(await ask_token(service, account["user_id"], account["jwt"], **fields))
    claims = claims_of(body["access_token"])
    assert (claims["sub"], claims["client_id"]) == (account["user_id"], account["user_id"])
    assert (claims["scope"], claims["roles"]) == ("match.report roles", ["reporter"])
    assert (await introspect(machine, body["access_token"]))["active"] is True
    other, own = await create_account(studio), account["user_id"]
    for name, secret in ((own, machine.secret), ("reporter", account["jwt"]), (own, other["jwt"])):
        assert oauth_error(await ask_token(service, name, secret, **fields)) == (401, "invalid_client")
    ended = success_body(await ask_token(service, other["user_id"], other["jwt"], **fields))["access_token"]
    assert (await introspect(machine, ended))["active"] is True
    await service.services.accounts.sessions.sign_out_everywhere(other["user_id"], ORIGIN)
    assert await introspect(machine, ended) == {"active": False}
    revoke = {"action": "delete", "data": {"project_id": PROJECT, "user_id": account["user_id"]}}
    await studio.expect_ok("serviceAccount", revoke, studio.owner.headers)
    assert await introspect(machine, body["access_token"]) == {"active": False}
    refused = await ask_token(service, account["user_id"], account["jwt"], **fields)
    assert oauth_error(refused) == (401, "invalid_client")


@pytest.mark.usefixtures("api")
async def test_mt_06_a_service_account_with_a_key_signs_an_assertion_and_its_jwt_is_not_enough(
    studio: Studio,
) -> None:
    service = studio.service
    private = generate_private_key(65537, 2048)
    pem = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    account = await create_account(studio, public_key=pem)
    refused = await ask_token(service, account["user_id"], account["jwt"], resource=RESOURCE)
    assert oauth_error(refused) == (401, "invalid_client")
    now = service.clock.now()
    claims = {"iss": account["user_id"], "sub": account["user_id"], "aud": service.base_url, "exp": now + 60}
    other = generate_private_key(65537, 2048)

    async def ask(key: Any, kind: str = ASSERTION_TYPE, **changes: object) -> httpx2.Response:
        signed = jwt.encode({"alg": "RS256"}, {**claims, "jti": token_hex(8), **changes}, RSAKey.import_key(key))
        proof = {"client_assertion": signed, "client_assertion_type": kind}
        body = {"grant_type": "client_credentials", "resource": RESOURCE, **proof}
        return await service.client.post(TOKEN, data=body)

    assert claims_of(success_body(await ask(private))["access_token"])["sub"] == account["user_id"]
    assert oauth_error(await ask(other)) == (401, "invalid_client")
    assert oauth_error(await ask(private, "urn:other")) == (401, "invalid_client")
    assert oauth_error(await ask(private, aud="https://other.example")) == (401, "invalid_client")
    for ranges, status in ((["10.0.0.0/8"], 401), (["127.0.0.0/8"], 200)):
        bound = await create_account(studio, public_key=pem, ip_ranges=ranges)
        response = await ask(private, iss=bound["user_id"], sub=bound["user_id"])
        assert response.status_code == status, response.text
    assert success_body(await ask(private, jti="once"))
    assert oauth_error(await ask(private, jti="once")) == (401, "invalid_client")


@pytest.mark.both_databases
@pytest.mark.usefixtures("api")
async def test_mt_22_a_machine_gets_tokens_for_itself_and_signs_no_one_in(studio: Studio) -> None:
    service, here = studio.service, studio.shop.application_id

    async def save(action: str, **fields: object) -> httpx2.Response:
        data = {"client_id": "nightly", "name": "Nightly", "profile": "oidc", "machine": True, **fields}
        return await studio.post(
            "client", {"action": action, "application_id": here, "data": data}, studio.owner.headers
        )

    for field, value in (
        ("redirect_uris", ["https://shop.example/cb"]),
        ("post_logout_uris", ["https://shop.example/out"]),
        ("scopes", ["openid"]),
        ("device_grant", True),
        ("public", True),
    ):
        refused = await save("create", **{field: value})
        assert (refused.status_code, f"data.{field}: " in refused.json()["error"]) == (400, True), field
    assert (await save("create", profile="native")).status_code == 400
    created = success_body(await save("create"))
    secret = created["data"]["client_secret"]
    assert (created["data"]["machine"], created["data"]["redirect_uris"], created["data"]["scopes"]) == (True, [], [])
    fields = {"resource": RESOURCE, "scope": "match.read"}
    assert success_body(await ask_token(service, "nightly", secret, **fields))["scope"] == "match.read"
    assert (await save("save", redirect_uris=["https://shop.example/cb"])).status_code == 400
    question = {"response_type": "code", "client_id": "nightly", "redirect_uri": "https://shop.example/cb"}
    page = await service.client.get("/proxy/oauth/authorize", params={**question, "scope": "openid"})
    assert (page.status_code, page.headers.get("location")) == (400, None)
    headers = {"Authorization": basic_auth("nightly", secret)}
    device = await service.client.post("/proxy/oauth/device_authorization", headers=headers)
    assert device.status_code in (400, 401)


async def test_mt_23_a_machine_that_is_granted_nothing_it_asked_for_is_told_so(machine: RelyingPartyClient) -> None:
    service, (name, secret) = machine.service, (machine.client.client_id, machine.secret)
    for fields in (
        {"resource": RESOURCE, "scope": "match.delete"},
        {"resource": RESOURCE, "scope": "openid roles"},
        {"scope": "match.read"},
    ):
        assert oauth_error(await ask_token(service, name, secret, **fields)) == (400, "invalid_scope"), fields
    assert success_body(await ask_token(service, name, secret, resource=RESOURCE))["scope"] == ""


async def test_native_clients_have_no_client_credentials(service: RunningService) -> None:
    native = await a_native_client(service)
    body = {"grant_type": "client_credentials", "client_id": "web", "redirect_uri": native.redirect_uri}
    assert oauth_error(await service.client.post(TOKEN, data=body)) == (401, "invalid_client")


async def create_account(studio: Studio, **data: object) -> Any:
    ask = {"action": "save", "data": {"project_id": PROJECT, "name": token_hex(4), **data}}
    return (await studio.expect_ok("serviceAccount", ask, studio.owner.headers))["data"]
