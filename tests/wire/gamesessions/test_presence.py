"""The WebSocket of a game session: who may connect, what it receives, what its end means (interface §6, R4)."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest

from gatehouse.audit.model import Refusal
from gatehouse.gamesessions.model import GameSession, PollMark
from gatehouse.kernel.errors import Unavailable
from tests.support.browser import HttpBrowser
from tests.support.builders import ORIGIN
from tests.support.game import (
    ANNA,
    OTHER_ADDRESS,
    Game,
    approve_in_storage,
    confirm_in_browser,
    poll_ended_session,
    register_game,
    wait_until_held,
)
from tests.support.raw_http import raw_connection
from tests.support.service import RunningService, running_service
from tests.support.tokens import application_public_key, sign_as_application
from tests.support.websockets import (
    PATH,
    SOCKET_TIMEOUT,
    close_code_and_reason,
    connect_game_socket,
    connect_socket,
    expect_no_message,
    handshake_status,
    raw_websocket,
    receive_json,
    wait_until_connected,
    wait_until_idle,
    wait_until_read,
)

GRACE: Final = 2
CLIENTS: Final = ("httpx2", "httpcore2", "websockets.client")  # loggers of libraries
NOBODYS: Final = "7d4f0f0e-3c1b-4f6e-9d6a-0b8f7b1c2a3d"


async def row(game: Game) -> GameSession:
    session = await game.service.services.storage.game_sessions.find_session(game.gsid, game.service.clock.now())
    assert session is not None
    return session


async def reason_of(service: RunningService, record_id: str) -> str:
    record = await service.services.storage.audit.find_record(record_id)
    assert isinstance(record, Refusal), record_id
    return record.reason


async def extend_session(game: Game) -> None:
    """Extend it as if it were polled all the time: it ends only at the ceiling."""
    session = await row(game)
    mark = PollMark(gsid=game.gsid, number=1, polled_at=session.created_at, ends_at=session.latest_end)
    await game.service.services.storage.game_sessions.record_polls([mark], "elsewhere")


# -- who may connect ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("gsid", [NOBODYS, "x", "a%2Fb", "..%2Fx", "%00", f"{NOBODYS}%0A", "%FF", "x" * 7_000, ""])
async def test_ws_01_a_gsid_that_is_none_is_told_so_and_closed_at_once(service: RunningService, gsid: str) -> None:
    async with asyncio.timeout(1), connect_socket(service, gsid) as socket:
        last = await receive_json(socket)
        assert (last["status"], last["ts"]) == ("ERROR", service.clock.now())
        assert await close_code_and_reason(socket) == (4404, "no such session")
    assert await reason_of(service, last["error"]) == "no such session"


async def test_ws_01_ten_kilobytes_of_gsid_are_refused_as_too_long(service: RunningService) -> None:
    assert await handshake_status(connect_socket(service, "x" * 10_000)) == 414
    assert (
        await handshake_status(connect_socket(service, "x" * (8_192 - len(PATH)))) == 414
    )  # within our limit, beyond the library's


async def test_ws_01_a_session_whose_time_is_over_is_unknown(service: RunningService) -> None:
    game = await register_game(service)
    await service.clock.advance(120)
    async with connect_game_socket(game) as socket:
        assert (await receive_json(socket))["gsid"] == game.gsid
        assert (await close_code_and_reason(socket))[0] == 4404


async def test_ws_01_a_session_that_came_to_nothing_is_over_for_the_reason_polls_are_told(
    service: RunningService,
) -> None:
    game = await register_game(service)
    await game.close("Error")
    async with connect_game_socket(game) as socket:
        assert (await receive_json(socket))["error"] == (await poll_ended_session(game)).json()["error"]
        assert await close_code_and_reason(socket) == (4410, "the session has ended")


async def test_ws_01_when_we_fail_it_is_closed_as_our_fault(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def raise_unavailable(*_: object) -> None:
        raise Unavailable

    game = await register_game(service)
    monkeypatch.setattr(type(service.services.storage.game_sessions), "find_session", raise_unavailable)
    async with connect_game_socket(game) as socket:
        assert (await receive_json(socket)).keys() == {"status", "error", "gsid", "ts"}
        assert await close_code_and_reason(socket) == (1011, "server error")


@pytest.mark.parametrize("suffix", [".evil.example", "/", "0"])
async def test_ws_02_another_origin_than_ours_is_refused(service: RunningService, suffix: str) -> None:
    game = await register_game(service)
    for origin in ("https://evil.example", "null", service.base_url + suffix):
        assert (
            await handshake_status(connect_socket(service, f"{game.gsid}?location={game.location}", Origin=origin))
            == 403
        )
    assert (await row(game)).last_seen == 0


async def test_ws_02_no_origin_and_our_own_are_let_in(service: RunningService) -> None:
    game = await register_game(service)
    async with connect_socket(service, game.gsid), connect_socket(service, game.gsid, Origin=service.base_url):
        await wait_until_connected(service, 2)


async def test_a_stranger_is_told_what_an_unknown_gsid_is_told(service: RunningService) -> None:
    game = await register_game(service)
    refused_openings = [
        connect_socket(service, f"{game.gsid}?location={game.location}x"),
        connect_socket(service, game.gsid, address=OTHER_ADDRESS),
        connect_socket(service, game.gsid, X_Forwarded_For="127.0.0.1"),
    ]
    reasons = []
    for opening in refused_openings:
        async with opening as socket:
            reasons.append(await reason_of(service, (await receive_json(socket))["error"]))
            assert await close_code_and_reason(socket) == (4404, "no such session")
    assert reasons == ["wrong location", "different IP address", "the IP address is not accepted as proof"]
    assert (await row(game)).last_seen == 0


async def test_the_location_counts_from_anywhere_and_in_every_form(service: RunningService) -> None:
    game = await register_game(service)
    whole = f"/proxy/api/gameSession/getGsidResult?location={game.location}"
    async with (
        connect_socket(service, f"{game.gsid}?location={game.location}", address=OTHER_ADDRESS),
        connect_socket(service, game.gsid, address=OTHER_ADDRESS, Location=whole),
        connect_socket(service, game.gsid, address=OTHER_ADDRESS, Authorization=f"Location {game.location}"),
    ):
        await wait_until_connected(service, 3)


async def test_two_locations_cannot_be_read(service: RunningService) -> None:
    game = await register_game(service)
    assert await handshake_status(connect_socket(service, f"{game.gsid}?location={game.location}&location=x")) == 400


@pytest.mark.parametrize("proof", ["the signature over the gsid", "the location"])
async def test_signature_or_location_proves_the_owner_of_a_session_with_a_key(
    service: RunningService, proof: str
) -> None:
    game = await register_game(service, public_key=application_public_key())
    query = f"?location={game.location}" if proof == "the location" else ""
    headers = {} if query else {"Request_Sign": sign_as_application(game.gsid.encode())}
    async with connect_socket(service, game.gsid + query, address=OTHER_ADDRESS, **headers) as socket:
        await service.services.games.purpose.open_page(game.gsid)
        assert await receive_json(socket) == {"event": "opened"}
        polling = asyncio.create_task(poll_signed(game))
        await wait_until_held(service)
    await wait_until_connected(service, 0)
    await service.clock.advance(GRACE)
    assert (await polling) == "CANCELLED"


async def test_unproven_socket_of_a_session_with_a_key_gets_no_events_and_cancels_nothing(
    service: RunningService,
) -> None:
    game = await register_game(service, public_key=application_public_key())
    polling = asyncio.create_task(poll_signed(game))
    await wait_until_held(service)
    wrong = sign_as_application(b"another gsid")
    guessed = f"{game.gsid}?location={game.location}x"
    async with (
        connect_socket(service, game.gsid, Request_Sign=wrong) as other,
        connect_socket(service, guessed) as socket,
    ):
        await wait_until_connected(service, 2)
        await service.clock.advance(1)
        await wait_until_seen(game, service.clock.now() - 1)
        await service.services.games.purpose.open_page(game.gsid)
        service.services.games.waiters.notify(game.gsid)  # whether or not the notification has come by now
        await wait_until_idle(service)
        await expect_no_message(other)
        await expect_no_message(socket)
    await wait_until_connected(service, 0)
    await service.clock.advance(GRACE + 1)
    await wait_until_idle(service)
    assert (await row(game)).cancels == 0
    polling.cancel()


async def wait_until_seen(game: Game, at: int) -> None:
    async with asyncio.timeout(SOCKET_TIMEOUT):
        while (await row(game)).last_seen < at:  # noqa: ASYNC110 - a row has no event to wait for
            await asyncio.sleep(0)


async def poll_signed(game: Game) -> str:
    body = b'{"gsid":"%b"}' % game.gsid.encode()
    headers = {"Request-Sign": sign_as_application(body), "Content-Type": "application/json"}
    path = "/proxy/api/gameSession/getGsidResult"
    response = await game.service.client.post(path, content=body, headers=headers, timeout=60)
    status: str = response.json()["status"]
    return status


# -- received messages -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("anna")
async def test_the_owner_hears_how_far_the_person_has_come(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    game = await register_game(service)
    async with connect_game_socket(game) as socket, connect_game_socket(game) as second:
        await wait_until_connected(service, 2)
        await confirm_in_browser(browser_client, game)
        messages = [await receive_json(socket) for _ in range(3)]
        assert [frame["event"] for frame in messages] == ["opened", "signing_in", "confirmed"]
        assert [await receive_json(second) for _ in range(3)] == messages
        assert (await game.poll()).json()["status"] == "OK"
        await wait_until_read(socket)


@pytest.mark.usefixtures("anna")
async def test_a_cancelled_sign_in_is_told_and_ends_the_socket(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    game = await register_game(service)
    async with connect_game_socket(game) as socket:
        await confirm_in_browser(browser_client, game, decision="cancel")
        messages = [await receive_json(socket) for _ in range(4)]
        assert [frame.get("event") for frame in messages] == ["opened", "signing_in", "cancelled", None]
        assert messages[3]["error"] == (await poll_ended_session(game)).json()["error"]
        assert await close_code_and_reason(socket) == (4410, "the session has ended")
    await service.clock.advance(GRACE)
    await wait_until_idle(service)
    assert (await row(game)).cancels == 0


async def test_late_socket_receives_the_current_state(service: RunningService) -> None:
    game = await register_game(service)
    await service.services.games.purpose.open_page(game.gsid)
    async with connect_game_socket(game) as socket:
        assert await receive_json(socket) == {"event": "opened"}


@pytest.mark.both_databases
async def test_the_same_is_not_told_twice(service: RunningService) -> None:
    game = await register_game(service)
    async with connect_game_socket(game) as socket:
        await service.services.games.purpose.open_page(game.gsid)
        assert await receive_json(socket) == {"event": "opened"}
        service.services.games.notices.handle_notice("")  # notifications may have been missed
        await service.services.games.purpose.open_page(game.gsid)
        await game.close("Error")
        assert await receive_json(socket) == {"event": "cancelled"}


# -- the effect of its end ---------------------------------------------------------------------------------


async def test_ws_04_only_the_end_of_the_owners_last_socket_cancels(service: RunningService) -> None:
    game = await register_game(service)
    polling = game.start_poll()
    await wait_until_held(service)
    async with connect_game_socket(game) as first:
        async with connect_game_socket(game):
            await wait_until_connected(service, 2)
        await wait_until_connected(service, 1)
        await service.clock.advance(GRACE + 3)
        await wait_until_idle(service)
        assert (await row(game)).cancels == 0
        await wait_until_read(first)
    await wait_until_connected(service, 0)
    await service.clock.advance(GRACE)
    answer = (await polling).json()
    assert (answer["status"], answer["gsid"]) == ("CANCELLED", game.gsid)
    again = game.start_poll()  # it is still pending, and may be polled
    await wait_until_held(service)
    again.cancel()


async def test_reconnect_within_the_grace_period_cancels_nothing(service: RunningService) -> None:
    game = await register_game(service)
    polling = game.start_poll()
    await wait_until_held(service)
    for _ in range(3):
        async with connect_game_socket(game):
            await wait_until_connected(service, 1)
        await wait_until_connected(service, 0)
        await service.clock.advance(GRACE - 0.1)
    async with connect_game_socket(game):
        await service.clock.advance(GRACE)
        await wait_until_idle(service)
        assert (await row(game)).cancels == 0
        assert not polling.done()
    polling.cancel()


async def test_a_connection_that_is_reset_is_lost(service: RunningService) -> None:
    game = await register_game(service)
    polling = game.start_poll()
    await wait_until_held(service)
    target = f"{PATH}{game.gsid}?location={game.location}".encode()
    async with raw_websocket(int(service.client.base_url.port or 0), target) as connection:
        await wait_until_connected(service, 1)
        connection.abort()
        await wait_until_connected(service, 0)
    await service.clock.advance(GRACE)
    assert (await polling).json()["status"] == "CANCELLED"


async def test_ws_05_a_client_that_vanished_is_noticed_within_fifteen_seconds(service: RunningService) -> None:
    game = await register_game(service)
    polling = game.start_poll()
    await wait_until_held(service)
    target = f"{PATH}{game.gsid}?location={game.location}".encode()
    async with raw_websocket(int(service.client.base_url.port or 0), target):
        await wait_until_connected(service, 1)
        await service.clock.advance(9.9)
        assert len(service.services.games.presence) == 1
        await service.clock.advance(2.7)
        await wait_until_connected(service, 0)
        await service.clock.advance(GRACE)
        assert (await polling).json()["status"] == "CANCELLED"


async def test_ws_08_an_open_socket_does_not_stretch_a_session_beyond_twenty_minutes(service: RunningService) -> None:
    game = await register_game(service)
    await extend_session(game)
    await service.clock.advance(1_100)
    async with connect_game_socket(game) as socket:
        for _ in range(38):
            await service.clock.advance(2.5)
            await wait_until_read(socket)
            await wait_until_seen(game, service.clock.now() - 7)
            await service.services.games.write_behind.flush()
        await service.clock.advance(12)
        last = await receive_json(socket)
        assert await close_code_and_reason(socket) == (4410, "the session has ended")
    assert await reason_of(service, last["error"]) == "the session has expired"


async def test_ws_08_an_open_socket_does_not_keep_a_session_that_no_one_polls(service: RunningService) -> None:
    game = await register_game(service)
    async with connect_game_socket(game) as socket:
        for _ in range(23):
            await service.clock.advance(5)
            await wait_until_read(socket)
        await service.clock.advance(12)
        assert (await receive_json(socket))["gsid"] == game.gsid
        assert (await close_code_and_reason(socket))[0] == 4410


class RecordingStore:
    """A store that records which sessions were written to when."""

    def __init__(self, service: RunningService) -> None:
        self._service = service
        self.written: list[tuple[int, tuple[str, ...]]] = []

    async def record_presence(self, gsids: Collection[str], node: str, now: int) -> None:
        self.written.append((now, tuple(sorted(gsids))))
        await self._service.services.storage.game_sessions.record_presence(gsids, node, now)


async def test_ws_08_r_17_last_seen_moves_every_five_seconds_in_one_write_for_all(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    games = [await register_game(service) for _ in range(3)]
    counted = RecordingStore(service)
    monkeypatch.setattr(service.services.games.write_behind, "_store", counted)
    async with AsyncExitStack() as stack:
        sockets = [await stack.enter_async_context(connect_game_socket(game)) for game in games for _ in range(2)]
        await wait_until_connected(service, 6)
        begin = service.clock.now()
        for second in range(1, 61):
            await service.clock.advance(1)
            await wait_until_read(*sockets)
            for game in games:
                await wait_until_seen(game, begin + (second - 1) // 5 * 5)
    everyone = tuple(sorted(game.gsid for game in games))
    assert [gsids for _, gsids in counted.written] == [everyone] * len(counted.written)
    assert 11 <= len(counted.written) <= 12
    assert min(b - a for (a, _), (b, _) in zip(counted.written, counted.written[1:], strict=False)) >= 5


async def test_a_displaced_poll_tells_when_the_game_was_last_seen(service: RunningService) -> None:
    game = await register_game(service)
    displaced = game.start_poll()
    await wait_until_held(service)
    seen = await connect_for_a_while(game)
    newer = game.start_poll()
    sent_messages = (await displaced).json()
    assert (sent_messages["status"], sent_messages["delay"]) == ("RETRY", 1)
    assert (sent_messages["last_seen"], sent_messages["ts"]) == (seen, service.clock.now())
    newer.cancel()


async def test_op_07_a_poll_answered_at_the_end_of_the_service_tells_when_the_game_was_last_seen(
    service: RunningService,
) -> None:
    game = await register_game(service)
    polling = game.start_poll()
    await wait_until_held(service)
    seen = await connect_for_a_while(game)
    service.stopping.begin()
    sent_messages = (await polling).json()
    assert (sent_messages["status"], sent_messages["last_seen"]) == ("RETRY", seen)


async def connect_for_a_while(game: Game) -> int:
    """Open a socket, send heartbeats, and close it; return when it was last seen."""
    async with connect_game_socket(game) as socket:
        await wait_until_connected(game.service, 1)
        begin = game.service.clock.now()
        for _ in range(7):
            await game.service.clock.advance(1)
            await wait_until_read(socket)
        await wait_until_seen(game, begin + 5)
        return (await row(game)).last_seen


# -- limits ------------------------------------------------------------------------------------------------


async def test_ws_06_a_session_has_so_many_sockets_and_strangers_do_not_take_the_owners(
    service: RunningService,
) -> None:
    most = service.services.settings.game.sockets_per_session
    game = await register_game(service, public_key=application_public_key())
    proof = sign_as_application(game.gsid.encode())
    async with AsyncExitStack() as stack:
        for _ in range(most):
            await stack.enter_async_context(connect_socket(service, game.gsid))
        assert await handshake_status(connect_socket(service, game.gsid)) == 429
        for _ in range(most):
            await stack.enter_async_context(connect_socket(service, game.gsid, Request_Sign=proof))
        assert await handshake_status(connect_socket(service, game.gsid, Request_Sign=proof)) == 429
    await wait_until_connected(service, 0)
    async with connect_socket(service, game.gsid, Request_Sign=proof):
        await wait_until_connected(service, 1)


async def test_ws_06_a_source_has_so_many_sockets_whatever_becomes_of_them(
    installed_url: str, tmp_path: Path
) -> None:
    environment = {"GATEHOUSE__GAME__SOCKETS_PER_SOURCE": "3"}
    async with running_service(installed_url, tmp_path, environment=environment) as service:
        game = await register_game(service)
        port = int(service.client.base_url.port or 0)
        async with (
            raw_websocket(port, PATH.encode() + b"unknown"),
            connect_game_socket(game),
            connect_game_socket(game),
        ):
            assert (
                await handshake_status(connect_game_socket(game)) == 429
            )  # the first was ended, but its client does not close it
            async with connect_socket(service, f"{game.gsid}?location={game.location}", address=OTHER_ADDRESS):
                await wait_until_connected(service, 3)
        await wait_until_connected(service, 0)
        async with connect_game_socket(game):
            await wait_until_connected(service, 1)


async def test_sockets_that_come_too_often_are_put_off(installed_url: str, tmp_path: Path) -> None:
    async with running_service(installed_url, tmp_path, environment={"GATEHOUSE__RATES__POLL": "60"}) as service:
        game = await register_game(service)
        for _ in range(59):
            async with connect_game_socket(game):
                pass
        assert await handshake_status(connect_game_socket(game)) == 429


# -- several nodes, restarts, logs -------------------------------------------------------------------------


@pytest.fixture
async def nodes(installed_postgres_url: str, tmp_path: Path) -> AsyncIterator[tuple[RunningService, RunningService]]:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(running_service(installed_postgres_url, tmp_path))
        second = await stack.enter_async_context(running_service(installed_postgres_url, tmp_path, clock=first.clock))
        yield first, second


def game_at(node: RunningService, game: Game) -> Game:
    return Game(service=node, gsid=game.gsid, location=game.location, answer=game.answer)


async def test_newer_of_two_polls_at_two_nodes_in_one_second_gets_the_result(
    nodes: tuple[RunningService, RunningService],
) -> None:
    here, there = nodes
    anna = await here.services.accounts.administration.create(login=ANNA, nick="Anna", password=None, origin=ORIGIN)
    game = await register_game(here)
    older = game.start_poll()
    await wait_until_held(here)  # its number is not stored, because the clock does not move
    newer = game_at(there, game).start_poll()
    await wait_until_held(there)
    await approve_in_storage(game, anna)
    assert [(await one).json()["status"] for one in (newer, older)] == ["OK", "RETRY"]


async def test_a_socket_at_one_node_cancels_the_poll_at_another(nodes: tuple[RunningService, RunningService]) -> None:
    here, there = nodes
    game = await register_game(here)
    polling = game_at(there, game).start_poll()
    await wait_until_held(there)
    async with connect_game_socket(game) as socket:
        await wait_until_connected(here, 1)
        await there.services.games.purpose.open_page(game.gsid)
        assert await receive_json(socket) == {"event": "opened"}
    await wait_until_connected(here, 0)
    await here.clock.advance(GRACE)
    assert (await polling).json()["status"] == "CANCELLED"


async def test_ws_04_the_owner_may_be_at_two_nodes(nodes: tuple[RunningService, RunningService]) -> None:
    here, there = nodes
    game = await register_game(here)
    polling = game_at(there, game).start_poll()
    await wait_until_held(there)
    async with connect_game_socket(game_at(there, game)) as last:
        async with connect_game_socket(game):
            await wait_until_connected(here, 1)
        await wait_until_connected(here, 0)
        for _ in range(4):  # longer than a node's reports are valid
            await here.clock.advance(5)
            await wait_until_read(last)
        await wait_until_idle(here)
        assert (await row(game)).cancels == 0
    await wait_until_connected(there, 0)
    await here.clock.advance(GRACE)
    assert (await polling).json()["status"] == "CANCELLED"


async def test_a_restart_closes_sockets_and_cancels_nothing(
    installed_postgres_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_service(installed_postgres_url, tmp_path) as there:
        async with running_service(installed_postgres_url, tmp_path, clock=there.clock) as here:
            game = await register_game(here)
            polling = game_at(there, game).start_poll()
            await wait_until_held(there)
            leaving = await connect_game_socket(game)
            staying = await connect_game_socket(await register_game(here))
            await leaving.close()
            await wait_until_connected(here, 1)
        assert (await close_code_and_reason(staying))[0] == 1012
        await there.clock.advance(GRACE + 10)
        await wait_until_idle(here)
        assert (await row(game_at(there, game))).cancels == 0
        polling.cancel()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_gs_32_neither_gsid_nor_location_gets_into_a_log(
    service: RunningService, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    game = await register_game(service)
    async with connect_game_socket(game) as socket:
        await wait_until_read(socket)
    async with connect_socket(service, f"{NOBODYS}?location={game.location}") as socket:
        await receive_json(socket)
    await handshake_status(
        connect_socket(service, f"{game.gsid}?location={game.location}", Origin="https://evil.example")
    )
    ours = "".join(record.getMessage() for record in caplog.records if not record.name.startswith(CLIENTS))
    logged = ours + "".join(capsys.readouterr())
    for secret in (game.gsid, game.location, NOBODYS):
        assert secret not in logged


async def test_the_path_is_nothing_without_a_handshake(service: RunningService) -> None:
    assert (await service.client.get(PATH + NOBODYS)).status_code == 404
    async with raw_connection(int(service.client.base_url.port or 0)) as connection:
        connection.send(b"GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        assert (await connection.read_response()).status in (400, 403)
