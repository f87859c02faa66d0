"""Whatever a game, a platform or a provider sends about a player, the service answers it and does not fail."""

import json
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import httpx2
from hypothesis import given, seed
from hypothesis import strategies as st
from joserfc import jws

from gatehouse.accounts.model import User
from gatehouse.throttle.proof_of_work import PuzzlePurpose
from tests.fuzz.conftest import SEED, examples
from tests.fuzz.stepped_service import UNLIMITED, SteppedService, stepped_service
from tests.fuzz.test_decoders import document, leaves, text_of
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import ORIGIN
from tests.support.game import GET_GSID
from tests.support.guests import GUEST, Device
from tests.support.oauth import a_public_client
from tests.support.permission_builders import create_application
from tests.support.platforms import GAME_CLIENT, SteamWebApi, TokenIssuer, run_steam, run_token_issuer
from tests.support.service import RunningService
from tests.wire.accounts.test_proof_of_work import DIFFICULTY, solve

PLATFORM_LOGIN: Final = "/proxy/api/platformLogin"
CALLBACK: Final = "/sign-in/with/vendor/callback"
LONGEST: Final = 5  # seconds a response may take
UNAVAILABLE: Final = 503
BAD_GATEWAY: Final = 502  # what the page of a provider says that answered nonsense
A_WHILE: Final = 7_200  # seconds after which a blocked source may try again
SETTINGS: Final = {
    **UNLIMITED,
    "GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8",
    "GATEHOUSE__GUESTS__ENABLED": "true",
    "GATEHOUSE__GUESTS__CREATED_PER_HOUR": "100000",
    "GATEHOUSE__PROTECTION__PROOF_OF_WORK": "on",
    "GATEHOUSE__PROTECTION__DIFFICULTY": str(DIFFICULTY),
}
BACK_END: Final = "raiders-backend"
TERMS: Final = {"title": "Terms", "url": "https://studio.example/terms", "version": "1"}

# Any JSON value, or text that looks like what belongs there.
value = leaves | document | text_of(".=/+-_ \0\u202e", "AAAA", "guest", "upgrade", "9" * 30, "é")
piece = text_of(".=/+-_0aZ", "AAAA", "..", "\0", "é", "9" * 12)


def edited(text: str) -> st.SearchStrategy[str]:
    """The text as it is, or with a part of it replaced."""
    cut = st.tuples(st.integers(0, len(text)), st.integers(0, 9), piece)
    return st.just(text) | cut.map(lambda edit: text[: edit[0]] + edit[2] + text[edit[0] + edit[1] :])


def changed(fields: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """The fields, each of them as it is, edited, of another type or missing."""
    return st.fixed_dictionaries(
        {},
        optional={
            name: (edited(text) if isinstance(text, str) else st.just(text)) | value for name, text in fields.items()
        },
    ) | st.fixed_dictionaries({name: edited(str(text)) for name, text in fields.items()})


@dataclass(frozen=True, kw_only=True)
class PlayerSetup:
    bench: SteppedService
    game: int  # an application
    anna: User
    steam: SteamWebApi
    issuer: TokenIssuer
    browser: HttpBrowser

    @property
    def service(self) -> RunningService:
        return self.bench.service

    def post(self, path: str, fields: dict[str, Any]) -> None:
        body = json.dumps(fields).encode()
        headers = {"Content-Type": "application/json"}
        self.check(self.bench.run(self.service.client.post(path, content=body, headers=headers)))

    def check(self, response: httpx2.Response, *more: int) -> None:
        assert response.status_code < 500 or response.status_code in (UNAVAILABLE, *more), response.text
        assert response.elapsed.total_seconds() < LONGEST
        assert b"Traceback" not in response.content


@asynccontextmanager
async def a_player_setup(bench: SteppedService) -> AsyncIterator[PlayerSetup]:
    service = bench.service
    application = await create_application(service.services.storage, name="Sky Raiders")
    await a_public_client(
        service, BACK_END, application_id=application.application_id, redirect_uris=(), game_id_token=True
    )
    anna = await service.services.accounts.administration.create(
        login="anna@studio.example", nick="Anna", password=PASSWORD, origin=ORIGIN
    )
    game = application.application_id
    async with run_steam() as steam, run_token_issuer("google", service.clock) as issuer:
        wanted = {
            **steam.settings(game),
            **issuer.settings(f"{game}:{GAME_CLIENT}"),
            **{f"terms.terms.{name}": text for name, text in TERMS.items()},
        }
        await service.services.settings_editor.save(wanted, ORIGIN)
        browser = HttpBrowser(service)
        yield PlayerSetup(bench=bench, game=game, anna=anna, steam=steam, issuer=issuer, browser=browser)
        await browser.client.aclose()


@contextmanager
def entered(bench: SteppedService, manager: Any) -> Iterator[PlayerSetup]:
    """Enter an asynchronous context between the steps of the service."""
    yield bench.run(manager.__aenter__())
    bench.run(manager.__aexit__(None, None, None))


# What is sent, one function for each kind of input.


def sign_in_as_guest(setup: PlayerSetup, data: st.DataObject) -> None:
    """A challenge, its signature, a puzzle and its solution, each of them as it is or damaged."""
    device, service = Device(), setup.service
    asked = setup.bench.run(service.client.post(GUEST)).json()
    fields = {
        **device.sign(data.draw(edited(asked["challenge"]))),
        "puzzle": asked["puzzle"]["puzzle"],
        "solution": solve(asked["puzzle"]["puzzle"]),
        "intent": "",
        "app_id": setup.game,
        "factor": "pc",
    }
    setup.post(GUEST, data.draw(changed(fields)))


def solve_puzzle(setup: PlayerSetup, data: st.DataObject) -> None:
    """The puzzle of a form, on the page."""
    puzzle = setup.bench.run(setup.service.services.limits.proof_of_work.issue_puzzle(PuzzlePurpose.RESET))
    assert puzzle is not None
    fields = {"puzzle": puzzle.puzzle, "solution": "0.0.0.0.0.0.0.0", "login": setup.anna.login or ""}
    drawn = {name: str(text) for name, text in data.draw(changed(fields)).items()}
    setup.bench.run(setup.browser.get("/forgot"))
    setup.check(setup.bench.run(setup.browser.post("/forgot", **printable(drawn))))


def register_game(setup: PlayerSetup, data: st.DataObject) -> None:
    """A game session for an upgrade and an id_token."""
    challenge = setup.bench.run(setup.service.client.post(GUEST, json={"intent": "upgrade"})).json()["challenge"]
    fields = {
        "app_id": setup.game,
        "factor": "pc",
        "intent": "upgrade",
        **Device().sign(challenge),
        "id_token_client": BACK_END,
        "nonce": "n-0S6_WzA2Mj",
    }
    setup.post(GET_GSID, data.draw(changed(fields)))


def send_steam_ticket(setup: PlayerSetup, data: st.DataObject) -> None:
    ticket = setup.steam.ticket()
    fields = {"platform": "steam", "ticket": ticket, "app_id": setup.game, "factor": "pc"}
    setup.post(PLATFORM_LOGIN, data.draw(changed(fields)))


CLAIMS: Final = (
    *("iss", "aud", "azp", "sub", "iat", "exp", "nbf", "email"),
    *("email_verified", "name", "jti", "typ"),
)
ODD: Final = (None, True, -1, 2**70, "", "x" * 5_000, [], {}, [[]], [{}])
claims = st.dictionaries(st.sampled_from(CLAIMS), st.sampled_from(ODD) | value, min_size=1, max_size=4)
header = st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "jku", "b64", "zip"]), value, max_size=2)


def send_token(setup: PlayerSetup, data: st.DataObject) -> None:
    """A token with any claims that the issuer's key signed, or with any header that no one signed."""
    told = json.dumps({**setup.issuer.claims(), **data.draw(claims)}).encode()
    if data.draw(st.booleans()):
        token = signed_token(setup, told)
    else:
        parts = (json.dumps({"alg": "RS256", "kid": "v1", **data.draw(header)}).encode(), told, b"signature")
        token = b".".join(urlsafe_b64encode(part).rstrip(b"=") for part in parts).decode()
    fields = {"platform": "vendor", "ticket": data.draw(edited(token)), "app_id": setup.game, "factor": "pc"}
    setup.post(PLATFORM_LOGIN, fields)


def signed_token(setup: PlayerSetup, told: bytes) -> str:
    return jws.serialize_compact({"alg": "RS256", "kid": "v1", "typ": "JWT"}, told, setup.issuer.vendor.key)


def send_odd_claims(setup: PlayerSetup) -> None:
    """Each claim with each odd value, which a short search would hardly find."""
    for name in CLAIMS:
        for told in ({**setup.issuer.claims(), name: odd} for odd in ODD):
            fields = {"platform": "vendor", "app_id": setup.game, "factor": "pc"}
            setup.post(PLATFORM_LOGIN, {**fields, "ticket": signed_token(setup, json.dumps(told).encode())})
        setup.bench.wait(A_WHILE)


def open_terms(setup: PlayerSetup, data: st.DataObject) -> None:
    """The link that login answers, and the form of its page."""
    log_in = {"login": setup.anna.login, "password": PASSWORD}
    url = setup.bench.run(setup.service.client.post("/proxy/api/login", json=log_in)).json()["url"]
    token = data.draw(edited(httpx2.URL(url).params["token"]))
    page = setup.bench.run(setup.browser.get(f"/terms?{urlencode({'token': printable_text(token)})}"))
    setup.check(page)
    fields = {"token": token, "version": "terms:1", "birth": "2001-05-31", "decision": "decline"}
    drawn = {name: str(text) for name, text in data.draw(changed(fields)).items()}
    setup.check(setup.bench.run(setup.browser.post("/terms", **printable(drawn))))


ANSWERS: Final = ("code", "iss", "error", "error_description", "id_token", "user", "openid.mode", "openid.claimed_id")


def answer_as_provider(setup: PlayerSetup, data: st.DataObject) -> None:
    """A provider with any claims, and any answer that a browser brings from it."""
    started = setup.bench.run(setup.browser.get("/sign-in/with/vendor"))
    answer = setup.issuer.vendor.sign_in(started.headers["location"], **data.draw(claims))
    damage = st.dictionaries(st.sampled_from([*ANSWERS, "state"]), value.map(str), max_size=2)
    drawn = printable({**answer, **data.draw(st.just({}) | damage)})
    if data.draw(st.booleans()):
        response = setup.bench.run(setup.browser.get(f"{CALLBACK}?{urlencode(drawn)}"))
    else:
        response = setup.bench.run(setup.browser.client.post(CALLBACK, data=drawn))
    setup.check(response, BAD_GATEWAY)
    setup.browser.client.cookies.clear()


def printable(fields: dict[str, str]) -> dict[str, Any]:
    return {name: printable_text(text) for name, text in fields.items()}


def printable_text(text: str) -> str:
    """What a browser can send: no lone surrogates."""
    return text.encode("utf-8", "replace").decode()


KINDS: Final[tuple[Callable[[PlayerSetup, st.DataObject], None], ...]] = (
    *(sign_in_as_guest, solve_puzzle, register_game, send_steam_ticket, send_token, open_terms, answer_as_provider),
)


def test_ht_25_no_input_about_players_makes_the_service_fail(installed_sqlite_url: str, tmp_path: Path) -> None:
    """One service for all kinds of input, because it takes longer to start than to search."""
    with (
        stepped_service(installed_sqlite_url, tmp_path, SETTINGS) as bench,
        entered(bench, a_player_setup(bench)) as setup,
    ):
        send_odd_claims(setup)
        for kind in KINDS:
            search_failures(setup, kind)


def search_failures(setup: PlayerSetup, send: Callable[[PlayerSetup, st.DataObject], None]) -> None:
    @seed(SEED)
    @examples(10)
    @given(st.data())
    def search(data: st.DataObject) -> None:
        send(setup, data)
        setup.bench.wait(A_WHILE)

    search()
