"""Replays a day of requests in a second, with a clock set back."""

import asyncio
import base64
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

from starlette.types import ASGIApp

from gatehouse.app.services import Services
from gatehouse.audit.model import AuditOrigin
from gatehouse.demo.accounts import BY_NAME, DemoPerson, DemoSecrets
from gatehouse.demo.in_process_client import InProcessClient, InProcessResponse, WentWrong
from gatehouse.kernel.clock import Timer
from gatehouse.kernel.ids import new_secret


class SimulatedClock:
    """A clock that advances only when it is set. Its timers are real ones, canceled at the end of the replay."""

    def __init__(self, now: int) -> None:
        self._began = now
        self._now = now
        self._timers: list[asyncio.TimerHandle] = []

    def now(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return float(self._now - self._began)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        timer = asyncio.get_running_loop().call_later(seconds, callback)
        self._timers.append(timer)
        return timer

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def move_to(self, at: int) -> None:
        """Set the time; it never goes back, because an action takes its own time."""
        self._now = max(self._now, at)

    def cancel_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()


# The last day of the demo's studio: the same every time, replayed as requests with a clock set back.


MINUTE: Final = 60
DAY: Final = 86_400
BROWSER_CLOSED_SECONDS: Final = 6 * 3_600  # seconds after which a person has closed their browser
GAME: Final = 50001
HUB: Final = 50002
HUB_CLIENT: Final = "raiders-hub"
GAME_API: Final = "/proxy/api/gameSession/"
OK: Final = 200
LOCATION: Final = re.compile(r"location=([^&]+)")

# Minutes before now. Evenings are busy, nights are not, wherever in the day "now" is.
GAME_MINUTES: Final[Mapping[str, Sequence[int]]] = {
    "jonas": (1411, 1322, 655, 402, 96, 41),
    "noor": (1396, 590, 133, 62),
    "chloe": (1377, 471, 88, 27),
    "lucas": (1290, 344, 171),
    "tobias": (820, 118),
    "emil": (531,),
}
VISIT_MINUTES: Final[Mapping[str, Sequence[int]]] = {
    "noor": (1401, 1316, 938, 612, 366, 151, 83, 9),
    "emil": (1342, 884, 676, 419, 207, 124),
    "jonas": (1408, 648, 211, 92),
    "chloe": (1371, 1102, 253, 22),
    "priya": (1266, 733, 322, 58),
    "mara": (907, 276, 103),
    "tobias": (449, 112, 16),
    "aiko": (1153, 516, 187),
}
FAILED_SIGN_INS: Final = (
    ("chloe", 1378),
    ("jonas", 1413),
    ("emil", 1345),
    ("rick", 431),
    ("rick", 430),
    ("rick", 429),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledAction:
    minutes: int  # before now
    act: Callable[[], Awaitable[None]]


class DemoDay:
    """All the people of the day, each with their own browser."""

    def __init__(
        self, app: ASGIApp, *, services: Services, clock: SimulatedClock, secrets: DemoSecrets, redirect_uri: str
    ) -> None:
        self._app = app
        self._services = services
        self._clock = clock
        self._secrets = secrets
        self._redirect_uri = redirect_uri
        self._host = services.settings.server.base_url.partition("://")[2]
        self._browsers: dict[str, InProcessClient] = {}
        self._signed_in_at: dict[str, int] = {}
        self._scripts: dict[str, tuple[InProcessClient, dict[str, str]]] = {}
        self._hub = self._client("198.51.100.30", "raiders-hub/2.3")

    async def replay(self, now: int) -> None:
        """Replay every action in its order, and end at that time."""
        for happening in sorted(self._actions(), key=lambda one: -one.minutes):
            self._clock.move_to(now - happening.minutes * MINUTE + happening.minutes * 37 % MINUTE)
            await happening.act()
        self._clock.move_to(now)

    def _actions(self) -> list[ScheduledAction]:
        played = [self._action_at(at, self.play_game, name) for name, times in GAME_MINUTES.items() for at in times]
        visited = [self._action_at(at, self.visit_hub, name) for name, times in VISIT_MINUTES.items() for at in times]
        mistyped = [self._action_at(at, self.mistype_password, name) for name, at in FAILED_SIGN_INS]
        return [*played, *visited, *mistyped, *self._incidents(), *self._admin_actions()]

    def _action_at(self, minutes: int, act: Callable[[DemoPerson], Awaitable[None]], name: str) -> ScheduledAction:
        return ScheduledAction(minutes=minutes, act=lambda: act(BY_NAME[name]))

    def _incidents(self) -> list[ScheduledAction]:
        return [
            self._action_at(1106, self.cancel_game, "chloe"),
            self._action_at(653, self.pick_wrong_code, "jonas"),
            self._action_at(427, self.play_while_denied, "rick"),
            ScheduledAction(minutes=425, act=self.block_rick),
            ScheduledAction(minutes=417, act=self.guess_hub_secret),
            self._action_at(80, self.sign_out, "aiko"),
            self._action_at(2, self.leave_game_waiting, "noor"),
            self._action_at(1, self.leave_game_open, "jonas"),
        ]

    def _admin_actions(self) -> list[ScheduledAction]:
        """Run changes that people save with their own rights."""
        in_two_weeks = self._clock.now() + 15 * DAY
        jonas, chloe = BY_NAME["jonas"].user_id, BY_NAME["chloe"].user_id
        referee = {"name": "referee", "expired": in_two_weeks}
        drafts = {"private_data": {"news": {"draft": {"value": True}}}}
        crew = {"title": "Tournament crew", "description": "Runs the autumn cup"}
        return [
            self._save_action(1260, "priya", "roles", HUB, name="editor", description="Writes and publishes news"),
            self._save_action(1258, "priya", "accessKey", HUB, comment="staging"),
            self._save_action(879, "emil", "meta/data", HUB, user_id=jonas, roles=["editor"]),
            self._save_action(876, "emil", "meta/data", GAME, user_id=chloe, roles=[referee]),
            self._save_action(664, "emil", "meta/data", HUB, user_id=jonas, roles=[]),
            self._save_action(446, "tobias", "group", None, project_id="sky_raiders", **crew),
            self._save_action(
                318, "priya", "roles", HUB, name="translator", description="Translates the news", meta=drafts
            ),
            self._save_action(
                273, "mara", "project", None, id="studio_tools", description="Tools for building our games"
            ),
        ]

    # -- in the browser --

    async def visit_hub(self, person: DemoPerson) -> None:
        """Signs in to the Hub, which asks for their consent the first time."""
        browser = await self._signed_in_browser(person)
        verifier = new_secret()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        wish = {
            "response_type": "code",
            "client_id": HUB_CLIENT,
            "redirect_uri": self._redirect_uri,
            "scope": "openid profile email",
            "state": new_secret(),
            "nonce": new_secret(),
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        answer = await browser.get(f"/proxy/oauth/authorize?{urlencode(wish)}")
        if answer.status == OK:
            self._wait(7)
            answer = await browser.submit("/sign-in/consent", answer, decision="allow")
        code = parse_qs(answer.location.partition("?")[2]).get("code", [""])[0]
        given = await self._redeem_code(code, verifier, self._secrets.client_secret)
        self._expect(given.status == OK, f"{person.name} could not sign in to the Hub: {given.body!r}")

    async def mistype_password(self, person: DemoPerson) -> None:
        browser = self._browser(person)
        page = await browser.get("/sign-in")
        await browser.submit("/sign-in", page, login=person.login, password=new_secret())

    async def sign_out(self, person: DemoPerson) -> None:
        browser = await self._signed_in_browser(person)
        await browser.submit("/sign-out", await browser.get("/account"))
        del self._signed_in_at[person.name]

    async def _signed_in_browser(self, person: DemoPerson) -> InProcessClient:
        """Return the person's browser; one that was closed meanwhile is signed out."""
        browser, now = self._browser(person), self._clock.now()
        if self._signed_in_at.get(person.name, 0) + BROWSER_CLOSED_SECONDS < now:
            page = await browser.get("/sign-in")
            self._wait(11)
            password = self._secrets.passwords[person.name]
            answer = await browser.submit("/sign-in", page, login=person.login, password=password)
            self._expect(answer.location in {"/account", "/console"}, f"{person.name} could not sign in")
            self._signed_in_at[person.name] = now
        return browser

    async def _redeem_code(self, code: str, verifier: str, secret: str) -> InProcessResponse:
        proof = base64.b64encode(f"{HUB_CLIENT}:{secret}".encode()).decode()
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": verifier,
        }
        return await self._hub.post("/proxy/oauth/token", fields, authorization=f"Basic {proof}")

    async def guess_hub_secret(self) -> None:
        await self._redeem_code("none", new_secret(), "raiders-hub-secret")

    # -- in the game --

    async def play_game(self, person: DemoPerson) -> None:
        game, session = await self._start_game(person)
        answer = await self._decide(person, session["gsid"], "confirm")
        self._expect("/game/done" in answer.location, f"{person.name} could not confirm: {answer.status}")
        shown = {"gsid": session["gsid"], "location": session["location"]}
        told = await game.post(f"{GAME_API}getGsidResult", shown)
        self._expect(told.json()["status"] == "OK", f"{person.name} got no login result: {told.body!r}")
        await game.post(f"{GAME_API}closeGsid", {**shown, "status": "Success"})

    async def cancel_game(self, person: DemoPerson) -> None:
        _, session = await self._start_game(person)
        await self._decide(person, session["gsid"], "cancel")

    async def pick_wrong_code(self, person: DemoPerson) -> None:
        """Pick a wrong code on a phone in another network, where the code of the game has to be picked."""
        _, session = await self._start_game(person, address="203.0.113.181")
        wrong = "10" if session["code"] != "10" else "11"
        await self._decide(person, session["gsid"], "confirm", code=wrong)

    async def play_while_denied(self, person: DemoPerson) -> None:
        _, session = await self._start_game(person)
        answer = await self._decide(person, session["gsid"], "confirm")
        self._expect("/game/denied" in answer.location, f"{person.name} was not denied")

    async def leave_game_waiting(self, person: DemoPerson) -> None:
        await self._start_game(person)

    async def leave_game_open(self, person: DemoPerson) -> None:
        _, session = await self._start_game(person)
        await (await self._signed_in_browser(person)).get(f"/?gsid={session['gsid']}")

    async def _start_game(self, person: DemoPerson, *, address: str = "") -> tuple[InProcessClient, dict[str, Any]]:
        game = self._client(address or person.address, "SkyRaiders/1.8")
        asked = {"app_id": str(GAME), "factor": f"device of {person.name}", "code": "1"}
        answer = await game.post(f"{GAME_API}getGsid", asked)
        location = LOCATION.search(answer.location)
        self._expect(location is not None, f"no game session: {answer.body!r}")
        return game, {**answer.json(), "location": location[1] if location else ""}

    async def _decide(self, person: DemoPerson, gsid: str, decision: str, **more: str) -> InProcessResponse:
        browser = await self._signed_in_browser(person)
        page = await browser.get(f"/?gsid={gsid}")
        self._wait(4)
        return await browser.submit("/sign-in/confirm", page, decision=decision, **more)

    # -- in the office --

    async def block_rick(self) -> None:
        mara = BY_NAME["mara"]
        by = AuditOrigin(actor=mara.user_id, address=mara.address)
        await self._services.accounts.administration.block(BY_NAME["rick"].user_id, by)

    def _save_action(
        self, minutes: int, who: str, endpoint: str, application: int | None, /, **data: object
    ) -> ScheduledAction:
        async def act() -> None:
            about = {} if application is None else {"application_id": application}
            program, headers = await self._script_client(BY_NAME[who])
            asked = {"action": "save", **about, "data": data}
            answer = await program.post_json(f"/api/permissions/{endpoint}", asked, **headers)
            self._expect(answer.status == OK, f"{who} may not use {endpoint}: {answer.body!r}")

        return ScheduledAction(minutes=minutes, act=act)

    async def _script_client(self, person: DemoPerson) -> tuple[InProcessClient, dict[str, str]]:
        """The login operation, as their script uses it the first time."""
        if person.name not in self._scripts:
            program = self._client(person.address, "studio-scripts/0.9")
            factor = f"laptop of {person.name}"
            asked = {"login": person.login, "password": self._secrets.passwords[person.name], "factor": factor}
            answer = (await program.post("/proxy/api/login", asked)).json()
            self._expect(answer["status"] == "OK", f"{person.name} got no JWT: {answer['status']}")
            self._scripts[person.name] = program, {"authorization": f"Bearer {answer['jwt']}", "factor": factor}
        return self._scripts[person.name]

    # -- all --

    def _browser(self, person: DemoPerson) -> InProcessClient:
        if person.name not in self._browsers:
            self._browsers[person.name] = self._client(person.address, person.agent)
        return self._browsers[person.name]

    def _wait(self, seconds: int) -> None:
        """Wait as long as a person reads and types."""
        self._clock.move_to(self._clock.now() + seconds)

    def _client(self, address: str, agent: str) -> InProcessClient:
        return InProcessClient(self._app, host=self._host, address=address, agent=agent)

    @staticmethod
    def _expect(was_so: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
        if not was_so:
            raise WentWrong(otherwise)
