"""Search and lists over the API: one shape, cursors of one caller, and what each caller may see (R9)."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from gatehouse.kernel.times import DAY, HOUR
from gatehouse.permissions.model.facts import UserRecord
from gatehouse.permissions.model.rules import ROOT
from gatehouse.permissions.store import EditResult
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.audit import idempotency_keys
from tests.support.browser import PASSWORD
from tests.support.builders import a_record
from tests.support.database_contents import read_all_tables
from tests.support.permission_builders import create_application
from tests.support.studio import (
    IN_PROJECT,
    PROJECT,
    Person,
    Studio,
    add_passkey_to,
    bearer_headers,
    create_administrator,
    create_person,
    create_person_with,
    holdings_with_rules,
    secret_document,
    write_user_record,
)

READS_ALL = secret_document(roles=("all", "self"), public=("all", "self"), private=("all", "self"))
LISTS = ("application", "project", "group", "client", "serviceAccount", "activity")


def list_ask(action: str = "list", **data: object) -> dict[str, object]:
    return {"action": action, "data": data}


async def create_user(studio: Studio, admin: Person, **fields: object) -> str:
    created = await studio.expect_ok("user", {"action": "create", "data": fields}, admin.headers)
    return str(created["data"]["user_id"])


async def found_nicks(studio: Studio, who: Person, **data: object) -> list[str]:
    answer = await studio.expect_ok("user", list_ask("search", **data), who.headers)
    return [user["nick"] for user in answer["data"]]


async def all_pages(studio: Studio, path: str, ask: dict[str, Any], who: Person) -> list[list[Any]]:
    pages, after = [], None
    while True:
        answer = await studio.expect_ok(path, ask | {"data": {**ask["data"], "after": after}}, who.headers)
        pages.append(answer["data"])
        after = answer["after"]
        if after is None:
            return pages


async def test_people_are_found_by_any_part_of_nick_or_email_and_by_filters(studio: Studio) -> None:
    admin, clock = await create_administrator(studio), studio.service.clock
    await clock.advance(DAY)
    await create_user(studio, admin, login="Jonas.Weber@mail.example", nick="Ångström", tags=["staff", "beta"])
    await clock.advance(DAY)
    late = await create_user(studio, admin, login="vera@studio.example", nick="Vera 100%", tags=["staff"])
    await studio.expect_ok("user", {"action": "block", "data": {"user_id": late}}, admin.headers)
    for data, nicks in (
        ({"query": "ÅNGST"}, ["Ångström"]),
        ({"query": "nas.web"}, ["Ångström"]),
        ({"query": "0%"}, ["Vera 100%"]),
        ({"query": "_"}, []),
        ({"query": "r", "filters": {"tag": "staff"}}, ["Vera 100%", "Ångström"]),
        ({"filters": {"tag": "beta"}}, ["Ångström"]),
        ({"filters": {"login": "JONAS.weber@mail.example"}}, ["Ångström"]),
        ({"filters": {"login": "jonas.weber"}}, []),
        ({"filters": {"blocked": True}}, ["Vera 100%"]),
        ({"query": "vera", "filters": {"blocked": False}}, []),
    ):
        assert await found_nicks(studio, admin, **data) == nicks, data
    user = (await studio.expect_ok("user", list_ask("search", query="vera"), admin.headers))["data"][0]
    since = await found_nicks(studio, admin, filters={"registered_since": user["registered"]})
    assert since == ["Vera 100%"]
    renamed = {"action": "save", "data": {"user_id": late, "nick": "Wera", "login": "w@studio.example"}}
    await studio.expect_ok("user", renamed, admin.headers)
    assert await found_nicks(studio, admin, query="vera") == []
    assert await found_nicks(studio, admin, query="w@stu") == ["Wera"]


async def test_pages_follow_each_other_without_gap_or_repeat(studio: Studio) -> None:
    admin = await create_administrator(studio)
    for number in range(5):
        await create_user(studio, admin, login=f"p{number}@pages.example", nick=f"Page {number}")
        await create_application(studio.service.services.storage, name=f"Page {number}", project_id=PROJECT)
    pages = await all_pages(studio, "user", list_ask("search", query="@pages", limit=2), admin)
    assert [len(page) for page in pages] == [2, 2, 1]
    assert len({user["user_id"] for page in pages for user in page}) == 5
    pages = await all_pages(studio, "application", list_ask(query="page", limit=2), admin)
    assert [one["name"] for page in pages for one in page] == [f"Page {number}" for number in range(5)]
    pages = await all_pages(studio, "activity", list_ask(filters={"event": "user.created"}, limit=2), admin)
    assert [len(page) for page in pages][:2] == [2, 2]
    for data in ({"limit": 0}, {"limit": 101}, {"filters": {"colour": "red"}}, {"query": "x" * 201}):
        await studio.expect_error(400, "user", list_ask("search", **data), admin.headers)
    assert "data.filters.tag" in await studio.expect_error(
        400, "project", list_ask(filters={"tag": "x"}), admin.headers
    )
    bad_time = list_ask("search", filters={"registered_since": "yesterday"})
    assert "registered_since" in await studio.expect_error(400, "user", bad_time, admin.headers)


async def test_ma_04_cursor_of_another_caller_question_or_hour_is_refused(studio: Studio) -> None:
    admin, other = await create_administrator(studio), await create_administrator(studio)
    ask = list_ask("search", limit=1)
    after = (await studio.expect_ok("user", ask, admin.headers))["after"]
    again = list_ask("search", limit=2, after=after)  # the limit may change
    assert len((await studio.expect_ok("user", again, admin.headers))["data"]) == 2
    altered = ("A" if after[30] != "A" else "B").join((after[:30], after[31:]))
    refused = [
        ("user", again, other),
        ("user", list_ask("search", query="a", after=after), admin),
        ("user", list_ask("search", filters={"blocked": False}, after=after), admin),
        ("user", again | {"application_id": studio.shop.application_id}, admin),
        ("project", list_ask(after=after), admin),
        *(("user", list_ask("search", after=bad), admin) for bad in (altered, after[:-4], "", "%", "A" * 2_000)),
    ]
    for path, wrong, who in refused:
        assert "data.after" in await studio.expect_error(400, path, wrong, who.headers)
    vouched = bearer_headers(admin.jwt, Service_Jwt=await studio.service_jwt())
    await studio.expect_error(400, "user", again, vouched)
    await studio.service.clock.advance(HOUR)
    assert "expired" in await studio.expect_error(400, "user", again, admin.headers)


async def test_ma_05_reader_of_an_application_cannot_enumerate_people_or_addresses(studio: Studio) -> None:
    shop = studio.shop.application_id
    reader = await create_person_with(studio, secret_data=READS_ALL)
    player = await create_person(studio.service, "1000000077")
    await write_user_record(studio, player, shop)
    about_shop = {"application_id": shop}
    answer = await studio.expect_ok("user", list_ask("search", query="ANNA") | about_shop, reader.headers)
    assert {user["user_id"] for user in answer["data"]} == {reader.user_id, player.user_id}
    assert {tuple(user) for user in answer["data"]} == {("user_id", "nick")}
    assert (await studio.expect_ok("user", list_ask("search", query="@") | about_shop, reader.headers))["data"] == []
    for name, value in (
        ("login", "a@b.example"),
        ("tag", "x"),
        ("registered_since", "2020-01-01"),
        ("blocked", False),
    ):
        await studio.expect_error(403, "user", list_ask("search", filters={name: value}) | about_shop, reader.headers)
    for headers, about in (
        (reader.headers, {}),
        (reader.headers, {"application_id": studio.other.application_id}),
        (studio.owner.headers, {}),
        (studio.other_user.headers, about_shop),
    ):
        await studio.expect_error(403, "user", list_ask("search", query="a") | about, headers)


async def test_ma_06_lists_show_what_the_caller_may_read(studio: Studio) -> None:
    admin, shop = await create_administrator(studio), studio.shop.application_id
    manager = await create_person_with(studio, {IN_PROJECT: holdings_with_rules("project.can_manage_applications")})
    await studio.expect_ok(
        "group", {"action": "save", "data": {"project_id": PROJECT, "title": "Testers"}}, studio.owner.headers
    )
    account = {"action": "save", "data": {"project_id": PROJECT, "name": "ci"}}
    await studio.expect_ok("serviceAccount", account, studio.owner.headers)
    web = {"client_id": "web", "name": "Web", "redirect_uris": ["https://web.example/callback"]}
    client = {"action": "create", "application_id": shop, "data": web}
    await studio.expect_ok("client", client, studio.owner.headers)

    async def listed(path: str, who: dict[str, str], **more: object) -> list[Any]:
        records: list[Any] = (await studio.expect_ok(path, list_ask() | more, who))["data"]
        return records

    own = {"application_id": shop}
    in_project = {"data": {"filters": {"project_id": PROJECT}}}
    owner, stranger = studio.owner.headers, studio.other_user.headers
    assert {one["application_id"] for one in await listed("application", admin.headers)} >= {1, shop}
    assert [one["application_id"] for one in await listed("application", owner)] == [shop]
    assert [one["application_id"] for one in await listed("application", manager.headers)] == [shop]
    assert [one["id"] for one in await listed("project", owner)] == [PROJECT]
    assert [one["title"] for one in await listed("group", owner)] == ["Testers"]
    assert [one["client_id"] for one in await listed("client", owner, **own)] == ["web"]
    assert [one["name"] for one in await listed("serviceAccount", owner, **in_project)] == ["ci"]
    assert "group.created" in {one["event"] for one in await listed("activity", owner)}
    assert [await listed(path, stranger) for path in ("application", "project", "group")] == [[], [], []]
    for path, body in (
        ("client", own),
        ("client", {}),
        ("serviceAccount", in_project),
        ("serviceAccount", {}),
        ("activity", {}),
    ):
        await studio.expect_error(403, path, list_ask() | body, stranger)
    for path in ("client", "serviceAccount"):
        await studio.expect_error(403, path, list_ask(), owner)
        assert len(await listed(path, admin.headers)) == 1
    vouched = bearer_headers(admin.jwt, Service_Jwt=await studio.service_jwt())
    assert [one["application_id"] for one in await listed("application", vouched)] == [shop]
    assert [one["id"] for one in await listed("project", vouched)] == [PROJECT]
    for path in LISTS:
        await studio.expect_error(401, path, list_ask(), {})


async def test_ma_07_create_that_is_sent_twice_creates_one_and_answers_the_same(studio: Studio) -> None:
    admin, other = await create_administrator(studio), await create_administrator(studio)
    ask = {"action": "invite", "data": {"login": "bob@studio.example"}}
    key = {"Idempotency-Key": "import-7"}
    first = await studio.post("user", ask, admin.headers | key)
    again = await studio.post("user", ask, admin.headers | key)
    assert (first.status_code, first.content) == (200, again.content)
    assert first.json()["data"]["link"]
    stored = await studio.service.services.storage.runner.read(stored_answers)
    assert all(first.json()["data"]["link"].encode() not in answer for answer in stored)

    changed = ask | {"data": {"login": "eve@studio.example"}}
    assert "Idempotency-Key" in await studio.expect_error(409, "user", changed, admin.headers | key)
    project = {"project": "Another"}
    await studio.expect_error(409, "publish", project, admin.headers | key)
    # Another caller's key is another one, and shows nothing of the first answer.
    foreign = await studio.post("user", ask, other.headers | key)
    assert foreign.json()["data"]["link"] != first.json()["data"]["link"]
    await studio.expect_error(403, "user", ask, studio.other_user.headers | key)
    await studio.expect_error(401, "user", ask, key)
    for bad in ("", "a b", "x" * 256):
        await studio.expect_error(400, "user", ask, admin.headers | {"Idempotency-Key": bad})
    await studio.service.clock.advance(DAY)
    later = await studio.post("user", changed, admin.headers | key)
    assert later.status_code == 200
    await studio.service.services.storage.sweep(studio.service.clock.now() + DAY)
    assert await studio.service.services.storage.runner.read(stored_answers) == []


def creates(studio: Studio) -> dict[str, tuple[str, dict[str, Any]]]:
    """A request with an Idempotency-Key to each endpoint that takes one; some answers hold a secret."""
    shop = studio.shop.application_id
    web = {"client_id": "web", "name": "Web", "profile": "oidc", "redirect_uris": ["https://shop.example/cb"]}
    return {
        "create": ("user", {"action": "create", "data": {"login": "bob@studio.example", "password": PASSWORD}}),
        "invite": ("user", {"action": "invite", "data": {"login": "eve@studio.example"}}),
        "user": ("user", {"action": "save", "data": {"user_id": studio.other_user.user_id, "nick": "Nick"}}),
        "application": ("application", {"action": "save", "data": {"name": "Chess", "project_id": PROJECT}}),
        "publish": ("publish", {"project": "Another"}),
        "group": ("group", {"action": "save", "data": {"project_id": PROJECT, "title": "Testers"}}),
        "client": ("client", {"action": "create", "application_id": shop, "data": web}),
        "account": ("serviceAccount", {"action": "save", "data": {"project_id": PROJECT, "name": "ci"}}),
        "key": ("accessKey", {"action": "save", "application_id": shop, "data": {"comment": "ci"}}),
        "webhook": ("webhook", {"action": "save", "data": {"url": "https://hook.example/in", "events": ["account"]}}),
    }


def drop_root(record: UserRecord) -> EditResult[UserRecord]:
    left = {scope: held for scope, held in record.scopes.items() if scope != ROOT}
    return EditResult(replace(record, scopes=left), [a_record()])


@pytest.mark.both_databases
async def test_ma_08_an_answer_is_repeated_only_to_a_caller_who_could_send_the_request_now(studio: Studio) -> None:
    admin = await add_passkey_to(studio, await create_administrator(studio))
    requests, answers = creates(studio), {}
    for name, (path, ask) in requests.items():
        answer = await studio.post(path, ask, admin.headers | {"Idempotency-Key": name})
        assert answer.status_code == 200, (name, answer.text)
        answers[name] = answer.content
    before = await read_all_tables(studio.service.services.storage)
    for name, (path, ask) in requests.items():
        again = await studio.post(path, ask, admin.headers | {"Idempotency-Key": name})
        assert (again.status_code, again.content) == (200, answers[name]), (name, again.text)
    after = await read_all_tables(studio.service.services.storage)
    assert {name: len(rows) for name, rows in after.items()} == {name: len(rows) for name, rows in before.items()}
    records = studio.service.services.storage.user_records
    await create_administrator(studio)
    await records.edit_record(1, admin.user_id, drop_root, studio.service.clock.now())  # they still own a project
    for name, (path, ask) in requests.items():
        refused = await studio.post(path, ask, admin.headers | {"Idempotency-Key": name})
        assert refused.status_code == 403, (name, refused.text)


async def test_refused_create_can_be_sent_again_with_its_key_and_two_at_once_create_one(studio: Studio) -> None:
    admin, key = await create_administrator(studio), {"Idempotency-Key": "k1"}
    weak = {"action": "create", "data": {"login": "bob@studio.example", "password": "1234"}}
    await studio.expect_error(400, "user", weak, admin.headers | key)
    strong = {"action": "create", "data": {"login": "bob@studio.example", "password": PASSWORD}}
    await studio.expect_ok("user", strong, admin.headers | key)
    group = {"action": "save", "data": {"project_id": PROJECT, "title": "Testers"}}
    twice = await asyncio.gather(
        *(studio.post("group", group, studio.owner.headers | {"Idempotency-Key": "g"}) for _ in range(4))
    )
    assert {response.status_code for response in twice} <= {200, 409}
    done = [response.json()["data"]["id"] for response in twice if response.status_code == 200]
    assert len(set(done)) == 1
    listed = await studio.expect_ok("group", list_ask(query="testers"), studio.owner.headers)
    assert len(listed["data"]) == 1


def stored_answers() -> Verb[list[bytes]]:
    return [row.sealed_answer for row in (yield Statement(idempotency_keys.select)())]
