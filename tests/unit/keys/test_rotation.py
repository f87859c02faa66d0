import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.kernel.errors import Misconfigured
from gatehouse.keys.key_objects import load_public
from gatehouse.keys.keyring import Keyring
from gatehouse.keys.model import (
    REFRESH_KEYS,
    Algorithm,
    KeyLine,
    KeyPurpose,
    KeysChanged,
    KeyState,
    MacAlgorithm,
    RotationPending,
    SigningKey,
    WrongMasterKey,
    key_state,
)
from gatehouse.keys.rotation import (
    KEY_LINES,
    KeyRotation,
    RotationMode,
    RotationPolicy,
    due_for_rotation,
    lines_without_keys,
    make_key,
)
from gatehouse.keys.sealing import MasterKeys, sealing_key_id
from tests.support.builders import RECORDER
from tests.support.clock import MovableClock
from tests.support.keys import MASTER, NOW, OTHER_MASTER, KeysInMemory, a_key, a_keyring, first_keys, master_keys

LINE = KeyLine(KeyPurpose.TOKENS, Algorithm.ES256)
AUDIT = KeyLine(KeyPurpose.AUDIT, Algorithm.EDDSA)
QUICK = (LINE, REFRESH_KEYS, AUDIT)  # the lines whose keys are quick to generate
POLICY = RotationPolicy(interval=1_000, publish_lead=100, max_token_lifetime=5_000, grace=60, lines=QUICK)


def rotation(
    store: KeysInMemory,
    clock: MovableClock,
    *,
    keys: MasterKeys | None = None,
    policy: RotationPolicy = POLICY,
) -> KeyRotation:
    return KeyRotation(store=store, masters=keys or master_keys(), recorder=RECORDER, clock=clock, policy=policy)


def states(store: KeysInMemory, now: int, line: KeyLine = LINE) -> list[KeyState]:
    return [key_state(key, now) for key in store.stored.keys if key.line == line]


async def test_first_keys_are_made_once_for_every_line_and_sign_at_once() -> None:
    store, clock = KeysInMemory(), MovableClock()
    service = rotation(store, clock, policy=RotationPolicy())
    keys = await service.ensure_first_keys(origin=AuditOrigin(actor="start"))
    assert {key.line for key in keys} == set(KEY_LINES)
    assert {key_state(key, NOW) for key in keys} == {KeyState.SIGNING}
    assert await service.ensure_first_keys(origin=AuditOrigin(actor="start")) == ()
    assert store.saves == [(AuditEvent.KEY_MADE, "start")]


async def test_a_first_key_signs_also_where_the_clock_is_behind() -> None:
    store, clock = KeysInMemory(), MovableClock()
    await rotation(store, clock).ensure_first_keys(origin=AuditOrigin(actor="start"))
    assert states(store, NOW - 3_600) == [KeyState.SIGNING]


async def test_two_nodes_starting_together_make_one_set_of_keys() -> None:
    store, clock = KeysInMemory(), MovableClock()
    nodes = [rotation(store, clock), rotation(store, clock)]
    created = await asyncio.gather(*(node.ensure_first_keys(origin=AuditOrigin(actor="start")) for node in nodes))
    assert sorted(len(keys) for keys in created) == [0, len(QUICK)]
    assert len(store.stored.keys) == len(QUICK)


async def test_only_missing_keys_are_created() -> None:
    store, clock = KeysInMemory([a_key()]), MovableClock()
    keys = await rotation(store, clock).ensure_first_keys(origin=AuditOrigin(actor="start"))
    assert {key.line for key in keys} == set(QUICK) - {LINE}


async def test_a_line_whose_last_key_no_longer_signs_gets_a_new_one() -> None:
    old = replace(a_key(), signs_until=NOW)
    store, clock = KeysInMemory([old]), MovableClock()
    await rotation(store, clock).ensure_first_keys(origin=AuditOrigin(actor="start"))
    assert states(store, NOW) == [KeyState.VERIFYING, KeyState.SIGNING]


@pytest.mark.parametrize("bits", [2048, 3072])
def test_rsa_keys_have_the_size_of_the_policy(bits: int) -> None:
    line = KeyLine(KeyPurpose.TOKENS, Algorithm.RS256)
    key = make_key(line, master_keys(), now=NOW, signs_from=NOW, rsa_bits=bits)
    assert getattr(load_public(key.public), "key_size", None) == bits


@pytest.mark.parametrize("bits", [1024, 2047, 4096])
def test_other_rsa_sizes_are_refused(bits: int) -> None:
    with pytest.raises(Misconfigured):
        RotationPolicy(rsa_bits=bits)


async def test_ui_13_a_new_key_is_published_before_it_signs_and_the_old_one_after_it_signed() -> None:
    old = a_key()
    store, clock = KeysInMemory([old]), MovableClock()
    new = await rotation(store, clock).rotate(LINE, origin=AuditOrigin(actor="admin"))
    keys = {key.kid: key for key in store.stored.keys}

    def states_at(now: int) -> tuple[KeyState, KeyState]:
        return key_state(keys[old.kid], now), key_state(keys[new.kid], now)

    assert states_at(NOW) == (KeyState.SIGNING, KeyState.NEXT)
    assert states_at(NOW + 99) == (KeyState.SIGNING, KeyState.NEXT)
    assert states_at(NOW + 100) == (KeyState.VERIFYING, KeyState.SIGNING)
    assert states_at(NOW + 100 + 5_059) == (KeyState.VERIFYING, KeyState.SIGNING)
    assert states_at(NOW + 100 + 5_060) == (KeyState.RETIRED, KeyState.SIGNING)
    assert store.saves == [(AuditEvent.KEY_ROTATED, "admin")]


async def test_a_second_rotation_waits_for_the_first() -> None:
    store, clock = KeysInMemory([a_key()]), MovableClock()
    service = rotation(store, clock)
    await service.rotate(LINE, origin=AuditOrigin(actor="admin"))
    with pytest.raises(RotationPending):
        await service.rotate(LINE, origin=AuditOrigin(actor="admin"))
    assert len(store.stored.keys) == 2
    await clock.advance(100)
    await service.rotate(LINE, origin=AuditOrigin(actor="admin"))
    assert len(store.stored.keys) == 3


async def test_two_administrators_rotating_together_make_one_new_key() -> None:
    store, clock = KeysInMemory([a_key()]), MovableClock()
    nodes = [rotation(store, clock), rotation(store, clock)]
    answers = await asyncio.gather(
        *(node.rotate(LINE, origin=AuditOrigin(actor="admin")) for node in nodes), return_exceptions=True
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["RotationPending", "SigningKey"]
    assert len(store.stored.keys) == 2


async def test_immediate_rotation_signs_with_the_new_key_and_verifies_with_the_old() -> None:
    store, clock = KeysInMemory([a_key()]), MovableClock()
    await rotation(store, clock).rotate(LINE, origin=AuditOrigin(actor="admin"), mode=RotationMode.AT_ONCE)
    assert states(store, NOW) == [KeyState.VERIFYING, KeyState.SIGNING]


async def test_immediate_rotation_uses_the_published_next_key() -> None:
    store, clock = KeysInMemory([a_key()]), MovableClock()
    service = rotation(store, clock)
    waiting = await service.rotate(LINE, origin=AuditOrigin(actor="admin"))
    successor = await service.rotate(LINE, origin=AuditOrigin(actor="admin"), mode=RotationMode.AT_ONCE)
    assert successor.kid == waiting.kid
    assert states(store, NOW) == [KeyState.VERIFYING, KeyState.SIGNING]


async def test_distrust_retires_every_older_key_of_the_line_and_of_no_other() -> None:
    audit = a_key(KeyPurpose.AUDIT, Algorithm.EDDSA)
    store, clock = KeysInMemory([a_key(), audit]), MovableClock()
    service = rotation(store, clock)
    await service.rotate(LINE, origin=AuditOrigin(actor="admin"), mode=RotationMode.AT_ONCE)
    await service.rotate(LINE, origin=AuditOrigin(actor="admin"))
    await service.rotate(LINE, origin=AuditOrigin(actor="admin"), mode=RotationMode.DISTRUST)
    retired = [KeyState.RETIRED] * 3
    assert states(store, NOW) == [*retired, KeyState.SIGNING]
    assert states(store, NOW - 60) == [*retired, KeyState.SIGNING], "a node with a late clock must agree"
    assert states(store, NOW, AUDIT) == [KeyState.SIGNING]
    assert store.saves[-1] == (AuditEvent.KEY_DISTRUSTED, "admin")


async def test_audit_keys_verify_for_ever() -> None:
    store, clock = KeysInMemory([a_key(KeyPurpose.AUDIT, Algorithm.EDDSA)]), MovableClock()
    await rotation(store, clock).rotate(AUDIT, origin=AuditOrigin(actor="admin"))
    assert states(store, NOW + 10**9, AUDIT) == [KeyState.VERIFYING, KeyState.SIGNING]


def test_a_line_is_due_once_its_key_has_signed_long_enough() -> None:
    key = replace(a_key(), created_at=NOW, signs_from=NOW + 100)
    assert due_for_rotation([key], NOW + 1_099, 1_000) == []
    assert due_for_rotation([key], NOW + 1_100, 1_000) == [LINE]


async def test_due_keys_are_rotated_once_however_many_nodes_notice() -> None:
    store, clock = KeysInMemory([a_key()]), MovableClock()
    nodes = [rotation(store, clock), rotation(store, clock)]
    assert await nodes[0].rotate_due(origin=AuditOrigin(actor="schedule")) == ()
    await clock.advance(1_000)
    created = await asyncio.gather(*(node.rotate_due(origin=AuditOrigin(actor="schedule")) for node in nodes))
    assert sorted(len(keys) for keys in created) == [0, 1]
    assert states(store, clock.now()) == [KeyState.SIGNING, KeyState.NEXT]
    assert await nodes[0].rotate_due(origin=AuditOrigin(actor="schedule")) == ()


async def test_a_key_of_another_algorithm_than_its_line_is_followed_at_the_next_check() -> None:
    """Refresh keys were EdDSA before they were HS256."""
    old = a_key(KeyPurpose.REFRESH, Algorithm.EDDSA)
    store, clock = KeysInMemory([old]), MovableClock()
    service = rotation(store, clock)
    assert lines_without_keys(store.stored.keys, [REFRESH_KEYS], NOW) == []
    (new,) = await service.rotate_due(origin=AuditOrigin(actor="schedule"))
    assert (new.alg, new.public, new.line) == (MacAlgorithm.HS256, b"", old.line)
    assert await service.rotate_due(origin=AuditOrigin(actor="schedule")) == ()
    keyring = await a_keyring(store, clock)
    assert keyring.signing_key(REFRESH_KEYS.purpose, REFRESH_KEYS.alg, clock.now()).record.kid == old.kid
    await clock.advance(POLICY.publish_lead)
    assert keyring.signing_key(REFRESH_KEYS.purpose, REFRESH_KEYS.alg, clock.now()).record.kid == new.kid
    assert states(store, clock.now(), REFRESH_KEYS) == [KeyState.VERIFYING, KeyState.SIGNING]
    assert await service.rotate_due(origin=AuditOrigin(actor="schedule")) == ()


async def test_a_waiting_key_of_another_algorithm_signs_first() -> None:
    keys = [
        replace(a_key(KeyPurpose.REFRESH, Algorithm.EDDSA), signs_until=NOW + 60),
        a_key(KeyPurpose.REFRESH, Algorithm.EDDSA, signs_from=NOW + 60),
    ]
    assert due_for_rotation(keys, NOW, 1_000) == []
    assert due_for_rotation(keys, NOW + 60, 1_000) == [REFRESH_KEYS]


async def test_distrust_of_refresh_keys_ends_those_of_either_algorithm() -> None:
    store, clock = KeysInMemory([a_key(KeyPurpose.REFRESH, Algorithm.EDDSA), a_key()]), MovableClock()
    service = rotation(store, clock)
    await service.rotate(REFRESH_KEYS, origin=AuditOrigin(actor="admin"), mode=RotationMode.AT_ONCE)
    await service.rotate(REFRESH_KEYS, origin=AuditOrigin(actor="admin"), mode=RotationMode.DISTRUST)
    assert states(store, NOW, REFRESH_KEYS) == [KeyState.RETIRED, KeyState.RETIRED, KeyState.SIGNING]
    assert states(store, NOW) == [KeyState.SIGNING]


async def test_exactly_one_key_signs_over_many_rotations() -> None:
    store, clock = KeysInMemory(), MovableClock()
    service = rotation(store, clock)
    await service.ensure_first_keys(origin=AuditOrigin(actor="start"))
    for _ in range(40):
        assert states(store, clock.now()).count(KeyState.SIGNING) == 1
        assert states(store, clock.now()).count(KeyState.NEXT) <= 1
        await clock.advance(333)
        await service.rotate_due(origin=AuditOrigin(actor="schedule"))
    assert KeyState.RETIRED in states(store, clock.now())


async def test_every_private_key_is_rewrapped_once_to_the_new_master_key() -> None:
    store, clock = KeysInMemory(first_keys()), MovableClock()
    new = MasterKeys(OTHER_MASTER, [MASTER])
    service = rotation(store, clock, keys=new)
    assert await service.rewrap_all(origin=AuditOrigin(actor="admin")) == len(KEY_LINES)
    assert {sealing_key_id(key.sealed_private) for key in store.stored.keys} == {new.primary_id}
    assert await service.rewrap_all(origin=AuditOrigin(actor="admin")) == 0
    await Keyring(store=store, masters=MasterKeys(OTHER_MASTER), clock=clock).reload()
    assert store.saves == [(AuditEvent.REWRAPPED, "admin")]


async def test_a_damaged_key_does_not_keep_the_others_from_moving() -> None:
    whole, damaged = a_key(), a_key()
    damaged = replace(damaged, sealed_private=damaged.sealed_private[:-1])
    store = KeysInMemory([whole, damaged])
    service = rotation(store, MovableClock(), keys=MasterKeys(OTHER_MASTER, [MASTER]))
    assert await service.rewrap_all(origin=AuditOrigin(actor="admin")) == 1
    assert damaged in store.stored.keys


async def test_wrong_master_key_changes_no_keys() -> None:
    store, clock = KeysInMemory([a_key()]), MovableClock()
    before = store.stored
    service = rotation(store, clock, keys=MasterKeys(OTHER_MASTER))
    for attempt in (
        service.ensure_first_keys(origin=AuditOrigin(actor="start")),
        service.rotate(LINE, origin=AuditOrigin(actor="admin")),
        service.rotate_due(origin=AuditOrigin(actor="schedule")),
        service.rewrap_all(origin=AuditOrigin(actor="admin")),
    ):
        with pytest.raises(WrongMasterKey):
            await attempt
    assert store.stored == before


class ConflictingKeys(KeysInMemory):
    """A second node always saves first."""

    async def save_keys(self, keys: Sequence[SigningKey], *, seen: int, entry: AuditRecord) -> None:
        del keys, seen, entry
        raise KeysChanged


async def test_a_node_that_is_never_quick_enough_gives_up() -> None:
    store = ConflictingKeys([a_key()])
    with pytest.raises(KeysChanged):
        await rotation(store, MovableClock()).rotate(LINE, origin=AuditOrigin(actor="admin"))
    assert store.loads == 3
