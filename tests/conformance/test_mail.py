"""Contract tests of mail/model.py."""

import asyncio
from functools import partial

import pytest

from gatehouse.mail.model import OutboxMail, OutboxStatus
from gatehouse.storage import mail as outbox
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.statements import Verb
from tests.support import racers
from tests.support.builders import NOW, a_record
from tests.support.mail import a_mail
from tests.support.racers import WON, race

LEASE = 300


async def test_a_mail_comes_back_as_it_was_kept(storage: Storage) -> None:
    mail = a_mail(sealed=bytes(range(256)))
    await storage.mail.queue_mails([mail], "")
    [claim] = await storage.mail.claim_due(NOW, LEASE, 10)
    assert (claim.mail, claim.tries) == (mail, 1)


async def test_a_mail_is_due_at_once_and_not_before_it_was_written(storage: Storage) -> None:
    await storage.mail.queue_mails([a_mail()], "")
    assert await storage.mail.claim_due(NOW - 1, LEASE, 10) == []
    assert len(await storage.mail.claim_due(NOW, LEASE, 10)) == 1


async def test_the_longest_due_go_first_and_never_more_than_asked_for(storage: Storage) -> None:
    mails = [a_mail(created_at=NOW + n) for n in range(5)]
    await storage.mail.queue_mails(list(reversed(mails)), "")
    batches = [await storage.mail.claim_due(NOW + 10, LEASE, 2) for _ in range(4)]
    assert [[claim.mail for claim in batch] for batch in batches] == [mails[:2], mails[2:4], mails[4:], []]


async def test_a_claimed_mail_is_no_one_elses_until_its_lease_ends(storage: Storage) -> None:
    await storage.mail.queue_mails([a_mail()], "")
    await storage.mail.claim_due(NOW, LEASE, 10)
    assert await storage.mail.claim_due(NOW + LEASE - 1, LEASE, 10) == []
    [again] = await storage.mail.claim_due(NOW + LEASE, LEASE, 10)
    assert again.tries == 2


async def test_each_mail_is_claimed_by_one_of_many_workers(storage: Storage) -> None:
    mails = [a_mail() for _ in range(30)]
    await storage.mail.queue_mails(mails, "")
    batches = await asyncio.gather(*(storage.mail.claim_due(NOW, LEASE, 4) for _ in range(12)))
    claimed = [claim.mail.mail_id for batch in batches for claim in batch]
    assert sorted(claimed) == sorted(mail.mail_id for mail in mails)


async def test_between_processes_too_each_mail_goes_to_one(migrated_url: str) -> None:
    async with open_storage(migrated_url, migrate=False) as storage:
        await storage.mail.queue_mails([a_mail() for _ in range(7)], "")
    assert race(racers.claim_mail, migrated_url) == {WON: 7, "NotFound": 13}


async def test_sent_mail_is_deleted_and_deleting_twice_is_harmless(storage: Storage) -> None:
    mail, other = a_mail(), a_mail()
    await storage.mail.queue_mails([mail, other], "")
    await storage.mail.claim_due(NOW, LEASE, 10)
    await storage.mail.delete_sent(mail.mail_id)
    await storage.mail.delete_sent(mail.mail_id)
    assert [claim.mail for claim in await storage.mail.claim_due(NOW + LEASE, LEASE, 10)] == [other]


async def test_failed_mail_is_due_again_on_time_and_keeps_its_error(storage: Storage) -> None:
    await storage.mail.queue_mails([a_mail()], "")
    [claim] = await storage.mail.claim_due(NOW, LEASE, 10)
    await storage.mail.record_failure(claim, "451 greylisted", NOW + 60)
    assert (await storage.mail.outbox_status()).trouble == "451 greylisted"
    assert await storage.mail.claim_due(NOW + 59, LEASE, 10) == []
    assert [again.tries for again in await storage.mail.claim_due(NOW + 60, LEASE, 10)] == [2]


async def test_abandoned_mail_is_never_due_and_still_counted(storage: Storage) -> None:
    await storage.mail.queue_mails([a_mail(), a_mail(created_at=NOW - 9)], "")
    claims = await storage.mail.claim_due(NOW, LEASE, 10)
    await storage.mail.record_failure(claims[0], "550 no such mailbox", 0)
    await storage.mail.delete_sent(claims[1].mail.mail_id)
    assert await storage.mail.claim_due(NOW + 10**9, LEASE, 10) == []
    assert await storage.mail.outbox_status() == OutboxStatus(waiting=0, given_up=1, oldest_at=0, trouble="")


async def test_worker_that_lost_its_lease_cannot_release_the_mail(storage: Storage) -> None:
    await storage.mail.queue_mails([a_mail()], "")
    [slow] = await storage.mail.claim_due(NOW, LEASE, 10)
    [quick] = await storage.mail.claim_due(NOW + LEASE, LEASE, 10)
    await storage.mail.record_failure(slow, "too late", NOW)
    assert await storage.mail.claim_due(NOW + LEASE, LEASE, 10) == []
    await storage.mail.record_failure(quick, "451", NOW + LEASE + 60)
    assert (await storage.mail.outbox_status()).trouble == "451"


async def test_the_outbox_is_counted(storage: Storage) -> None:
    assert await storage.mail.outbox_status() == OutboxStatus(waiting=0, given_up=0, oldest_at=0, trouble="")
    await storage.mail.queue_mails([a_mail(created_at=NOW - n) for n in range(3)], "")
    assert await storage.mail.outbox_status() == OutboxStatus(waiting=3, given_up=0, oldest_at=NOW - 2, trouble="")


async def test_queueing_wakes_the_postman_after_the_commit(storage: Storage) -> None:
    claimed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    looks = set()

    async def look_for_mail() -> None:
        outstanding = await storage.mail.outbox_status()
        if outstanding.waiting and not claimed.done():
            claimed.set_result(outstanding.waiting)

    def on_notice(_payload: str) -> None:
        looks.add(asyncio.ensure_future(look_for_mail()))

    forget = storage.runner.listen(outbox.CHANNEL, on_notice)
    await storage.mail.queue_mails([a_mail()], "")
    assert await asyncio.wait_for(claimed, 10) == 1
    forget()
    await asyncio.gather(*looks)


async def test_no_mail_is_queued_when_its_transaction_rolls_back(storage: Storage) -> None:
    def act(mail: OutboxMail, *, succeed: bool) -> Verb[None]:
        yield from add_audit_record(a_record())
        yield from outbox.queue_mails([mail], "")
        if not succeed:
            raise LookupError("refused after all")

    with pytest.raises(LookupError):
        await storage.runner.write(partial(act, a_mail(), succeed=False))
    assert (await storage.mail.outbox_status()).waiting == 0
    await storage.runner.write(partial(act, a_mail(), succeed=True))
    assert (await storage.mail.outbox_status()).waiting == 1


async def test_an_act_without_mail_queues_nothing(storage: Storage) -> None:
    await storage.mail.queue_mails([], "")
    assert (await storage.mail.outbox_status()).waiting == 0


async def test_unsent_mail_is_deleted_after_the_retention_period(storage: Storage) -> None:
    old, young = (
        a_mail(created_at=NOW - outbox.RETENTION_SECONDS),
        a_mail(created_at=NOW - outbox.RETENTION_SECONDS + 1),
    )
    await storage.mail.queue_mails([old, young], "")
    await storage.runner.write(partial(outbox.delete_mails_before, NOW - outbox.RETENTION_SECONDS))
    assert [claim.mail for claim in await storage.mail.claim_due(NOW, LEASE, 10)] == [young]
