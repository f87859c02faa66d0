"""Nodes report themselves; a new master key is named only when every running one holds it (R-24)."""

from collections.abc import AsyncIterator
from functools import partial

import pytest
from sqlalchemy import bindparam, update

from gatehouse.app.nodes import NodeReporter
from gatehouse.keys.model import MasterKeyMissing
from gatehouse.keys.nodes import LIVE_SECONDS, REPORT_EVERY, Node, NodesWithoutKey
from gatehouse.keys.sealing import MasterKeys
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.nodes import DEAD_SECONDS, database_time
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.installation import nodes
from tests.support.builders import a_record
from tests.support.clock import MovableClock

OLD_KEY, NEW_KEY = bytes(range(32)), bytes(range(1, 33))
OLD, NEW = MasterKeys(OLD_KEY).primary_id, MasterKeys(NEW_KEY).primary_id
SHIFT = Statement(
    lambda: (
        update(nodes)
        .where(nodes.c.node_id == bindparam("of"))
        .values(seen_at=database_time() + bindparam("seconds", type_=nodes.c.seen_at.type))
    )
)


@pytest.fixture
async def storage(migrated_url: str) -> AsyncIterator[Storage]:
    async with open_storage(migrated_url, migrate=False) as opened:
        yield opened


def a_node(node_id: str = "n1", keys: str = OLD) -> Node:
    return Node(node_id=node_id, name=f"host-{node_id}", master_keys=keys, version="1.0")


async def report_at(storage: Storage, node_id: str, seconds: int) -> None:
    """Report a node as many seconds from now."""

    def shift() -> Verb[None]:
        yield SHIFT(of=node_id, seconds=seconds)

    await storage.nodes.report_node(a_node(node_id))
    await storage.runner.write(partial(shift))


async def live_ids(storage: Storage) -> list[str]:
    return [node.node_id for node in await storage.nodes.live_nodes()]


async def test_a_node_is_live_until_thirty_seconds_after_its_last_report(storage: Storage) -> None:
    await report_at(storage, "fresh", 0)
    await report_at(storage, "late", 3 - LIVE_SECONDS)
    await report_at(storage, "killed", -LIVE_SECONDS)
    assert await live_ids(storage) == ["fresh", "late"]
    await storage.nodes.report_node(a_node("killed"))
    assert await live_ids(storage) == ["fresh", "killed", "late"]
    await storage.nodes.remove_node("late")
    assert await live_ids(storage) == ["fresh", "killed"]


async def test_a_report_from_the_future_belongs_to_another_clock_and_is_not_live(storage: Storage) -> None:
    await report_at(storage, "copied", LIVE_SECONDS + 5)
    assert await live_ids(storage) == []


async def test_the_sweep_deletes_dead_nodes(storage: Storage) -> None:
    for node_id, seconds in {
        "n1": 0,
        "n2": -DEAD_SECONDS - 5,
        "n3": DEAD_SECONDS + 5,
        "n4": 60 - DEAD_SECONDS,
    }.items():
        await report_at(storage, node_id, seconds)
    await storage.sweep(1_800_000_000)
    for node_id in ("n2", "n3", "n4"):  # a row that was deleted cannot be moved to now
        await move_to_now(storage, node_id)
    assert await live_ids(storage) == ["n1", "n4"]


async def move_to_now(storage: Storage, node_id: str) -> None:
    def shift() -> Verb[None]:
        yield SHIFT(of=node_id, seconds=0)

    await storage.runner.write(partial(shift))


async def test_mk_02_a_rewrap_is_refused_while_a_live_node_lacks_the_key(storage: Storage) -> None:
    await storage.nodes.finish_rewrap(OLD)
    await storage.nodes.report_node(a_node("n1", f"{OLD} {NEW}"))
    await storage.nodes.report_node(a_node("n2", OLD))
    with pytest.raises(NodesWithoutKey, match="host-n2 runs without"):
        await storage.nodes.begin_rewrap(NEW, a_record(), force=False)
    assert await storage.nodes.master_keys_in_use() == OLD
    await storage.nodes.begin_rewrap(NEW, a_record(), force=True)
    assert await storage.nodes.master_keys_in_use() == f"{NEW} {OLD}"
    await storage.nodes.report_node(a_node("n2", f"{OLD} {NEW}"))
    await storage.nodes.begin_rewrap(NEW, a_record(), force=False)  # again, after it was interrupted
    assert await storage.nodes.master_keys_in_use() == f"{NEW} {OLD}"
    await storage.nodes.finish_rewrap(NEW)
    assert await storage.nodes.master_keys_in_use() == NEW


async def test_a_dead_node_does_not_hold_up_a_rewrap(storage: Storage) -> None:
    await storage.nodes.finish_rewrap(OLD)
    await report_at(storage, "n1", -LIVE_SECONDS)
    await storage.nodes.begin_rewrap(NEW, a_record(), force=False)
    assert await storage.nodes.master_keys_in_use() == f"{NEW} {OLD}"


async def test_a_node_seals_with_the_previous_key_until_the_rewrap(storage: Storage) -> None:
    await storage.nodes.finish_rewrap(OLD)
    clock, masters = MovableClock(), MasterKeys(NEW_KEY, [OLD_KEY])
    reporter = NodeReporter(store=storage.nodes, masters=masters, clock=clock, node=a_node())
    await reporter.run_once()
    assert MasterKeys(OLD_KEY).open(masters.seal(b"secret", purpose="p"), purpose="p") == b"secret"
    assert [node.master_keys for node in await storage.nodes.live_nodes()] == [f"{OLD} {NEW}"]
    await storage.nodes.begin_rewrap(NEW, a_record(), force=False)
    await reporter.run_once()  # at once, though the next report is not due
    assert MasterKeys(NEW_KEY).open(masters.seal(b"secret", purpose="p"), purpose="p") == b"secret"
    assert [node.master_keys for node in await storage.nodes.live_nodes()] == [f"{NEW} {OLD}"]
    await reporter.leave()
    assert await storage.nodes.live_nodes() == []


async def test_mk_01_a_node_without_the_key_in_use_seals_and_opens_nothing(storage: Storage) -> None:
    await storage.nodes.finish_rewrap(OLD)
    masters = MasterKeys(OLD_KEY)
    reporter = NodeReporter(store=storage.nodes, masters=masters, clock=MovableClock(), node=a_node())
    await reporter.run_once()
    await storage.nodes.begin_rewrap(NEW, a_record(), force=True)
    await reporter.run_once()
    with pytest.raises(MasterKeyMissing):
        masters.seal(b"secret", purpose="p")
    with pytest.raises(MasterKeyMissing):  # and not None, which would refuse a right password or code
        masters.try_open(MasterKeys(NEW_KEY).seal(b"secret", purpose="p"), purpose="p")


async def test_a_report_is_repeated_every_ten_seconds(storage: Storage) -> None:
    clock = MovableClock()
    reporter = NodeReporter(store=storage.nodes, masters=MasterKeys(OLD_KEY), clock=clock, node=a_node())
    await reporter.run_once()
    await storage.nodes.remove_node("n1")
    await clock.advance(REPORT_EVERY - 1)
    await reporter.run_once()
    assert await live_ids(storage) == []
    await clock.advance(1)
    await reporter.run_once()
    assert await live_ids(storage) == ["n1"]
