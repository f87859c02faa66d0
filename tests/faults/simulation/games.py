"""Sign-in from games (W2): polls at any node, one confirmation, one delivery."""

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address
from secrets import token_bytes
from typing import Final

from gatehouse.accounts.login_result import LoginOptions
from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.gamesessions.model import LIFETIME, GameSession
from gatehouse.gamesessions.poll import OK, PollAnswer
from gatehouse.gamesessions.proof import GameClientProof
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import Refused
from tests.faults.simulation.cluster import ADDRESS, NodeCall, SimulatedCluster
from tests.faults.simulation.history import History, Result
from tests.faults.simulation.node import Node
from tests.support.builders import a_confirmation

LOCATION: Final = "location"
GAME: Final = GameClientProof(address=IPv4Address(ADDRESS), source=ADDRESS, proven=True, location=LOCATION)
OPTIONS: Final = LoginOptions(factor="device", nojwt=True)


class Connection:
    """The connection of a poll, which a test can cut."""

    def __init__(self) -> None:
        self._is_open = True
        self._lost: list[Callable[[], object]] = []

    def is_open(self) -> bool:
        return self._is_open

    def when_lost(self, callback: Callable[[], object]) -> None:
        self._lost.append(callback)

    def cut(self) -> None:
        self._is_open = False
        for callback in self._lost:
            callback()


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    gsid: str
    user: User


def a_session(user: User) -> Session:
    return Session(gsid=str(uuid.UUID(bytes=token_bytes(16), version=4)), user=user)


def register_session(session: Session) -> NodeCall:
    async def register(node: Node, _origin: AuditOrigin) -> object:
        now = node.clock.now()
        await node.services.storage.game_sessions.register_session(
            GameSession(
                gsid=session.gsid,
                location=sha256(LOCATION),
                address=ADDRESS,
                address_proven=True,
                options=node.services.games.results.seal_options(session.gsid, OPTIONS),
                holder=node.services.games.node,
                created_at=now,
                ends_at=now + LIFETIME,
            )
        )
        return None

    return register


def poll_session(session: Session, connection: Connection) -> NodeCall:
    async def poll(node: Node, origin: AuditOrigin) -> object:
        response = await node.polls.poll(session.gsid, GAME, connection, origin)
        if response.status != OK:
            raise Refused(response.status)
        return response

    return poll


def confirm_session(session: Session) -> NodeCall:
    async def confirm(node: Node, origin: AuditOrigin) -> object:
        entry = node.services.core.recorder.record(AuditEvent.GAME_CONFIRMED, origin, subject=session.user.user_id)
        confirmation = a_confirmation(session.gsid, session.user)
        if not await node.services.storage.game_sessions.confirm_session(confirmation, node.clock.now(), entry):
            raise Refused("not waiting, or a different person")
        return None

    return confirm


class Player:
    def __init__(self, cluster: SimulatedCluster, session: Session) -> None:
        self._cluster = cluster
        self._session = session

    async def run(self) -> None:
        await self._cluster.insist("register", self._session.gsid, register_session(self._session), tries=1)
        pollers = [self._poll() for _ in range(self._cluster.chance.randint(1, 3))]
        await asyncio.gather(self._confirm(), *pollers)

    async def _confirm(self) -> None:
        await self._cluster.pause(40)
        await self._cluster.insist("confirm", self._session.gsid, confirm_session(self._session))

    async def _poll(self) -> None:
        for _ in range(3):
            await self._cluster.pause(3)
            connection = Connection()
            leaving = asyncio.get_running_loop().call_later(self._cluster.chance.random() * 120, connection.cut)
            _, answer = await self._cluster.ask("poll", self._session.gsid, poll_session(self._session, connection))
            leaving.cancel()
            if isinstance(answer, PollAnswer):
                return


# -- invariants ----------------------------------------------------------------------------------------


def answers_are_delivered_once(history: History) -> list[str]:
    """I4."""
    return [
        f"I4: the answer of {gsid} was delivered {len(taken)} times"
        for gsid in history.keys("poll")
        if len(taken := [op for op in history.of("poll", key=gsid) if op.result is Result.OK]) > 1
    ]


def is_due(history: History, session: Session) -> bool:
    """Whether it was confirmed and certainly not delivered: then the next poll gets it, until it ends (I4)."""
    polls = history.of("poll", key=session.gsid)
    was_confirmed = any(op.result is Result.OK for op in history.of("confirm", key=session.gsid))
    may_be_gone = any(op.result is not Result.FAIL for op in polls) or any("ERROR" in op.detail for op in polls)
    return was_confirmed and not may_be_gone and not history.of("block", key=session.user.user_id)
