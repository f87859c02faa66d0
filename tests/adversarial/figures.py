"""Measure the checklist's rows about time and volume in full on a serving process, and print them as a table.

`make adversarial` takes minutes, on an otherwise idle machine. The ordinary tests check each row with smaller
numbers; this prints each figure beside its bound and fails if one is out of bounds.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gatehouse.settings.model import RateSettings
from tests.adversarial.figures_of_callers import measure_limited, measure_unlimited
from tests.adversarial.figures_of_connections import frames, series, shared_connection, sockets, stopping
from tests.adversarial.figures_of_memory import many_applications
from tests.adversarial.measuring import (
    JSON,
    MACHINE_NOISE,
    QUIET,
    UNLIMITED,
    VOLUME,
    Figure,
    Target,
    json_body,
    p99,
    send_many,
    serve_node,
)
from tests.support.processes import LOOPBACK

TRIES: Final = 20
MEGABYTE: Final = 1_000_000
DEEP: Final = 100_000
SLOW: Final = 2_000  # connections of HT-03
CHECK: Final = "/api/permissions/check"
TOKEN: Final = "/proxy/oauth/token"
GSID: Final = "/proxy/api/gameSession/getGsid"
RESULT: Final = "/proxy/api/gameSession/getGsidResult"
LOGIN: Final = "/proxy/api/login"
EXCHANGE: Final = "/api/permissions/exchangeJwt"
GUESSES: Final = 100  # wrong proofs from one source before it is limited
FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.timeout(0)
@pytest.mark.parametrize("group", ["answers", "rates", "callers", "connections", "memory", "the end"])
def test_every_time_and_volume_figure_is_within_its_bound(
    group: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        sys.stdout.write("\n")
        figures = asyncio.run(run_measures(tmp_path, *groups()[group]))
    assert [figure.id for figure in figures if not figure.is_within] == []


Measure = Callable[[Target], AsyncIterator[Figure]]


def groups() -> Mapping[str, tuple[Mapping[str, str], Sequence[Measure]]]:
    """The measurements of one process, with its settings."""
    return {
        "answers": (UNLIMITED, (milliseconds_of, oversized_tokens, session_ids, slow_connections, distinct_values)),
        "rates": (QUIET, (floods, measure_limited)),
        "callers": (UNLIMITED, (measure_unlimited,)),
        "connections": (UNLIMITED, (shared_connection, sockets, frames, series)),
        "memory": (UNLIMITED, (many_applications,)),
        "the end": (UNLIMITED, (stopping,)),
    }


async def run_measures(data: Path, environment: Mapping[str, str], measures: Sequence[Measure]) -> list[Figure]:
    """Run the measurements and print each when it is done."""
    figures: list[Figure] = []
    async with serve_node(data, environment) as target:
        for measure in measures:
            async for figure in measure(target):
                sys.stdout.write(f"{figure}\n")
                sys.stdout.flush()
                figures.append(figure)
    return figures


# -- time -----------------------------------------------------------------------------------------------

Ask = Callable[[Target], Awaitable[httpx2.Response]]


def request_to(method: str, path: str, content: bytes = b"", headers: dict[str, str] | None = None) -> Ask:
    return lambda target: target.client.request(method, path, content=content or None, headers=headers or {})


def hostile_requests() -> Sequence[tuple[str, str, float, Ask]]:
    """Id, request, the milliseconds it may take, and how it is sent."""
    authorize = "/proxy/oauth/authorize?client_id=x&"
    many_fields = b"&".join(b"a%d=1" % number for number in range(MEGABYTE // 10))
    parts = b"--b\r\n" + b"X: 1\r\n" * DEEP + b"\r\n\r\n--b--\r\n"
    deep = b'{"data":' + b"[" * DEEP
    keys = b"{" + b",".join(b'"%d":1' % number for number in range(MEGABYTE // 10)) + b"}"
    long_text = "x" * MEGABYTE
    return (
        ("AZ-22", "redirect_uri of 60 KB", 100, request_to("GET", f"{authorize}redirect_uri={'x' * 60_000}")),
        ("AZ-22", "20,000 scopes in a form", 100, request_to("POST", authorize, b"scope=" + b"a+" * 20_000, FORM)),
        ("AZ-22", "5,000 unknown parameters", 100, request_to("POST", authorize, many_fields[:50_000], FORM)),
        (
            "LG-17",
            "a password of 1 MB",
            50,
            request_to("POST", LOGIN, json_body(login="a@b.example", password=long_text), JSON),
        ),
        (
            "GS-08",
            "a public key of 16,384 bits",
            100,
            request_to("POST", GSID, json_body(public_key=public_key_of(16_384)), JSON),
        ),
        ("GS-08", "a public key of 1 MB", 100, request_to("POST", GSID, json_body(public_key=long_text), JSON)),
        ("GS-29", "distr of 1 MB", 100, request_to("POST", GSID, json_body(distr=long_text), JSON)),
        ("HT-06", "100,000 form fields", 100, request_to("POST", TOKEN, many_fields, FORM)),
        (
            "HT-06",
            "a part with 100,000 headers",
            100,
            request_to("POST", LOGIN, parts, {"Content-Type": "multipart/form-data; boundary=b"}),
        ),
        (
            "HT-06",
            "a Content-Type of 10,000 backslashes",
            100,
            request_to("POST", LOGIN, b"{}", {"Content-Type": "a/b;c=" + "\\" * 10_000}),
        ),
        ("HT-08", "JSON 100,000 levels deep: permissions", 50, request_to("POST", CHECK, deep, JSON)),
        ("HT-08", "JSON 100,000 levels deep: token", 50, request_to("POST", TOKEN, deep, JSON)),
        ("HT-08", "JSON 100,000 levels deep: login", 50, request_to("POST", LOGIN, deep, JSON)),
        ("HT-08", "JSON 100,000 levels deep: getGsid", 50, request_to("POST", GSID, deep, JSON)),
        ("RO-12", "a condition 100,000 levels deep", 50, request_to("POST", "/api/permissions/roles", deep, JSON)),
        ("HT-09", "JSON with 100,000 keys", 100, request_to("POST", CHECK, keys, JSON)),
        (
            "UI-23",
            "a JWT of 10,000 dots",
            50,
            request_to("POST", CHECK, json_body(jwt="." * 10_000, data={"checks": []}), JSON),
        ),
    )


async def milliseconds_of(target: Target) -> AsyncIterator[Figure]:
    for name, what, bound, ask in hostile_requests():
        yield Figure(
            name, f"{what}: slowest but one of {TRIES}", await slowest_milliseconds(target, ask), bound, "ms"
        )


async def slowest_milliseconds(target: Target, ask: Ask) -> float:
    """The slowest of several tries in milliseconds, all refused. The very slowest is dropped as noise."""
    taken = []
    for _ in range(TRIES + 1):
        began = time.perf_counter()
        response = await ask(target)
        taken.append(time.perf_counter() - began)
        assert 300 <= response.status_code < 500, response.text[:200]
    return sorted(taken[1:])[-2] * 1_000


def public_key_of(bits: int) -> str:
    key = RSAPublicNumbers(65_537, (1 << (bits - 1)) + 1).public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


# -- memory ---------------------------------------------------------------------------------------------


async def oversized_tokens(target: Target) -> AsyncIterator[Figure]:
    ask = json_body(jwt=f"{'a' * 400_000}.{'b' * 400_000}.c", data={"checks": []})
    await send_many(50, lambda _: target.client.post(CHECK, content=ask, headers=JSON))
    before = target.memory()
    await send_many(1_000, lambda _: target.client.post(CHECK, content=ask, headers=JSON))
    yield Figure("UI-23", "memory after 1,000 tokens of 800 KB", target.memory() - before, 10, "MB")


async def distinct_values(target: Target) -> AsyncIterator[Figure]:
    """Values of everything a caller may choose, different each time."""
    kinds: Sequence[Callable[[int], Awaitable[httpx2.Response]]] = (
        lambda number: target.client.get(f"/proxy/oauth/authorize?client_id=c{number}"),
        lambda number: target.client.post(RESULT, json={"gsid": f"{number:036x}"}),
        lambda number: target.client.get(f"/nowhere/{number}", headers={"Accept-Language": f"x{number}"}),
        lambda number: target.client.get(f"/api/permissions/application/publicKey/{number:x}"),
        lambda number: target.client.post(
            CHECK, content=json_body(jwt=f"e30.{number:x}.x", data={"checks": []}), headers=JSON
        ),
    )
    share = VOLUME // len(kinds)
    for kind in kinds:
        await send_many(share // 20, kind)  # fill the caches first
    before = target.memory()
    for kind in kinds:
        await send_many(share, kind, begin=share)
    yield Figure("HT-18", f"memory after {VOLUME:,} values of callers' choice", target.memory() - before, 50, "MB")


# -- ids ------------------------------------------------------------------------------------------------


async def session_ids(target: Target) -> AsyncIterator[Figure]:
    number = min(10_000, VOLUME)
    responses = await send_many(number, lambda _: target.client.post(GSID))
    gsids = [response.json()["gsid"] for response in responses]
    locations = [response.headers["location"].partition("location=")[2] for response in responses]
    assert len(set(gsids)) == len(set(locations)) == number
    # Base64url characters have six bits each; a part that many ids share would be a clock or a counter.
    shared = max(sum(gsid.startswith(start) for gsid in gsids) for start in {gsid[:4] for gsid in gsids})
    yield Figure("GS-11", "bits in a Location", min(map(len, locations)) * 6, 128, "bits", at_least=True)
    yield Figure("GS-11", f"of {number:,} gsids that begin alike in four letters", shared, 12, "gsids")


# -- timeouts -------------------------------------------------------------------------------------------


async def slow_connections(target: Target) -> AsyncIterator[Figure]:
    usual = await p99(target.client)
    opened = [await asyncio.open_connection(LOOPBACK, target.node.port) for _ in range(SLOW)]
    for _, writer in opened:
        writer.write(b"G")
    beside = await p99(target.client)
    for _, writer in opened:
        writer.close()
    bound = max(2 * usual, MACHINE_NOISE)
    yield Figure("HT-03", f"p99 beside {SLOW:,} connections of one byte", beside * 1_000, bound * 1_000, "ms")


# -- floods ---------------------------------------------------------------------------------------------


async def floods(target: Target) -> AsyncIterator[Figure]:
    """How many requests of a flood from one source are admitted; the others get Retry-After."""
    rates, client = RateSettings(), target.client
    rows: Sequence[tuple[str, str, int, int, Callable[[int], Awaitable[httpx2.Response]]]] = (
        (
            *("AZ-33", "authorize requests", 3_000, rates.public),
            lambda number: client.get(f"/proxy/oauth/authorize?client_id=c{number}"),
        ),
        ("GS-28", "getGsid", 10_000, rates.poll, lambda _: client.post(GSID)),
        (
            *("AK-12", "guessed access keys", 1_000, GUESSES),
            lambda number: client.post(EXCHANGE, json={}, headers={"Authorization": f"Bearer {number:064x}"}),
        ),
        (
            *("LG-10", "accounts tried with one password", 1_000, rates.login),
            lambda number: client.post(LOGIN, json={"login": f"p{number}@a.example", "password": "one password"}),
        ),
    )
    for name, what, number, a_minute, ask in rows:
        yield await flood(name, what, number, a_minute, ask)


async def flood(
    name: str, what: str, number: int, a_minute: int, ask: Callable[[int], Awaitable[httpx2.Response]]
) -> Figure:
    """The allowance is available at once and refills during the flood."""
    began = time.perf_counter()
    responses = await send_many(number, ask)
    bound = a_minute * (1 + (time.perf_counter() - began) / 60)
    refusals = [response for response in responses if response.status_code == 429]
    assert all(int(response.headers["retry-after"]) > 0 for response in refusals)
    let_in = number - len(refusals)
    return Figure(name, f"let in of {number:,} {what}, {a_minute} a minute", let_in, round(bound), "requests")
