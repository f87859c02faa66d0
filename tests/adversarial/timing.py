"""Compare response times for known and unknown accounts (LG-05) and for wrong secrets (TK-27).

It takes many samples, so `make adversarial` runs it on an otherwise idle machine. The ordinary tests only check that
it runs (test_timing.py).
"""

import math
import secrets
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median, variance
from typing import Final

import httpx2
import pytest

from gatehouse.accounts.model import User
from tests.support.browser import HttpBrowser
from tests.support.builders import a_record
from tests.support.oauth import RelyingPartyClient, a_native_client, an_oidc_client, native_proof
from tests.support.service import RunningService, running_service

SAMPLES: Final = 500  # of each kind
WARM_UP: Final = 20
TOLERANCE: Final = 0.05
A_DAY: Final = 86_400
A_BATCH: Final = 40  # pairs until the mail quota or the attempt limit of one source is used up
NEW: Final = "a quite different phrase"
LOGIN: Final = "/proxy/api/login"
CALLS: Final = 20_000  # of each kind
KEPT_SHARE: Final = 0.9  # the share of samples that counts; slower ones were interrupted
T_MOST: Final = 4.5
MEASURED_PATHS: Final = (LOGIN, "/register", "/forgot", "/verify-email/again", "/sign-in/email")
SETTINGS: Final = {"GATEHOUSE__RATES__ENABLED": "false", "GATEHOUSE__ACCOUNTS__EMAIL_SIGN_IN": "true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    pairs: int
    usual: float  # seconds, the median for unknown accounts
    difference: float  # seconds, the median of the extra time for a known account

    @property
    def share(self) -> float:
        return self.difference / self.usual

    def __str__(self) -> str:
        return f"{self.usual * 1e3:8.2f} ms, known accounts {self.share:+.2%} ({self.pairs} pairs)"


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with running_service(installed_url, tmp_path, environment=SETTINGS) as running:
        yield running


@pytest.mark.parametrize("path", MEASURED_PATHS)
async def test_lg_05_known_and_unknown_addresses_take_as_long(
    service: RunningService, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    timing = await measure_pairs(service, path, samples=SAMPLES, warm_up=WARM_UP)
    database = service.services.settings.database.url.reveal().partition(":")[0]
    with capsys.disabled():
        sys.stdout.write(f"\n{path:<22} {database:<12} {timing}\n")
    assert abs(timing.share) <= TOLERANCE


async def measure_pairs(service: RunningService, path: str, *, samples: int, warm_up: int) -> Timing:
    """Measure pairs back to back, alternating which comes first, so that other load affects both alike."""
    logins = await people_of(service, samples + warm_up)
    browser_client = HttpBrowser(service)
    await browser_client.get("/register")
    page = browser_client.page
    taken: dict[bool, list[float]] = {True: [], False: []}
    for number, login in enumerate(logins):
        if number % A_BATCH == 0:
            await service.clock.advance(A_DAY)
        for exists in (True, False) if number % 2 else (False, True):
            browser_client.page = page
            began = time.perf_counter()
            response = await send_attempt(browser_client, path, login if exists else login.replace("known", "other"))
            taken[exists].append(time.perf_counter() - began)
            assert response.status_code == 200
    await browser_client.client.aclose()
    pairs = list(zip(taken[True], taken[False], strict=True))[warm_up:]
    return Timing(
        pairs=len(pairs),
        usual=median(unknown for _, unknown in pairs),
        difference=median(known - unknown for known, unknown in pairs),
    )


async def send_attempt(browser: HttpBrowser, path: str, login: str) -> httpx2.Response:
    if path == LOGIN:
        response = await browser.client.post(path, json={"login": login, "password": NEW})
        assert response.json() == {"status": "LOGINERROR"}
        return response
    more = {"nick": "Someone", "password": NEW} if path == "/register" else {}
    return await browser.post(path, login=login, **more)


async def people_of(service: RunningService, number: int) -> list[str]:
    """Accounts as registration leaves them, all with the same password."""
    hashed = await service.services.accounts.passwords.hash("correct horse battery staple")
    logins = [f"known{n:04}@studio.example" for n in range(number)]
    for one, login in enumerate(logins):
        user = User(user_id=str(2_000_000_000 + one), login=login, nick="Known", password_hash=hashed, reg_time=1)
        await service.services.storage.accounts.create_user(user, a_record())
    return logins


Check = Callable[[str], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    calls: int  # of each kind
    usual: float  # seconds, the median
    t: float  # Welch's t, wrong in the first byte against wrong in the last

    def __str__(self) -> str:
        return f"{self.usual * 1e6:8.2f} us, first against last byte t = {self.t:+.2f} ({self.calls} calls of each)"


@pytest.mark.parametrize("what", ["proof", "secret at revoke", "digest at revoke"])
async def test_tk_27_a_wrong_secret_takes_as_long_wherever_it_differs(
    installed_sqlite_url: str, tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_service(installed_sqlite_url, tmp_path) as service:
        check, right = (await comparisons(service))[what]
        measured = await compare_secrets(check, right, calls=CALLS, warm_up=WARM_UP)
    with capsys.disabled():
        sys.stdout.write(f"\n{what:<22} {'in process':<12} {measured}\n")
    assert abs(measured.t) < T_MOST


async def comparisons(service: RunningService) -> Mapping[str, tuple[Check, str]]:
    """The methods that the token and the revoke endpoint call, each with the right value."""
    client_secrets = service.services.oauth.clients.secrets
    native, oidc = await a_native_client(service), await an_oidc_client(service)
    source = "192.0.2.1"

    async def is_correct_proof(value: str) -> bool:
        return await client_secrets.is_correct_proof(native.client, value, native.redirect_uri, source=source)

    async def is_correct_secret(relying: RelyingPartyClient, value: str) -> bool:
        return await client_secrets.is_correct_secret(relying.client, value, source=source)

    return {
        "proof": (is_correct_proof, native_proof(native.redirect_uri, native.secret)),
        "secret at revoke": (partial(is_correct_secret, native), native.secret),
        "digest at revoke": (partial(is_correct_secret, oidc), oidc.secret),
    }


async def compare_secrets(check: Check, right: str, *, calls: int, warm_up: int) -> Comparison:
    """Measure in random order, so that periodic load affects both kinds alike."""
    assert await check(right)
    wrong = (other_character(right[0]) + right[1:], right[:-1] + other_character(right[-1]))
    taken: tuple[list[float], list[float]] = ([], [])
    order = [0, 1] * (calls + warm_up)
    secrets.SystemRandom().shuffle(order)
    for kind in order:
        began = time.perf_counter_ns()
        is_right = await check(wrong[kind])
        taken[kind].append((time.perf_counter_ns() - began) / 1e9)
        assert not is_right
    first, last = (samples[warm_up:] for samples in taken)
    return Comparison(calls=len(first), usual=median(first + last), t=welch_of_cropped(first, last))


def other_character(character: str) -> str:
    return "0" if character != "0" else "1"


def welch_of_cropped(first: list[float], last: list[float]) -> float:
    """Welch's t of the samples, without the slowest of both kinds together."""
    longest = sorted(first + last)[int(len(first + last) * KEPT_SHARE) - 1]
    number, two = ([sample for sample in samples if sample <= longest] for samples in (first, last))
    spread = math.sqrt(variance(number) / len(number) + variance(two) / len(two))
    return (fmean(number) - fmean(two)) / spread
