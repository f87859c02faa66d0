"""getGsidResult: held until the person has decided, and answered once (interface §3, §4.3, R4)."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.gamesessions.model import GameSession, GameSessionState
from gatehouse.gamesessions.waiters import Waiter, Waiters, WakeReason
from gatehouse.kernel.errors import Unavailable
from tests.support.builders import a_confirmation, a_record
from tests.support.game import (
    RESULT,
    Game,
    advance_through_delay,
    approve_in_storage,
    poll_ended_session,
    refusal_reason,
    register_game,
    wait_until_held,
    wait_until_marks_stored,
)
from tests.support.oauth import claims_of
from tests.support.permission_builders import create_application
from tests.support.raw_http import raw_connection
from tests.support.service import RunningService, running_service
from tests.wire.gamesessions.test_proof import service_from

LOGIN_DATA = {
    *("status", "auth", "country", "lang", "level", "nick", "ghnick", "reg_time", "tags", "token", "token_exp"),
    *("user_id", "gsid", "ts", "started", "last_seen"),
}


async def test_gs_01_a_confirmed_session_answers_with_the_login_data(service: RunningService, anna: User) -> None:
    game = await register_game(service, factor="device-1", meta="1")
    polling = game.start_poll()
    await wait_until_held(service)
    await service.clock.advance(5)
    await approve_in_storage(game, anna)
    response = await polling
    body = response.json()
    assert body.keys() == LOGIN_DATA | {"jwt", "factor", "meta"}
    assert (body["status"], body["user_id"], body["nick"]) == ("OK", anna.user_id, "Anna")
    assert (body["gsid"], body["started"], body["ts"], body["last_seen"]) == (
        *(game.gsid, game.answer["started"], service.clock.now(), 0),
    )
    assert (body["factor"], body["token_exp"]) == ("device-1", 3600)
    assert claims_of(body["jwt"])["uid"] == anna.user_id
    assert response.headers["cache-control"] == "no-store"


async def test_a_session_confirmed_before_the_poll_is_answered_at_once(service: RunningService, anna: User) -> None:
    game = await register_game(service)
    await approve_in_storage(game, anna)
    assert (await game.poll()).json()["status"] == "OK"


async def test_no_jwt_is_issued_without_a_factor(service: RunningService, anna: User) -> None:
    game = await register_game(service)
    await approve_in_storage(game, anna)
    assert (await game.poll()).json().keys() == LOGIN_DATA


async def test_gs_02_a_poll_without_a_login_is_held_for_thirty_seconds(service: RunningService) -> None:
    game = await register_game(service)
    polling = game.start_poll()
    await wait_until_held(service)
    await service.clock.advance(29)
    assert not polling.done()
    await service.clock.advance(1)
    body = (await polling).json()
    assert body == {
        "status": "RETRY",
        "gsid": game.gsid,
        "started": game.answer["started"],
        "last_seen": 0,
        "delay": 1,
        "ts": body["ts"],
    }
    assert 29 <= body["ts"] - body["started"] <= 31


async def test_held_polls_are_counted_for_anyone_who_reads_the_figures(
    installed_sqlite_url: str, tmp_path: Path
) -> None:
    token = "the token of the metrics reader"

    async def held_requests(service: RunningService) -> bool:
        response = await service.client.get("/metrics", headers={"Authorization": f"Bearer {token}"})
        return "gatehouse_held_requests 1.0" in response.text.splitlines()

    environment = {"GATEHOUSE__OPERATIONS__TOKEN": token}
    async with running_service(installed_sqlite_url, tmp_path, environment=environment) as service:
        polling = (await register_game(service)).start_poll()
        await wait_until_held(service)
        assert await held_requests(service)
        await service.clock.advance(30)
        await polling
        assert not await held_requests(service)


async def test_a_game_that_asks_for_states_hears_of_each_as_it_comes(service: RunningService) -> None:
    store = service.services.storage.game_sessions
    game = await register_game(service)
    for moved in ("opened", "signing_in"):
        polling, other = game.start_poll(states="1"), await register_game(service)
        unasked = other.start_poll()
        await wait_until_held(service, 2)
        for session_game in (game, other):
            await store.record_progress(session_game.gsid, service.clock.now(), signing_in=moved == "signing_in")
        body = (await polling).json()
        assert (body["status"], body["state"], body["delay"]) == ("RETRY", moved, 1)
        await wait_until_held(service, 1)
        await service.clock.advance(31)
        assert "state" not in (await unasked).json()
    await service.clock.advance(1)
    polling = game.start_poll(states="1")
    await wait_until_held(service)
    await service.clock.advance(31)
    assert (await polling).json()["state"] == "signing_in"


async def test_a_game_that_asks_for_states_hears_of_the_end_as_well(service: RunningService, anna: User) -> None:
    ended, refused_game = await register_game(service), await register_game(service, app_id=1_000_000)
    await ended.close("Error")
    await approve_in_storage(refused_game, anna)
    for game in (ended, refused_game):
        body = (await poll_ended_session(game, states="1")).json()
        assert (body.keys(), body["status"]) == ({"status", "error", "state"}, "ERROR")
        assert body["state"] == "cancelled"
        assert (await poll_ended_session(game)).json() == {"status": "ERROR", "error": body["error"]}


async def test_a_stage_that_came_between_two_polls_is_told_at_once(service: RunningService) -> None:
    game = await register_game(service)
    await service.services.storage.game_sessions.record_progress(game.gsid, service.clock.now(), signing_in=False)
    assert (await game.poll(states="1")).json()["state"] == "opened"


async def test_gs_12_after_ok_nothing_is_delivered_again(service: RunningService, anna: User) -> None:
    game = await register_game(service, factor="f")
    await approve_in_storage(game, anna)
    assert (await game.poll()).json()["status"] == "OK"
    assert await refusal_reason(service, await poll_ended_session(game)) == "the answer was already delivered"


async def test_exactly_one_of_many_concurrent_polls_gets_the_result(service: RunningService, anna: User) -> None:
    game = await register_game(service, factor="f")
    polls = [game.start_poll() for _ in range(4)]
    await approve_when_held(game, anna)
    # A poll that comes after the answer was taken is answered after the delay.
    responses = [await advance_through_delay(service, poll) for poll in polls]
    statuses = sorted(response.json()["status"] for response in responses)
    assert statuses.count("OK") == 1
    assert set(statuses) <= {"OK", "RETRY", "ERROR"}


async def approve_when_held(game: Game, user: User) -> None:
    await wait_until_held(game.service)
    await approve_in_storage(game, user)


async def test_the_newest_poll_displaces_the_one_before(service: RunningService, anna: User) -> None:
    game = await register_game(service)
    first = game.start_poll()
    await wait_until_held(service)
    second = game.start_poll()
    body = (await first).json()
    assert (body["status"], body["delay"]) == ("RETRY", 1)
    await wait_until_held(service)
    await approve_in_storage(game, anna)
    assert (await second).json()["status"] == "OK"


async def test_a_poll_displaced_while_its_answer_is_made_ready_leaves_it_to_the_newer(
    service: RunningService, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, started, goes_on = service.services.games.results, asyncio.Event(), asyncio.Event()
    prepare = type(results).prepare_login

    async def run_slowly(self: Any, *arguments: Any) -> Any:
        if started.is_set():
            goes_on.set()
        started.set()
        await goes_on.wait()
        return await prepare(self, *arguments)

    monkeypatch.setattr(type(results), "prepare_login", run_slowly)
    game = await register_game(service)
    older = game.start_poll()
    await wait_until_held(service)
    await approve_in_storage(game, anna)
    await started.wait()
    newer = game.start_poll()
    assert (await newer).json()["status"] == "OK"
    assert (await older).json()["status"] == "RETRY"


async def test_a_socket_that_was_closed_never_takes_the_answer(service: RunningService, anna: User) -> None:
    game = await register_game(service)
    async with raw_connection(service.client.base_url.port or 0) as removed:
        removed.send(raw_poll(game))
        await wait_until_held(service)
    await asyncio.sleep(0)  # its FIN is on the way or was read: both must work
    await approve_in_storage(game, anna)
    assert (await game.poll()).json()["status"] == "OK"


async def test_a_client_that_gives_up_and_polls_again_at_once_is_no_offender(
    service: RunningService, anna: User
) -> None:
    game = await register_game(service)
    for _ in range(12):
        async with raw_connection(service.client.base_url.port or 0) as removed:
            removed.send(raw_poll(game))
            await wait_until_held(service)
        while len(service.services.games.waiters):  # noqa: ASYNC110 - there is no event for the end of a connection
            await asyncio.sleep(0.001)
    await approve_in_storage(game, anna)
    assert (await game.poll()).json()["status"] == "OK"


def raw_poll(game: Game) -> bytes:
    body = b'{"gsid":"' + game.gsid.encode() + b'"}'
    return (
        f"POST {RESULT}?location={game.location} HTTP/1.1\r\nHost: gatehouse.example\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def test_gs_15_a_session_lives_by_its_polls(service: RunningService) -> None:
    game = await register_game(service)
    for _ in range(19):  # a poll per minute
        polling = game.start_poll()
        await wait_until_held(service)
        await service.clock.advance(31)
        assert (await polling).json()["status"] == "RETRY"
        await wait_until_marks_stored(game)
        await service.clock.advance(29)
    polling = game.start_poll()  # at 19:00, held to 19:30
    await wait_until_held(service)
    await service.clock.advance(31)
    assert (await polling).json()["status"] == "RETRY"
    await service.clock.advance(10)
    polling = game.start_poll()  # at 19:41, held across 20:00
    await wait_until_held(service)
    await service.clock.advance(19)
    body = (await polling).json()
    assert body.keys() == {"status", "error"}
    assert body["status"] == "ERROR"
    assert await refusal_reason(service, await game.poll()) == "no such session"


async def test_gs_15_without_a_poll_it_ends_after_two_minutes(service: RunningService) -> None:
    lives, dies = await register_game(service), await register_game(service)
    await service.clock.advance(119)
    polling = lives.start_poll()
    await wait_until_held(service)
    await service.clock.advance(2)
    await wait_until_marks_stored(lives)
    assert await refusal_reason(service, await dies.poll()) == "no such session"
    await service.clock.advance(28)
    assert (await polling).json()["status"] == "RETRY"


async def test_gs_15_a_poll_in_the_last_second_keeps_the_session_before_the_times_of_polls_are_written(
    service: RunningService, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def do_nothing() -> None:
        pass

    game = await register_game(service)
    await service.clock.advance(119)
    monkeypatch.setattr(service.services.games.write_behind, "flush", do_nothing)
    polling = game.start_poll()
    await wait_until_held(service)
    await service.clock.advance(1)
    newer = game.start_poll()
    assert (await polling).json()["status"] == "RETRY"
    await wait_until_held(service)
    await approve_in_storage(game, anna)
    assert (await newer).json()["status"] == "OK"


async def test_gs_15_a_poll_that_was_refused_extends_nothing(service: RunningService) -> None:
    game = await register_game(service)
    await service.clock.advance(100)
    other_game = replace(game, location="x" * 32)
    assert await refusal_reason(service, await other_game.poll()) == "wrong location"
    await service.clock.advance(20)
    assert await refusal_reason(service, await game.poll()) == "no such session"


async def test_gs_16_expired_is_expired_with_no_clean_up_running(service: RunningService, anna: User) -> None:
    game = await register_game(service)
    await approve_in_storage(game, anna)
    await service.clock.advance(120)
    assert await refusal_reason(service, await game.poll()) == "no such session"
    confirm = service.services.storage.game_sessions.confirm_session
    assert not await confirm(a_confirmation(game.gsid, anna), service.clock.now(), a_record())


async def test_gs_30_without_the_right_to_log_in_there_are_no_tokens(service: RunningService, anna: User) -> None:
    application = await create_application(
        service.services.storage, settings={"restricted_domains": ["other.example"]}
    )
    game = await register_game(service, app_id=application.application_id, factor="f")
    await approve_in_storage(game, anna)
    response = await game.poll()
    assert await refusal_reason(service, response, status=200) == "the login was refused"
    assert (await poll_ended_session(game)).json() == response.json()  # until it ends


async def test_gs_31_a_user_blocked_between_approval_and_poll_gets_no_tokens(
    service: RunningService, anna: User
) -> None:
    game = await register_game(service, factor="f")
    await approve_in_storage(game, anna)
    await service.services.accounts.administration.block(anna.user_id, origin=AuditOrigin(actor="test"))
    assert await refusal_reason(service, await game.poll(), status=200) == "the login was refused"


async def test_lg_20_what_was_approved_before_a_sign_out_everywhere_is_worth_nothing(
    service: RunningService, anna: User
) -> None:
    game = await register_game(service, factor="f")
    await approve_in_storage(game, anna)
    await service.services.accounts.sessions.sign_out_everywhere(anna.user_id, AuditOrigin(actor="test"))
    assert await refusal_reason(service, await game.poll(), status=200) == "the login was refused"


async def test_a_session_closed_before_the_delivery_answers_its_polls_with_an_error(service: RunningService) -> None:
    game = await register_game(service)
    polling = game.start_poll()
    await wait_until_held(service)
    assert (await game.close("Error")).json() == {"status": "OK"}
    response = await polling
    assert await refusal_reason(service, response, status=200) == "closed by the game before delivery: Error"
    assert (await poll_ended_session(game)).json() == response.json()


async def test_the_last_socket_of_the_owner_cancels_an_open_poll_and_the_session_stays(
    service: RunningService, anna: User
) -> None:
    store, game = service.services.storage.game_sessions, await register_game(service)
    await store.add_socket_node(game.gsid, "node", service.clock.now())
    polling = game.start_poll()
    await wait_until_held(service)
    assert await store.remove_socket_node(game.gsid, "node", service.clock.now())
    body = (await polling).json()
    assert body.keys() == {"status", "gsid", "ts", "started", "last_seen"}
    assert body["status"] == "CANCELLED"
    again = game.start_poll()
    await wait_until_held(service)
    await approve_in_storage(game, anna)
    assert (await again).json()["status"] == "OK"


async def ended_sessions(service: RunningService, user: User) -> tuple[Game, Game]:
    """One that failed and one that was delivered."""
    failed, delivered = await register_game(service), await register_game(service)
    await failed.close("Error")
    await approve_in_storage(delivered, user)
    assert (await delivered.poll()).json()["status"] == "OK"
    return failed, delivered


async def test_gs_33_a_session_that_is_over_is_answered_after_the_ordinary_delay(
    service: RunningService, anna: User
) -> None:
    for game in await ended_sessions(service, anna):
        await service.clock.advance(2)  # pending writes are flushed, and no timer is left
        polling = game.start_poll()
        while not service.clock.has_timer(within=1):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        await service.clock.advance(0.9)
        assert not polling.done()
        await service.clock.advance(0.1)
        assert (await polling).json()["status"] == "ERROR"


async def test_gs_33_a_session_that_is_over_is_not_prolonged_by_polls(service: RunningService, anna: User) -> None:
    games = await ended_sessions(service, anna)
    for _ in range(60):
        for game in games:
            assert (await poll_ended_session(game)).json()["status"] == "ERROR"
    for game in games:
        assert await refusal_reason(service, await game.poll()) == "no such session"


async def test_gs_33_a_poll_that_was_under_way_at_the_end_prolongs_nothing_afterwards(
    service: RunningService,
) -> None:
    game = await register_game(service)
    await service.clock.advance(60)
    polling = game.start_poll()
    await wait_until_held(service)
    await game.close("Error")  # before the time of the poll is stored
    assert (await polling).json()["status"] == "ERROR"
    await service.clock.advance(1)
    await wait_until_marks_stored(game)
    await service.clock.advance(59)
    assert await refusal_reason(service, await game.poll()) == "no such session"


async def test_gs_33_polls_of_a_delivered_session_cost_one_record(service: RunningService, anna: User) -> None:
    _, delivered = await ended_sessions(service, anna)
    answers = [(await poll_ended_session(delivered)).json()["error"] for _ in range(5)]
    assert len(set(answers)) == 1


async def test_gs_33_an_unknown_gsid_is_refused_at_once_with_one_record_an_hour_for_each_address(
    service: RunningService,
) -> None:
    def unknown_game() -> Game:
        return Game(service=service, gsid=str(uuid4()), location="x" * 32, answer={})

    writes = writes_of(service)
    first = await unknown_game().poll()
    assert await refusal_reason(service, first) == "no such session"
    again = await asyncio.gather(*(unknown_game().poll() for _ in range(20)))
    assert {response.json()["error"] for response in again} == {first.json()["error"]}
    assert len(writes) == 1
    async with service_from(service) as other:
        assert (await replace(unknown_game(), service=other).poll()).json()["error"] != first.json()["error"]
    await service.clock.advance(3_600)
    assert (await unknown_game().poll()).json()["error"] != first.json()["error"]


async def test_gs_33_unknown_gsids_of_many_at_once_share_one_record(service: RunningService) -> None:
    game = Game(service=service, gsid=str(uuid4()), location="x" * 32, answer={})
    writes = writes_of(service)
    responses = await asyncio.gather(*(game.poll() for _ in range(20)))
    assert len({response.json()["error"] for response in responses}) == 1
    assert await refusal_reason(service, responses[0]) == "no such session"
    assert len(writes) == 1


async def test_gs_33_a_client_that_leaves_during_the_delay_is_let_go(service: RunningService) -> None:
    game = await register_game(service)
    await game.close("Error")
    async with raw_connection(service.client.base_url.port or 0) as removed:
        removed.send(raw_poll(game))
        while not len(service.services.games.waiters):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    while len(service.services.games.waiters):  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def test_gs_91_one_query_looks_for_all_held_polls_when_notices_were_missed(
    service: RunningService, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    games = [await register_game(service) for _ in range(30)]
    polls = [game.start_poll() for game in games]
    await wait_until_held(service, 30)
    monkeypatch.setattr(Waiters, "notify", lambda *_: None)  # the notification is lost
    looks = looks_of(service)
    await approve_in_storage(games[7], anna)
    service.services.games.notices.handle_notice("")
    assert (await polls[7]).json()["status"] == "OK"
    assert (looks.count("session_snapshots"), looks.count("find_session")) == (1, 1)
    service.stopping.begin()
    await asyncio.gather(*polls)


@pytest.mark.both_databases
async def test_gs_90_an_answer_whose_client_left_while_it_was_stored_goes_to_the_next_poll(
    service: RunningService, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = type(service.services.storage.game_sessions)
    take, left = store.take_answer, asyncio.Event()

    async def run_slowly(self: Any, *arguments: Any) -> Any:
        taken = await take(self, *arguments)
        await left.wait()
        return taken

    monkeypatch.setattr(store, "take_answer", run_slowly)
    game = await register_game(service, factor="f", short_token="1")
    async with raw_connection(service.client.base_url.port or 0) as removed:
        removed.send(raw_poll(game))
        await wait_until_held(service)
        await approve_in_storage(game, anna)
        while (await row_of(game)).state is not GameSessionState.DELIVERED:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    left.set()
    while (await row_of(game)).state is GameSessionState.DELIVERED:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    assert (await game.poll()).json()["status"] == "OK"
    assert await refusal_reason(service, await poll_ended_session(game)) == "the answer was already delivered"


async def row_of(game: Game) -> GameSession:
    session = await game.service.services.storage.game_sessions.find_session(game.gsid, game.service.clock.now())
    assert session is not None
    return session


@pytest.mark.parametrize("held_polls", [1, 20])
async def test_op_07_held_polls_are_answered_with_retry_when_the_service_stops(
    service: RunningService, held_polls: int
) -> None:
    games = [await register_game(service) for _ in range(held_polls)]
    polls = [game.start_poll() for game in games]
    await wait_until_held(service, held_polls)
    service.stopping.begin()
    assert {(await poll).json()["status"] for poll in polls} == {"RETRY"}
    assert (await games[0].poll()).json()["status"] == "RETRY"  # a later poll is not held
    assert await service.services.storage.game_sessions.find_session(games[0].gsid, service.clock.now()) is not None


@pytest.mark.parametrize("is_silent", [False, True])
async def test_op_07_held_polls_are_answered_in_time_when_the_database_is_away(
    service: RunningService, monkeypatch: pytest.MonkeyPatch, *, is_silent: bool
) -> None:
    async def raise_unavailable(*_: object) -> None:
        if is_silent:
            await asyncio.Event().wait()
        raise Unavailable

    monkeypatch.setattr("gatehouse.gamesessions.poll.LAST_READ_TIMEOUT", 0.05)
    games = [await register_game(service) for _ in range(3)]
    polls = [game.start_poll() for game in games]
    await wait_until_held(service, 3)
    monkeypatch.setattr(type(service.services.storage.game_sessions), "find_session", raise_unavailable)
    service.stopping.begin()
    bodies = [(await poll).json() for poll in polls]
    assert [body["gsid"] for body in bodies] == [game.gsid for game in games]
    assert {(body["status"], body["last_seen"], body["delay"]) for body in bodies} == {("RETRY", 0, 1)}


@pytest.mark.parametrize("states", ["0", "1"])
async def test_a_poll_that_is_answered_at_the_end_of_the_service_hears_of_an_end_that_came_before(
    service: RunningService, monkeypatch: pytest.MonkeyPatch, states: str
) -> None:
    wake = Waiter.wake
    game = await register_game(service)
    polling = game.start_poll(states=states)
    await wait_until_held(service)
    # The notification of the end is still pending.
    monkeypatch.setattr(Waiter, "wake", lambda one, why: why is WakeReason.CHANGED or wake(one, why))
    await game.close("Error")
    service.stopping.begin()
    assert (await polling).json() == (await game.poll(states=states)).json()


async def test_r_16_holding_many_polls_is_not_many_writes(service: RunningService) -> None:
    games = [await register_game(service) for _ in range(30)]
    writes = writes_of(service)
    polls = [game.start_poll() for game in games]
    await wait_until_held(service, 30)
    await service.clock.advance(1)
    await wait_until_marks_stored(games[-1])
    assert len(writes) == 1
    await service.clock.advance(20)
    assert len(writes) == 1
    service.stopping.begin()
    await asyncio.gather(*polls)


def writes_of(service: RunningService) -> list[object]:
    """Record every transaction from now on."""
    writes: list[object] = []
    runner: Any = service.services.storage.runner
    write = runner.write

    async def note_and_run(make: Callable[[], Any], **how: Any) -> Any:
        writes.append(make)
        return await write(make, **how)

    runner.write = note_and_run
    return writes


def looks_of(service: RunningService) -> list[str]:
    """Record the name of every short read from now on."""
    reads: list[str] = []
    runner: Any = service.services.storage.runner
    read = runner.read

    async def note_and_run(make: Any) -> Any:
        reads.append(getattr(getattr(make, "func", make), "__name__", ""))
        return await read(make)

    runner.read = note_and_run
    return reads
