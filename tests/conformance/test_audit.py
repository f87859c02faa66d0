"""Contract tests of audit/model.py and its chain."""

import asyncio
from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace
from sqlalchemy import bindparam, delete, update

from gatehouse.accounts.errors import LoginTaken
from gatehouse.audit import verification as verification_module
from gatehouse.audit.continuous_verification import (
    LEASE_SECONDS,
    VERIFY_AGAIN_SECONDS,
    ContinuousVerifier,
    PositionCodec,
)
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.head import ChainHead, HeadExporter
from gatehouse.audit.model import AuditRecord, HeadSwap, Seal, SealedMeanwhile
from gatehouse.audit.retention import Retention
from gatehouse.audit.verification import ChainVerifier, VerificationResult
from gatehouse.kernel.errors import Conflict
from gatehouse.keys.sealing import MasterKeys
from gatehouse.storage import audit
from gatehouse.storage.audit import AUDIT_VERIFIED, AuditStorage
from gatehouse.storage.database import Storage
from gatehouse.storage.statements import BoundStatement, Statement, Verb
from gatehouse.storage.tables.audit import audit_events
from tests.support.builders import AUDIT_KEY, NOW, ORIGIN, RECORDER, a_record, a_user
from tests.support.clock import MovableClock
from tests.support.sealing import BOX, KEY, sealer

POSITIONS = PositionCodec(MasterKeys(bytes(range(1, 33))))
NOTES = HeadExporter(key=AUDIT_KEY, installation="0123456789abcdef")


@pytest.fixture
async def storage(storage: Storage) -> Storage:
    await storage.audit.swap_head(HeadSwap(before=None, after=BOX.encode(ChainHead(at=NOW))))
    return storage


async def verify(storage: Storage) -> VerificationResult:
    return await verification(storage.audit).verify()


def verification(store: AuditStorage) -> ChainVerifier:
    return ChainVerifier(store=store, mac_key=AUDIT_KEY, key=KEY, head_codec=BOX, head_exporter=NOTES)


async def forget(storage: Storage, at: int) -> int:
    return await Retention(store=storage.audit, key=KEY, head_codec=BOX).delete_before(at)


async def record(storage: Storage, count: int, subject: str = "1000000001") -> None:
    for _ in range(count):
        await storage.accounts.add_record(a_record(subject=subject, login="anna@studio.example"))


async def tamper(storage: Storage, statement: Callable[..., BoundStatement], **parameters: object) -> None:
    def verb() -> Verb[None]:
        yield statement(**parameters)

    await storage.runner.write(verb)


async def test_a_change_and_its_record_commit_together(storage: Storage) -> None:
    entry = a_record()
    await storage.accounts.create_user(a_user(login="anna@studio.example"), entry)
    assert await storage.audit.find_record(entry.record_id) == entry


async def test_a_refused_change_leaves_no_record(storage: Storage) -> None:
    await storage.accounts.create_user(a_user(login="anna@studio.example"), a_record())
    refusal = a_record()
    with pytest.raises(LoginTaken):
        await storage.accounts.create_user(a_user(login="anna@studio.example"), refusal)
    assert await storage.audit.find_record(refusal.record_id) is None


async def test_sealed_records_form_a_chain_that_verifies(storage: Storage) -> None:
    await record(storage, 3)
    await sealer(storage).seal_all()
    await record(storage, 2)
    await sealer(storage).seal_all()
    await record(storage, 1)
    verdict = await verify(storage)
    assert verdict.problems == ()
    assert (verdict.records, verdict.seals, verdict.unsealed) == (5, 2, 1)


async def test_sealers_that_race_leave_one_chain(storage: Storage) -> None:
    await record(storage, 40)
    sealed = await asyncio.gather(*(sealer(storage).seal_all() for _ in range(6)))
    assert sum(sealed) == 40
    assert (await verify(storage)).problems == ()


async def test_appending_what_was_sealed_meanwhile_changes_nothing(storage: Storage) -> None:
    await record(storage, 2)
    records = await storage.audit.unsealed_records(10)
    await sealer(storage).seal_all()
    head = (await storage.audit.chain_end()).head
    before = HeadSwap(before=head, after=BOX.encode(ChainHead(at=NOW)))
    late = Seal(place=4, at=NOW, link=b"x", kid="k1", signature=b"x")
    with pytest.raises((SealedMeanwhile, Conflict)):
        await storage.audit.append_to_chain([record.record_id for record in records], late, before)
    assert (await verify(storage)).problems == ()


async def test_a_changed_record_is_named(storage: Storage) -> None:
    await record(storage, 3)
    await sealer(storage).seal_all()
    victim = (await storage.audit.records_from(2, 1))[0]
    change = Statement(
        lambda: (
            update(audit_events).where(audit_events.c.record_id == bindparam("of")).values(actor=bindparam("actor"))
        )
    )
    await tamper(storage, change, of=victim.record_id, actor="someone else")
    assert f"record 2 ({victim.record_id}) was changed" in (await verify(storage)).problems


async def test_a_changed_personal_part_is_named(storage: Storage) -> None:
    await record(storage, 1)
    await sealer(storage).seal_all()
    victim = (await storage.audit.records_from(1, 1))[0]
    change = Statement(
        lambda: (
            update(audit_events)
            .where(audit_events.c.record_id == bindparam("of"))
            .values(personal=bindparam("personal"))
        )
    )
    await tamper(storage, change, of=victim.record_id, personal={"login": "eve@studio.example"})
    assert (await verify(storage)).problems == (f"record 1 ({victim.record_id}): its personal part was changed",)


async def test_a_removed_record_is_missed(storage: Storage) -> None:
    await record(storage, 3)
    await sealer(storage).seal_all()
    victim = (await storage.audit.records_from(2, 1))[0]
    removed = Statement(lambda: delete(audit_events).where(audit_events.c.record_id == bindparam("of")))
    await tamper(storage, removed, of=victim.record_id)
    problems = (await verify(storage)).problems
    assert problems == ("record 2 is missing",)


async def test_a_cut_off_end_is_missed(storage: Storage) -> None:
    await record(storage, 3)
    await sealer(storage).seal_all()
    removed = Statement(lambda: delete(audit_events).where(audit_events.c.place > bindparam("after")))
    await tamper(storage, removed, after=1)
    assert "records 2 to 3 are missing at the end" in (await verify(storage)).problems


async def test_a_record_changed_before_it_was_sealed_stays_outside_and_is_named(storage: Storage) -> None:
    await record(storage, 2)
    victim = (await storage.audit.unsealed_records(10))[0]
    change = Statement(
        lambda: (
            update(audit_events).where(audit_events.c.record_id == bindparam("of")).values(event=bindparam("event"))
        )
    )
    await tamper(storage, change, of=victim.record_id, event="user.blocked")
    assert await sealer(storage).seal_all() == 1
    assert (await verify(storage)).problems == (f"not sealed yet ({victim.record_id}) was changed",)


async def test_erasing_deletes_the_personal_part_and_the_chain_still_verifies(storage: Storage) -> None:
    await record(storage, 2, subject="1000000001")
    await record(storage, 1, subject="1000000002")
    await sealer(storage).seal_all()
    entry = RECORDER.record(AuditEvent.USER_ERASED, ORIGIN, subject="installation")
    assert await storage.audit.erase_personal("1000000001", entry) == 2
    records = await storage.audit.newest_records(10, "1000000001", "")
    assert [(entry.personal, entry.salt, entry.subject) for entry in records] == [(None, None, "1000000001")] * 2
    assert (await verify(storage)).problems == ()


@pytest.mark.parametrize("at_once", [1, 3, 1_000], ids=["less than a batch", "one or two", "all"])
async def test_retention_forgets_whole_batches_and_the_rest_still_verifies(
    storage: Storage, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "DELETE_BATCH", at_once)
    clock = MovableClock(NOW)
    for number in (1, 2):
        await record(storage, number)
        await sealer(storage, clock).seal_all()
    await clock.advance(100)
    await record(storage, 2)
    await sealer(storage, clock).seal_all()
    assert await forget(storage, NOW + 50) == 3
    verdict = await verify(storage)
    assert verdict.problems == ()
    assert (verdict.records, verdict.first_place) == (2, 4)


async def test_refusals_are_found_by_the_id_their_caller_saw_and_only_the_newest_are_kept(storage: Storage) -> None:
    refusals = [RECORDER.refusal("gsid.violation", ORIGIN, reason=f"r{n}", subject="g") for n in range(7)]
    for refusal in refusals:
        await storage.audit.add_refusal(refusal, max_refusals=5)
    assert [await storage.audit.find_record(refusal.record_id) for refusal in refusals] == [None, None, *refusals[2:]]


async def test_newest_records_come_first_and_can_be_narrowed(storage: Storage) -> None:
    old = replace(a_record(subject="1000000001"), at=NOW - 10)
    new = a_record(AuditEvent.USER_BLOCKED, subject="1000000001")
    for entry in (old, new, a_record(subject="1000000002")):
        await storage.accounts.add_record(entry)
    assert [entry.record_id for entry in await storage.audit.newest_records(10, "1000000001", "")] == [
        new.record_id,
        old.record_id,
    ]
    assert [entry.record_id for entry in await storage.audit.newest_records(10, "", "user.blocked")] == [
        new.record_id
    ]


async def test_records_sealed_during_verification_are_no_problem(storage: Storage) -> None:
    class ConcurrentlySealing(AuditStorage):
        async def records_from(self, place: int, limit: int) -> Sequence[AuditRecord]:
            await record(storage, 1)
            await sealer(storage).seal_all()
            return await super().records_from(place, limit)

    await record(storage, 3)
    await sealer(storage).seal_all()
    busy = ConcurrentlySealing(storage.runner)
    verdict = await verification(busy).verify()
    assert verdict.problems == ()
    assert verdict.records == 3


async def test_verification_holds_no_more_of_a_long_log_than_of_a_short_one(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification_module, "CHUNK_SIZE", 4)

    class Watched(AuditStorage):
        async def records_from(self, place: int, limit: int) -> Sequence[AuditRecord]:
            held.append(len(verifier._links))
            assert limit == 4
            return await super().records_from(place, limit)

    held: list[int] = []
    for _ in range(30):
        await record(storage, 1)
        await sealer(storage).seal_all()
    verifier = verification(Watched(storage.runner))
    verdict = await verifier.verify()
    assert (verdict.problems, verdict.records, verdict.seals) == ((), 30, 30)
    assert max(held) <= 6


def continuous(storage: Storage, clock: MovableClock) -> ContinuousVerifier:
    """That of a process which has just started."""
    return ContinuousVerifier(
        store=storage.audit,
        head_codec=BOX,
        position_codec=POSITIONS,
        make_verifier=lambda: verification(storage.audit),
        clock=clock,
    )


async def verified_place(storage: Storage) -> int:
    position = POSITIONS.decode(await storage.audit.verified_position())
    assert position is not None
    return position.walk.place - 1


async def test_the_log_is_verified_as_fast_as_it_is_sealed(storage: Storage) -> None:
    clock = MovableClock(NOW)
    verifier = continuous(storage, clock)
    await storage.runner.write(lambda: audit.add_audit_records([a_record() for _ in range(3_000)]))
    await sealer(storage, clock).seal_all()
    await verifier.run_once(1_000)
    assert verifier.result.records == 1_000
    await clock.advance(2 * VERIFY_AGAIN_SECONDS)  # it goes on, until it has seen the whole log once
    await verifier.run_once(1_000)
    assert verifier.result.records == 2_000
    await verifier.run_once()
    assert (verifier.result.records, verifier.result.problems) == (3_000, ())


async def test_one_process_verifies_and_any_other_goes_on_from_there(storage: Storage) -> None:
    clock = MovableClock(NOW)
    await storage.runner.write(lambda: audit.add_audit_records([a_record() for _ in range(1_000)]))
    await sealer(storage, clock).seal_all()
    processes = [continuous(storage, clock) for _ in range(3)]
    await asyncio.gather(*(process.run_once(200) for process in processes))
    assert await verified_place(storage) % 200 == 0
    before = await verified_place(storage)
    started = continuous(storage, clock)
    await started.run_once(200)
    assert await verified_place(storage) == started.result.records == before + 200
    position = POSITIONS.decode(await storage.audit.verified_position())
    assert position is not None
    held = replace(position, holder="another", held_until=clock.now() + LEASE_SECONDS)
    await storage.installation.set_value(AUDIT_VERIFIED, POSITIONS.encode(held))
    await started.run_once()
    assert await verified_place(storage) == before + 200
    await clock.advance(LEASE_SECONDS)  # it has ended
    await started.run_once()
    assert await verified_place(storage) == 1_000


async def test_a_problem_outlives_the_process_that_found_it_and_a_forged_position_counts_for_nothing(
    storage: Storage,
) -> None:
    clock = MovableClock(NOW)
    await record(storage, 5)
    await sealer(storage, clock).seal_all()
    changed = Statement(lambda: update(audit_events).where(audit_events.c.place == 2).values(actor="someone else"))
    await tamper(storage, changed)
    await continuous(storage, clock).run_once()
    await record(storage, 1)
    await sealer(storage, clock).seal_all()
    started = continuous(storage, clock)
    await started.run_once()
    assert (started.result.records, len(started.result.problems)) == (6, 1)
    await storage.installation.set_value(AUDIT_VERIFIED, "AAAA")
    forged = continuous(storage, clock)
    await forged.run_once()
    assert forged.result == started.result
