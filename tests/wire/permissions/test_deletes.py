"""A delete checks `data.version` as a save does (R6)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.oauth import REDIRECT
from tests.support.studio import PROJECT, Studio, create_administrator


@dataclass(frozen=True)
class Kind:
    """How a record of an endpoint is named and created."""

    path: str
    new: Mapping[str, object]
    named: str  # the field by which the record is deleted
    beside: frozenset[str] = frozenset()  # fields beside `data` instead of in it
    create: str = "save"
    change: Mapping[str, object] = field(default_factory=lambda: {"description": "New"})


KINDS = {
    "application": Kind("application", {"name": "Doomed", "project_id": PROJECT}, "application_id"),
    "project": Kind("publish", {}, "id"),
    "role": Kind("roles", {"name": "doomed"}, "name"),
    "group": Kind("group", {"project_id": PROJECT, "title": "Doomed"}, "id", frozenset({"group_id"})),
    "client": Kind(
        "client",
        {"client_id": "doomed", "name": "Doomed", "profile": "oidc", "redirect_uris": [REDIRECT]},
        "client_id",
        create="create",
        change={"name": "New"},
    ),
    "service account": Kind("serviceAccount", {"project_id": PROJECT, "name": "doomed"}, "user_id"),
    "webhook": Kind("webhook", {"url": "https://hooks.example/", "events": ["account"]}, "webhook_id"),
}


@pytest.mark.parametrize("name", KINDS)
async def test_pr_95_a_delete_that_names_an_old_version_is_refused(studio: Studio, name: str) -> None:
    kind, boss = KINDS[name], await create_administrator(studio)
    shop = studio.shop.application_id

    def request_body(
        action: str, data: Mapping[str, object], record: Mapping[str, Any] | None = None
    ) -> dict[str, object]:
        own = {} if record is None else {kind.named: record[kind.named]}
        beside = {"group_id": own["id"]} if own and kind.beside else {}
        about = {"application_id": shop} if kind.path in ("roles", "client") else {}
        return {"action": action, **about, **beside, "data": {**({} if beside else own), **data}}

    path = "project" if name == "project" else kind.path
    if name == "project":
        record = (await studio.expect_ok("project", request_body("get", {"id": PROJECT}), boss.headers))["data"]
    else:
        record = (await studio.expect_ok(kind.path, request_body(kind.create, kind.new), boss.headers))["data"]
    first = record["version"]
    if name == "service account":
        newest = first  # it is never changed after its creation
    else:
        saved = await studio.expect_ok(path, request_body("save", kind.change, record), boss.headers)
        newest = saved["data"]["version"]
        assert newest == first + 1
        await studio.expect_error(409, path, request_body("delete", {"version": first}, record), boss.headers)
    await studio.expect_error(409, path, request_body("delete", {"version": newest + 1}, record), boss.headers)
    assert (await studio.expect_ok(path, request_body("delete", {"version": newest}, record), boss.headers)) == {
        "status": "OK"
    }


async def test_pr_95_a_delete_sent_again_is_done_already(studio: Studio) -> None:
    boss = await create_administrator(studio)
    body = {"action": "delete", "data": {"id": PROJECT, "version": 1}}
    for _ in range(2):
        assert await studio.expect_ok("project", body, boss.headers) == {"status": "OK"}


async def test_pr_95_simulate_refuses_the_delete_that_would_be_refused(studio: Studio) -> None:
    change = {"kind": "project", "action": "delete", "data": {"id": PROJECT, "version": 77}}
    ask = {"application_id": studio.shop.application_id, "data": {"change": change}}
    await studio.expect_error(409, "simulate", ask, (await create_administrator(studio)).headers)
