"""A large application is never processed on the event loop, and every response is bounded."""

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import httpx2
import pytest

from gatehouse.permissions.evaluation import compiled, effective, shapes
from gatehouse.permissions.evaluation.compiled import CompiledModel
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rules import ROOT
from gatehouse.permissions.questions import members, simulate, user_record_views
from gatehouse.storage.permissions import schemas
from gatehouse.web.api.permissions import envelope
from tests.support.permission_builders import a_person, a_role
from tests.support.studio import OTHER_USER, OWNER, Studio, put_roles, question_body, role_granting, set_user_roles

ROLES: Final = 40
RULES: Final = 2_000  # of each role; bench/blocking.py uses an application of maximal size
MANY: Final = 5_000  # rules that are too many for the loop
TIMEOUT: Final = 300.0  # seconds for a response on a busy machine
PEOPLE: Final = ("2000000001", "2000000002", "2000000003")
LOOP: Final = threading.main_thread().name

Threads = dict[str, set[str]]  # the threads of heavy work, by its kind


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Threads:
    names: Threads = {}

    def watch_calls(name: str, function: Callable[..., Any], is_heavy: Callable[..., bool]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            answer = function(*args, **kwargs)
            if is_heavy(answer, *args):
                names.setdefault(name, set()).add(threading.current_thread().name)
            return answer

        return call

    def is_of_large_model(_: None, created: CompiledModel, model: ApplicationModel) -> bool:  # noqa: ARG001
        return len(model.roles) >= ROLES

    def has_long_lists(_: object, tiers: Any) -> bool:
        return sum(len(contribution.verdicts.yes) for tier in tiers for contribution in tier) > MANY

    watch = {
        "compile": (compiled.CompiledModel, "__init__", is_of_large_model),
        "decode": (schemas, "_role_from_row", lambda role, *_: role.key.startswith("large")),
        "evaluate": (effective, "true_rules", has_long_lists),
        "render": (shapes, "_entries", lambda entries, *_: len(entries) > MANY),
    }
    for name, (owner, attribute, is_heavy) in watch.items():
        monkeypatch.setattr(owner, attribute, watch_calls(name, getattr(owner, attribute), is_heavy))
    return names


@pytest.fixture
async def large_studio(studio: Studio) -> Studio:
    """A large shop in which everyone has all roles."""
    names = [f"large{number}" for number in range(ROLES)]
    await put_roles(studio, *(a_role(name, meta=rules_of(name)) for name in names))
    for user_id in PEOPLE:
        await a_person(studio.service.services.storage, user_id)
    for user_id in (OWNER, *PEOPLE):
        await set_user_roles(studio, user_id, {ROOT: names})
    return studio


def rules_of(role: str) -> dict[str, object]:
    areas = {f"{role}area{area}": {f"rule{n}": {"value": True} for n in range(100)} for area in range(RULES // 100)}
    return {"private_data": areas}


def asker(studio: Studio, path: str, body: dict[str, object]) -> Callable[[], httpx2.Response]:
    """Send requests from a separate thread, so that the loop runs only the service."""
    url = f"{studio.service.client.base_url}/api/permissions/{path}"
    return lambda: httpx2.post(url, json=body, headers=studio.owner.headers, timeout=TIMEOUT)


async def all_at_once(*askers: Callable[[], httpx2.Response]) -> list[httpx2.Response]:
    return await asyncio.gather(*(asyncio.to_thread(ask) for ask in askers))


@pytest.mark.timeout(600)
async def test_lp_01_heavy_answers_are_made_off_the_event_loop(large_studio: Studio, threads: Threads) -> None:
    listed = asker(large_studio, "meta/data", {"action": "get", **question_body(large_studio)})
    found = asker(large_studio, "members", question_body(large_studio, rule="large1area1.rule1"))
    deleted = {"kind": "role", "action": "delete", "data": {"name": "large1"}}
    simulated = asker(large_studio, "simulate", question_body(large_studio, change=deleted))
    role_saved = {"action": "save", **question_body(large_studio, name="large2", description="saved")}
    for ask in (listed, found, simulated, asker(large_studio, "roles", role_saved)):
        [response] = await all_at_once(ask)
        assert response.status_code == 200, response.text[:500]
    responses = await all_at_once(*([listed] * 3), *([found] * 3), *([simulated] * 2))
    assert [response.status_code for response in responses] == [200] * 8
    assert len(responses[0].json()["data"]) == ROLES * RULES
    assert {member["user_id"] for member in responses[3].json()["data"]["members"]} == {OWNER, *PEOPLE}
    assert [len(person["loses"]) for person in responses[6].json()["data"]["people"]] == [RULES] * 4
    assert set(threads) == {"compile", "decode", "evaluate", "render"}
    assert LOOP not in set.union(*threads.values())


async def test_lp_01_of_many_who_lack_a_model_one_reads_it(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    store = studio.service.services.storage.permissions
    loads: list[frozenset[int]] = []
    read = store.application_models

    async def count_and_read(application_ids: Collection[int]) -> Mapping[int, ApplicationModel]:
        loads.append(frozenset(application_ids))
        return await read(application_ids)

    monkeypatch.setattr(store, "application_models", count_and_read)
    await put_roles(studio, role_granting("given"))
    ask = {"action": "get", **question_body(studio)}
    await asyncio.gather(*(studio.expect_ok("meta/data", ask, studio.other_user.headers) for _ in range(8)))
    assert len([load for load in loads if studio.shop.application_id in load]) == 1


async def test_lp_01_a_list_over_the_bound_is_refused_with_the_narrower_question(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (envelope, user_record_views):
        monkeypatch.setattr(module, "MAX_ANSWER_BYTES", 2_000)
    areas = {area: {f"rule{n}": {"value": True} for n in range(50)} for area in ("one", "two")}
    public = {"shown": {"name": {"value": True}}}
    await put_roles(studio, a_role("many", meta={"private_data": areas, "public_data": public}))
    await set_user_roles(studio, OTHER_USER, {ROOT: ["many"]})
    ask = {"action": "get", **question_body(studio)}
    error = await studio.expect_error(400, "meta/data", ask, studio.other_user.headers)
    assert error.startswith("answer too large: ")
    assert "options.prefix" in error
    assert await rules(studio, "one.rule4") == [f"private_data.one.rule4{n}" for n in ("", *range(10))]
    assert await rules(studio, "private_data.two.rule11") == ["private_data.two.rule11"]
    assert await rules(studio, "public_data") == ["public_data.shown.name"]
    await studio.expect_error(400, "meta/data", {**ask, "options": {"prefix": "one/"}}, studio.other_user.headers)
    tree = {"action": "get", **question_body(studio, type="tree"), "options": {"prefix": "one"}}
    await studio.expect_error(400, "meta/data", tree, studio.other_user.headers)


async def rules(studio: Studio, prefix: str) -> list[str]:
    ask = {"action": "get", **question_body(studio), "options": {"prefix": prefix}}
    data: list[str] = (await studio.expect_ok("meta/data", ask, studio.other_user.headers))["data"]
    return data


async def test_lp_01_roles_over_the_bound_are_asked_for_one_by_one(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    meta = {"private_data": {f"rule{n}": {"value": True} for n in range(80)}}
    await put_roles(studio, a_role("one", meta=meta), a_role("two", meta=meta))
    monkeypatch.setattr(envelope, "MAX_ANSWER_BYTES", 3_000)
    get = {"action": "get", **question_body(studio)}
    error = await studio.expect_error(400, "roles", get, studio.owner.headers)
    assert error.startswith("answer too large: ")
    await studio.expect_ok("roles", {"action": "get", **question_body(studio, name="two")}, studio.owner.headers)
    error = await studio.expect_error(400, "meta/schema", get, studio.owner.headers)
    assert "options.section" in error
    section = await studio.expect_ok("meta/schema", {**get, "options": {"section": "login"}}, studio.owner.headers)
    assert set(section["data"]) == {"application_id", "login", "version", "updated_at"}


async def test_lp_01_a_schema_that_was_saved_is_never_refused_for_its_size(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    meta = {"private_data": {f"rule{n}": {"value": True} for n in range(80)}}
    await put_roles(studio, a_role("one", meta=meta), a_role("two", meta=meta))
    monkeypatch.setattr(envelope, "MAX_ANSWER_BYTES", 3_000)
    public = {"public_data": {"news": {"value": False}}}
    saved = await studio.expect_ok(
        "meta/schema", {"action": "save", **question_body(studio, **public)}, studio.owner.headers
    )
    assert "roles" not in saved["data"]
    assert any(warning.startswith("roles: left out") for warning in saved["warnings"])


async def test_lp_01_simulate_is_answered_in_pages_by_length(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    await put_roles(studio, role_granting("given"))
    for user_id in PEOPLE:
        await a_person(studio.service.services.storage, user_id)
        await set_user_roles(studio, user_id, {ROOT: ["given"]})
    monkeypatch.setattr(simulate, "MAX_LENGTH", 60)  # characters: a rule and a role
    deleted = {"kind": "role", "action": "delete", "data": {"name": "given"}}
    people, after = [], ""
    for _ in range(len(PEOPLE) + 1):
        ask = question_body(studio, change=deleted, after=after)
        page = (await studio.expect_ok("simulate", ask, studio.owner.headers))["data"]
        people += [person["user_id"] for person in page["people"]]
        if page["after"] is None:
            break
        assert page["truncated"]
        after = page["after"]
    assert people == list(PEOPLE)
    narrow = question_body(studio, change=deleted, prefix="user.ban")
    page = (await studio.expect_ok("simulate", narrow, studio.owner.headers))["data"]
    assert [person["loses"] for person in page["people"]] == [[]] * len(page["people"])


async def test_lp_01_members_are_answered_in_pages_by_their_ways(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_roles(studio, role_granting("one"), role_granting("two"))
    for user_id in PEOPLE:
        await a_person(studio.service.services.storage, user_id)
        await set_user_roles(studio, user_id, {ROOT: ["one", "two"]})
    monkeypatch.setattr(members, "MAX_SOURCES", 4)
    first = (await studio.expect_ok("members", question_body(studio, rule="user.kick"), studio.owner.headers))["data"]
    assert [member["user_id"] for member in first["members"]] == list(PEOPLE[:2])
    assert first["after"] == PEOPLE[1]
    rest = question_body(studio, rule="user.kick", after=first["after"])
    second = (await studio.expect_ok("members", rest, studio.owner.headers))["data"]
    assert ([member["user_id"] for member in second["members"]], second["after"]) == ([PEOPLE[2]], None)
