"""Contract tests of gamesessions/store.py about sockets: watch, unwatch, seen."""

import asyncio

from gatehouse.gamesessions.model import GameSession
from gatehouse.storage.database import Storage
from gatehouse.storage.gamesessions import CHANNEL
from gatehouse.storage.statements import Notification, Verb
from tests.support.builders import NOW, a_game_session
from tests.support.echo import wait_until
from tests.support.raw_http import RESPONSE_TIMEOUT

SILENT = 15  # seconds after which a node's reports expire


async def a_session(storage: Storage, gsid: str = "g1") -> str:
    await storage.game_sessions.register_session(a_game_session(gsid))
    return gsid


async def find_session(storage: Storage, gsid: str) -> GameSession:
    session = await storage.game_sessions.find_session(gsid, NOW)
    assert session is not None
    return session


async def test_a_socket_is_a_sign_of_life(storage: Storage) -> None:
    gsid = await a_session(storage)
    assert (await find_session(storage, gsid)).last_seen == 0
    await storage.game_sessions.add_socket_node(gsid, "here", NOW + 3)
    assert (await find_session(storage, gsid)).last_seen == NOW + 3


async def test_many_are_seen_at_once_and_no_others(storage: Storage) -> None:
    gsids = [await a_session(storage, f"g{n}") for n in range(50)]
    other = await a_session(storage, "other")
    await storage.game_sessions.record_presence(gsids, "here", NOW + 5)
    assert {(await find_session(storage, gsid)).last_seen for gsid in gsids} == {NOW + 5}
    assert (await find_session(storage, other)).last_seen == 0


async def wait_until_listening(storage: Storage, received: list[str]) -> None:
    """Wait until notifications arrive: PostgreSQL starts to listen with a delay."""
    async with asyncio.timeout(RESPONSE_TIMEOUT):
        while "now" not in received:
            await storage.runner.write(wake)


def wake() -> Verb[None]:
    yield Notification(CHANNEL, "now")


async def test_the_end_of_the_last_socket_is_counted_and_told(storage: Storage) -> None:
    gsid = await a_session(storage)
    received: list[str] = []
    forget = storage.game_sessions.listen_for_changes(received.append)
    await wait_until_listening(storage, received)
    await storage.game_sessions.add_socket_node(gsid, "here", NOW)
    assert await storage.game_sessions.remove_socket_node(gsid, "here", NOW + 1)
    await wait_until(lambda: gsid in received)
    forget()
    assert (await find_session(storage, gsid)).cancels == 1
    await storage.game_sessions.add_socket_node(gsid, "here", NOW + 2)
    assert await storage.game_sessions.remove_socket_node(gsid, "here", NOW + 3)
    assert (await find_session(storage, gsid)).cancels == 2


async def test_a_socket_at_another_node_keeps_it(storage: Storage) -> None:
    gsid = await a_session(storage)
    await storage.game_sessions.add_socket_node(gsid, "here", NOW)
    await storage.game_sessions.add_socket_node(gsid, "there", NOW)
    assert not await storage.game_sessions.remove_socket_node(gsid, "here", NOW + 1)
    assert (await find_session(storage, gsid)).cancels == 0
    assert await storage.game_sessions.remove_socket_node(gsid, "there", NOW + 1)
    assert (await find_session(storage, gsid)).cancels == 1


async def test_a_node_that_fell_silent_keeps_nothing_and_one_that_speaks_does(storage: Storage) -> None:
    for gsid, is_kept in ((await a_session(storage, "g1"), False), (await a_session(storage, "g2"), True)):
        await storage.game_sessions.add_socket_node(gsid, "here", NOW)
        await storage.game_sessions.add_socket_node(gsid, "there", NOW)
        if is_kept:
            await storage.game_sessions.record_presence([gsid], "there", NOW + SILENT - 5)
        assert await storage.game_sessions.remove_socket_node(gsid, "here", NOW + SILENT) is not is_kept


async def test_expired_or_unknown_game_session_is_not_canceled(storage: Storage) -> None:
    gsid = await a_session(storage)
    await storage.game_sessions.add_socket_node(gsid, "here", NOW)
    assert not await storage.game_sessions.remove_socket_node(gsid, "here", NOW + 120)
    assert not await storage.game_sessions.remove_socket_node("unknown", "here", NOW)


async def test_at_least_one_of_two_nodes_leaving_together_cancels(storage: Storage) -> None:
    for number in range(10):
        gsid = await a_session(storage, f"g{number}")
        await storage.game_sessions.add_socket_node(gsid, "here", NOW)
        await storage.game_sessions.add_socket_node(gsid, "there", NOW)
        answers = await asyncio.gather(
            storage.game_sessions.remove_socket_node(gsid, "here", NOW),
            storage.game_sessions.remove_socket_node(gsid, "there", NOW),
        )
        assert any(answers)


async def test_last_seen_never_goes_back(storage: Storage) -> None:
    gsid = await a_session(storage)
    for at in (NOW + 5, NOW + 4):
        await storage.game_sessions.record_presence([gsid], "here", at)
    assert (await find_session(storage, gsid)).last_seen == NOW + 5


async def test_a_node_that_ends_is_forgotten_and_cancels_nothing(storage: Storage) -> None:
    gsid = await a_session(storage)
    for node in ("here", "there"):
        await storage.game_sessions.add_socket_node(gsid, node, NOW)
    await storage.game_sessions.forget_node("here")
    assert (await find_session(storage, gsid)).cancels == 0
    assert await storage.game_sessions.remove_socket_node(gsid, "there", NOW)
    assert (await find_session(storage, gsid)).cancels == 1
