"""The management API through the Python client; the code of its guide runs."""

from typing import Any

import pytest

from gatehouse.client import CallRefused, Denied, Management, Person, Unauthenticated
from tests.support.guides import programs_for
from tests.support.service import RunningService
from tests.support.studio import FACTOR, Studio, a_studio, create_administrator


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


async def test_people_are_managed_with_types_and_errors_are_told_apart(studio: Studio) -> None:
    admin, base_url = await create_administrator(studio), studio.service.base_url
    async with Management(base_url, token=admin.jwt, factor=FACTOR) as gatehouse:
        made = await gatehouse.create_person(login="new@studio.example", nick="Newcomer", tags=["beta"])
        assert isinstance(made, Person)
        assert [one.user_id async for one in gatehouse.search_people("newcom")] == [made.user_id]
        assert [one.user_id async for one in gatehouse.search_people(tag="beta")] == [made.user_id]
        saved = await gatehouse.save_person(made.user_id, nick="Regular", version=made.version)
        assert (await gatehouse.get_person(made.user_id)).nick == saved.nick == "Regular"
        with pytest.raises(CallRefused) as conflict:
            await gatehouse.save_person(made.user_id, nick="Late", version=made.version)
        assert conflict.value.code == 409
        assert (await gatehouse.block_person(made.user_id)).blocked
        assert not (await gatehouse.block_person(made.user_id, blocked=False)).blocked
        await gatehouse.end_sessions(made.user_id)
        assert studio.shop.application_id in [
            one["application_id"] async for one in gatehouse.list("application", "shop")
        ]
        await gatehouse.erase_person(made.user_id)
        with pytest.raises(CallRefused):
            await gatehouse.get_person(made.user_id)
    async with Management(base_url, token=studio.other_user.jwt, factor=FACTOR) as gatehouse:
        with pytest.raises(Denied):
            await gatehouse.create_person(login="x@studio.example", nick="X")
    async with Management(base_url, token="none") as gatehouse:
        with pytest.raises(Unauthenticated):
            await gatehouse.get_person("1")


async def test_the_code_of_the_guide_runs(studio: Studio) -> None:
    admin = await create_administrator(studio)
    code = "\n".join(programs_for(__file__, "management-api", "python"))
    code = code.replace("https://sso.studio.example", studio.service.base_url)
    code = code.replace("token=token)", f'token=token, factor="{FACTOR}")')
    names: dict[str, Any] = {}
    exec(compile(code, "management-api.md", "exec"), names)  # noqa: S102 - our own guide
    assert await names["invite_testers"](admin.jwt) == ["Tester"]
    assert await names["invite_testers"](admin.jwt) == ["Tester"]  # the key of the create is the same
    await names["open_registration"](admin.jwt)
    assert studio.service.services.settings.accounts.registration
