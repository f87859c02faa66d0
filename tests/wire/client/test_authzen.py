"""AuthZEN through the Python client, with every credential; the code of its guide runs."""

import asyncio
from typing import Any, Final

import pytest

from gatehouse.client import (
    AccessKey,
    Authzen,
    CallRefused,
    Denied,
    Entity,
    Evaluation,
    ServiceJwt,
    SyncAuthzen,
    TokenSource,
    Unauthenticated,
    Unavailable,
)
from gatehouse.permissions.model.rules import ROOT
from tests.support.oauth import an_oidc_client
from tests.support.permission_builders import a_person
from tests.support.service import RunningService
from tests.support.studio import (
    OTHER_USER,
    OWNER,
    PROJECT,
    P,
    Studio,
    a_studio,
    put_roles,
    role_granting,
    set_user_roles,
)

KICK: Final = "user.kick"
REFEREE: Final = Entity("user", OTHER_USER)
HERE: Final = Entity("project", PROJECT)


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    """A studio with a referee, in the whole shop and in the project."""
    studio = await a_studio(service)
    await put_roles(studio, role_granting("referee"))
    await set_user_roles(studio, OTHER_USER, {ROOT: ["referee"], P: ["referee"]})
    return studio


async def token_source(studio: Studio, **fields: Any) -> TokenSource:
    machine = {"machine": True, "redirect_uris": (), "scopes": ("authzen",), "first_party": False}
    of_shop = {"application_id": studio.shop.application_id}
    client = await an_oidc_client(studio.service, "gateway", **machine, **of_shop)
    given = {"client_id": "gateway", "secret": client.secret, "scopes": ["authzen"], "clock": studio.service.clock}
    return TokenSource(studio.service.base_url, **{**given, **fields})


async def test_questions_and_searches_with_a_token_a_key_and_a_service_jwt(studio: Studio) -> None:
    shop, base_url = Entity("application", str(studio.shop.application_id)), studio.service.base_url
    await a_person(studio.service.services.storage, "3000000001")
    await set_user_roles(studio, "3000000001", {ROOT: ["referee"]})
    source = await token_source(studio)
    for credential in (source, AccessKey(await studio.access_key()), ServiceJwt(await studio.service_jwt())):
        async with Authzen(base_url, credential=credential, page_size=1) as authzen:
            assert await authzen.evaluate(REFEREE, KICK, shop)
            assert not await authzen.evaluate(Entity("user", OWNER), KICK, shop)
            questions = [Evaluation(Entity("user", one), KICK, HERE) for one in (OTHER_USER, OWNER, OTHER_USER)]
            assert await authzen.evaluations(questions) == [True, False, True]
            assert await authzen.evaluations(questions, semantic="deny_on_first_deny") == [True, False]
            assert await authzen.evaluations(questions, semantic="permit_on_first_permit") == [True]
            assert await authzen.evaluations(questions[:1] * 1_001) == [True] * 1_001
            found = [one.id async for one in authzen.search_subjects(KICK, shop)]
            assert found == [OTHER_USER, "3000000001"]
            assert KICK in [one async for one in authzen.search_actions(REFEREE, shop)]
            assert [one async for one in authzen.search_resources(REFEREE, KICK)] == [HERE]
    await source.close()


async def test_a_refused_credential_and_a_lost_service_decide_nothing(studio: Studio) -> None:
    base_url = studio.service.base_url
    async with Authzen(base_url, credential=AccessKey("no such key")) as authzen:
        with pytest.raises(Unauthenticated):
            await authzen.evaluate(REFEREE, KICK, HERE)
    async with Authzen(base_url, credential=AccessKey(await studio.access_key())) as authzen:
        with pytest.raises(CallRefused):
            await authzen.evaluate(REFEREE, "", HERE)
    source = await token_source(studio, secret="wrong")
    async with Authzen(base_url, credential=source) as authzen:
        with pytest.raises(Unavailable):
            await authzen.evaluate(REFEREE, KICK, HERE)
    await source.close()
    assert not issubclass(Unavailable, Denied)


async def test_searches_are_ordinary_iterators_without_an_event_loop(studio: Studio) -> None:
    key = AccessKey(await studio.access_key())

    def script() -> None:
        with SyncAuthzen(studio.service.base_url, credential=key) as authzen:
            assert authzen.evaluate(REFEREE, KICK, HERE)
            assert authzen.evaluations([Evaluation(REFEREE, KICK, HERE)]) == [True]
            assert [one.id for one in authzen.search_subjects(KICK, HERE)] == [OTHER_USER]
            assert KICK in list(authzen.search_actions(REFEREE, HERE))
            assert list(authzen.search_resources(REFEREE, KICK)) == [HERE]

    await asyncio.to_thread(script)
