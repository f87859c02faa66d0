"""Stores the running nodes and the master keys in use (keys/nodes.py)."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, bindparam, delete, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

from gatehouse.audit.model import AuditRecord
from gatehouse.keys.nodes import LIVE_SECONDS, Node, NodesWithoutKey
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.installation import MASTER_KEYS, read_value, set_value
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.installation import nodes

DEAD_SECONDS: Final = 600  # after which the row of a node is deleted


class database_time(GenericFunction[int]):  # noqa: N801 - the name of the function
    """Unix time by the clock of the database: the clocks of nodes may differ."""

    type = BigInteger()
    inherit_cache = True


@compiles(database_time, "postgresql")
def _on_postgres(_element: database_time, _compiler: SQLCompiler, **_: Any) -> str:  # noqa: ANN401
    return "CAST(extract(epoch FROM clock_timestamp()) AS bigint)"


@compiles(database_time, "sqlite")
def _on_sqlite(_element: database_time, _compiler: SQLCompiler, **_: Any) -> str:  # noqa: ANN401
    return "unixepoch()"


_NEW_NODE = insert(nodes).values(
    node_id=bindparam("node_id"),
    name=bindparam("name"),
    master_keys=bindparam("master_keys"),
    version=bindparam("version"),
    seen_at=database_time(),
)
REPORT_NODE = Statement(
    lambda: _NEW_NODE.on_conflict_do_update(
        index_elements=["node_id"],
        set_={"master_keys": _NEW_NODE.excluded.master_keys, "seen_at": _NEW_NODE.excluded.seen_at},
    )
)
REMOVE_NODE = Statement(lambda: delete(nodes).where(nodes.c.node_id == bindparam("of")))
# A time in the future is one of another clock: of a copied database, or from before the clock was set back.
LIVE_NODES = Statement(
    lambda: (
        select(nodes)
        .where(nodes.c.seen_at > database_time() - LIVE_SECONDS, nodes.c.seen_at < database_time() + LIVE_SECONDS)
        .order_by(nodes.c.name, nodes.c.node_id)
    )
)
DELETE_DEAD_NODES = Statement(
    lambda: delete(nodes).where(
        or_(nodes.c.seen_at < database_time() - DEAD_SECONDS, nodes.c.seen_at > database_time() + DEAD_SECONDS)
    )
)


def report_node(node: Node) -> Verb[str]:
    """Store the node as seen now, by the clock of the database; return the master keys in use."""
    yield REPORT_NODE(node_id=node.node_id, name=node.name, master_keys=node.master_keys, version=node.version)
    return (yield from master_keys_in_use())


def remove_node(node_id: str) -> Verb[None]:
    yield REMOVE_NODE(of=node_id)


def live_nodes() -> Verb[Sequence[Node]]:
    """Return the nodes that reported within the last LIVE_SECONDS, by the clock of the database."""
    return [Node(**row._asdict()) for row in (yield LIVE_NODES())]


def master_keys_in_use() -> Verb[str]:
    """Return the ids of the master keys in use, the one to seal with first; empty when none are named."""
    return (yield from read_value(MASTER_KEYS)) or ""


def begin_rewrap(key_id: str, entry: AuditRecord, *, force: bool) -> Verb[None]:
    """Name the key as the one to seal with, before those in use until now.

    Raises NodesWithoutKey, and changes nothing, when a live node does not hold it and `force` is not set.
    """
    in_use = (yield from master_keys_in_use()).split()
    without = [node for node in (yield from live_nodes()) if not node.holds(key_id)]
    if without and not force:
        raise NodesWithoutKey(key_id, without)
    if in_use[:1] == [key_id]:
        return
    yield from set_value(MASTER_KEYS, " ".join([key_id, *(used_id for used_id in in_use if used_id != key_id)]))
    yield from add_audit_record(entry)


def finish_rewrap(key_id: str) -> Verb[None]:
    """Name the key as the only one in use."""
    if (yield from master_keys_in_use()) != key_id:
        yield from set_value(MASTER_KEYS, key_id)


def delete_dead_nodes() -> Verb[None]:
    """Part of the sweep."""
    yield DELETE_DEAD_NODES()


class NodeStorage(SqlStore):
    report_node = write(report_node)
    remove_node = write(remove_node)
    live_nodes = read(live_nodes)
    master_keys_in_use = read(master_keys_in_use)
    begin_rewrap = write(begin_rewrap)
    finish_rewrap = write(finish_rewrap)
