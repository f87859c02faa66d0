"""OAuth clients over the API: those who may save an application, and only they, manage its clients (R3, R6)."""

import asyncio
from typing import Any

from gatehouse.oauth.model import Client
from tests.support.database_contents import read_all_tables
from tests.support.oauth import REDIRECT, RelyingPartyClient, header_of
from tests.support.permission_builders import holdings_with
from tests.support.studio import (
    IN_PROJECT,
    Studio,
    bearer_headers,
    create_administrator,
    create_person_with,
    secret_document,
)

DAY = 86_400
ACTIONS = ("get", "create", "save", "delete", "rotate", "revoke")
WEB = {"client_id": "web", "name": "Web shop", "profile": "oidc", "redirect_uris": [REDIRECT]}
KEY = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}


def client_request(action: str, of: int | None, /, **data: object) -> dict[str, object]:
    return {"action": action, **({"application_id": of} if of else {}), "data": data}


async def create_client(studio: Studio, **changes: object) -> Any:
    ask = client_request("create", studio.shop.application_id, **(WEB | changes))
    response = await studio.post("client", ask, studio.owner.headers)
    assert (response.status_code, response.headers["cache-control"]) == (200, "no-store"), response.text
    return response.json()["data"]


def relying_party(studio: Studio, record: Any, secret: str = "") -> RelyingPartyClient:
    client = Client(client_id=record["client_id"], name="", profile="oidc", created_at=0)  # type: ignore[arg-type]
    return RelyingPartyClient(service=studio.service, client=client, secret=secret or record["client_secret"])


async def is_known(studio: Studio, record: Any, secret: str) -> bool:
    """Whether the token endpoint accepts the secret: then the error is about the code."""
    response = await relying_party(studio, record, secret).redeem("no such code")
    assert response.json()["error"] in ("invalid_grant", "invalid_client")
    return bool(response.json()["error"] == "invalid_grant")


async def test_clients_are_managed_with_the_right_to_save_their_application_and_with_nothing_less(
    studio: Studio,
) -> None:
    shop, other = studio.shop.application_id, studio.other.application_id
    await create_client(studio)
    account = {"action": "save", "data": {"project_id": "mind_games", "name": "ci"}}
    accounts = [
        (
            await studio.expect_ok(
                "serviceAccount", {**account, "data": {**account["data"], **more}}, studio.owner.headers
            )
        )
        for more in ({"name": "able", "roles": ["project_administrator"]}, {"name": "idle"})  # type: ignore[dict-item]
    ]
    robots = [bearer_headers(created["data"]["jwt"]) for created in accounts]
    vouched = bearer_headers(studio.owner.jwt, Service_Jwt=await studio.service_jwt())
    may = (
        (await create_administrator(studio)).headers,
        studio.owner.headers,
        (await create_person_with(studio, {IN_PROJECT: holdings_with("project_administrator")})).headers,
        (await create_person_with(studio, secret_data=secret_document("canSave"))).headers,
        vouched,
        robots[0],
    )
    key = await studio.access_key()
    exchanged = await studio.expect_ok(
        "exchangeJwt", {"jwt": studio.owner.jwt, "factor": "the device"}, bearer_headers(key)
    )
    may_not = (
        (403, studio.other_user.headers),
        (
            403,
            (
                await create_person_with(
                    studio, secret_data=secret_document("canCreateJwt", "canModifySchema", "canRead")
                )
            ).headers,
        ),
        (
            403,
            (await create_person_with(studio, secret_data=secret_document("canSave"), application_id=other)).headers,
        ),
        (403, bearer_headers(studio.owner.jwt, Service_Jwt=await studio.service_jwt(studio.other))),
        (403, robots[1]),
        (403, bearer_headers(exchanged["jwt"], Factor="the device")),  # not valid for this
        (403, bearer_headers(key)),  # of the application itself, which is not a person
        (401, {}),
    )
    for number, headers in enumerate(may):
        of = WEB | {"client_id": f"of-{number}"}
        await studio.expect_ok("client", client_request("create", shop, **of), headers)
        for action in ("get", "save", "rotate", "revoke", "delete"):
            await studio.expect_ok("client", client_request(action, shop, client_id=of["client_id"]), headers)
    for status, headers in may_not:
        for action in ACTIONS:
            for client_id in ("web", "no_one"):  # whether it exists is not revealed
                await studio.expect_error(
                    status, "client", client_request(action, shop, **WEB | {"client_id": client_id}), headers
                )
    (left,) = (await studio.expect_ok("client", client_request("get", shop), studio.owner.headers))["data"]
    assert (left["client_id"], left["version"]) == ("web", 1)


async def test_client_fields_beyond_the_application_require_an_administrator_in_person(studio: Studio) -> None:
    admin = await create_administrator(studio)
    shop, other = studio.shop.application_id, studio.other.application_id
    vouched = bearer_headers(admin.jwt, Service_Jwt=await studio.service_jwt())
    record = await create_client(studio)
    assert (record["may_exchange"], record["first_party"], record["redirect_hosts"]) == (False, False, [])
    claim = {"roles": {"application_id": other, "told": "roles"}}
    native = {"client_id": "native", "name": "Old", "redirect_uris": [REDIRECT]}
    for reaching in (
        {"first_party": True},
        {"game_id_token": True, "profile": "oidc"},
        {"may_exchange": True},
        {"redirect_hosts": ["shop.example"], "profile": "native"},
        {"claims": claim},
        {"redirect_uris": ["oc://shop.example"], "profile": "oidc"},
    ):
        for headers in (studio.owner.headers, vouched):
            await studio.expect_error(403, "client", client_request("create", shop, **native | reaching), headers)
    for headers, exchanges in ((studio.owner.headers, False), (admin.headers, True)):
        of = native | {"client_id": f"native-{exchanges}".lower()}
        new = (await studio.expect_ok("client", client_request("create", shop, **of), headers))["data"]
        assert (new["profile"], new["may_exchange"]) == ("native", exchanges)
    await studio.expect_ok(
        "client", client_request("save", shop, client_id="web", first_party=True, claims=claim), admin.headers
    )
    for headers in (studio.owner.headers, vouched):
        for action in ("save", "rotate", "delete"):
            error = await studio.expect_error(403, "client", client_request(action, shop, client_id="web"), headers)
            assert "first_party, claims of another application" in error


async def test_clients_of_no_application_are_an_administrators(studio: Studio) -> None:
    admin, shop = await create_administrator(studio), studio.shop.application_id
    await create_client(studio)
    lone = await studio.expect_ok(
        "client", client_request("create", None, **WEB | {"client_id": "lone"}), admin.headers
    )
    assert lone["data"]["application_id"] is None
    for action in ACTIONS:
        await studio.expect_error(403, "client", client_request(action, None, **WEB), studio.owner.headers)
    every = (await studio.expect_ok("client", client_request("get", None), admin.headers))["data"]
    assert [client["client_id"] for client in every] == ["lone", "web"]
    for action in ("get", "save", "rotate", "revoke", "delete"):
        await studio.expect_error(404, "client", client_request(action, shop, client_id="lone"), admin.headers)
        await studio.expect_ok("client", client_request(action, None, client_id="lone"), admin.headers)
    assert "cannot be moved to another application" in await studio.expect_error(
        400, "client", client_request("save", None, client_id="web", application_id=None), admin.headers
    )
    await studio.expect_ok(
        "client", client_request("save", None, client_id="web", application_id=shop, name="Ours"), admin.headers
    )


WRONG: tuple[tuple[dict[str, object], str], ...] = (
    ({"client_id": "a b"}, "data.client_id: "),
    ({"client_id": 7}, "data.client_id"),
    ({"client_id": ""}, "data.client_id: "),
    ({"name": ""}, "data.name: "),
    ({"name": None}, "data.name"),
    ({"name": "a\u202eb"}, "data.name: "),
    ({"profile": "saml"}, "data.profile"),
    ({"redirect_uris": [REDIRECT, "http://shop.example/"]}, "data.redirect_uris[1]: "),
    (
        {"redirect_uris": [REDIRECT, f"{REDIRECT}?C%6Fde=evil"]},
        "data.redirect_uris[1]: the query parameter C%6Fde is reserved",
    ),
    (
        {"post_logout_uris": [f"{REDIRECT}?state=evil"]},
        "data.post_logout_uris[0]: the query parameter state is reserved",
    ),
    ({"redirect_uris": []}, "data.redirect_uris: "),
    ({"redirect_uris": REDIRECT}, "data.redirect_uris"),
    ({"redirect_hosts": ["Shop.example"]}, "data.redirect_hosts[0]: "),
    ({"post_logout_uris": ["javascript:alert(1)"]}, "data.post_logout_uris[0]: "),
    ({"scopes": ["openid", "all"]}, "data.scopes[1]: "),
    ({"origins": ["https://shop.example/path"]}, "data.origins[0]: "),
    ({"backchannel_logout_uri": "ftp://shop.example/"}, "data.backchannel_logout_uri: "),
    ({"tos_uri": "http://shop.example/"}, "data.tos_uri: "),
    ({"jwks": {"keys": [KEY | {"d": "secret"}]}}, "data.jwks: "),
    ({"jwks": {"keys": [KEY]}, "public": True}, "data.jwks: "),
    ({"jwks": []}, "data.jwks"),
    ({"claims": {"sub": {"application_id": 50001, "told": "roles"}}}, "data.claims: "),
    ({"claims": {"roles": {"application_id": 0, "told": "roles"}}}, "data.claims"),
    ({"claims": {"roles": {"application_id": 50001, "told": "passwords"}}}, "data.claims"),
    ({"token_settings": {"access_seconds": 10**9}}, "data.token_settings.access_seconds: "),
    ({"token_settings": {"lives": 1}}, "lives"),
    ({"device_grant": True, "profile": "native"}, "data.device_grant: "),
    ({"public": True, "profile": "native"}, "data.public: "),
    ({"public": "yes"}, "data.public"),
    ({"application_id": 1}, "data.application_id: "),
    ({"client_secret": "mine"}, "client_secret"),
    ({"secret": "mine"}, "secret"),
)


async def test_invalid_client_field_is_refused_by_name(studio: Studio) -> None:
    shop, admin = studio.shop.application_id, await create_administrator(studio)
    for data, field in WRONG:
        error = await studio.expect_error(400, "client", client_request("create", shop, **WEB | data), admin.headers)
        assert field in error, (data, error)
    nameless = {name: value for name, value in WEB.items() if name != "name"}
    assert "data.name: " in await studio.expect_error(
        400, "client", client_request("create", shop, **nameless), studio.owner.headers
    )
    assert (await studio.expect_ok("client", client_request("get", shop), studio.owner.headers))["data"] == []
    await create_client(studio)
    for data, field in (({"profile": "native"}, "data.profile: "), ({"public": True}, "data.public: ")):
        error = await studio.expect_error(
            400, "client", client_request("save", shop, client_id="web", **data), studio.owner.headers
        )
        assert field in error
    await create_client(studio, client_id="public", public=True)
    error = await studio.expect_error(
        400, "client", client_request("rotate", shop, client_id="public"), studio.owner.headers
    )
    assert "this client has no secret" in error
    for action in ("save", "delete", "rotate", "revoke", "get"):
        await studio.expect_error(
            404, "client", client_request(action, shop, client_id="never was"), studio.owner.headers
        )
    await studio.expect_error(400, "client", client_request("destroy", shop, client_id="web"), studio.owner.headers)


async def test_a_client_lives_through_the_api_and_its_secrets_work_and_end_as_they_should(studio: Studio) -> None:
    shop, headers = studio.shop.application_id, studio.owner.headers
    record = await create_client(studio)
    first = record.pop("client_secret")
    assert len(first) >= 43
    assert (await studio.expect_ok("client", client_request("get", shop), headers))["data"] == [record]
    assert (await studio.expect_ok("client", client_request("get", shop, client_id="web"), headers))["data"] == record
    assert "in use or was used before" in await studio.expect_error(
        409, "client", client_request("create", shop, **WEB), headers
    )

    saved = await studio.expect_ok(
        "client", client_request("save", shop, **record | {"origins": ["https://a.example"]}), headers
    )
    assert saved["data"] == record | {"origins": ["https://a.example"], "version": 2}
    stale = client_request("save", shop, client_id="web", name="Late", version=1)
    assert "changed in the meantime" in await studio.expect_error(409, "client", stale, headers)
    cleared = await studio.expect_ok("client", client_request("save", shop, client_id="web", origins=None), headers)
    assert cleared["data"] == record | {"version": 3}

    tokens = await signed_in(studio, record, first)
    secrets = [first]
    for _ in range(2):
        data = (await studio.expect_ok("client", client_request("rotate", shop, client_id="web"), headers))["data"]
        secrets.append(data["client_secret"])
        assert [bool(secret.get("ends")) for secret in data["secrets"]] == [True, False]
    assert [await is_known(studio, record, secret) for secret in secrets] == [False, True, True]
    await studio.service.clock.advance(7 * DAY + 1)
    assert [await is_known(studio, record, secret) for secret in secrets] == [False, False, True]

    newest = relying_party(studio, record, secrets[-1])
    refreshed = (await newest.refresh(tokens["refresh_token"])).json()
    assert await studio.expect_ok("client", client_request("revoke", shop, client_id="web"), headers) == {
        "status": "OK",
        "revoked": 1,
    }
    assert (await newest.refresh(refreshed["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await newest.userinfo(refreshed["access_token"])).status_code == 401

    tokens = await signed_in(studio, record, secrets[-1])
    assert (await newest.userinfo(tokens["access_token"])).status_code == 200
    assert await studio.expect_ok("client", client_request("delete", shop, client_id="web"), headers) == {
        "status": "OK"
    }
    assert (await newest.userinfo(tokens["access_token"])).status_code == 401
    assert (await newest.refresh(tokens["refresh_token"])).json()["error"] == "invalid_client"
    await studio.expect_error(404, "client", client_request("get", shop, client_id="web"), headers)
    assert "was used before" in await studio.expect_error(
        409, "client", client_request("create", shop, **WEB), headers
    )

    records = await of_client(studio)
    assert [entry.event for entry in records] == [
        "client.created",
        *["client.changed"] * 2,
        *["client.secret_rotated"] * 2,
        "client.tokens_revoked",
        "client.removed",
    ]
    assert {entry.actor for entry in records} == {studio.owner.user_id}
    everything = str(await read_all_tables(studio.service.services.storage))
    assert not [secret for secret in secrets if secret in everything], "only a digest of the secret is stored"


async def of_client(studio: Studio) -> list[Any]:
    rows = (await read_all_tables(studio.service.services.storage))["audit_events"]
    return [row for row in rows if row.subject == "web" and row.event.startswith("client.")]


async def signed_in(studio: Studio, record: Any, secret: str) -> dict[str, Any]:
    user = await studio.service.services.storage.accounts.user(studio.other_user.user_id)
    client = relying_party(studio, record, secret)
    return await client.tokens(await client.issue_code(user))


async def test_new_oidc_client_needs_pkce_unless_the_request_says_otherwise(studio: Studio) -> None:
    assert (await create_client(studio))["require_pkce"] is True
    assert (await create_client(studio, client_id="old", require_pkce=False))["require_pkce"] is False
    save = client_request("save", studio.shop.application_id, client_id="old", name="Renamed")
    assert (await studio.expect_ok("client", save, studio.owner.headers))["data"]["require_pkce"] is False
    save = client_request("save", studio.shop.application_id, client_id="old", require_pkce=None)
    assert (await studio.expect_ok("client", save, studio.owner.headers))["data"]["require_pkce"] is True
    native = await create_client(studio, client_id="native", profile="native")
    assert native["require_pkce"] is False


async def test_new_oidc_client_gets_es256_and_keeps_its_algorithm_until_another_is_named(studio: Studio) -> None:
    async def save(**fields: Any) -> str:
        request = client_request("save", studio.shop.application_id, **{"client_id": "web", **fields})
        return algorithm((await studio.expect_ok("client", request, studio.owner.headers))["data"])

    def algorithm(entry: Any) -> str:
        return str(entry["token_settings"]["id_token_signed_response_alg"])

    named = {"id_token_signed_response_alg": "RS256"}
    created = await create_client(studio)
    assert algorithm(created) == "ES256"
    assert algorithm(await create_client(studio, client_id="native", profile="native")) == "RS256"
    assert algorithm(await create_client(studio, client_id="rsa", token_settings=named)) == "RS256"
    tokens = await signed_in(studio, created, created["client_secret"])
    assert header_of(tokens["id_token"])["alg"] == "ES256"
    assert await save(name="Renamed") == "ES256"
    assert await save(token_settings={"access_seconds": 600}) == "ES256"
    assert await save(token_settings=named) == "RS256"
    for settings in (None, {}, {"access_seconds": 600}):
        assert await save(token_settings=settings) == "RS256"
    refused = client_request(
        "save", studio.shop.application_id, client_id="web", token_settings={"id_token_signed_response_alg": "HS256"}
    )
    assert (await studio.post("client", refused, studio.owner.headers)).status_code == 400


async def test_only_one_concurrent_versioned_save_wins_and_all_unversioned_ones_do(studio: Studio) -> None:
    shop, headers = studio.shop.application_id, studio.owner.headers
    await create_client(studio)
    for versions, won in (({"version": 1}, [200, 409, 409, 409]), ({}, [200] * 4)):
        responses = await asyncio.gather(
            *(
                studio.post(
                    "client", client_request("save", shop, client_id="web", name=f"N{number}", **versions), headers
                )
                for number in range(4)
            )
        )
        assert sorted(response.status_code for response in responses) == won
    responses = await asyncio.gather(
        *(
            studio.post("client", client_request("create", shop, **WEB | {"client_id": "new"}), headers)
            for _ in range(3)
        )
    )
    assert sorted(response.status_code for response in responses) == [200, 409, 409]


async def test_clients_of_a_removed_application_are_gone_for_who_saved_it(studio: Studio) -> None:
    shop = studio.shop.application_id
    record = await create_client(studio)
    await studio.expect_ok(
        "application", {"action": "delete", "data": {"application_id": shop}}, studio.owner.headers
    )
    await studio.expect_error(404, "client", client_request("get", shop), studio.owner.headers)
    every = await studio.expect_ok(
        "client", client_request("get", None), (await create_administrator(studio)).headers
    )
    assert [client["client_id"] for client in every["data"]] == [record["client_id"]]


async def test_the_openapi_document_tells_of_it(studio: Studio) -> None:
    document: Any = (await studio.service.client.get("/openapi.json")).json()
    assert document["paths"]["/api/permissions/client"]["post"]["operationId"] == "permissions.client"
    record = document["components"]["schemas"]["ClientEntry"]["properties"]
    assert {"client_id", "redirect_uris", "token_settings", "secrets", "client_secret"} <= set(record)
