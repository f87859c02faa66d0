"""Stores the outbox of emails and text messages (mail/model.py)."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import bindparam, case, delete, func, insert, select, update

from gatehouse.mail.model import Channel, ClaimedMail, OutboxMail, OutboxStatus
from gatehouse.storage.runner import SqlStore, snapshot_read, write
from gatehouse.storage.statements import Notification, Row, Statement, Verb
from gatehouse.storage.tables.outgoing import outbox

CHANNEL: Final = "mail"
RETENTION_SECONDS: Final = 30 * 86_400  # seconds a failed mail is kept for the operator to see

_IS_WAITING = outbox.c.next_try_at > 0
_OF_CHANNEL = outbox.c.channel == bindparam("of_channel")

INSERT_MAIL = Statement(lambda: insert(outbox))
# The inner select locks the rows it finds and skips those another node has locked; SQLite has one writer.
_DUE = (
    select(outbox.c.mail_id)
    .where(_IS_WAITING, outbox.c.next_try_at <= bindparam("now"), _OF_CHANNEL)
    .order_by(outbox.c.next_try_at, outbox.c.mail_id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
    .cte("due")
)
CLAIM_MAILS = Statement(
    lambda: (
        update(outbox)
        .where(outbox.c.mail_id.in_(select(_DUE.c.mail_id)))
        .values(next_try_at=bindparam("until"), tries=outbox.c.tries + 1)
        .returning(outbox.c.mail_id, outbox.c.sealed, outbox.c.template, outbox.c.created_at, outbox.c.tries)
    )
)
DROP_SENT = Statement(lambda: delete(outbox).where(outbox.c.mail_id == bindparam("of")))
RECORD_FAILURE = Statement(
    lambda: (
        update(outbox)
        # Every claim adds one try: a worker with an older count has lost the mail to another one.
        .where(outbox.c.mail_id == bindparam("of"), outbox.c.tries == bindparam("held"))
        .values(trouble=bindparam("trouble"), next_try_at=bindparam("at"))
    )
)
COUNT_OUTBOX = Statement(
    lambda: select(
        func.count(case((_IS_WAITING, 1))).label("waiting"),
        func.count(case((outbox.c.next_try_at == 0, 1))).label("given_up"),
    ).where(_OF_CHANNEL)
)
OLDEST_WAITING = Statement(
    lambda: (
        select(outbox.c.created_at, outbox.c.trouble)
        .where(_IS_WAITING, _OF_CHANNEL)
        .order_by(outbox.c.created_at, outbox.c.mail_id)
        .limit(1)
    )
)
DROP_OLD_MAILS = Statement(lambda: delete(outbox).where(outbox.c.created_at <= bindparam("before")))


def queue_mails(mails: Sequence[OutboxMail], user_id: str) -> Verb[None]:
    """Part of every verb that causes mail."""
    if not mails:
        return
    yield INSERT_MAIL.bulk(
        [
            {
                "mail_id": mail.mail_id,
                "sealed": mail.sealed,
                "user_id": user_id,
                "template": mail.template,
                "created_at": mail.created_at,
                "tries": 0,
                "next_try_at": mail.created_at,
                "trouble": "",
                "channel": mail.channel.value,
            }
            for mail in mails
        ]
    )
    yield Notification(CHANNEL, "")


def claim_due(now: int, lease: int, limit: int, channel: Channel = Channel.EMAIL) -> Verb[Sequence[ClaimedMail]]:
    rows = yield CLAIM_MAILS(now=now, until=now + lease, most=limit, of_channel=channel.value)
    return [_claim_from_row(row, channel) for row in sorted(rows, key=lambda row: (row.created_at, row.mail_id))]


def delete_sent(mail_id: str) -> Verb[None]:
    yield DROP_SENT(of=mail_id)


def record_failure(claim: ClaimedMail, trouble: str, next_try_at: int) -> Verb[None]:
    yield RECORD_FAILURE(of=claim.mail.mail_id, held=claim.tries, trouble=trouble, at=next_try_at)


def outbox_status(channel: Channel = Channel.EMAIL) -> Verb[OutboxStatus]:
    counts = (yield COUNT_OUTBOX(of_channel=channel.value))[0]
    oldest = yield OLDEST_WAITING(of_channel=channel.value)
    return OutboxStatus(
        waiting=counts.waiting,
        given_up=counts.given_up,
        oldest_at=oldest[0].created_at if oldest else 0,
        trouble=oldest[0].trouble if oldest else "",
    )


def delete_mails_before(at: int) -> Verb[None]:
    """Delete mails that were written before this time and never sent; part of sweeping."""
    yield DROP_OLD_MAILS(before=at)


class OutboxStorage(SqlStore):
    queue_mails = write(queue_mails)
    claim_due = write(claim_due)
    delete_sent = write(delete_sent)
    record_failure = write(record_failure)
    outbox_status = snapshot_read(outbox_status)


def _claim_from_row(row: Row, channel: Channel) -> ClaimedMail:
    mail = OutboxMail(
        mail_id=row.mail_id, sealed=row.sealed, template=row.template, created_at=row.created_at, channel=channel
    )
    return ClaimedMail(mail=mail, tries=row.tries)
