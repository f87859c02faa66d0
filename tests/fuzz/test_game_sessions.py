"""Game sessions against a model: in any order of polls, people and time, the answer is delivered at most once."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gatehouse.accounts.model import User
from gatehouse.gamesessions.model import LIFETIME, MAX_LIFETIME
from tests.fuzz.stepped_service import SteppedService, run_machine, stepped_service
from tests.support.builders import a_confirmation, a_record
from tests.support.game import RESULT, Game, poll_ended_session, register_game, wait_until_held
from tests.support.permission_builders import a_person

HOLD: Final = 30
PACE: Final = 2  # seconds after RETRY without a poll; earlier polls are tested elsewhere (checklist GS-25)
A_MOMENT: Final = 0.2  # real seconds until a poll is checked again
MOST: Final = 2
PAUSES: Final = (1, LIFETIME - HOLD - 10, LIFETIME, 400)

which = st.integers(0, MOST - 1)


@dataclass(kw_only=True)
class Session:
    game: Game
    begun: int
    ends: int
    state: str = "pending"
    delivered: int = 0

    def lasts(self, now: int) -> bool:
        return now < self.ends


@dataclass(frozen=True, kw_only=True)
class FuzzSetup:
    bench: SteppedService
    anna: User


class GameSessions(RuleBasedStateMachine):
    fuzz_setup: FuzzSetup

    def __init__(self) -> None:
        super().__init__()
        self.sessions: list[Session] = []

    @property
    def now(self) -> int:
        return self.fuzz_setup.bench.now()

    def do(self, step: Any) -> Any:
        return self.fuzz_setup.bench.run(step)

    def choose_session(self, number: int) -> Session:
        return self.sessions[number % len(self.sessions)]

    @precondition(lambda self: len(self.sessions) < MOST)
    @rule()
    def begin(self) -> None:
        self.sessions.append(self.begun())

    def begun(self) -> Session:
        game = self.do(register_game(self.fuzz_setup.bench.service))
        return Session(game=game, begun=self.now, ends=self.now + LIFETIME)

    @precondition(lambda self: self.sessions)
    @rule(number=which)
    def poll(self, number: int) -> None:
        session = self.choose_session(number)
        self.fuzz_setup.bench.wait(PACE)
        waits = session.lasts(self.now) and session.state == "pending"
        if waits:
            self.record_poll(session)
        elif session.lasts(self.now) and not session.lasts(self.now + 1):
            return  # it ends during the delay of its response
        answer = self.do(poll_until_timeout(session.game) if waits else poll_ended_session(session.game))
        self.check_answer(session, answer)

    @initialize(times=st.sampled_from([0, 9, 11]))
    def poll_repeatedly(self, times: int) -> None:
        """Polling keeps a session alive, up to its ceiling."""
        self.sessions = [self.begun(), *self.sessions[: MOST - 1]]
        for _ in range(times):
            self.fuzz_setup.bench.wait(LIFETIME - HOLD - 10)
            self.poll(0)

    def record_poll(self, session: Session) -> None:
        session.ends = min(self.now + LIFETIME, session.begun + MAX_LIFETIME)

    def check_answer(self, session: Session, response: httpx2.Response) -> None:
        body = response.json()
        if session.state == "failed" and session.lasts(self.now):
            assert (response.status_code, body["status"]) == (200, "ERROR")
        elif session.state == "confirmed" and session.lasts(self.now):
            assert (response.status_code, body["status"], body["user_id"]) == (
                200,
                "OK",
                self.fuzz_setup.anna.user_id,
            )
            session.state = "delivered"
            session.delivered += 1
        elif session.state == "pending" and body["status"] == "RETRY":
            assert session.lasts(body["ts"])
        else:
            assert session.state != "pending" or not session.lasts(self.now)
            assert body["status"] == "ERROR"
            assert response.status_code == 403 or session.state == "pending"  # 200: it ended while the poll was held
        assert session.state == "delivered" or "jwt" not in body

    @precondition(lambda self: self.sessions)
    @rule(number=which)
    def confirm_under_two_polls(self, number: int) -> None:
        """The newer poll displaces the older one, and only the newer one is answered."""
        session = self.choose_session(number)
        self.fuzz_setup.bench.wait(PACE)
        if not (session.lasts(self.now) and session.state == "pending"):
            return
        self.record_poll(session)
        older, newer = self.do(two_polls(session.game, self.fuzz_setup.anna))
        assert (older["status"], newer["status"]) == ("RETRY", "OK")
        session.state = "delivered"
        session.delivered += 1

    @precondition(lambda self: self.sessions)
    @rule(number=which)
    def confirm(self, number: int) -> None:
        session = self.choose_session(number)
        may = session.lasts(self.now) and session.state == "pending"
        assert self.do(confirm_session(session.game, self.fuzz_setup.anna)) == may
        if may:
            session.state = "confirmed"

    @precondition(lambda self: self.sessions)
    @rule(number=which, how=st.sampled_from(["Success", "Error"]))
    def close(self, number: int, how: str) -> None:
        session = self.choose_session(number)
        response = self.do(session.game.close(how))
        assert response.status_code == (200 if session.lasts(self.now) else 403), response.text
        if session.lasts(self.now) and session.state != "delivered":
            session.state = "failed"

    @precondition(lambda self: self.sessions)
    @rule(number=which)
    def guess(self, number: int) -> None:
        """A caller without the location gets nothing and changes nothing."""
        game = self.choose_session(number).game
        request = {"params": {"location": f"{game.location[:-1]}~"}, "json": {"gsid": game.gsid}}
        assert self.do(self.fuzz_setup.bench.service.client.post(RESULT, **request)).status_code == 403

    @rule(seconds=st.sampled_from(PAUSES))
    def wait(self, seconds: int) -> None:
        self.fuzz_setup.bench.wait(seconds)

    @invariant()
    def each_lasts_as_long_as_it_may_and_was_answered_once_at_most(self) -> None:
        for session in self.sessions:
            sessions = self.do(
                self.fuzz_setup.bench.service.services.storage.game_sessions.find_session(session.game.gsid, self.now)
            )
            assert (sessions is not None) == session.lasts(self.now)
            assert sessions is None or sessions.state == session.state
            assert session.delivered <= 1


async def poll_until_timeout(game: Game) -> httpx2.Response:
    """Hold a poll until it times out."""
    poll = game.start_poll()
    while not poll.done():  # repeats only if the poll was not held yet when the time had passed
        waiting = asyncio.create_task(wait_until_held(game.service))
        await asyncio.wait({poll, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        await game.service.services.games.write_behind.flush()  # which the service does within a second
        await game.service.clock.advance(HOLD)
        await asyncio.wait({poll}, timeout=A_MOMENT)
    answer = await poll
    await game.service.services.games.write_behind.flush()
    return answer


async def two_polls(game: Game, user: User) -> list[dict[str, Any]]:
    older = game.start_poll()
    await wait_until_held(game.service)
    newer = game.start_poll()
    first = await older
    assert await confirm_session(game, user)
    answers = [first.json(), (await newer).json()]
    await game.service.services.games.write_behind.flush()
    return answers


async def confirm_session(game: Game, user: User) -> bool:
    store = game.service.services.storage.game_sessions
    entry = a_record(subject=user.user_id)
    return await store.confirm_session(a_confirmation(game.gsid, user), game.service.clock.now(), entry)


def test_gs_12_gs_15_a_game_session_does_what_its_model_says(fuzzed_url: str, tmp_path: Path) -> None:
    with stepped_service(fuzzed_url, tmp_path) as bench:
        fuzz_setup = FuzzSetup(bench=bench, anna=bench.run(a_person(bench.service.services.storage)))
        run_machine(type("Sessions", (GameSessions,), {"fuzz_setup": fuzz_setup}), short=8, steps=15)
