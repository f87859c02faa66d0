"""The effect of opened and closed sockets on a session, without a network (gamesessions/sockets.py)."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import cast

import pytest
from msgspec.structs import replace

from gatehouse.accounts.bans.model import UserBan
from gatehouse.audit.model import AuditOrigin
from gatehouse.gamesessions.errors import Violation
from gatehouse.gamesessions.model import GameSession, SignInStage
from gatehouse.gamesessions.presence import CHECK_CONCURRENCY, LEAVE_GRACE, Presence
from gatehouse.gamesessions.proof import GameClientProof
from gatehouse.gamesessions.refusals import GameRefusals
from gatehouse.gamesessions.results import GameLoginResults
from gatehouse.gamesessions.sockets import SocketCloseReason
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.gamesessions.waiters import Waiters
from gatehouse.gamesessions.write_behind import WriteBehind
from gatehouse.kernel.addresses import parse_address
from gatehouse.kernel.errors import TooMany, Unavailable
from tests.support.clock import MovableClock, run_ready_tasks

ADDRESS = parse_address("192.0.2.7")
assert ADDRESS is not None
OWNER = GameClientProof(address=ADDRESS, source=str(ADDRESS), proven=True)
ORIGIN = AuditOrigin(actor="game", address=str(ADDRESS))


class GameSessionsInMemory:
    """A game session store in memory, which a test can block or fail."""

    def __init__(self, clock: MovableClock) -> None:
        self.clock = clock
        self.sessions: dict[str, GameSession] = {}
        self.done: list[str] = []
        self.fails = False
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.finding = 0
        self.found_at_once = 0

    def add(self, gsid: str) -> str:
        now = self.clock.now()
        self.sessions[gsid] = GameSession(
            gsid=gsid,
            location=b"",
            address=str(ADDRESS),
            address_proven=True,
            options=b"",
            created_at=now,
            ends_at=now + 1_200,
        )
        return gsid

    async def find_session(self, gsid: str, now: int) -> GameSession | None:
        self.finding += 1
        self.found_at_once = max(self.found_at_once, self.finding)
        await self._do()
        self.finding -= 1
        session = self.sessions.get(gsid)
        return session if session is not None and session.is_live(now) else None

    async def add_socket_node(self, gsid: str, _node: str, _now: int) -> None:
        await self._do()
        self.done.append(f"watch {gsid}")

    async def remove_socket_node(self, gsid: str, _node: str, _now: int) -> bool:
        await self._do()
        self.done.append(f"unwatch {gsid}")
        return True

    async def record_presence(self, gsids: Collection[str], _node: str, now: int) -> None:
        for gsid in gsids:
            self.sessions[gsid] = replace(self.sessions[gsid], last_seen=now)

    async def _do(self) -> None:
        await self.may_go_on.wait()
        await asyncio.sleep(0)
        if self.fails:
            self.finding = 0
            raise Unavailable


class NoRecords:
    async def violation(self, _gsid: str, _origin: AuditOrigin, reason: str) -> Violation:
        return Violation("record", reason)

    async def unknown_session(self, _gsid: str, _origin: AuditOrigin, _source: str) -> Violation:
        return Violation("record", "no such session")


class NoBans:
    async def find_session_ban(self, _session: GameSession) -> None:
        return None


@dataclass(slots=True, eq=False)
class FakeSocket:
    """A socket that records what it is sent, and disconnects when it is closed."""

    presence: Presence
    gsid: str
    origin: AuditOrigin = ORIGIN
    opened: bool = True
    received: list[SignInStage | SocketCloseReason] = field(default_factory=list)

    def is_open(self) -> bool:
        return self.opened

    def send_stage(self, stage: SignInStage) -> None:
        self.received.append(stage)

    def close_with_reason(self, reason: SocketCloseReason, _record_id: str, _ban: UserBan | None = None) -> None:
        if self.opened:
            self.received.append(reason)
            self.presence.leave(self.gsid, self, by_client=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PresenceSetup:
    clock: MovableClock
    store: GameSessionsInMemory
    waiters: Waiters
    presence: Presence

    async def join_socket(self, gsid: str = "gsid", by: GameClientProof = OWNER) -> FakeSocket:
        socket = FakeSocket(self.presence, gsid)
        await self.presence.join(gsid, by, ORIGIN, socket)
        return socket

    def leave_socket(self, socket: FakeSocket) -> None:
        self.presence.leave(socket.gsid, socket, by_client=True)


@pytest.fixture
async def setup() -> PresenceSetup:
    clock = MovableClock()
    memory = GameSessionsInMemory(clock)
    memory.add("gsid")
    store = cast("GameSessionStore", memory)
    waiters = Waiters()
    presence = Presence(
        store=store,
        waiters=waiters,
        write_behind=WriteBehind(store=store, node="here", clock=clock),
        results=cast("GameLoginResults", NoBans()),
        refusals=cast("GameRefusals", NoRecords()),
        clock=clock,
        node="here",
        max_sockets=3,
    )
    return PresenceSetup(clock=clock, store=memory, waiters=waiters, presence=presence)


async def test_the_first_socket_is_stored_and_the_end_of_the_last_one_after_the_grace(setup: PresenceSetup) -> None:
    first, second = await setup.join_socket(), await setup.join_socket()
    assert setup.store.done == ["watch gsid"]
    setup.leave_socket(first)
    await setup.clock.advance(LEAVE_GRACE * 2)
    setup.leave_socket(second)
    await setup.clock.advance(LEAVE_GRACE - 0.1)
    assert setup.store.done == ["watch gsid"]
    await setup.clock.advance(0.1)
    assert setup.store.done == ["watch gsid", "unwatch gsid"]
    assert len(setup.presence) == 0
    assert setup.waiters._listeners == {}


async def test_coming_and_going_within_the_grace_writes_nothing(setup: PresenceSetup) -> None:
    for _ in range(20):
        setup.leave_socket(await setup.join_socket())
        await setup.clock.advance(LEAVE_GRACE - 0.1)
    assert setup.store.done == ["watch gsid"]


async def test_rejoin_during_a_pending_leave_is_stored_after_the_leave(setup: PresenceSetup) -> None:
    setup.leave_socket(await setup.join_socket())
    setup.store.may_go_on.clear()
    await setup.clock.advance(LEAVE_GRACE)
    back = FakeSocket(setup.presence, "gsid")
    coming = asyncio.create_task(setup.presence.join("gsid", OWNER, ORIGIN, back))
    await run_ready_tasks()
    assert not coming.done()
    setup.store.may_go_on.set()
    await coming
    assert setup.store.done == ["watch gsid", "unwatch gsid", "watch gsid"]
    assert len(setup.presence) == 1


async def test_two_who_come_at_once_are_stored_once(setup: PresenceSetup) -> None:
    await asyncio.gather(setup.join_socket(), setup.join_socket())
    assert setup.store.done == ["watch gsid"]


async def test_an_end_that_could_not_be_stored_is_tried_again(setup: PresenceSetup) -> None:
    setup.leave_socket(await setup.join_socket())
    setup.store.fails = True
    await setup.clock.advance(LEAVE_GRACE * 3)
    assert setup.store.done == ["watch gsid"]
    setup.store.fails = False
    await setup.clock.advance(LEAVE_GRACE)
    assert setup.store.done == ["watch gsid", "unwatch gsid"]


async def test_a_socket_that_could_not_be_stored_takes_no_part(setup: PresenceSetup) -> None:
    setup.store.may_go_on.clear()
    coming = asyncio.create_task(setup.join_socket())
    await run_ready_tasks()
    setup.store.fails = True
    setup.store.may_go_on.set()
    with pytest.raises(Unavailable):
        await coming
    assert len(setup.presence) == 0
    assert setup.waiters._listeners == {}


async def test_socket_closed_by_the_server_or_a_restart_is_not_stored_as_left(setup: PresenceSetup) -> None:
    socket = await setup.join_socket()
    setup.presence.leave("gsid", socket, by_client=False)
    await setup.clock.advance(LEAVE_GRACE)
    leaving, staying = await setup.join_socket(), await setup.join_socket(setup.store.add("other"))
    setup.leave_socket(leaving)
    setup.presence.stop()
    setup.leave_socket(staying)
    await setup.clock.advance(LEAVE_GRACE)
    assert "unwatch gsid" not in setup.store.done
    assert "unwatch other" not in setup.store.done
    assert len(setup.presence) == 0


async def test_a_session_has_so_many_seats_for_its_owner_and_as_many_for_others(setup: PresenceSetup) -> None:
    keyed = setup.store.sessions["gsid"]
    setup.store.sessions["gsid"] = replace(keyed, public_key="some key")
    for _ in range(3):
        await setup.join_socket()
    with pytest.raises(TooMany):
        await setup.join_socket()
    setup.store.sessions["gsid"] = keyed
    for _ in range(3):
        await setup.join_socket()
    with pytest.raises(TooMany):
        await setup.join_socket()
    assert setup.store.done == ["watch gsid"]


async def test_a_socket_that_is_not_open_yet_is_told_when_it_is(setup: PresenceSetup) -> None:
    socket = FakeSocket(setup.presence, "gsid", opened=False)
    await setup.presence.join("gsid", OWNER, ORIGIN, socket)
    setup.store.sessions["gsid"] = replace(setup.store.sessions["gsid"], opened_at=1)
    setup.waiters.notify("gsid")
    await run_ready_tasks()
    assert socket.received == []
    socket.opened = True
    setup.presence.schedule_check("gsid")
    await run_ready_tasks()
    assert socket.received == [SignInStage.OPENED]


async def test_missed_notices_make_everyone_look_a_few_at_a_time(setup: PresenceSetup) -> None:
    chairs = [await setup.join_socket(setup.store.add(f"gsid-{n}")) for n in range(5 * CHECK_CONCURRENCY)]
    for gsid, session in setup.store.sessions.items():
        setup.store.sessions[gsid] = replace(session, opened_at=1)
    setup.store.found_at_once = 0
    for gsid in setup.waiters.gsids():
        setup.waiters.wake_if_changed(gsid, setup.store.sessions[gsid].snapshot)
    for _ in range(10):
        await run_ready_tasks()
    assert [socket.received for socket in chairs] == [[SignInStage.OPENED]] * len(chairs)
    assert setup.store.found_at_once == CHECK_CONCURRENCY


async def test_a_look_that_fails_is_had_at_the_next_heartbeat(setup: PresenceSetup) -> None:
    socket = await setup.join_socket()
    setup.store.sessions["gsid"] = replace(setup.store.sessions["gsid"], opened_at=1)
    setup.store.fails = True
    setup.waiters.notify("gsid")
    await run_ready_tasks()
    setup.store.fails = False
    await setup.clock.advance(5)
    assert socket.received == [SignInStage.OPENED]


async def test_a_session_that_polls_have_moved_on_is_not_taken_for_ended(setup: PresenceSetup) -> None:
    setup.store.sessions["gsid"] = replace(setup.store.sessions["gsid"], ends_at=setup.clock.now() + 20)
    socket = await setup.join_socket()
    setup.store.sessions["gsid"] = replace(setup.store.sessions["gsid"], ends_at=setup.clock.now() + 60)
    await setup.clock.advance(50)
    assert socket.received == []
    await setup.clock.advance(20)
    assert socket.received == [SocketCloseReason.OVER]
    assert len(setup.presence) == 0
