"""The TypeScript package for web back ends, compiled and run under Node, against the running service."""

import asyncio
import json
import re
import shutil
import subprocess
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.game_clients.support.games import TYPESCRIPT
from tests.interop.programs import NODE
from tests.interop.toolchains import find_node
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import ORIGIN
from tests.support.capabilities import require_program
from tests.support.delegation import RESOURCE as CALENDAR
from tests.support.delegation import some_agents, token_of_two_programs, wrong_acts
from tests.support.find_programs import ROOT
from tests.support.oauth import RelyingPartyClient, an_oidc_client, claims_of, query_of
from tests.support.permission_builders import create_application
from tests.support.service import RunningService
from tests.support.studio import (
    FACTOR,
    OTHER_USER,
    OWNER,
    PROJECT,
    P,
    Studio,
    create_administrator,
    put_roles,
    role_granting,
    set_user_roles,
)
from tests.support.tls import NO_TRUST_STORE
from tests.wire.client.conftest import KICK, ClientShop
from tests.wire.client.test_protected_resource import RESOURCE

PACKAGE = ROOT / "clients" / "typescript" / "backend"
PROGRAMS = Path(__file__).parent / "programs"
LOGIN = "anna@studio.example"
API = {
    "resource": RESOURCE,
    "scopes": {"match.report": {"title": "Report match results"}, "match.read": {"title": "Read matches"}},
}


@dataclass(frozen=True, slots=True)
class Backend:
    process: Process

    async def call(self, command: str, **given: object) -> Any:
        """The result of a command, or the name of its error."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"command": command, **given}).encode() + b"\n")
        async with asyncio.timeout(20):
            answer = json.loads(await self.process.stdout.readline())
        return answer.get("error", answer.get("result"))


@pytest.fixture(scope="session")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled package, installed for the programs in the directory above its node_modules."""
    home = tmp_path_factory.mktemp("backend")
    package = home / "node_modules" / "gatehouse-backend"
    package.mkdir(parents=True)
    shutil.copy(PACKAGE / "package.json", package)
    compile_typescript("-p", str(PACKAGE), "--outDir", str(package / "dist"))
    return package / "dist" / "index.js"


def compile_typescript(*options: str) -> None:
    compiler, node = require_program(TYPESCRIPT), find_node()
    assert node is not None
    built = subprocess.run(
        [node[0], str(compiler), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr


@asynccontextmanager
async def running_driver(
    driver: str, settings: Mapping[str, object], environment: Mapping[str, str] | None = None
) -> AsyncIterator[Backend]:
    node = find_node()
    assert node is not None
    process = await asyncio.create_subprocess_exec(
        node[0], str(PROGRAMS / driver), json.dumps(settings), stdin=PIPE, stdout=PIPE, env=environment
    )
    try:
        yield Backend(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


@asynccontextmanager
async def running_backend(
    module: Path, studio: Studio, key: str, party: RelyingPartyClient
) -> AsyncIterator[Backend]:
    base_url = studio.service.base_url
    settings = {
        "module": module.as_uri(),
        "now": studio.service.clock.now(),
        "gatehouse": {
            "baseUrl": base_url,
            "applicationId": studio.shop.application_id,
            "credential": {"accessKey": key},
        },
        "signIn": {
            "baseUrl": base_url,
            "clientId": party.client.client_id,
            "clientSecret": party.secret,
            "redirectUri": party.redirect_uri,
        },
    }
    async with running_driver("backend_driver.mjs", settings) as backend:
        yield backend


async def walk(studio: Studio, party: RelyingPartyClient, url: str) -> str:
    """Sign Anna in through the pages; return where the browser is sent in the end."""
    browser = HttpBrowser(studio.service)
    try:
        return await party.walk_authorize(browser, LOGIN, **query_of(url))
    finally:
        await browser.client.aclose()


async def test_ts_01_package_verifies_jwts_and_checks_permissions(module: Path, shop: ClientShop) -> None:
    studio, person = shop.studio, shop.studio.other_user
    party = await an_oidc_client(studio.service)
    await shop.save(person, private_data=KICK)
    async with running_backend(module, studio, shop.key, party) as backend:
        assert await backend.call("user", jwt=person.jwt, factor=FACTOR) == person.user_id
        assert await backend.call("user", jwt=person.jwt, factor="another device") == "Unauthenticated"
        head, payload, signature = person.jwt.split(".")
        for forged in (
            f"{head}.{payload}.{signature[:-4]}AAAA",
            f"{head}.{payload}.",
            f"{head}..",
            "a.b.c",
            "x" * 9_000,
        ):
            assert await backend.call("user", jwt=forged) == "Unauthenticated"
        assert await backend.call("allows", jwt=person.jwt, rule="user.kick") is True
        before = await backend.call("requests")
        assert await backend.call("allows", jwt=person.jwt, rule="user.ban") is False
        assert await backend.call("allows", jwt=person.jwt, rule="user.kick", place={"project": "p"}) is False
        assert await backend.call("requests") == before  # cached
        await backend.call("advance", seconds=2)
        assert await backend.call("allows", jwt=person.jwt, rule="user.kick") is True
        assert await backend.call("requests") == before + 1
        allowed = {"authorization": f"Bearer {person.jwt}", "factor": FACTOR}
        for style in ("fetch", "express"):
            assert await backend.call(style, headers=allowed, rule="user.kick") == [200, {"user": person.user_id}]
            assert (await backend.call(style, headers=allowed, rule="user.ban"))[0] == 403
            refused = await backend.call(style, headers={})
            assert refused == [401, {"status": "ERROR", "error": "invalid token"}]
        await studio.service.services.accounts.administration.block(person.user_id, ORIGIN)
        await backend.call("advance", seconds=2)
        assert await backend.call("allows", jwt=person.jwt, rule="user.kick") == "Unauthenticated"
        await backend.call("advance", seconds=400 * 86_400)
        assert await backend.call("user", jwt=person.jwt) == "Unauthenticated"


async def test_ts_02_package_signs_a_person_in_and_refuses_a_mixed_up_answer(module: Path, shop: ClientShop) -> None:
    studio = shop.studio
    party = await an_oidc_client(studio.service)
    anna = await studio.service.services.accounts.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN
    )
    async with running_backend(module, studio, shop.key, party) as backend:
        url = await backend.call("begin")
        back = await walk(studio, party, url)
        assert await backend.call("complete", url=back.replace("state=", "state=x")) == "state"
        assert await backend.call("complete", url=back.replace("iss=http", "iss=https")) == "iss"
        done = await backend.call("complete", url=back)
        assert done["subject"] == anna.user_id
        assert party.client.client_id in done["aud"]
        assert await backend.call("complete", url=back) == "invalid_grant"  # a code is used once
        back = await walk(studio, party, await backend.call("begin"))
        assert await backend.call("complete", url=back, nonce="another") == "nonce"
        denied = f"{party.redirect_uri}?error=access_denied"
        assert await backend.call("complete", url=denied) == "state"


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(10):
        while not await condition():
            pass


async def test_ts_03_a_permission_is_cached_until_it_changes_and_for_max_age_while_the_stream_is_cut(
    module: Path, shop: ClientShop
) -> None:
    person, services = shop.studio.other_user, shop.studio.service.services
    party = await an_oidc_client(shop.studio.service)
    await shop.save(person, private_data=KICK)
    await services.audit.sealer.seal_all()
    async with running_backend(module, shop.studio, shop.key, party) as backend:

        async def may_kick() -> bool:
            allowed: bool = await backend.call("allows", jwt=person.jwt, rule="user.kick")
            return allowed

        async def may_not_kick() -> bool:
            return not await may_kick()

        async def requests_for(check: Callable[[], Awaitable[bool]]) -> int:
            before = await backend.call("requests")
            assert await check()
            return int(await backend.call("requests")) - before

        assert await backend.call("follow") is True
        assert await may_kick()
        await backend.call("advance", seconds=60)
        assert await requests_for(may_kick) == 0  # beyond max_age
        await shop.save(person, private_data={})
        await services.audit.sealer.seal_all()
        await until(may_not_kick)
        await backend.call("advance", seconds=300)
        assert await requests_for(may_not_kick) == 1

        await backend.call("holdStreams")
        for stream in tuple(services.changes.streams._streams):
            stream.end()

        async def has_tried_again() -> bool:
            return len(await backend.call("streams")) == 2

        await until(has_tried_again)
        assert await requests_for(may_not_kick) == 0
        await backend.call("advance", seconds=2)
        assert await requests_for(may_not_kick) == 1  # max_age counts
        await shop.save(person, private_data=KICK)
        await services.audit.sealer.seal_all()
        assert await may_not_kick()  # cached
        await backend.call("releaseStreams")
        await until(may_kick)  # told by the stream, which continues after its last event
        first, second = await backend.call("streams")
        assert not first
        assert second


async def test_ts_04_a_token_of_another_class_or_for_another_api_is_refused(module: Path, shop: ClientShop) -> None:
    studio, service = shop.studio, shop.studio.service
    party = await an_oidc_client(service)
    machine = await a_match_server(service)
    wanted = {"clientId": machine.client.client_id, "resource": RESOURCE, "scopes": ["match.read"]}
    async with running_backend(module, studio, shop.key, party) as backend:
        assert await backend.call("token", secret="wrong", **wanted) == "Unavailable"
        token = await backend.call("token", secret=machine.secret, **wanted)
        assert await backend.call("verify", token=token, resource=RESOURCE) == "client:match-server"
        head, payload, signature = token.split(".")
        for refused, resource in (
            (token, "https://other.example/"),
            (studio.owner.jwt, RESOURCE),
            (f"{head}.{payload}.{signature[:-4]}AAAA", RESOURCE),
            ("", RESOURCE),
        ):
            assert await backend.call("verify", token=refused, resource=resource) == "Unauthenticated"
        assert await backend.call("verify", token=token, resource=RESOURCE, scopes=["match.report"]) == "MissingScope"
        assert await backend.call("user", jwt=token) == "Unauthenticated"
        await backend.call("advance", seconds=300)
        assert await backend.call("verify", token=token, resource=RESOURCE) == "Unauthenticated"


async def test_dg_14_the_package_verifies_act_and_names_the_programs(module: Path, shop: ClientShop) -> None:
    studio = shop.studio
    party = await an_oidc_client(studio.service, "party")
    agents = await some_agents(studio.service)
    token = await token_of_two_programs(agents)
    async with running_backend(module, studio, shop.key, party) as backend:

        async def verify(token: str) -> Any:
            return await backend.call("verify", token=token, resource=CALENDAR)

        assert await verify(token) == f"{claims_of(token)['sub']} runner planner"
        for claims in wrong_acts(agents):
            assert await verify(await studio.service.services.keys.signer.sign(claims)) == "Unauthenticated"


async def a_match_server(service: RunningService) -> RelyingPartyClient:
    """A client that may ask for tokens of the API that it belongs to."""
    api = await create_application(service.services.storage, name="Matches", api=API)
    return await an_oidc_client(service, "match-server", application_id=api.application_id)


async def test_package_asks_and_searches_with_authzen(module: Path, shop: ClientShop) -> None:
    studio, who = shop.studio, {"type": "user", "id": shop.studio.other_user.user_id}
    party = await an_oidc_client(
        studio.service, application_id=studio.shop.application_id, scopes=("openid", "authzen")
    )
    await put_roles(studio, role_granting("referee"))
    for user_id in (OWNER, OTHER_USER):
        await set_user_roles(studio, user_id, {P: ["referee"]})
    here, kick = {"type": "project", "id": PROJECT}, "user.kick"
    tokens = {"clientId": party.client.client_id, "secret": party.secret, "scopes": ["authzen"]}
    async with running_backend(module, studio, shop.key, party) as backend:
        for credential in ({"tokens": tokens}, {"credential": {"accessKey": shop.key}}):

            async def ask(method: str, *given: object, credential: object = credential) -> Any:
                return await backend.call("authzen", **credential, method=method, arguments=given)  # type: ignore[arg-type]

            question = {"subject": who, "action": kick, "resource": here}
            other = {**question, "action": "user.unknown"}
            assert await ask("evaluate", question) is True
            assert await ask("evaluate", other) is False
            assert await ask("evaluations", [question, other, question]) == [True, False, True]
            assert await ask("evaluations", [question, other, question], "deny_on_first_deny") == [True, False]
            found = await ask("searchSubjects", kick, here)  # with a request for each
            assert [one["id"] for one in found] == sorted((OWNER, OTHER_USER))
            assert kick in await ask("searchActions", who, here)
            assert await ask("searchResources", who, kick) == [here]
            assert await ask("evaluate", {**question, "action": ""}) == 400
        refused = {"credential": {"accessKey": "none"}, "method": "evaluate", "arguments": [question]}
        assert await backend.call("authzen", **refused) == "Unauthenticated"


async def test_package_manages_people_and_tells_errors_apart(module: Path, shop: ClientShop) -> None:
    studio = shop.studio
    admin = await create_administrator(studio)
    party = await an_oidc_client(studio.service)
    async with running_backend(module, studio, shop.key, party) as backend:

        async def manage(method: str, *given: object, jwt: str = admin.jwt) -> Any:
            return await backend.call("manage", token=jwt, factor=FACTOR, method=method, arguments=given)

        made = [
            await manage("createPerson", {"login": f"tester{n}@studio.example", "nick": f"Tester {n}"})
            for n in range(3)
        ]
        found = await manage("searchPeople", "tester")  # with a request for each
        assert sorted(one["user_id"] for one in found) == sorted(one["user_id"] for one in made)
        ids = [one["application_id"] for one in await manage("list", "application")]
        assert {studio.shop.application_id, studio.other.application_id} <= set(ids)
        person = made[0]["user_id"]
        saved = await manage("savePerson", person, {"nick": "Regular", "version": made[0]["version"]})
        assert (await manage("getPerson", person))["nick"] == saved["nick"] == "Regular"
        assert await manage("savePerson", person, {"nick": "Late", "version": made[0]["version"]}) == 409
        assert (await manage("blockPerson", person))["blocked"]
        assert not (await manage("unblockPerson", person))["blocked"]
        assert await manage("endSessions", person) is None
        invited = await manage("invitePerson", {"login": "new@studio.example", "nick": "New"})
        assert invited["link"].startswith(studio.service.base_url)
        assert await manage("erasePerson", person) is None
        assert await manage("getPerson", person) == 404
        assert await manage("createPerson", {"nick": "X"}, jwt=studio.other_user.jwt) == "Denied"
        assert await manage("getPerson", person, jwt="none") == "Unauthenticated"


@pytest.fixture(scope="session")
def readme(module: Path) -> Path:
    """The code of the README, compiled."""
    home = module.parents[3]
    express = require_program(NODE) / "node_modules" / "express"
    (home / "node_modules" / "express").symlink_to(express)
    (home / "package.json").write_text('{"type": "module"}')
    code = re.findall(r"```ts\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL)
    (home / "readme.ts").write_text("\n".join(code))
    files = [str(home / "readme.ts"), str(PROGRAMS / "express.d.ts")]
    strict = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--skipLibCheck"]
    compile_typescript(*files, *strict, "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom")
    return home / "readme.js"


def fill_in_readme(readme: Path, studio: Studio, name: str) -> Path:
    """The program with the address, clock and application of the test, beside the packages."""
    code = readme.read_text().replace("applicationId: 50030", f"applicationId: {studio.shop.application_id}")
    base_url = f'"{studio.service.base_url}", clock: testClock, factor: "{FACTOR}"'
    before, _, after = code.rpartition("OIDC_CLIENT_SECRET")  # of another program, which runs in this one
    code = f"{before}MATCH_SERVER_SECRET{after}"
    program = readme.with_name(f"{name}.js")
    program.write_text(code.replace('"https://sso.studio.example"', base_url))
    return program


async def test_the_code_of_the_readme_runs(readme: Path, shop: ClientShop, tmp_path: Path) -> None:
    studio, service, person = shop.studio, shop.studio.service, shop.studio.other_user
    admin = await create_administrator(studio)
    machine = await a_match_server(service)
    redirect_uri = "https://shelf.example/callback"
    party = replace(await an_oidc_client(service, redirect_uris=(redirect_uri,)), redirect_uri=redirect_uri)
    anna = await service.services.accounts.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN
    )
    await shop.save(person, private_data=KICK)
    await service.services.audit.sealer.seal_all()
    program = fill_in_readme(readme, studio, tmp_path.name)
    secrets = {"GATEHOUSE_KEY": shop.key, "OIDC_CLIENT_SECRET": party.secret, "MATCH_SERVER_SECRET": machine.secret}
    settings = {"module": program.as_uri(), "now": service.clock.now()}
    async with running_driver("readme_driver.mjs", settings, secrets) as backend:
        home = f"http://127.0.0.1:{await backend.call('port')}"
        assert await backend.call("post", headers=person.headers) == [200, {"by": person.user_id}]
        assert await backend.call("mayKick", jwt=person.jwt, factor=FACTOR) is False  # in the project
        back = await walk(studio, party, await backend.call("login"))
        assert await backend.call("callback", url=back) == ["https://shelf.example/", anna.user_id]
        assert await backend.call("callback", url=back) == ["https://shelf.example/login", anna.user_id]
        reported = await backend.call("report", address=f"{home}/matches")
        assert reported == [200, {"reported_by": "client:match-server"}]
        shop_id = studio.shop.application_id
        assert await backend.call("whoMayKick", applicationId=shop_id) == [person.user_id]
        for _ in range(2):  # the key of the create is the same
            assert await backend.call("createTester", token=admin.jwt) == ["Tester"]
        async with httpx2.AsyncClient(base_url=home, verify=NO_TRUST_STORE) as client:
            kicked = await client.post("/kick", headers=person.headers)
            assert (kicked.status_code, kicked.json()) == (200, {"by": person.user_id})
            assert (await client.post("/kick", headers=studio.owner.headers)).status_code == 403
            document = await client.get("/.well-known/oauth-protected-resource/matches")
            assert (document.json()["resource"], document.json()["authorization_servers"]) == (
                RESOURCE,
                [service.base_url],
            )
            where = 'resource_metadata="https://api.sky.example/.well-known/oauth-protected-resource/matches"'
            missing = await client.post("/matches")
            assert (missing.status_code, missing.headers["www-authenticate"]) == (401, f"Bearer {where}")
            wrong = await client.post("/matches", headers=person.headers)
            assert wrong.headers["www-authenticate"] == f'Bearer error="invalid_token", {where}'
