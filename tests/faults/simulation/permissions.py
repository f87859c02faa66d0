"""Limits (W3), saves (W4), and cached permissions (W7)."""

import asyncio
from collections.abc import Sequence
from secrets import token_hex
from typing import Final

from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.permissions.commands.access_keys import new_access_key
from gatehouse.permissions.model.facts import ApplicationModel, UserRecord
from gatehouse.permissions.model.limits import MAX_ACCESS_KEYS
from gatehouse.permissions.store import EditResult
from tests.faults.simulation.cluster import NodeCall, SimulatedCluster
from tests.faults.simulation.history import History, Op, Result
from tests.faults.simulation.initial_state import MAX_ASSIGNMENTS, PEOPLE, SHOP
from tests.faults.simulation.node import Node
from tests.support.permission_builders import P, a_role, holdings_with

SEATED: Final = PEOPLE[2:]  # people who are never blocked
LIMITED: Final = "few"
THE_SHOP: Final = str(SHOP)


def make_key() -> NodeCall:
    async def make(node: Node, origin: AuditOrigin) -> object:
        new = new_access_key(SHOP, "ci", masters=node.services.core.masters, now=node.clock.now())
        entry = node.services.core.recorder.record(
            AuditEvent.ACCESS_KEY_MADE, origin, subject=THE_SHOP, details={"key_id": new.key.key_id}
        )
        await node.services.storage.application_keys.add_access_key(new.key, (entry,))
        return new.key.key_id

    return make


def remove_key(key_id: str) -> NodeCall:
    async def remove(node: Node, origin: AuditOrigin) -> object:
        entry = node.services.core.recorder.record(AuditEvent.ACCESS_KEY_REMOVED, origin, subject=THE_SHOP)
        await node.services.storage.application_keys.delete_access_key(SHOP, key_id, (entry,))
        return key_id

    return remove


def count_keys() -> NodeCall:
    async def count(node: Node, _origin: AuditOrigin) -> object:
        return len(await node.services.storage.application_keys.access_keys(SHOP))

    return count


def count_holders() -> NodeCall:
    async def count(node: Node, _origin: AuditOrigin) -> object:
        holders = await node.services.storage.applications.count_role_holders(SHOP, node.clock.now())
        return holders.get(LIMITED, 0)

    return count


def assign_role(user_id: str, *, assigned: bool) -> NodeCall:
    async def edit(node: Node, origin: AuditOrigin) -> object:
        entry = node.services.core.recorder.record(AuditEvent.ROLE_ASSIGNED, origin, subject=user_id)

        def change(state: UserRecord) -> EditResult[UserRecord]:
            return EditResult(replace(state, scopes={P: holdings_with(LIMITED)} if assigned else {}), [entry])

        return (await node.services.storage.user_records.edit_record(SHOP, user_id, change, node.clock.now())).version

    return edit


def check_holding(user_id: str) -> NodeCall:
    async def ask(node: Node, _origin: AuditOrigin) -> object:
        return any(
            role.endswith(LIMITED) for role in (await node.held.holdings_by_application(user_id, [SHOP]))[SHOP].roles
        )

    return ask


def save_role(name: str) -> NodeCall:
    async def save(node: Node, origin: AuditOrigin) -> object:
        entry = node.services.core.recorder.record(AuditEvent.APPLICATION_CHANGED, origin, subject=THE_SHOP)

        def change(state: ApplicationModel) -> EditResult[ApplicationModel]:
            role = a_role(name, SHOP)
            return EditResult(replace(state, roles={**state.roles, role.key: role}), [entry])

        return (await node.services.storage.applications.edit_schema(SHOP, change)).schema.version

    return save


class Administrators:
    """Several administrators who act independently."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    async def run(self) -> None:
        chance = self._cluster.chance
        people = chance.sample(SEATED, 3)
        await asyncio.gather(
            *(self._keys() for _ in range(3)),
            *(self._assign_role(user_id) for user_id in people),
            *(self._save() for _ in range(2)),
            self._watch("keys", count_keys()),
            self._watch("holders", count_holders()),
        )

    async def _keys(self) -> None:
        await self._cluster.pause(4)
        op, key_id = await self._cluster.ask("make-key", THE_SHOP, make_key())
        op.value = str(key_id or "")
        if key_id is not None and self._cluster.chance.random() < 0.5:
            await self._cluster.pause(4)
            await self._cluster.insist("remove-key", str(key_id), remove_key(str(key_id)))

    async def _assign_role(self, user_id: str) -> None:
        for _ in range(self._cluster.chance.randint(1, 3)):
            await self._cluster.pause(4)
            assigned = self._cluster.chance.random() < 0.7
            await self._cluster.ask("seat", user_id, assign_role(user_id, assigned=assigned), value=str(assigned))
            op, answer = await self._cluster.ask("held", user_id, check_holding(user_id))
            op.value = str(answer)

    async def _save(self) -> None:
        for _ in range(self._cluster.chance.randint(1, 2)):
            await self._cluster.pause(4)
            name = f"r{token_hex(4)}"
            op, version = await self._cluster.ask("save", THE_SHOP, save_role(name), value=name)
            op.detail = op.detail or str(version)

    async def _watch(self, what: str, question: NodeCall) -> None:
        for _ in range(4):
            await self._cluster.pause(3)
            op, number = await self._cluster.ask(what, THE_SHOP, question)
            op.value = str(number)


# -- invariants ----------------------------------------------------------------------------------------


def no_limit_is_exceeded(history: History) -> list[str]:
    """I5, each time the limit was read."""
    limits = {"keys": MAX_ACCESS_KEYS, "holders": MAX_ASSIGNMENTS}
    return [
        f"I5: {op}"
        for kind, most in limits.items()
        for op in history.of(kind)
        if op.result is Result.OK and int(op.value) > most
    ]


def keys_are_as_acknowledged(history: History, there: Sequence[str]) -> list[str]:
    """I3, I5, I7."""
    created = {op.value for op in history.of("make-key") if op.result is Result.OK}
    tried = set(history.keys("remove-key"))
    removed = {op.key for op in history.of("remove-key") if op.result is Result.OK}
    problems = [f"I7: key {key} is lost" for key in sorted(created - tried - set(there))]
    problems += [f"I3: key {key} came back" for key in sorted(removed & set(there))]
    return problems + ([f"I5: {len(there)} keys"] if len(there) > MAX_ACCESS_KEYS else [])


def assignments_are_as_acknowledged(history: History, holders: Sequence[str]) -> list[str]:
    """I5, I6: each person has one request at a time, so the last acknowledged result is the current state."""
    problems = [f"I5: {len(holders)} hold a role for {MAX_ASSIGNMENTS}"] if len(holders) > MAX_ASSIGNMENTS else []
    for user_id in history.keys("seat"):
        edits = history.of("seat", key=user_id)
        for look in history.of("held", key=user_id):
            known = acknowledged_state([op for op in edits if op.ended <= look.began])
            if look.result is Result.OK and known is not None and look.value != str(known):
                problems.append(f"I6: {look} after {known}")
        known = acknowledged_state(edits)
        if known is not None and known is not (user_id in holders):
            problems.append(f"I6: {user_id} has a seat: {user_id in holders}, acknowledged: {known}")
    return problems


def acknowledged_state(edits: Sequence[Op]) -> bool | None:
    """The state after the last edits; None if an unacknowledged one may have changed it."""
    for op in reversed(edits):
        if op.result is Result.OK:
            return op.value == str(True)
        if op.result is Result.INFO:
            return None
    return False


def saves_are_one_version_each(history: History, version: int, roles: Sequence[str]) -> list[str]:
    """I6: each save raises the version by one, and none is lost."""
    saves = history.of("save")
    acknowledged = [op for op in saves if op.result is Result.OK]
    numbers = [int(op.detail) for op in acknowledged]
    there = [op for op in saves if op.value in roles]
    problems = [f"I6: two saves were told one version: {numbers}"] if len(set(numbers)) < len(numbers) else []
    problems += [f"I7: {op} is lost" for op in acknowledged if op not in there]
    for earlier in acknowledged:
        for later in acknowledged:
            if earlier.ended < later.began and int(earlier.detail) >= int(later.detail):
                problems.append(f"I6: {later} after {earlier}")
    if version != 1 + len(there):
        problems.append(f"I6: version {version} after {len(there)} saves")
    return problems
