"""One schedule: its seed determines everything that happens, and all invariants are checked at the end."""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.gamesessions.poll import OK
from gatehouse.kernel.errors import GatehouseError
from tests.faults.disk import FaultyDisk
from tests.faults.simulation import families, games, permissions, signing_in
from tests.faults.simulation.cluster import NODES, SimulatedCluster
from tests.faults.simulation.families import Family, TokenClient, a_family, block_user, generation_of, refresh_with
from tests.faults.simulation.games import GAME, Connection, Player, Session, a_session, is_due
from tests.faults.simulation.history import History, Op, Result
from tests.faults.simulation.initial_state import GRACE, PEOPLE, SHOP, InitialState
from tests.faults.simulation.node import Node, NodeFactory
from tests.faults.simulation.permissions import Administrators
from tests.faults.simulation.signing_in import Browser
from tests.faults.simulation.store import FaultOdds
from tests.faults.simulation.virtual import Chance, VirtualLoop, seeded_secrets

LONGEST: Final = 600.0  # virtual seconds until a run counts as stuck
BLOCKED: Final = PEOPLE[:2]
PEACEFUL: Final = PEOPLE[2]
ONE_RECORD: Final = ("begin", "block", "make-key", "remove-key", "seat", "save", "confirm", "open", "end", "poll")
JUMPS: Final = (-3_600, -90, 90, 3_600)  # seconds
MOST: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    seed: int
    problems: list[str]
    history: History


def run(seed: int, initial_state: InitialState, directory: Path, disk: FaultyDisk) -> Outcome:
    file = directory / f"{seed}.db"
    file.write_bytes(initial_state.database)
    node_factory = NodeFactory(initial_state=initial_state, file=file, disk=disk, writers=[])
    loop = VirtualLoop()
    try:
        with seeded_secrets(seed):
            return loop.run_until_complete(Schedule(seed, node_factory).run())
    finally:
        loop.close()
        for left in directory.glob(f"{seed}.db*"):
            left.unlink()


class Schedule:
    def __init__(self, seed: int, node_factory: NodeFactory) -> None:
        self._seed = seed
        self._node_factory = node_factory
        self._chance = chance = Chance(seed)
        unreliable = chance.choice((0.0, 0.02, 0.08))
        self._odds = FaultOdds(
            refused=unreliable,
            lost=chance.choice((0.0, 0.02, 0.08)),
            disk=chance.choice((0.0, 0.05, 0.2)),
            deaf=chance.choice((0.0, 0.3, 1.0)),
            longest=chance.choice((0.02, 0.2, 1.0)),
        )
        self._jumps = chance.random() < 0.25
        self._families: list[Family] = []
        self._sessions: list[Session] = []

    async def run(self) -> Outcome:
        cluster = SimulatedCluster(self._node_factory, self._chance, self._odds)
        problems: list[str] = []
        await cluster.begin()
        try:
            async with asyncio.timeout(LONGEST):
                await asyncio.gather(*self._all_actors(cluster))
        except TimeoutError:
            problems.append("someone was never answered")
        await cluster.end()
        problems += await self._find_problems(cluster.history)
        return Outcome(seed=self._seed, problems=[*problems, *cluster.history.bugs], history=cluster.history)

    def _all_actors(self, cluster: SimulatedCluster) -> list[Coroutine[object, object, None]]:
        chance, initial_state = self._chance, self._node_factory.initial_state
        self._families = [a_family(chance.choice(BLOCKED), is_peaceful=False) for _ in range(2)]
        self._families.append(a_family(PEACEFUL, is_peaceful=not self._jumps))
        self._sessions = [a_session(initial_state.people[chance.choice(PEOPLE[:3])]) for _ in range(2)]
        them = [TokenClient(cluster, initial_state, family).run() for family in self._families]
        them += [Player(cluster, session).run() for session in self._sessions]
        them += [Administrators(cluster).run(), Browser(cluster, initial_state.people[PEACEFUL]).run()]
        them += [self._block(cluster, user_id) for user_id in BLOCKED if chance.random() < 0.3]
        them += [self._kill(cluster) for _ in range(chance.randint(0, 2))]
        return them + ([self._jump(cluster)] if self._jumps else [])

    async def _block(self, cluster: SimulatedCluster, user_id: str) -> None:
        await cluster.pause(20)
        await cluster.insist("block", user_id, block_user(user_id))

    async def _kill(self, cluster: SimulatedCluster) -> None:
        await cluster.pause(15)
        name = self._chance.choice(NODES)
        await cluster.kill(name)
        await cluster.pause(3)
        if name not in cluster.serving:
            await cluster.start(name)

    async def _jump(self, cluster: SimulatedCluster) -> None:
        for _ in range(2):
            await cluster.pause(15)
            cluster.jump(self._chance.choice(NODES), self._chance.choice(JUMPS))

    # -- the end ---------------------------------------------------------------------------------------

    async def _find_problems(self, history: History) -> list[str]:
        """Check the final state with a node on a working disk."""
        node = await self._node_factory.open("end", self._chance, FaultOdds(longest=0.0))
        try:
            return [
                *families.codes_are_taken_once(history),
                *games.answers_are_delivered_once(history),
                *permissions.no_limit_is_exceeded(history),
                *signing_in.sessions_end_when_they_do(history),
                *await self._permissions(node, history),
                *await self._deliveries(node, history),
                *await self._refresh_tokens(node, history),
                *await self._records(node, history),
            ]
        finally:
            node.kill()

    async def _permissions(self, node: Node, history: History) -> list[str]:
        storage = node.services.storage
        keys = [key.key_id for key in await storage.application_keys.access_keys(SHOP)]
        model = (await storage.permissions.application_models([SHOP]))[SHOP]
        holders = [
            user_id
            for user_id in permissions.SEATED
            if any(
                role.endswith(permissions.LIMITED)
                for role in (await node.held.holdings_by_application(user_id, [SHOP]))[SHOP].roles
            )
        ]
        return [
            *permissions.keys_are_as_acknowledged(history, keys),
            *permissions.assignments_are_as_acknowledged(history, holders),
            *permissions.saves_are_one_version_each(history, model.schema.version, list(model.roles)),
        ]

    async def _deliveries(self, node: Node, history: History) -> list[str]:
        problems = []
        for session in self._sessions:
            there = await node.services.storage.game_sessions.find_session(session.gsid, node.clock.now())
            answers = [await self._poll(node, session) for _ in range(2)]
            before = sum(op.result is Result.OK for op in history.of("poll", key=session.gsid))
            if before + answers.count(OK) > 1:
                problems.append(f"I4: the answer of {session.gsid} was delivered once more: {answers}")
            if there is not None and not self._jumps and is_due(history, session) and answers[0] != OK:
                problems.append(f"I4: the answer of {session.gsid} was never delivered: {answers}")
        return problems

    async def _poll(self, node: Node, session: Session) -> str:
        connection = Connection()
        asyncio.get_running_loop().call_later(1.0, connection.cut)  # an answer that exists is returned immediately
        try:
            return (await node.polls.poll(session.gsid, GAME, connection, AuditOrigin(actor="end"))).status
        except Exception as error:  # noqa: BLE001 - a refusal or no one there
            return type(error).__name__

    async def _refresh_tokens(self, node: Node, history: History) -> list[str]:
        """Try every refresh token ever issued, newest first, after the grace period."""
        node.clock.wrong_by += GRACE + 1
        problems = []
        for family in self._families:
            good = [generation_of(token) for token in family.newest_first() if await self._is_good(node, token)]
            problems += families.what_ended_stays_ended(history, family)
            problems += families.no_one_is_refused_for_nothing(history, family)
            problems += families.one_refresh_token_is_good(history, family, good)
        return problems

    async def _is_good(self, node: Node, token: str) -> bool:
        try:
            await refresh_with(token, self._node_factory.initial_state)(node, AuditOrigin(actor="end"))
        except GatehouseError:
            return False
        return True

    async def _records(self, node: Node, history: History) -> list[str]:
        """I8: one record per acknowledged change, none per refused one, and the chain verifies."""
        await node.services.audit.sealer.seal_all()
        verdict = await node.services.audit.make_verifier().verify()
        problems = [f"I8: {problem}" for problem in verdict.problems]
        records = await node.services.storage.audit.records_from(1, MOST)
        count_by_request = Counter(record.request_id for record in records)
        problems += [
            f"I8: {count_by_request[op.request_id]} records of {op}"
            for op in history.of(*ONE_RECORD)
            if count_by_request[op.request_id] not in allowed_record_counts(op)
        ]
        for family in self._families:
            problems += families.revocations_are_recorded(history, family, revocations(records, family))
        return problems


def allowed_record_counts(op: Op) -> tuple[int, ...]:
    return {Result.OK: (1,), Result.FAIL: (0,), Result.INFO: (0, 1)}[op.result]


def revocations(records: Sequence[AuditRecord], family: Family) -> int:
    return sum(
        record.event == AuditEvent.GRANT_REVOKED and record.details.get("grant_id") == family.grant_id
        for record in records
    )
