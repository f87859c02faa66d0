"""The guide "Protect an API": its code runs against the service, and refuses what is not for the API (R9)."""

import shlex
from http import HTTPStatus
from typing import Any, Final

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from gatehouse.cli.client import client_from_options, create
from gatehouse.client import (
    ProtectedResource,
    ProtectedResourceMiddleware,
    StandardTransport,
    TokenSource,
    Unauthenticated,
    Unavailable,
    scopes_required,
)
from tests.support.builders import ORIGIN
from tests.support.console import apply_document
from tests.support.delegation import RESOURCE as CALENDAR
from tests.support.delegation import some_agents, token_of_two_programs, wrong_acts
from tests.support.guides import programs_for
from tests.support.service import RunningService
from tests.support.studio import Studio, a_studio

RESOURCE: Final = "https://api.sky.example/matches"


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


def code_blocks(language: str) -> list[str]:
    return programs_for(__file__, "protect-an-api", language)


async def run_guide(service: RunningService) -> dict[str, Any]:
    """Apply the file of the guide, create the client with its command, and run its Python code with their secret."""
    (document,), (command,) = code_blocks("yaml"), code_blocks("sh")
    await apply_document(service, document)
    arguments = shlex.split(command.removeprefix("gatehouse client create "))
    options = create.make_context("create", arguments).params
    machine = client_from_options(options["client_id"], options)
    secret = await service.services.oauth.clients.commands.create(machine, ORIGIN)
    code = "\n".join(code_blocks("python")).replace("https://sso.studio.example", service.base_url)
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OIDC_CLIENT_SECRET", secret or "")
        exec(compile(code, "protect-an-api.md", "exec"), names)  # noqa: S102 - our own guide
    for one in (names["matches"], names["tokens"]):
        one._clock = service.clock
    return names


async def test_mt_13_the_guides_api_accepts_its_tokens_and_refuses_others(service: RunningService) -> None:
    guide = await run_guide(service)
    transport = httpx2.ASGITransport(app=guide["app"])
    async with httpx2.AsyncClient(transport=transport, base_url="https://api.sky.example") as client:
        headers = await guide["authorization"]()
        accepted = await client.post("/matches", headers=headers)
        assert (accepted.status_code, accepted.json()) == (200, {"reported_by": "client:match-server"})
        assert await guide["authorization"]() == headers  # kept until shortly before its end
        document = await client.get("/.well-known/oauth-protected-resource/matches")
        assert document.json() == {
            "resource": RESOURCE,
            "authorization_servers": [service.base_url],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["match.report", "match.read"],
        }
        where = 'resource_metadata="https://api.sky.example/.well-known/oauth-protected-resource/matches"'
        missing = await client.post("/matches")
        assert (missing.status_code, missing.headers["www-authenticate"]) == (401, f"Bearer {where}")
        weak = await token_with(service, guide, "match.read")
        refused = await client.post("/matches", headers={"Authorization": f"Bearer {weak}"})
        challenge = f'Bearer error="insufficient_scope", scope="match.report", {where}'
        assert (refused.status_code, refused.headers["www-authenticate"]) == (403, challenge)
        await service.clock.advance(300)
        expired = await client.post("/matches", headers=headers)
        assert (expired.status_code, expired.headers["www-authenticate"]) == (
            401,
            f'Bearer error="invalid_token", {where}',
        )
    await guide["matches"].close()
    await guide["tokens"].close()


async def test_mt_13_an_endpoint_names_the_scopes_that_it_needs(service: RunningService) -> None:
    guide = await run_guide(service)

    @scopes_required("match.read", "match.report")
    async def matches(request: Request) -> JSONResponse:
        return JSONResponse(sorted(request.state.token.scopes))

    app = Starlette(routes=[Route("/matches", matches)])
    app.add_middleware(ProtectedResourceMiddleware, resource=guide["matches"])
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="https://api.sky.example") as client:
        for scopes, status in ((["match.read"], 403), (["match.read", "match.report"], 200)):
            token = await token_with(service, guide, *scopes)
            answer = await client.get("/matches", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == status, answer.text
            if status == HTTPStatus.OK:
                assert answer.json() == scopes
            else:
                assert 'scope="match.read match.report"' in answer.headers["www-authenticate"]
    await guide["matches"].close()
    await guide["tokens"].close()


async def token_with(service: RunningService, guide: dict[str, Any], *scopes: str) -> str:
    tokens = guide["tokens"]
    source = TokenSource(service.base_url, client_id="x", secret="x", resource=RESOURCE, scopes=scopes)
    source._headers = tokens._headers
    token = await source.token()
    await source.close()
    return token


async def test_mt_14_a_token_of_another_class_or_for_another_api_is_refused(studio: Studio) -> None:
    service = studio.service
    guide = await run_guide(service)
    token = await guide["tokens"].token()
    other = ProtectedResource(service.base_url, resource="https://other.example/", clock=service.clock)
    other_issuer = ProtectedResource(
        "https://sso.other.example",
        resource=RESOURCE,
        clock=service.clock,
        transport=StandardTransport(service.base_url),
    )
    for api, presented in ((other, token), (other_issuer, token), (guide["matches"], studio.owner.jwt)):
        with pytest.raises(Unauthenticated):
            await api.verify(presented)
    assert (await guide["matches"].verify(token)).is_machine
    wrong = TokenSource(service.base_url, client_id="match-server", secret="wrong", resource=RESOURCE)
    with pytest.raises(Unavailable):
        await wrong.token()
    for one in (other, other_issuer, guide["matches"], guide["tokens"], wrong):
        await one.close()


async def test_dg_14_the_client_verifies_act_and_names_the_programs(studio: Studio) -> None:
    service = studio.service
    agents = await some_agents(service)
    api = ProtectedResource(service.base_url, resource=CALENDAR, clock=service.clock)
    token = await api.verify(await token_of_two_programs(agents))
    assert (token.actors, token.client_id, token.is_machine) == (("runner", "planner"), "runner", False)
    for claims in wrong_acts(agents):
        with pytest.raises(Unauthenticated):
            await api.verify(await service.services.keys.signer.sign(claims))
    await api.close()
