"""Two nodes on one database: races between them, and how soon one sees the other's changes."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from gatehouse.permissions.model.rules import ROOT
from tests.support.builders import a_record
from tests.support.event_stream import open_changes
from tests.support.game import approve_in_storage, register_game
from tests.support.oauth import an_oidc_client
from tests.support.permission_builders import GROUP, a_group, a_person
from tests.support.processes import free_port
from tests.support.service import running_service
from tests.support.studio import (
    IN_PROJECT,
    PROJECT,
    Person,
    Studio,
    a_studio,
    add_passkey_to,
    bearer_headers,
    create_administrator,
    create_person_with,
    holdings_with_rules,
    own_record,
)
from tests.support.websockets import connect_game_socket, receive_json

Nodes = tuple[Studio, Studio]


@pytest.fixture
async def nodes(installed_postgres_url: str, tmp_path: Path) -> AsyncIterator[Nodes]:
    """Two nodes with separate connections and caches; the second sees the studio that the first created."""
    environment = {"GATEHOUSE__SERVER__BASE_URL": f"http://localhost:{free_port()}"}
    async with (
        running_service(installed_postgres_url, tmp_path, environment=environment) as first,
        running_service(installed_postgres_url, tmp_path, environment=environment, clock=first.clock) as second,
    ):
        studio = await a_studio(first)
        yield studio, replace(studio, service=second)


async def race(nodes: Nodes, path: str, bodies: list[Mapping[str, object]], who: Person) -> Counter[int]:
    """Post them all at once, to the one node and the other in turn."""
    statuses = await asyncio.gather(
        *(post_until_available(nodes[number % 2], path, body, who) for number, body in enumerate(bodies))
    )
    return Counter(statuses)


async def post_until_available(studio: Studio, path: str, body: Mapping[str, object], who: Person) -> int:
    """A lock that is waited for too long ends in 503, nothing is saved, and a client asks again."""
    while True:
        answer = await studio.post(path, body, who.headers)
        if answer.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
            return answer.status_code


async def schema_of(studio: Studio) -> Any:
    ask = {"action": "get", "application_id": studio.shop.application_id}
    return (await studio.expect_ok("meta/schema", ask, studio.owner.headers))["data"]


async def test_ap_12_of_parallel_creates_of_one_name_in_a_project_one_succeeds(nodes: Nodes) -> None:
    body = {"action": "save", "data": {"name": "Wanted", "project_id": PROJECT}}
    assert await race(nodes, "application", [body] * 20, nodes[0].owner) == {200: 1, 409: 19}


async def test_ap_13_parallel_saves_of_different_fields_are_both_kept(nodes: Nodes) -> None:
    shop, owner = nodes[0].shop.application_id, nodes[0].owner
    fields = ({"name": "Market"}, {"description": "Sells"}) * 5
    bodies = [{"action": "save", "data": {"application_id": shop, **field}} for field in fields]
    assert await race(nodes, "application", bodies, owner) == {200: 10}
    ask = {"action": "get", "data": {"application_id": shop}}
    now = (await nodes[1].expect_ok("application", ask, owner.headers))["data"]
    assert (now["name"], now["description"], now["version"]) == ("Market", "Sells", 11)


async def test_pr_05_of_colliding_parallel_publishes_one_succeeds(nodes: Nodes) -> None:
    author = await add_passkey_to(
        nodes[0], await create_person_with(nodes[0], {ROOT: holdings_with_rules("can_create_projects")})
    )
    bodies = [{"project": ("My Project", "my_project", "MY PROJECT")[number % 3]} for number in range(20)]
    assert await race(nodes, "publish", bodies, author) == {200: 1, 409: 19}
    ask = {"action": "get", "application_id": 1, "data": {"type": "roles"}}
    data = (await nodes[1].expect_ok("meta/data", ask, author.headers))["data"]
    assert data == ["my_project/project_administrator", "my_project/project_owner"]


async def test_gr_03_parallel_saves_never_make_more_than_a_hundred_members(nodes: Nodes) -> None:
    storage, owner = nodes[0].service.services.storage, nodes[0].owner
    await storage.groups.create_group(a_group(), [a_record()])
    ids = [str(3_000_000_000 + number) for number in range(120)]
    for user_id in ids:
        await a_person(storage, user_id)
    bodies = [{"group_id": GROUP, "data": {"users": part}} for part in (ids[:60], ids[60:])]
    assert await race(nodes, "group/access", bodies, owner) == {200: 2}
    ask = {"action": "get", "data": {"project_id": PROJECT}}
    (group,) = (await nodes[1].expect_ok("group", ask, owner.headers))["data"]["groups"]
    assert group["users"] in (ids[:60], ids[60:])


async def test_ro_21_of_parallel_saves_of_one_version_of_a_role_one_wins_whole(nodes: Nodes) -> None:
    shop, owner = nodes[0].shop.application_id, nodes[0].owner

    def save_request(**data: object) -> dict[str, object]:
        return {"action": "save", "application_id": shop, "data": {"name": "Moderator", **data}}

    drafts = [save_request(description=f"d{number}", params=f"p{number}", version=0) for number in range(10)]
    assert await race(nodes, "roles", drafts, owner) == {200: 1, 409: 9}
    role = (await schema_of(nodes[1]))["roles"]["Moderator"]
    assert (role["version"], role["description"][1:]) == (1, role["params"][1:])


async def test_sc_02_versions_count_the_saves_of_all_nodes(nodes: Nodes) -> None:
    shop, owner = nodes[0].shop.application_id, nodes[0].owner

    def save_request(**data: object) -> dict[str, object]:
        return {"action": "save", "application_id": shop, "data": {"public_data": {"x": {"value": True}}, **data}}

    assert await race(nodes, "meta/schema", [save_request() for _ in range(50)], owner) == {200: 50}
    assert (await schema_of(nodes[1]))["version"] == 51
    assert await race(nodes, "meta/schema", [save_request(version=51) for _ in range(20)], owner) == {200: 1, 409: 19}
    assert (await schema_of(nodes[0]))["version"] == 52


async def test_gr_08_who_leaves_a_group_on_one_node_has_left_it_on_the_other(nodes: Nodes) -> None:
    first, second = nodes
    member = await create_person_with(first, {IN_PROJECT: holdings_with_rules("project.can_view_project")})
    group = a_group(users=(member.user_id,))
    await first.service.services.storage.groups.create_group(group, [a_record()])
    view = {"action": "get", "data": {"id": PROJECT}}
    allow = {"action": "save", "data": {"id": PROJECT, "allow": [GROUP]}}
    await first.expect_ok("project/membership", allow, first.owner.headers)
    for studio in nodes:
        await studio.expect_ok("project", view, member.headers)
    await first.expect_ok("group/access", {"group_id": GROUP, "data": {"users": []}}, first.owner.headers)
    await second.expect_error(403, "project", view, member.headers)
    await second.expect_ok(
        "group/access", {"group_id": GROUP, "data": {"users": [member.user_id]}}, second.owner.headers
    )
    await first.expect_ok("project", view, member.headers)


async def test_pr_11_a_project_removed_on_one_node_is_removed_on_the_other(nodes: Nodes) -> None:
    first, second = nodes
    key, jwt = await first.access_key(), await first.service_jwt()
    view = {"action": "get", "data": {"id": PROJECT}}
    beside = bearer_headers(first.owner.jwt, Service_Jwt=jwt)
    with_key = own_record(first.shop, jwt=first.owner.jwt)
    for studio in nodes:
        await studio.expect_ok("project", view, first.owner.headers)
        await studio.expect_ok("meta/data", own_record(first.shop), beside)
        await studio.expect_ok("meta/data", with_key, bearer_headers(key))
    await first.expect_ok("project", {"action": "delete", "data": {"id": PROJECT}}, first.owner.headers)
    await second.expect_error(403, "project", view, first.owner.headers)
    await second.expect_error(401, "meta/data", own_record(first.shop), beside)
    await second.expect_error(401, "meta/data", with_key, bearer_headers(key))


async def test_ro_18_a_role_deleted_and_made_again_on_another_node_belongs_to_no_one(nodes: Nodes) -> None:
    first, second = nodes
    shop, who = first.shop.application_id, first.other_user
    role = {"name": "Moderator", "meta": {"private_data": {"kick": {"value": True}}}}
    save = {"action": "save", "application_id": shop, "data": role}
    await first.expect_ok("roles", save, first.owner.headers)
    record = {"action": "save", "application_id": shop, "data": {"user_id": who.user_id, "roles": ["Moderator"]}}
    await second.expect_ok("meta/data", record, first.owner.headers)
    mine = own_record(first.shop, data={"type": "list_short"})
    for studio in nodes:
        assert (await studio.expect_ok("meta/data", mine, who.headers))["data"] == ["kick"]
    await second.expect_ok(
        "roles", {"action": "delete", "application_id": shop, "data": {"name": "moderator"}}, first.owner.headers
    )
    assert (await first.expect_ok("meta/data", mine, who.headers))["data"] == []
    await second.expect_ok("roles", save, first.owner.headers)
    assert (await first.expect_ok("meta/data", mine, who.headers))["data"] == []


async def test_change_made_at_one_node_arrives_in_a_stream_of_the_other(nodes: Nodes) -> None:
    """By the notice of the node that seals it: the clock stands still, so nothing polls."""
    first, second = nodes
    admin = await create_administrator(first)
    await first.service.services.audit.sealer.seal_all()
    ask = {"action": "save", "data": {"application_id": first.shop.application_id, "description": "Sells"}}
    async with open_changes(second.service.client, admin.headers) as stream:
        await first.expect_ok("application", ask, first.owner.headers)
        await first.service.services.audit.sealer.seal_all()
        assert [change["event"] for change in await stream.changes(1)] == ["application.changed"]
        last = stream.last_id
        await first.expect_ok("application", ask, first.owner.headers)
        await first.service.services.audit.sealer.seal_all()
    async with open_changes(first.service.client, admin.headers, last) as stream:
        assert [change["event"] for change in await stream.changes(1)] == ["application.changed"]


# -- bans --------------------------------------------------------------------------------------------------


def ban_request(user_id: str, application_id: int, action: str = "save") -> dict[str, object]:
    return {
        "action": action,
        "user_id": user_id,
        "application_id": application_id,
        "data": {"public_text": "Cheating"},
    }


async def test_bn_06_a_ban_ends_sockets_and_permissions_on_the_other_node(nodes: Nodes) -> None:
    here, there = nodes
    administrator, shop = await create_administrator(here), here.shop.application_id
    player = await here.service.services.storage.accounts.user(here.other_user.user_id)
    await there.expect_ok("meta/data", own_record(there.shop), here.other_user.headers)
    game = await register_game(there.service, app_id=shop)
    async with connect_game_socket(game) as socket:
        await approve_in_storage(game, player)
        assert (await receive_json(socket))["event"] == "confirmed"
        assert (await game.poll()).json()["status"] == "OK"
        await here.expect_ok("user/ban", ban_request(player.user_id, shop), administrator.headers)
        async with asyncio.timeout(1):
            assert (await receive_json(socket))["reason"] == "banned"
    assert await there.expect_error(403, "meta/data", own_record(there.shop), here.other_user.headers)
    await there.expect_ok("user/ban", ban_request(player.user_id, shop, "lift"), administrator.headers)
    await here.expect_ok("meta/data", own_record(here.shop), here.other_user.headers)


async def test_bn_07_a_refresh_that_races_with_a_ban_leaves_no_token_that_works(nodes: Nodes) -> None:
    here, there = nodes
    administrator, shop = await create_administrator(here), here.shop.application_id
    player = await here.service.services.storage.accounts.user(here.other_user.user_id)
    client = await an_oidc_client(here.service, application_id=shop)
    tokens = [await client.tokens(await client.issue_code(player)) for _ in range(8)]
    refreshing = [
        replace(client, service=nodes[number % 2].service).refresh(one["refresh_token"])
        for number, one in enumerate(tokens)
    ]
    banning = there.expect_ok("user/ban", ban_request(player.user_id, shop), administrator.headers)
    *refreshed, _ = await asyncio.gather(*refreshing[:4], banning, *refreshing[4:])
    held = [answer.json() for answer in refreshed if getattr(answer, "status_code", 0) == HTTPStatus.OK]
    for one in (*tokens, *held):
        assert (await client.userinfo(one["access_token"])).status_code == HTTPStatus.UNAUTHORIZED
        assert (await client.refresh(one["refresh_token"])).json()["error"] == "invalid_grant"


async def test_bn_08_of_two_saves_at_once_one_ban_stays_active(nodes: Nodes) -> None:
    here, administrator = nodes[0], await create_administrator(nodes[0])
    shop, player = here.shop.application_id, here.other_user.user_id
    assert await race(nodes, "user/ban", [ban_request(player, shop)] * 10, administrator) == {200: 10}
    ask = {"action": "list", "user_id": player, "data": {"limit": 100}}
    found = (await here.expect_ok("user/ban", ask, administrator.headers))["data"]
    assert [one["state"] for one in found].count("active") == 1
    assert len(found) == 10
