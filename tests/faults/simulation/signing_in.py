"""Browser sessions: opened at one node, valid at all, ended for all (W5)."""

from gatehouse.accounts.model import SignInMethod, User
from gatehouse.accounts.sessions import OpenedSession
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.errors import Refused
from tests.faults.simulation.cluster import NodeCall, SimulatedCluster
from tests.faults.simulation.history import History, Result
from tests.faults.simulation.node import Node


def start_session(user: User) -> NodeCall:
    async def open_session(node: Node, origin: AuditOrigin) -> object:
        return await node.sessions.open(user, SignInMethod.LOGIN, origin=origin, agent="")

    return open_session


def find_session(secret: str) -> NodeCall:
    async def find(node: Node, _origin: AuditOrigin) -> object:
        if await node.sessions.find(secret) is None:
            raise Refused("no session")
        return None

    return find


def end_session(user: User, session_id: str) -> NodeCall:
    async def end(node: Node, origin: AuditOrigin) -> object:
        entry = node.services.core.recorder.record(AuditEvent.SIGNED_OUT, origin, subject=user.user_id)
        if not await node.services.storage.sessions.end_session(user.user_id, session_id, entry):
            raise Refused("ended before")
        return None

    return end


class Browser:
    def __init__(self, cluster: SimulatedCluster, user: User) -> None:
        self._cluster = cluster
        self._user = user

    async def run(self) -> None:
        _, answer = await self._cluster.ask("open", self._user.user_id, start_session(self._user))
        if not isinstance(answer, OpenedSession):
            return
        session_id = answer.session.session_id
        await self._find(session_id, answer.secret)
        if self._cluster.chance.random() < 0.7:
            await self._cluster.insist("end", session_id, end_session(self._user, session_id))
            await self._find(session_id, answer.secret)

    async def _find(self, session_id: str, secret: str) -> None:
        for _ in range(2):
            await self._cluster.pause(5)
            await self._cluster.ask("find", session_id, find_session(secret))


# -- invariants ----------------------------------------------------------------------------------------


def sessions_end_when_they_do(history: History) -> list[str]:
    """I3 and I11: valid until its end was requested, never again once that was acknowledged."""
    problems = []
    for session_id in history.keys("find"):
        ends = history.of("end", key=session_id)
        started = min((op.began for op in ends), default=float("inf"))
        done = min((op.ended for op in ends if op.result is Result.OK), default=float("inf"))
        for op in history.of("find", key=session_id):
            if op.result is Result.OK and op.began > done:
                problems.append(f"I3: {op} after its end")
            if op.result is Result.FAIL and op.ended < started:
                problems.append(f"I11: {op} before its end")
    return problems
