"""An application has a documented maximal size, however it is saved (checklist LP-02)."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from msgspec.structs import replace

from gatehouse.permissions.documents import limits
from gatehouse.permissions.model.application import MAX_APPLICATION_SIZE, Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.store import EditResult
from gatehouse.provision.model import Unfit
from tests.support.builders import a_record
from tests.support.permission_builders import a_role
from tests.support.studio import Studio
from tests.wire.provision.test_permissions import apply_document

PARAMS: Final = ",".join(f"p{n}" for n in range(64))  # of an entry, and again of its role
WIDE: Final = 1_550  # entries with 128 params each
LEFT: Final = MAX_APPLICATION_SIZE - WIDE * (1 + 64 + 64)  # entries that still fit


def entries(count: int, *, area: str = "area", params: str = "") -> dict[str, Any]:
    leaf = {"value": True, "params": params} if params else {"value": True}
    return {"private_data": {area: {f"rule{n}": leaf for n in range(count)}}}


def rules(count: int) -> dict[str, Any]:
    return {f"schema{n}": {"value": False} for n in range(count)}


async def nearly_full(studio: Studio) -> ApplicationModel:
    """The shop, filled up to LEFT entries below its limit."""
    shop = studio.shop.application_id
    wide = a_role("wide", shop, meta=entries(WIDE, params=PARAMS), params=PARAMS)

    def change(state: ApplicationModel) -> EditResult[ApplicationModel]:
        return EditResult(replace(state, roles={**state.roles, wide.key: wide}), [a_record()])

    return await studio.service.services.storage.applications.edit_schema(shop, change)


async def stored_model(studio: Studio) -> ApplicationModel:
    shop = studio.shop.application_id
    return (await studio.service.services.storage.permissions.application_models([shop]))[shop]


def save_request(application: Application, data: Mapping[str, object]) -> dict[str, object]:
    return {"action": "save", "application_id": application.application_id, "data": dict(data)}


async def test_lp_02_role_that_just_fits_is_saved_and_one_entry_more_is_refused(studio: Studio) -> None:
    before = await nearly_full(studio)
    ask = save_request(studio.shop, {"name": "rest", "meta": entries(LEFT + 1)})
    error = await studio.expect_error(409, "roles", ask, studio.owner.headers)
    assert error == (
        "Application 50001 would have 200,001 rules, role entries and params in total; at most 200,000 are allowed."
    )
    assert await stored_model(studio) == before
    await studio.expect_ok(
        "roles", save_request(studio.shop, {"name": "rest", "meta": entries(LEFT)}), studio.owner.headers
    )
    assert (await stored_model(studio)).size == MAX_APPLICATION_SIZE


async def test_lp_02_params_of_a_role_count_for_each_of_its_entries(studio: Studio) -> None:
    before = await nearly_full(studio)
    half = LEFT // 2
    ask = save_request(studio.shop, {"name": "rest", "meta": entries(half), "params": "one,two"})
    assert "200,0" in await studio.expect_error(409, "roles", ask, studio.owner.headers)
    assert await stored_model(studio) == before
    await studio.expect_ok(
        "roles", save_request(studio.shop, {"name": "rest", "meta": entries(half)}), studio.owner.headers
    )
    before = await stored_model(studio)
    grown = save_request(studio.shop, {"name": "rest", "params": "one,two"})
    assert "200,0" in await studio.expect_error(409, "roles", grown, studio.owner.headers)
    assert await stored_model(studio) == before


async def test_lp_02_schema_that_just_fits_is_saved_and_one_rule_more_is_refused(studio: Studio) -> None:
    before = await nearly_full(studio)
    error = await studio.expect_error(
        409, "meta/schema", save_request(studio.shop, {"private_data": rules(LEFT + 1)}), studio.owner.headers
    )
    assert "200,001" in error
    assert await stored_model(studio) == before
    await studio.expect_ok(
        "meta/schema", save_request(studio.shop, {"public_data": rules(LEFT)}), studio.owner.headers
    )
    assert (await stored_model(studio)).size == MAX_APPLICATION_SIZE


async def test_lp_02_forty_roles_with_params_are_refused_in_one_save(studio: Studio) -> None:
    before = await stored_model(studio)
    roles = {f"role{n}": {"meta": entries(60, params=PARAMS), "params": PARAMS} for n in range(40)}
    error = await studio.expect_error(
        409, "meta/schema", save_request(studio.shop, {"roles": roles}), studio.owner.headers
    )
    assert f"{40 * 60 * (1 + 64 + 64):,}" in error
    assert await stored_model(studio) == before


async def test_lp_02_apply_refuses_with_the_same_words(studio: Studio) -> None:
    before, number = await nearly_full(studio), studio.shop.application_id
    over = {"application_id": number, "roles": {"rest": {"meta": entries(LEFT + 1)}}}
    with pytest.raises(Unfit, match=r"200,001 rules.*200,000 are allowed"):
        await apply_document(studio.service, {"applications": [over]})
    assert await stored_model(studio) == before
    wide = {"meta": entries(1_600, params=PARAMS), "params": PARAMS}
    new = {"application_id": 50_900, "name": "New", "roles": {"wide": wide}}
    with pytest.raises(Unfit, match="206,400 rules"):
        await apply_document(studio.service, {"applications": [new]})
    fits = {"application_id": number, "roles": {"rest": {"meta": entries(LEFT)}}}
    await apply_document(studio.service, {"applications": [fits]})
    assert (await stored_model(studio)).size == MAX_APPLICATION_SIZE


async def test_lp_02_text_counts_where_the_numbers_are_small(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_APPLICATION_MEMORY", 2**20)
    before = await stored_model(studio)
    long = {f"rule{n}": {"value": False, "description": f"{n:04}" * 256} for n in range(1_000)}
    error = await studio.expect_error(
        409, "meta/schema", save_request(studio.shop, {"private_data": long}), studio.owner.headers
    )
    assert error.startswith("Application 50001 would need about 1 MB of memory; at most 1 MB are allowed.")
    assert await stored_model(studio) == before


async def test_lp_02_application_that_is_too_large_already_is_read_and_made_smaller(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    await nearly_full(studio)
    await studio.expect_ok(
        "roles", save_request(studio.shop, {"name": "rest", "meta": entries(LEFT)}), studio.owner.headers
    )
    monkeypatch.setattr(limits, "MAX_APPLICATION_SIZE", MAX_APPLICATION_SIZE // 2)
    named = {"action": "get", "application_id": studio.shop.application_id, "data": {"name": "rest"}}
    assert (await studio.expect_ok("roles", named, studio.owner.headers))["data"]["name"] == "rest"
    for fields in ({"description": "as large as before"}, {"meta": entries(LEFT - 1)}):
        await studio.expect_ok("roles", save_request(studio.shop, {"name": "rest", **fields}), studio.owner.headers)
    grown = save_request(studio.shop, {"name": "rest", "meta": entries(LEFT)})
    assert "at most 100,000" in await studio.expect_error(409, "roles", grown, studio.owner.headers)
