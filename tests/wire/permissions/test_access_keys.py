"""Access keys: managed at accessKey, used at meta/data (interface §4.8; checklist section 13)."""

import asyncio
import re
from pathlib import Path

import httpx2
import pytest

from gatehouse.kernel.digests import sha256
from gatehouse.permissions.model.application import Application
from tests.support.database_contents import read_all_tables, tables_that_mention
from tests.support.permission_builders import set_fields, set_project_fields
from tests.support.service import running_service
from tests.support.studio import PROJECT, Studio, a_studio, own_record

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def key_request(action: str, application: Application, **data: object) -> dict[str, object]:
    return {"action": action, "application_id": application.application_id, "data": data}


def bearer_headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def read_with(studio: Studio, key: str, client: httpx2.AsyncClient | None = None) -> int:
    """The status of reading the owner's record with that key."""
    response = await (client or studio.service.client).post(
        "/api/permissions/meta/data", json=own_record(studio.shop, jwt=studio.owner.jwt), headers=bearer_headers(key)
    )
    return response.status_code


async def test_ak_01_a_key_is_shown_once(studio: Studio) -> None:
    data = (
        await studio.expect_ok("accessKey", key_request("save", studio.shop, comment="ci"), studio.owner.headers)
    )["data"]
    assert re.fullmatch(r"[0-9a-f]{64}", data["hash"])
    assert MOMENT.fullmatch(data["created"])
    assert data["created"] == data["modified"]
    assert (data["comment"], data["application_id"]) == ("ci", studio.shop.application_id)
    assert "last_used" not in data
    for _ in range(2):
        body = await studio.expect_ok("accessKey", key_request("get", studio.shop), studio.owner.headers)
        assert body["data"] == [{name: value for name, value in data.items() if name != "hash"}]


async def test_the_list_of_no_keys_is_an_empty_list(studio: Studio) -> None:
    ask = {"action": "get", "application_id": str(studio.shop.application_id)}
    assert await studio.expect_ok("accessKey", ask, studio.owner.headers) == {"status": "OK", "data": []}


async def test_ak_02_there_is_no_third_key_however_many_race(studio: Studio) -> None:
    responses = await asyncio.gather(
        *(studio.post("accessKey", key_request("save", studio.shop), studio.owner.headers) for _ in range(6))
    )
    assert sorted(response.status_code for response in responses) == [200, 200, 409, 409, 409, 409]
    body = await studio.expect_ok("accessKey", key_request("get", studio.shop), studio.owner.headers)
    assert len(body["data"]) == 2


async def test_ak_04_a_deleted_key_is_refused_at_once(studio: Studio) -> None:
    key = await studio.access_key()
    assert await read_with(studio, key) == 200
    [data] = (await studio.expect_ok("accessKey", key_request("get", studio.shop), studio.owner.headers))["data"]
    body = await studio.expect_ok(
        "accessKey", key_request("delete", studio.shop, id=data["id"]), studio.owner.headers
    )
    assert body == {"status": "OK"}
    assert await read_with(studio, key) == 401
    again = key_request("delete", studio.shop, id=data["id"])
    assert "Access key not found" in await studio.expect_error(404, "accessKey", again, studio.owner.headers)


async def test_ak_04_a_deleted_key_is_refused_on_every_node_at_once(
    installed_postgres_url: str, tmp_path: Path
) -> None:
    async with (
        running_service(installed_postgres_url, tmp_path) as first,
        running_service(installed_postgres_url, tmp_path) as second,
    ):
        studio = await a_studio(first)
        key = await studio.access_key()
        # Both nodes share a database: the first issued the JWT, the second has a different base_url.
        alone = own_record(studio.shop, data={"type": "roles", "user_id": studio.owner.user_id})
        path = "/api/permissions/meta/data"
        assert (await second.client.post(path, json=alone, headers=bearer_headers(key))).status_code == 200
        [data] = (await studio.expect_ok("accessKey", key_request("get", studio.shop), studio.owner.headers))["data"]
        await studio.expect_ok("accessKey", key_request("delete", studio.shop, id=data["id"]), studio.owner.headers)
        assert (await second.client.post(path, json=alone, headers=bearer_headers(key))).status_code == 401
        assert (await first.client.post(path, json=alone, headers=bearer_headers(key))).status_code == 401


async def test_ak_05_a_key_is_deleted_through_its_own_application_only(studio: Studio) -> None:
    key = await studio.access_key()
    [data] = (await studio.expect_ok("accessKey", key_request("get", studio.shop), studio.owner.headers))["data"]
    # The owner may manage keys of both, once the second application is in their project too.
    storage = studio.service.services.storage
    await storage.applications.edit_application(studio.other.application_id, set_fields(project_id=PROJECT))
    through_other = key_request("delete", studio.other, id=data["id"])
    await studio.expect_error(404, "accessKey", through_other, studio.owner.headers)
    assert await read_with(studio, key) == 200


async def test_ak_06_the_database_holds_no_key_in_the_clear(studio: Studio) -> None:
    key = await studio.access_key()
    rows = await read_all_tables(studio.service.services.storage)
    assert tables_that_mention(rows, key, repr(bytes.fromhex(key))[2:-1]) == set()
    [access_key] = rows["access_keys"]
    assert access_key.digest == sha256(key)


async def test_ak_07_parallel_use_neither_fails_nor_goes_unnoticed(studio: Studio) -> None:
    key = await studio.access_key()
    assert set(await asyncio.gather(*(read_with(studio, key) for _ in range(50)))) == {200}

    async def last_used() -> str:
        [data] = (await studio.expect_ok("accessKey", key_request("get", studio.shop), studio.owner.headers))["data"]
        last_use: str = data["last_used"]
        return last_use

    first = await last_used()
    assert MOMENT.fullmatch(first)
    await studio.service.clock.advance(59)
    await read_with(studio, key)
    assert await last_used() == first
    await studio.service.clock.advance(1)
    await read_with(studio, key)
    assert await last_used() > first


@pytest.mark.parametrize("comment", ["x" * 257, "line\nbreak", "\u202eevil", "nul\u0000", 7])
async def test_ak_08_comments_are_bounded(studio: Studio, comment: object) -> None:
    await studio.expect_error(
        400, "accessKey", key_request("save", studio.shop, comment=comment), studio.owner.headers
    )
    body = await studio.expect_ok("accessKey", key_request("get", studio.shop), studio.owner.headers)
    assert body["data"] == []


async def test_which_key_is_to_be_deleted_has_to_be_said(studio: Studio) -> None:
    for path in ("accessKey", "application/keys"):
        ask = {"action": "delete", "application_id": studio.shop.application_id, "data": {}}
        assert "data.id" in await studio.expect_error(400, path, ask, studio.owner.headers)


async def test_a_comment_of_null_is_none(studio: Studio) -> None:
    ask = {"action": "save", "application_id": studio.shop.application_id, "data": {"comment": None}}
    assert (await studio.expect_ok("accessKey", ask, studio.owner.headers))["data"]["comment"] == ""


async def test_ak_08_markup_in_a_comment_is_only_text(studio: Studio) -> None:
    comment = "<script>alert(1)</script>"
    body = await studio.expect_ok(
        "accessKey", key_request("save", studio.shop, comment=comment), studio.owner.headers
    )
    assert body["data"]["comment"] == comment


async def test_ak_09_keys_of_a_removed_application_or_project_are_refused(studio: Studio) -> None:
    storage, key = studio.service.services.storage, await studio.access_key()
    await storage.projects.edit_project(PROJECT, set_project_fields(removed=True))
    assert await read_with(studio, key) == 401
    await storage.projects.edit_project(PROJECT, set_project_fields(removed=False))
    assert await read_with(studio, key) == 200
    await storage.applications.edit_application(studio.shop.application_id, set_fields(removed=True))
    assert await read_with(studio, key) == 401


async def test_ak_10_anyone_who_has_no_right_neither_sees_nor_makes_keys(studio: Studio) -> None:
    for action in ("get", "save", "delete"):
        ask = key_request(action, studio.shop, id="x")
        await studio.expect_error(403, "accessKey", ask, studio.other_user.headers)
        await studio.expect_error(403, "accessKey", {**ask, "application_id": 99_999}, studio.other_user.headers)
        await studio.expect_error(403, "accessKey", key_request(action, studio.other, id="x"), studio.owner.headers)


async def test_ak_11_a_key_in_a_query_or_cookie_is_refused(studio: Studio) -> None:
    key = await studio.access_key()
    body = own_record(studio.shop, jwt=studio.owner.jwt)
    path = f"meta/data?access_key={key}&authorization=Bearer%20{key}"
    await studio.expect_error(401, path, body, {"Cookie": f"access_key={key}; Authorization={key}"})


async def test_ak_12_guessing_keys_is_limited_and_the_right_key_still_works(studio: Studio) -> None:
    key = await studio.access_key()
    statuses = [await read_with(studio, f"{number:064x}") for number in range(105)]
    assert (statuses[0], statuses[-1]) == (401, 429)
    assert statuses == sorted(statuses)
    assert await read_with(studio, key) == 200
    response = await studio.post("meta/data", own_record(studio.shop), bearer_headers("0" * 64))
    assert int(response.headers["retry-after"]) > 0


async def test_read_only_fields_are_ignored_and_unknown_fields_refused(studio: Studio) -> None:
    known = key_request("save", studio.shop, comment="a", created="x", hash="mine", application_id=1, id="y")
    data = (await studio.expect_ok("accessKey", known, studio.owner.headers))["data"]
    assert data["hash"] != "mine"
    assert data["application_id"] == studio.shop.application_id
    unknown = key_request("save", studio.shop, colour="red")
    assert "colour" in await studio.expect_error(400, "accessKey", unknown, studio.owner.headers)
    for action in ("save", "delete"):
        ask = {"action": action, "application_id": studio.shop.application_id}
        assert "data" in await studio.expect_error(400, "accessKey", ask, studio.owner.headers)


async def test_making_and_removing_a_key_is_on_record(studio: Studio) -> None:
    await studio.access_key()
    [data] = (await studio.expect_ok("accessKey", key_request("get", studio.shop), studio.owner.headers))["data"]
    await studio.expect_ok("accessKey", key_request("delete", studio.shop, id=data["id"]), studio.owner.headers)
    rows = (await read_all_tables(studio.service.services.storage))["audit_events"]
    records = [(row.event, row.actor, row.subject) for row in rows if row.event.startswith("access_key")]
    about = f"application {studio.shop.application_id}"
    assert sorted(records) == [
        ("access_key.made", studio.owner.user_id, about),
        ("access_key.removed", studio.owner.user_id, about),
    ]
