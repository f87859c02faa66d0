"""Sign-in with a token that a trusted issuer signed for a game client (R10, checklist PL-10 to PL-12)."""

import asyncio
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from joserfc.jwk import RSAKey

from gatehouse.accounts.model import User
from tests.support.browser import HttpBrowser
from tests.support.builders import ORIGIN, a_record, a_user
from tests.support.permission_builders import create_application
from tests.support.platforms import GAME_CLIENT, TokenIssuer, run_token_issuer
from tests.support.service import RunningService, running_service

PATH = "/proxy/api/platformLogin"
P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
UNITY_AUDIENCES = ["idd:1f2e", "envName:production", "envId:5d6c", f"upid:{GAME_CLIENT}"]


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    allow = {"GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}
    async with running_service(installed_url, tmp_path, environment=allow) as running:
        yield running


@pytest.fixture
async def game(service: RunningService) -> int:
    """The ID of an application."""
    return (await create_application(service.services.storage, name="Sky Raiders")).application_id


@asynccontextmanager
async def an_issuer(
    service: RunningService, game: int, kind: str = "google", audience: str = GAME_CLIENT
) -> AsyncIterator[TokenIssuer]:
    async with run_token_issuer(kind, service.clock) as running:
        await service.services.settings_editor.save(running.settings(f"{game}:{audience}"), ORIGIN)
        yield running


@pytest.fixture
async def issuer(service: RunningService, game: int) -> AsyncIterator[TokenIssuer]:
    async with an_issuer(service, game) as running:
        yield running


async def post_token(service: RunningService, game: int, token: str) -> httpx2.Response:
    fields = {"platform": "vendor", "ticket": token, "app_id": game, "factor": "the device"}
    return await service.client.post(PATH, json=fields)


async def log_in(service: RunningService, game: int, token: str) -> dict[str, Any]:
    response = await post_token(service, game, token)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def find_player(service: RunningService, issuer: str, subject: str = "player-1") -> User | None:
    return await service.services.storage.profile.user_by_identity(issuer, subject)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerCase:
    kind: str
    claims: Mapping[str, object]
    subject: str = "player-1"
    nick: str = "kim"
    audience: str = GAME_CLIENT


CASES = [
    IssuerCase(kind="epic", claims={"dn": "kim", "appid": "fghi4567", "pfsid": "prod-fn"}),
    # On Android `azp` is the client of the app, and `aud` the server.
    IssuerCase(kind="google", claims={"azp": "android-client", "given_name": "kim"}),
    IssuerCase(kind="apple", claims={"is_private_email": "true"}, nick="Apple er-1"),
    IssuerCase(
        kind="microsoft",
        claims={"tid": "9188040d-6c67-4c5b-b112-36a304b66dad", "oid": "object-1", "preferred_username": "kim"},
        subject="object-1",
    ),
    IssuerCase(
        kind="unity",
        claims={"aud": UNITY_AUDIENCES, "idd": "1f2e", "sign_in_provider": "anonymous"},
        nick="Unity er-1",
        audience=f"upid:{GAME_CLIENT}",
    ),
    IssuerCase(kind="jwt", claims={"preferred_username": "kim"}),  # PlayStation Network and others
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
async def test_first_token_creates_the_account_and_the_second_finds_it(
    service: RunningService, game: int, case: IssuerCase
) -> None:
    async with an_issuer(service, game, case.kind, case.audience) as issuer:
        first = await log_in(service, game, issuer.token(**case.claims))
        assert (first["status"], first["auth"], first.get("created"), first["nick"]) == (
            *("OK", "platform", True),
            case.nick,
        )
        second = await log_in(service, game, issuer.token(**case.claims))
        assert (second["status"], second["user_id"], second.get("created")) == ("OK", first["user_id"], None)
        player = await find_player(service, issuer.issuer, case.subject)
        assert player is not None
        assert player.user_id == first["user_id"]


async def test_tokens_of_an_issuer_without_a_browser_sign_in_get_no_button(
    service: RunningService, game: int
) -> None:
    async with an_issuer(service, game, "unity", f"upid:{GAME_CLIENT}"):
        browser = HttpBrowser(service)
        assert "Unity" not in (await browser.get("/sign-in")).text
        assert (await browser.get("/sign-in/with/vendor")).status_code == 404
        await browser.client.aclose()


async def test_pl_10_token_works_once_and_for_five_minutes(
    service: RunningService, game: int, issuer: TokenIssuer
) -> None:
    token = issuer.token()
    answers = await asyncio.gather(*(log_in(service, game, token) for _ in range(4)))
    assert sorted(answer["status"] for answer in answers) == ["LOGINERROR"] * 3 + ["OK"]
    for spelling in (token, f"{token}=", f" {token}"):
        assert await log_in(service, game, spelling) == {"status": "LOGINERROR"}
    old = issuer.token()
    await service.clock.advance(301)
    assert await log_in(service, game, old) == {"status": "LOGINERROR"}
    assert await log_in(service, game, token) == {"status": "LOGINERROR"}
    assert (await log_in(service, game, issuer.token()))["status"] == "OK"


async def test_pl_10_second_signature_of_an_elliptic_curve_is_the_same_token(
    service: RunningService, game: int
) -> None:
    async with an_issuer(service, game, "jwt") as issuer:
        token = issuer.elliptic_token()
        assert (await log_in(service, game, token))["status"] == "OK"
        signed, _, signature = token.rpartition(".")
        raw = urlsafe_b64decode(f"{signature}==")
        mirrored = raw[:32] + (P256_ORDER - int.from_bytes(raw[32:])).to_bytes(32)
        assert await log_in(service, game, f"{signed}.{encode(mirrored)}") == {"status": "LOGINERROR"}


async def test_pl_11_token_of_another_issuer_game_key_or_time_is_refused(
    service: RunningService, game: int, issuer: TokenIssuer
) -> None:
    now = service.clock.now()
    bad: Mapping[str, Callable[[], str]] = {
        "issuer": lambda: issuer.token(iss="https://accounts.attacker.example"),
        "issuer that is no text": lambda: issuer.token(iss=[issuer.issuer]),
        "audience": lambda: issuer.token(aud="com.attacker.game"),
        "no audience": lambda: issuer.token(aud=None),
        "several audiences": lambda: issuer.token(aud=[GAME_CLIENT, "com.attacker.game"]),
        "key": lambda: issuer.token(key=RSAKey.generate_key(2048)),
        "unknown key": lambda: issuer.token(key=RSAKey.generate_key(2048), header={"kid": "v2"}),
        "HMAC": lambda: signed_with_hmac(issuer.token(), issuer.vendor.key.as_pem(private=False)),
        "none": lambda: without_signature(issuer.token()),
        "type": lambda: issuer.token(header={"typ": "at+jwt"}),
        "expired": lambda: issuer.token(exp=now - 120),
        "future": lambda: issuer.token(iat=now + 600),
        "not yet": lambda: issuer.token(nbf=now + 600),
        "no time": lambda: issuer.token(iat=None),
        "no subject": lambda: issuer.token(sub=None),
        "text": lambda: "not a token",
    }
    for what, make in bad.items():
        assert await log_in(service, game, make()) == {"status": "LOGINERROR"}, what
    assert await service.services.storage.accounts.all_users() == []


def without_signature(token: str) -> str:
    head = encode(b'{"alg":"none"}')
    return f"{head}.{token.split('.')[1]}."


def signed_with_hmac(token: str, key: bytes) -> str:
    """The public key as the secret of an HMAC."""
    head = encode(b'{"alg":"HS256","kid":"v1"}')
    signed = f"{head}.{token.split('.')[1]}"
    return f"{signed}.{encode(hmac.digest(key, signed.encode(), 'sha256'))}"


def encode(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


async def test_pl_12_verified_address_of_a_token_joins_no_account(
    service: RunningService, game: int, issuer: TokenIssuer
) -> None:
    anna = a_user(login="anna@studio.example", email_verified=True)
    await service.services.storage.accounts.create_user(anna, a_record())
    token = issuer.token(email="anna@studio.example", email_verified=True)
    assert await log_in(service, game, token) == {"status": "LOGINERROR", "reason": "address_has_account"}
    unverified = issuer.token(email="anna@studio.example", email_verified=False)
    answer = await log_in(service, game, unverified)
    assert (answer["status"], answer["user_id"] == anna.user_id) == ("OK", False)


async def test_id_15_token_makes_accounts_of_the_allowed_domains_only(
    service: RunningService, game: int, issuer: TokenIssuer
) -> None:
    await service.services.settings_editor.save({"accounts.allowed_domains": ["studio.example"]}, ORIGIN)
    email = "kim@studio.example"
    for wrong in ({}, {"email": "kim@elsewhere.example", "email_verified": True}, {"email": email}):
        answer = await log_in(service, game, issuer.token(**wrong))
        assert answer == {"status": "LOGINERROR"}
    assert await find_player(service, issuer.issuer) is None
    assert (await log_in(service, game, issuer.token(email=email, email_verified=True)))["status"] == "OK"
    assert (await log_in(service, game, issuer.token()))["status"] == "OK"  # it exists now


async def test_issuer_away_is_503_until_its_keys_are_known(
    service: RunningService, game: int, issuer: TokenIssuer
) -> None:
    token = issuer.token()
    issuer.vendor.is_down = True
    answers = await asyncio.gather(*(post_token(service, game, token) for _ in range(5)))
    assert {answer.status_code for answer in answers} == {503}
    assert (await post_token(service, game, token)).status_code == 503
    assert len(issuer.vendor.server.received) == 1, "one call for all in ten seconds"
    issuer.vendor.is_down = False
    await service.clock.advance(10)
    assert (await log_in(service, game, token))["status"] == "OK"
    issuer.vendor.is_down = True
    assert (await log_in(service, game, issuer.token()))["status"] == "OK"
