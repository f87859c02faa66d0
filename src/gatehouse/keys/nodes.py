"""The running nodes, and the master keys in use."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from gatehouse.kernel.errors import Conflict

REPORT_EVERY: Final = 10  # seconds between two reports of a node
LIVE_SECONDS: Final = 30  # a node whose last report is older does not run any more


class Node(Struct, frozen=True, kw_only=True):
    node_id: str  # of one process, until it ends
    name: str  # for people: host and process
    master_keys: str  # the ids of the keys it holds, the one it seals with first
    version: str
    seen_at: int = 0  # Unix time of its last report, by the clock of the database

    def holds(self, key_id: str) -> bool:
        return key_id in self.master_keys.split()

    def seals_with(self, key_id: str) -> bool:
        return self.master_keys.split()[0] == key_id


class NodesWithoutKey(Conflict):
    """Running nodes do not hold the new master key: nothing was changed."""

    public = "Running nodes do not have this master key."

    def __init__(self, key_id: str, nodes: Sequence[Node]) -> None:
        super().__init__(
            f"{names_of(nodes)} runs without master key {key_id} and would stop serving: restart it with this key as "
            "security.master_key and the old one in security.previous_master_keys. A node that was killed counts as "
            f"running for {LIVE_SECONDS} seconds"
        )
        self.nodes = nodes


def names_of(nodes: Sequence[Node]) -> str:
    return ", ".join(node.name for node in nodes)
