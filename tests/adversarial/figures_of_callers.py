"""Figures about callers with credentials, right or wrong: proofs, keys, tokens, and the effect on other callers."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import httpx2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gatehouse.app.services import Services, open_services
from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.clock import SystemClock
from gatehouse.kernel.digests import sha256
from gatehouse.oauth.client_auth import GUESS_LIMIT
from gatehouse.oauth.model import Client, ClientProfile
from gatehouse.permissions.authentication.access_keys import USE_RECORD_INTERVAL
from gatehouse.settings.model import RateSettings
from tests.adversarial.measuring import AT_ONCE, JSON, Figure, Target, client_of, json_body, scale_volume, send_many
from tests.support.builders import ORIGIN, a_record
from tests.support.oauth import DAY, REDIRECT, TOKEN, a_grant, base64url, native_proof
from tests.support.permission_builders import a_person, a_project, create_application, publish
from tests.support.processes import LOOPBACK
from tests.support.raw_http import RawConnection, raw_connection
from tests.support.service import load_test_settings
from tests.support.studio import FACTOR, OTHER_USER, OWNER, PROJECT

API: Final = "/api/permissions"
GUESSER: Final = "127.0.1.1"
ITS_OWN: Final = "127.0.1.2"
ADDRESSES: Final = [f"127.0.2.{number}" for number in range(1, 11)]  # one principal sends from all of them
A_CLIENT: Final = "web"
ROUNDS: Final = 3  # of parallel uses
OTHERS: Final = 50  # requests of a second caller during a flood


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredInstallation:
    """The callers of the measured process."""

    target: Target
    services: Services  # opened separately, as a command does
    user_id: str
    secret: str
    application_id: int
    owner: dict[str, str]
    other_user: dict[str, str]

    async def code(self) -> str:
        """A code that the client may redeem."""
        code, now = secrets.token_urlsafe(32), self.services.clock.now()
        grant = a_grant(
            client_id=A_CLIENT,
            user_id=self.user_id,
            code=sha256(code),
            auth_time=now,
            created_at=now,
            code_ends_at=now + 60,
            ends_at=now + 90 * DAY,
        )
        assert await self.services.storage.grants.create_grant(grant, a_record(AuditEvent.GRANT_MADE))
        return code

    async def access_key(self) -> str:
        created = await self.ask("accessKey", action="save", application_id=self.application_id, data={})
        key: str = created["data"]["hash"]
        return key

    async def ask(self, path: str, **fields: object) -> Any:
        response = await self.target.client.post(f"{API}/{path}", json=fields, headers=self.owner)
        assert response.status_code == 200, response.text
        return response.json()


@asynccontextmanager
async def measured_installation(target: Target) -> AsyncIterator[MeasuredInstallation]:
    url = f"sqlite:///{target.data / 'gatehouse.db'}"
    loaded = load_test_settings(url, target.data, port=target.node.port)
    async with open_services(loaded, clock=SystemClock(), serving=False) as services:
        owner, other_user = [await a_person(services.storage, user_id) for user_id in (OWNER, OTHER_USER)]
        jwts = [
            await services.accounts.user_tokens.issue(user, auth="login", factor=FACTOR)
            for user in (owner, other_user)
        ]
        await publish(services.storage, a_project(), owners=[OWNER])
        shop = await create_application(services.storage, name="Shop", project_id=PROJECT)
        client = Client(
            client_id=A_CLIENT,
            name="Web shop",
            created_at=services.clock.now(),
            profile=ClientProfile.NATIVE,
            redirect_hosts=("shop.example",),
            first_party=True,
        )
        yield MeasuredInstallation(
            target=target,
            services=services,
            user_id=OWNER,
            secret=await services.oauth.clients.commands.create(client, ORIGIN) or "",
            application_id=shop.application_id,
            owner=headers_of(jwts[0]),
            other_user=headers_of(jwts[1]),
        )


def headers_of(jwt: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {jwt}", "Factor": FACTOR}


async def measure_limited(target: Target) -> AsyncIterator[Figure]:
    """With rate limits."""
    async with measured_installation(target) as installation:
        for measure in (guessed_proofs, one_principal):
            async for figure in measure(installation):
                yield figure


async def measure_unlimited(target: Target) -> AsyncIterator[Figure]:
    """Without rate limits, which would hide what is measured."""
    async with measured_installation(target) as installation:
        for measure in (parallel_uses, unknown_keys):
            async for figure in measure(installation):
                yield figure


# -- TK-29 ----------------------------------------------------------------------------------------------


async def guessed_proofs(installation: MeasuredInstallation) -> AsyncIterator[Figure]:
    number, own = scale_volume(500), scale_volume(20)
    code = await installation.code()
    fields = {"grant_type": "authorization_code", "redirect_uri": REDIRECT}
    right = {"Authorization": f"Bearer {native_proof(REDIRECT, installation.secret)}"}
    began = time.perf_counter()
    async with client_of(installation.target.node, address=GUESSER) as guesser:
        answers = await send_many(
            number,
            lambda one: guesser.post(
                TOKEN, data={**fields, "code": code}, headers={"Authorization": f"Bearer {one:040x}"}
            ),
        )
    tried = count_with_status(answers, 401)
    most = GUESS_LIMIT.free_attempts + AT_ONCE + (time.perf_counter() - began) / GUESS_LIMIT.first_delay
    yield Figure("TK-29", f"of {number} guessed proofs from one source, looked at", tried, round(most), "proofs")
    async with client_of(installation.target.node, address=ITS_OWN) as client:
        served = [
            await client.post(TOKEN, data={**fields, "code": await installation.code()}, headers=right)
            for _ in range(own)
        ]
    yield Figure(
        *(
            "TK-29",
            f"of {own} redemptions of the client itself, served",
            count_with_status(served, 200),
            own,
            "codes",
        ),
        at_least=True,
    )


def count_with_status(responses: Sequence[httpx2.Response], status: int) -> int:
    """How many have this status; the others must have Retry-After."""
    refusals = [response for response in responses if response.status_code != status]
    assert all(response.status_code == 429 and int(response.headers["retry-after"]) > 0 for response in refusals), {
        response.status_code for response in refusals
    }
    return len(responses) - len(refusals)


# -- PA-15 ----------------------------------------------------------------------------------------------


async def one_principal(installation: MeasuredInstallation) -> AsyncIterator[Figure]:
    """Send from many addresses, so that no single address reaches its limit."""
    number, a_minute = scale_volume(10_000), RateSettings().admin
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(client_of(installation.target.node, address=address))
            for address in ADDRESSES
        ]
        began = time.perf_counter()
        flood = asyncio.create_task(
            send_many(
                number,
                lambda one: clients[one % len(clients)].post(f"{API}/user/info", headers=installation.owner, json={}),
            )
        )
        others = [
            await installation.target.client.post(f"{API}/user/info", headers=installation.other_user, json={})
            for _ in range(OTHERS)
        ]
        let_in = count_with_status(await flood, 200)
    bound = a_minute * (1 + (time.perf_counter() - began) / 60)
    what = f"let in of {number:,} requests of one principal, {a_minute} a minute"
    yield Figure("PA-15", what, let_in, round(bound), "requests")
    yield Figure(
        *(
            "PA-15",
            f"of {OTHERS} requests of someone else meanwhile, served",
            count_with_status(others, 200),
            OTHERS,
        ),
        "requests",
        at_least=True,
    )


# -- AK-07 ----------------------------------------------------------------------------------------------


async def parallel_uses(installation: MeasuredInstallation) -> AsyncIterator[Figure]:
    """Use bare connections: an HTTP client with a thousand of them would dominate the measurement."""
    number = scale_volume(1_000)
    use = use_of(await installation.access_key(), installation)
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(raw_connection(installation.target.node.port)) for _ in range(number)
        ]
        began = time.perf_counter()
        failures = sum([await use_fails(opened[0], use) for _ in range(number)])
        alone = time.perf_counter() - began
        seen, together = [await last_used(installation)], 0.0
        for _ in range(ROUNDS):
            started = time.perf_counter()
            failures += sum(await asyncio.gather(*(use_fails(connection, use) for connection in opened)))
            together += (time.perf_counter() - started) / ROUNDS
            seen.append(await last_used(installation))
    written = 1 + (time.perf_counter() - began) // USE_RECORD_INTERVAL
    yield Figure("AK-07", f"failures of {ROUNDS} times {number:,} uses at once", failures, 0, "uses")
    yield Figure("AK-07", f"time of {number:,} uses at once, of that one after the other", together / alone, 1.5, "x")
    yield Figure("AK-07", "values of last_used in that time", len(set(seen)), written, "values")
    yield Figure("AK-07", "steps back of last_used", sum(one > two for one, two in pairwise(seen)), 0, "steps")


def use_of(key: str, installation: MeasuredInstallation) -> bytes:
    """A request with the access key that reads the owner's record."""
    jwt = installation.owner["Authorization"].removeprefix("Bearer ")
    content = json_body(action="get", application_id=installation.application_id, data={}, jwt=jwt)
    head = f"POST {API}/meta/data HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    return f"{head}Authorization: Bearer {key}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


async def use_fails(connection: RawConnection, request: bytes) -> bool:
    connection.send(request)
    return (await connection.read_response()).status != httpx2.codes.OK


async def last_used(installation: MeasuredInstallation) -> str:
    [data] = (await installation.ask("accessKey", action="get", application_id=installation.application_id))["data"]
    moment: str = data["last_used"]
    return moment


# -- UI-25 ----------------------------------------------------------------------------------------------


async def unknown_keys(installation: MeasuredInstallation) -> AsyncIterator[Figure]:
    """Tokens that are valid except for their key, and that name places to fetch it from in every known way."""
    number, called = scale_volume(10_000), 0

    def on_connection(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal called
        called += 1
        writer.close()

    listener = await asyncio.start_server(on_connection, LOOPBACK, 0)
    forged = forgery(f"http://{LOOPBACK}:{listener.sockets[0].getsockname()[1]}")

    async def ask(one: int) -> httpx2.Response:
        response = await installation.target.client.post(f"{API}/check", content=forged(one), headers=JSON)
        assert response.status_code == 401, response.text
        return response

    async with listener:
        await send_many(number // 10, ask)
        before = installation.target.memory()
        await send_many(number, ask, begin=number)
    yield Figure("UI-25", f"calls to the address that {number:,} tokens with random kids name", called, 0, "calls")
    yield Figure("UI-25", "memory after them", installation.target.memory() - before, 5, "MB")


def forgery(address: str) -> Callable[[int], bytes]:
    private = Ed25519PrivateKey.generate()

    def forged_body(number: int) -> bytes:
        kid = secrets.token_hex(6)
        header = {"alg": "EdDSA", "typ": "user_jwt", "kid": kid, "jku": address, "x5u": address}
        claims = {"iss": address, "sub": OWNER, "uid": OWNER, "jti": str(number), "exp": 4_000_000_000}
        message = ".".join(base64url(json_body(**part)) for part in (header, claims))
        jwt = f"{message}.{base64url(private.sign(message.encode()))}"
        return json_body(jwt=jwt, factor=FACTOR, application_id=1, data={"checks": []})

    return forged_body
