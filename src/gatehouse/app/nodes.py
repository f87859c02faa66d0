"""The running nodes, and which master keys each of them holds.

Every node reports itself, so that `gatehouse key rewrap` never encrypts anything with a key that one of them lacks.
"""

from typing import Final

import structlog
from msgspec.structs import replace

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Unavailable
from gatehouse.keys.nodes import LIVE_SECONDS, REPORT_EVERY, Node, names_of
from gatehouse.keys.sealing import MasterKeys
from gatehouse.storage.nodes import NodeStorage

log = structlog.get_logger(__name__)

WAIT_SECONDS: Final = 0.25  # between two looks at what other nodes report


class NodeReporter:
    """Reports this process, and follows the installation's choice of the master key."""

    def __init__(self, *, store: NodeStorage, masters: MasterKeys, clock: Clock, node: Node) -> None:
        """`node` names the process; its keys are those of `masters`."""
        self._store = store
        self._masters = masters
        self._clock = clock
        self._node = node
        self._reported: Node | None = None  # as it was last stored; None after a failure
        self._reported_at = 0.0
        self._alerted: frozenset[str] = frozenset()  # the missing keys that were reported

    async def run_once(self) -> None:
        """Follow the installation's choice of the master key; report this node when that or the time calls for it."""
        self._masters.follow(await self._store.master_keys_in_use())
        if self._masters.missing != self._alerted:
            self._alerted = self._masters.missing
            if self._alerted:
                log.critical("not ready: master key", reason=self._masters.missing_text)
        await self.report_if_due()

    async def report_if_due(self) -> None:
        """Store this node again. Raises what the database raises: then this process cannot commit."""
        node = replace(self._node, master_keys=" ".join(self._masters.key_ids))
        if node == self._reported and self._clock.monotonic() < self._reported_at + REPORT_EVERY:
            return
        self._reported = None
        self._masters.follow(await self._store.report_node(node))
        self._reported, self._reported_at = node, self._clock.monotonic()

    async def other_nodes(self) -> list[Node]:
        """Return the live nodes except this one."""
        return [node for node in await self._store.live_nodes() if node.node_id != self._node.node_id]

    async def leave(self) -> None:
        await self._store.remove_node(self._node.node_id)


async def wait_for_key(store: NodeStorage, key_id: str, clock: Clock) -> None:
    """Return when every live node that holds the key seals with it. Raises Unavailable when one does not in time."""
    give_up_at = clock.monotonic() + LIVE_SECONDS + REPORT_EVERY
    while late := [one for one in await store.live_nodes() if one.holds(key_id) and not one.seals_with(key_id)]:
        if clock.monotonic() > give_up_at:
            raise Unavailable(f"{names_of(late)} still encrypts with the previous master key: run it again")
        await clock.sleep(WAIT_SECONDS)
