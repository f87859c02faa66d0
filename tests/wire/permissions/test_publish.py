"""Publishing a project (interface §4.6, §5.6, R5, R6; checklist PR-01 to PR-05)."""

import asyncio
from typing import Any

from gatehouse.audit.events import AuditEvent
from gatehouse.permissions.model.rules import ROOT
from tests.support.builders import NOW, a_record
from tests.support.database_contents import read_all_tables
from tests.support.permission_builders import a_role, holdings_with, set_fields
from tests.support.studio import (
    PROJECT,
    Person,
    Studio,
    add_passkey_to,
    audit_records,
    create_administrator,
    create_person_with,
    holdings_with_rules,
)

CAN_CREATE = "can_create_projects"


async def a_publisher(studio: Studio, params: str = "") -> Person:
    return await add_passkey_to(
        studio, await create_person_with(studio, {ROOT: holdings_with_rules(CAN_CREATE, params=params)})
    )


async def publish(studio: Studio, who: Person, title: str, **more: object) -> Any:
    return (await studio.expect_ok("publish", {"project": title, **more}, who.headers))["data"]


async def roles_of(studio: Studio, who: Person) -> list[str]:
    ask = {"action": "get", "application_id": 1, "data": {"type": "roles"}}
    data: list[str] = (await studio.expect_ok("meta/data", ask, who.headers))["data"]
    return data


async def row_counts(studio: Studio) -> dict[str, int]:
    rows = await read_all_tables(studio.service.services.storage)
    tables = ("projects", "project_names", "applications", "application_schemas", "role_assignments", "user_records")
    return {name: len(rows[name]) for name in tables}


async def test_a_project_comes_with_an_application_and_its_first_people(studio: Studio) -> None:
    author, chosen = await a_publisher(studio), await add_passkey_to(studio, await create_person_with(studio))
    project = await publish(studio, author, "Board Games", user=chosen.user_id)
    number = project["application_id"]
    assert project == {
        "id": "board_games",
        "title": "Board Games",
        "description": "",
        "aliases": [],
        "tags": [],
        "settings": {"allowed_domains": [], "services": {}},
        "removed": False,
        "author": author.user_id,
        "application_id": number,
        "version": 1,
    }
    assert await roles_of(studio, author) == ["board_games/project_administrator", "board_games/project_owner"]
    assert await roles_of(studio, chosen) == ["board_games/project_administrator"]
    ask = {"action": "get", "data": {"application_id": number}}
    application = (await studio.expect_ok("application", ask, author.headers))["data"]
    assert (application["name"], application["project_id"]) == ("Board Games", "board_games")
    assert (await studio.expect_ok("user/info", {}, author.headers))["projects"] == 1
    (record,) = await audit_records(studio, AuditEvent.PROJECT_PUBLISHED)
    assert record.actor == author.user_id


async def test_pr_01_publish_needs_its_right_and_a_target_with_a_real_second_factor(studio: Studio) -> None:
    second_factors = studio.service.services.storage.second_factors
    author = await a_publisher(studio)
    without_factor = await create_person_with(studio, {ROOT: holdings_with_rules(CAN_CREATE)})
    by_mail = await create_person_with(studio)
    await second_factors.enable_email_codes(by_mail.user_id, (), a_record(AuditEvent.FACTOR_ADDED), ())
    no_right = await add_passkey_to(studio, studio.other_user)
    before = await row_counts(studio)
    await studio.expect_error(403, "publish", {"project": "Chess"}, no_right.headers)
    await studio.expect_error(403, "publish", {"project": "Chess"}, without_factor.headers)
    refusals = [
        await studio.expect_error(403, "publish", {"project": "Chess", "user": target}, author.headers)
        for target in (without_factor.user_id, by_mail.user_id, "4444444444")
    ]
    assert len(set(refusals)) == 1
    assert "two-factor" in refusals[0]
    for strange in ("", "me@studio.example", "0", "1 OR 1=1", 5, ["1000000001"]):
        await studio.expect_error(400, "publish", {"project": "Chess", "user": strange}, author.headers)
    assert await row_counts(studio) == before
    await publish(studio, without_factor, "Chess", user=author.user_id)


async def test_pr_01_only_who_may_know_hears_that_the_target_does_not_exist(studio: Studio) -> None:
    boss = await add_passkey_to(studio, await create_administrator(studio))
    error = await studio.expect_error(404, "publish", {"project": "Chess", "user": "4444444444"}, boss.headers)
    assert error == "user not found"


async def test_pr_02_a_title_keeps_to_its_alphabet_and_length(studio: Studio) -> None:
    author = await a_publisher(studio)
    for title in (
        *(
            "abc\n",
            "a\tb",
            "a\0b",
            "a\u00a0b",
            "\u212aings",
            "\u017fhop",
            "caf\u00e9",
            "a" * 33,
            "",
            "   ",
            " a",
            "a ",
        ),
        *("a  b", "a-b", "a.b", "a/b", "a\r", "\uff41", 5, None, ["a"]),
    ):
        await studio.expect_error(400, "publish", {"project": title}, author.headers)
    assert (await publish(studio, author, "A" * 32))["id"] == "a" * 32
    assert (await publish(studio, author, "X_9 y"))["id"] == "x_9_y"


async def test_pr_03_reserved_ids_are_refused_in_every_case(studio: Studio) -> None:
    author = await a_publisher(studio)
    for title in ("Internal", "INTERNAL", "internal", "GAME", "game", "Game"):
        await studio.expect_error(400, "publish", {"project": title}, author.headers)


async def test_pr_04_titles_that_lead_to_one_id_conflict(studio: Studio) -> None:
    author = await a_publisher(studio)
    await publish(studio, author, "My Project")
    for title in ("my_project", "MY PROJECT", "My_Project", "My Project"):
        await studio.expect_error(409, "publish", {"project": title}, author.headers)
    ask = {"action": "save", "data": {"id": PROJECT, "title": "MY_project"}}
    await studio.expect_error(409, "project", ask, studio.owner.headers)


async def test_pr_05_of_colliding_parallel_publishes_exactly_one_succeeds(studio: Studio) -> None:
    """Between nodes: tests/conformance/test_permission_races.py, publish_alike."""
    author = await a_publisher(studio)
    titles = ["My Project" if n % 2 else "my_project" for n in range(20)]
    responses = await asyncio.gather(
        *(studio.post("publish", {"project": title}, author.headers) for title in titles)
    )
    assert sorted(response.status_code for response in responses) == [200] + [409] * 19
    assert await roles_of(studio, author) == ["my_project/project_administrator", "my_project/project_owner"]
    assert (await studio.expect_ok("user/info", {}, author.headers))["projects"] == 1


async def test_the_number_of_projects_is_limited_by_params_and_removed_ones_count(studio: Studio) -> None:
    author = await a_publisher(studio, "2")
    await publish(studio, author, "One")
    await publish(studio, author, "Two")
    await studio.expect_error(409, "publish", {"project": "Three"}, author.headers)
    await studio.expect_ok("project", {"action": "delete", "data": {"id": "one"}}, author.headers)
    assert (await studio.expect_ok("user/info", {}, author.headers))["projects"] == 1
    await studio.expect_error(409, "publish", {"project": "Three"}, author.headers)


async def test_the_highest_limit_applies_and_an_unlimited_one_beats_all(studio: Studio) -> None:
    schema = {"private_data": {CAN_CREATE: {"value": True}}}
    roles = [
        a_role("one_project", 1, params="1", protected=True, meta=schema),
        a_role("three_projects", 1, params="3", protected=True, meta=schema),
        a_role("any_projects", 1, protected=True, meta=schema),
    ]
    applications = studio.service.services.storage.applications

    await applications.edit_schema(
        1, lambda model: set_fields(roles={**model.roles, **{role.key: role for role in roles}})(model)
    )
    author = await add_passkey_to(
        studio, await create_person_with(studio, {ROOT: holdings_with("one_project", "three_projects")})
    )
    for title in ("One", "Two", "Three"):
        await publish(studio, author, title)
    await studio.expect_error(409, "publish", {"project": "Four"}, author.headers)
    more = holdings_with("one_project", "any_projects")
    await studio.service.services.storage.user_records.edit_record(
        1, author.user_id, lambda state: set_fields(scopes={**state.scopes, ROOT: more})(state), NOW
    )
    await publish(studio, author, "Four")


async def test_params_that_are_no_number_give_no_right(studio: Studio) -> None:
    for params in ("many", "-1", "1.5", "\u0663"):
        author = await a_publisher(studio, params)
        await studio.expect_error(403, "publish", {"project": "Chess"}, author.headers)
    author = await a_publisher(studio, "many,1")
    await publish(studio, author, "Chess")
    nothing = await a_publisher(studio, "0")
    await studio.expect_error(409, "publish", {"project": "Go"}, nothing.headers)


async def test_unknown_fields_of_publish_are_refused_by_name(studio: Studio) -> None:
    author = await a_publisher(studio)
    error = await studio.expect_error(400, "publish", {"project": "Chess", "colour": "red"}, author.headers)
    assert "colour" in error
