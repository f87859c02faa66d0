"""Public keys of applications: readable by everyone, managed by few (interface §4.4, R6)."""

import asyncio
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from msgspec.structs import replace

from gatehouse.keys.key_objects import public_pem
from gatehouse.permissions.model.facts import UserRecord
from gatehouse.permissions.model.rules import ROOT
from gatehouse.permissions.store import EditResult
from tests.support.builders import a_record
from tests.support.keys import first_keys
from tests.support.permission_builders import set_fields, set_project_fields
from tests.support.service import running_service
from tests.support.studio import PROJECT, Studio, a_studio
from tests.support.tokens import application_private_key


def the_pem() -> str:
    return public_pem(application_private_key().public_key())


def key_request(studio: Studio, action: str, **data: object) -> dict[str, object]:
    return {"action": action, "application_id": studio.shop.application_id, "data": data}


async def a_custom_key(studio: Studio) -> dict[str, str]:
    data: dict[str, str] = (
        await studio.expect_ok(
            "application/keys", key_request(studio, "save", public_key=the_pem()), studio.owner.headers
        )
    )["data"]
    return data


async def test_a_custom_key_is_listed_and_published_until_it_is_deleted(studio: Studio) -> None:
    custom_key = await a_custom_key(studio)
    assert custom_key["data"] == the_pem()
    body = await studio.expect_ok("application/keys", key_request(studio, "get"), studio.owner.headers)
    assert body == {"status": "OK", "data": [custom_key]}
    client, shop = studio.service.client, studio.shop.application_id
    published = await client.get(f"/api/permissions/application/publicKeys/{shop}")
    assert published.json() == {"status": "OK", "keys": [custom_key]}
    one = await client.get(f"/api/permissions/application/publicKey/{custom_key['id']}")
    assert one.json() == {"status": "OK", "key": custom_key}
    response_body = await studio.expect_ok(
        "application/keys", key_request(studio, "delete", id=custom_key["id"]), studio.owner.headers
    )
    assert response_body == {"status": "OK"}
    published = await client.get(f"/api/permissions/application/publicKeys/{shop}")
    assert published.json() == {"status": "OK", "keys": []}
    assert (await client.get(f"/api/permissions/application/publicKey/{custom_key['id']}")).status_code == 404


async def test_public_keys_may_be_cached_by_everyone(studio: Studio) -> None:
    custom_key = await a_custom_key(studio)
    paths = (f"publicKeys/{studio.shop.application_id}", f"publicKey/{custom_key['id']}")
    for path in paths:
        address = f"/api/permissions/application/{path}"
        first = await studio.service.client.get(address)
        assert "max-age" in first.headers["cache-control"]
        assert first.headers["access-control-allow-origin"] == "*"
        again = await studio.service.client.get(address, headers={"If-None-Match": first.headers["etag"]})
        assert again.status_code == 304


async def test_unknown_and_removed_look_alike(studio: Studio) -> None:
    custom_key = await a_custom_key(studio)
    storage, client, shop = studio.service.services.storage, studio.service.client, studio.shop.application_id

    async def answers() -> set[tuple[int, str]]:
        paths = (f"publicKeys/{shop}", f"publicKey/{custom_key['id']}", "publicKeys/99999", "publicKey/unknown")
        odd = ("publicKeys/0", "publicKeys/01", "publicKeys/x", "publicKeys/999999999999999999999")
        responses = [await client.get(f"/api/permissions/application/{path}") for path in paths + odd]
        return {(response.status_code, response.text) for response in responses}

    await storage.projects.edit_project(PROJECT, set_project_fields(removed=True))
    [(status, _)] = await answers()
    assert status == 404
    await storage.projects.edit_project(PROJECT, set_project_fields(removed=False))
    assert len(await answers()) == 3
    await storage.applications.edit_application(shop, set_fields(removed=True))
    [(status, _)] = await answers()
    assert status == 404


async def test_the_kid_of_a_user_jwt_is_answered_too(studio: Studio) -> None:
    client = studio.service.client
    kids = [key["kid"] for key in (await client.get("/api/permissions/keys")).json()["keys"]]
    for kid in kids:
        response = await client.get(f"/api/permissions/application/publicKey/{kid}")
        assert response.json()["key"]["data"].startswith("-----BEGIN PUBLIC KEY-----")
    assert len(kids) < len(first_keys())  # those of other purposes are not published


async def test_keys_in_the_directory_are_published_first(installed_url: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    environment = {"GATEHOUSE__APPLICATIONS__KEYS_DIR": str(keys)}
    async with running_service(installed_url, tmp_path, environment=environment) as service:
        studio = await a_studio(service)
        custom = await a_custom_key(studio)
        (keys / str(studio.shop.application_id)).mkdir()
        (keys / str(studio.shop.application_id) / "deploy.pem").write_text(the_pem())
        address = f"/api/permissions/application/publicKeys/{studio.shop.application_id}"
        from_file, stored = (await service.client.get(address)).json()["keys"]
        assert (from_file["data"], stored) == (the_pem(), custom)
        assert "deploy" not in from_file["id"]
        one = await service.client.get(f"/api/permissions/application/publicKey/{from_file['id']}")
        assert one.json()["key"] == from_file


async def test_service_meta_public_key_is_published_under_one_id(studio: Studio) -> None:
    storage, shop = studio.service.services.storage, studio.shop.application_id
    may_publish = {"can_publish_services": {"value": True}}

    def publisher(record: UserRecord) -> EditResult[UserRecord]:
        root = replace(record.root, private_data=may_publish)
        return EditResult(replace(record, scopes={**record.scopes, ROOT: root}), [a_record()])

    await storage.user_records.edit_record(1, studio.owner.user_id, publisher, now=studio.service.clock.now())
    meta = {"name": "Shop service", "public_key": the_pem()}
    save = {"action": "save", "data": {"application_id": shop, "service_meta": meta}}
    address = f"/api/permissions/application/publicKeys/{shop}"
    await studio.expect_ok("application", save, studio.owner.headers)
    [first] = (await studio.service.client.get(address)).json()["keys"]
    assert first["data"] == the_pem()
    await studio.expect_ok("application", save, studio.owner.headers)
    [again] = (await studio.service.client.get(address)).json()["keys"]
    assert again == first
    delete = key_request(studio, "delete", id=first["id"])
    await studio.expect_error(404, "application/keys", delete, studio.owner.headers)
    body = await studio.expect_ok("application/keys", key_request(studio, "get"), studio.owner.headers)
    assert body["data"] == []


async def test_custom_keys_stay_within_ten_under_concurrent_saves(studio: Studio) -> None:
    save = key_request(studio, "save", public_key=the_pem())
    responses = await asyncio.gather(
        *(studio.post("application/keys", save, studio.owner.headers) for _ in range(12))
    )
    assert sorted(response.status_code for response in responses) == [200] * 10 + [409] * 2


def private_pem() -> str:
    raw = application_private_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return raw.decode()


@pytest.mark.parametrize("text", [private_pem(), "", "no key", "A" * 5_000], ids=["private", "empty", "none", "long"])
async def test_ap_07_only_a_sound_public_key_is_taken_as_one(studio: Studio, text: str) -> None:
    error = await studio.expect_error(
        400, "application/keys", key_request(studio, "save", public_key=text), studio.owner.headers
    )
    assert "data.public_key" in error
    assert "MII" not in error


async def test_custom_keys_need_the_right_to_them(studio: Studio) -> None:
    for action in ("get", "save", "delete"):
        ask = key_request(studio, action, public_key=the_pem(), id="x")
        await studio.expect_error(403, "application/keys", ask, studio.other_user.headers)
        unknown = {**ask, "application_id": 99_999}
        await studio.expect_error(403, "application/keys", unknown, studio.other_user.headers)
