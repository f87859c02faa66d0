"""The nodes of one simulated run, which start and are killed, and requests to them."""

import asyncio
from collections.abc import Awaitable, Callable

from gatehouse.audit.model import AuditOrigin
from gatehouse.gamesessions.poll import ClientGone
from gatehouse.kernel.errors import GatehouseError, Unavailable
from tests.faults.simulation.history import History, Op, Result
from tests.faults.simulation.node import Node, NodeFactory
from tests.faults.simulation.store import FaultOdds
from tests.faults.simulation.virtual import Chance, pass_time

NodeCall = Callable[[Node, AuditOrigin], Awaitable[object]]
ADDRESS = "192.0.2.7"
NODES = ("a", "b")


class SimulatedCluster:
    def __init__(self, node_factory: NodeFactory, chance: Chance, odds: FaultOdds) -> None:
        self.chance = chance
        self.history = History()
        self._node_factory = node_factory
        self._odds = odds
        self._nodes: dict[str, Node] = {}
        self._asking: dict[str, dict[asyncio.Future[object], None]] = {name: {} for name in NODES}  # ordered
        self._back = asyncio.Condition()

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    @property
    def serving(self) -> list[str]:
        return sorted(self._nodes)

    async def begin(self) -> None:
        for name in NODES:
            await self.start(name)

    async def start(self, name: str) -> None:
        self._nodes[name] = await self._node_factory.open(name, self.chance, self._odds)
        async with self._back:
            self._back.notify_all()

    async def pause(self, most: float) -> None:
        await pass_time(self.chance.random() * most)

    async def kill(self, name: str) -> None:
        """Kill the node; its pending requests get no response."""
        node = self._nodes.pop(name, None)
        if node is None:
            return
        self.note(f"node {name} was killed")
        node.kill()
        for task in list(self._asking[name]):
            task.cancel()
        await asyncio.gather(*self._asking[name], return_exceptions=True)
        if node.services.games.write_behind._flush_task is not None:
            node.services.games.write_behind._flush_task.cancel()
            await asyncio.gather(node.services.games.write_behind._flush_task, return_exceptions=True)

    def jump(self, name: str, seconds: int) -> None:
        if name in self._nodes:
            self.note(f"the clock of {name} jumped by {seconds} seconds")
            self._nodes[name].clock.wrong_by += seconds

    def note(self, what: str) -> None:
        self.history.events.append(f"{self.now:9.3f} {what}")

    async def end(self) -> None:
        for name in NODES:
            await self.kill(name)

    async def ask(self, kind: str, key: str, question: NodeCall, *, value: str = "") -> tuple[Op, object]:
        """Send a request to a random node and record the result."""
        node = await self._any_node()
        op = Op(number=len(self.history.ops), kind=kind, key=key, value=value, node=node.name, began=self.now)
        self.history.ops.append(op)
        origin = AuditOrigin(actor="simulation", address=ADDRESS, request_id=op.request_id)
        answer = await self._await_answer(op, node, asyncio.ensure_future(question(node, origin)))
        op.ended = self.now
        return op, answer

    async def insist(self, kind: str, key: str, question: NodeCall, *, tries: int = 4) -> Op:
        """Repeat a request until its result is known, like a client without a response; return the last try."""
        for _ in range(tries):
            op, _ = await self.ask(kind, key, question)
            if op.result is not Result.INFO:
                break
            await self.pause(1.0)
        return op

    async def _any_node(self) -> Node:
        async with self._back:
            await self._back.wait_for(lambda: self._nodes)
        return self._nodes[self.chance.choice(sorted(self._nodes))]

    async def _await_answer(self, op: Op, node: Node, task: "asyncio.Future[object]") -> object:
        self._asking[node.name][task] = None
        try:
            answer = await task
        except Unavailable as error:
            op.detail = error.detail
        except ClientGone:
            op.detail = "the client was gone"  # it got no response, whatever was stored
        except GatehouseError as error:
            op.result, op.detail = Result.FAIL, f"{type(error).__name__} {error}"
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            op.detail = "the node was killed"
        except Exception as error:  # noqa: BLE001 - the caller would see a 500
            op.detail = f"{type(error).__name__}: {error}"
            self.history.bugs.append(f"{op}")
        else:
            op.result = Result.OK
            return answer
        finally:
            self._asking[node.name].pop(task)
        return None
