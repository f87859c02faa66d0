"""The last day of the demo's studio: the same every time, lived through at the front door with a clock set back."""

import base64
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

from starlette.types import ASGIApp

from gatehouse.app.house import House
from gatehouse.audit.model import Origin
from gatehouse.demo.cast import BY_NAME, Person, Secrets
from gatehouse.demo.past import PastClock
from gatehouse.demo.visitor import Answer, Visitor, WentWrong
from gatehouse.kernel.ids import new_secret

MINUTE: Final = 60
DAY: Final = 86_400
CLOSED_AFTER: Final = 6 * 3_600  # seconds after which somebody has closed his browser
GAME: Final = 50001
HUB: Final = 50002
HUB_CLIENT: Final = "raiders-hub"
GAME_API: Final = "/proxy/api/gameSession/"
OK: Final = 200
LOCATION: Final = re.compile(r"location=([^&]+)")

# Minutes before now. Evenings are busy, nights are not, wherever in the day "now" is.
PLAYED: Final[Mapping[str, Sequence[int]]] = {
    "jonas": (1411, 1322, 655, 402, 96, 41),
    "noor": (1396, 590, 133, 62),
    "chloe": (1377, 471, 88, 27),
    "lucas": (1290, 344, 171),
    "tobias": (820, 118),
    "emil": (531,),
}
VISITED: Final[Mapping[str, Sequence[int]]] = {
    "noor": (1401, 1316, 938, 612, 366, 151, 83, 9),
    "emil": (1342, 884, 676, 419, 207, 124),
    "jonas": (1408, 648, 211, 92),
    "chloe": (1371, 1102, 253, 22),
    "priya": (1266, 733, 322, 58),
    "mara": (907, 276, 103),
    "tobias": (449, 112, 16),
    "aiko": (1153, 516, 187),
}
MISTYPED: Final = (("chloe", 1378), ("jonas", 1413), ("emil", 1345), ("rick", 431), ("rick", 430), ("rick", 429))


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    minutes: int  # before now
    act: Callable[[], Awaitable[None]]


class Day:
    """Everybody who comes and goes, each with a browser of his own."""

    def __init__(self, app: ASGIApp, *, house: House, clock: PastClock, secrets: Secrets, redirect_uri: str) -> None:
        self._app = app
        self._house = house
        self._clock = clock
        self._secrets = secrets
        self._redirect_uri = redirect_uri
        self._host = house.settings.server.base_url.partition("://")[2]
        self._browsers: dict[str, Visitor] = {}
        self._signed_in_at: dict[str, int] = {}
        self._scripts: dict[str, tuple[Visitor, dict[str, str]]] = {}
        self._hub = self._visitor("198.51.100.30", "raiders-hub/2.3")

    async def live(self, now: int) -> None:
        """Let everything happen in its order, and end at that moment."""
        for happening in sorted(self._happenings(), key=lambda one: -one.minutes):
            self._clock.move_to(now - happening.minutes * MINUTE + happening.minutes * 37 % MINUTE)
            await happening.act()
        self._clock.move_to(now)

    def _happenings(self) -> list[Happening]:
        played = [self._at(at, self.plays, name) for name, times in PLAYED.items() for at in times]
        visited = [self._at(at, self.visits, name) for name, times in VISITED.items() for at in times]
        mistyped = [self._at(at, self.mistypes, name) for name, at in MISTYPED]
        return [*played, *visited, *mistyped, *self._incidents(), *self._office()]

    def _at(self, minutes: int, act: Callable[[Person], Awaitable[None]], name: str) -> Happening:
        return Happening(minutes=minutes, act=lambda: act(BY_NAME[name]))

    def _incidents(self) -> list[Happening]:
        return [
            self._at(1106, self.cancels_a_game, "chloe"),
            self._at(653, self.picks_a_wrong_code, "jonas"),
            self._at(427, self.is_not_let_in, "rick"),
            Happening(minutes=425, act=self.rick_is_blocked),
            Happening(minutes=417, act=self.somebody_guesses_the_secret_of_the_hub),
            self._at(80, self.signs_out, "aiko"),
            self._at(2, self.leaves_a_game_waiting, "noor"),
            self._at(1, self.leaves_a_game_open, "jonas"),
        ]

    def _office(self) -> list[Happening]:
        """What people with rights saved, each by his own."""
        in_two_weeks = self._clock.now() + 15 * DAY
        jonas, chloe = BY_NAME["jonas"].user_id, BY_NAME["chloe"].user_id
        referee = {"name": "referee", "expired": in_two_weeks}
        drafts = {"private_data": {"news": {"draft": {"value": True}}}}
        crew = {"title": "Tournament crew", "description": "Runs the autumn cup"}
        return [
            self._saves(1260, "priya", "roles", HUB, name="editor", description="Writes and publishes news"),
            self._saves(1258, "priya", "accessKey", HUB, comment="staging"),
            self._saves(879, "emil", "meta/data", HUB, user_id=jonas, roles=["editor"]),
            self._saves(876, "emil", "meta/data", GAME, user_id=chloe, roles=[referee]),
            self._saves(664, "emil", "meta/data", HUB, user_id=jonas, roles=[]),
            self._saves(446, "tobias", "group", None, project_id="sky_raiders", **crew),
            self._saves(
                318, "priya", "roles", HUB, name="translator", description="Translates the news", meta=drafts
            ),
            self._saves(273, "mara", "project", None, id="studio_tools", description="Tools for building our games"),
        ]

    # -- in the browser --

    async def visits(self, person: Person) -> None:
        """Signs in to the Hub, which asks for his consent the first time."""
        browser = await self._signed_in(person)
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
        given = await self._turn_in(code, verifier, self._secrets.client_secret)
        self._expect(given.status == OK, f"{person.name} could not sign in to the Hub: {given.body!r}")

    async def mistypes(self, person: Person) -> None:
        browser = self._browser(person)
        page = await browser.get("/sign-in")
        await browser.submit("/sign-in", page, login=person.login, password=new_secret())

    async def signs_out(self, person: Person) -> None:
        browser = await self._signed_in(person)
        await browser.submit("/sign-out", await browser.get("/account"))
        del self._signed_in_at[person.name]

    async def _signed_in(self, person: Person) -> Visitor:
        """His browser; one that was closed meanwhile has forgotten who he is."""
        browser, now = self._browser(person), self._clock.now()
        if self._signed_in_at.get(person.name, 0) + CLOSED_AFTER < now:
            page = await browser.get("/sign-in")
            self._wait(11)
            password = self._secrets.passwords[person.name]
            answer = await browser.submit("/sign-in", page, login=person.login, password=password)
            self._expect(answer.location == "/account", f"{person.name} could not sign in")
            self._signed_in_at[person.name] = now
        return browser

    async def _turn_in(self, code: str, verifier: str, secret: str) -> Answer:
        proof = base64.b64encode(f"{HUB_CLIENT}:{secret}".encode()).decode()
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": verifier,
        }
        return await self._hub.post("/proxy/oauth/token", fields, authorization=f"Basic {proof}")

    async def somebody_guesses_the_secret_of_the_hub(self) -> None:
        await self._turn_in("none", new_secret(), "raiders-hub-secret")

    # -- in the game --

    async def plays(self, person: Person) -> None:
        game, session = await self._starts_a_game(person)
        answer = await self._decides(person, session["gsid"], "confirm")
        self._expect("/game/done" in answer.location, f"{person.name} could not confirm: {answer.status}")
        shown = {"gsid": session["gsid"], "location": session["location"]}
        told = await game.post(f"{GAME_API}getGsidResult", shown)
        self._expect(told.json()["status"] == "OK", f"{person.name} got no login result: {told.body!r}")
        await game.post(f"{GAME_API}closeGsid", {**shown, "status": "Success"})

    async def cancels_a_game(self, person: Person) -> None:
        _, session = await self._starts_a_game(person)
        await self._decides(person, session["gsid"], "cancel")

    async def picks_a_wrong_code(self, person: Person) -> None:
        """On a phone in another network, where the code of the game has to be picked."""
        _, session = await self._starts_a_game(person, address="203.0.113.181")
        wrong = "10" if session["code"] != "10" else "11"
        await self._decides(person, session["gsid"], "confirm", code=wrong)

    async def is_not_let_in(self, person: Person) -> None:
        _, session = await self._starts_a_game(person)
        answer = await self._decides(person, session["gsid"], "confirm")
        self._expect("/game/denied" in answer.location, f"{person.name} was not denied")

    async def leaves_a_game_waiting(self, person: Person) -> None:
        await self._starts_a_game(person)

    async def leaves_a_game_open(self, person: Person) -> None:
        _, session = await self._starts_a_game(person)
        await (await self._signed_in(person)).get(f"/?gsid={session['gsid']}")

    async def _starts_a_game(self, person: Person, *, address: str = "") -> tuple[Visitor, dict[str, Any]]:
        game = self._visitor(address or person.address, "SkyRaiders/1.8")
        asked = {"app_id": str(GAME), "factor": f"device of {person.name}", "code": "1"}
        answer = await game.post(f"{GAME_API}getGsid", asked)
        location = LOCATION.search(answer.location)
        self._expect(location is not None, f"no game session: {answer.body!r}")
        return game, {**answer.json(), "location": location[1] if location else ""}

    async def _decides(self, person: Person, gsid: str, decision: str, **more: str) -> Answer:
        browser = await self._signed_in(person)
        page = await browser.get(f"/?gsid={gsid}")
        self._wait(4)
        return await browser.submit("/sign-in/confirm", page, decision=decision, **more)

    # -- in the office --

    async def rick_is_blocked(self) -> None:
        mara = BY_NAME["mara"]
        by = Origin(actor=mara.user_id, address=mara.address)
        await self._house.administration.block(BY_NAME["rick"].user_id, by)

    def _saves(self, minutes: int, who: str, endpoint: str, application: int | None, /, **data: object) -> Happening:
        async def act() -> None:
            about = {} if application is None else {"application_id": application}
            program, headers = await self._with_jwt(BY_NAME[who])
            asked = {"action": "save", **about, "data": data}
            answer = await program.post_json(f"/api/permissions/{endpoint}", asked, **headers)
            self._expect(answer.status == OK, f"{who} may not use {endpoint}: {answer.body!r}")

        return Happening(minutes=minutes, act=act)

    async def _with_jwt(self, person: Person) -> tuple[Visitor, dict[str, str]]:
        """The login operation, as a script of his uses it the first time."""
        if person.name not in self._scripts:
            program = self._visitor(person.address, "studio-scripts/0.9")
            factor = f"laptop of {person.name}"
            asked = {"login": person.login, "password": self._secrets.passwords[person.name], "factor": factor}
            answer = (await program.post("/proxy/api/login", asked)).json()
            self._expect(answer["status"] == "OK", f"{person.name} got no JWT: {answer['status']}")
            self._scripts[person.name] = program, {"authorization": f"Bearer {answer['jwt']}", "factor": factor}
        return self._scripts[person.name]

    # -- everybody --

    def _browser(self, person: Person) -> Visitor:
        if person.name not in self._browsers:
            self._browsers[person.name] = self._visitor(person.address, person.agent)
        return self._browsers[person.name]

    def _wait(self, seconds: int) -> None:
        """People read, type and think."""
        self._clock.move_to(self._clock.now() + seconds)

    def _visitor(self, address: str, agent: str) -> Visitor:
        return Visitor(self._app, host=self._host, address=address, agent=agent)

    @staticmethod
    def _expect(was_so: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
        if not was_so:
            raise WentWrong(otherwise)
