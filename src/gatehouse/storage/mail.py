"""Keeps the outbox (mail/store.py)."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import bindparam, case, delete, func, insert, select, update

from gatehouse.mail.model import Claim, Mail, Outstanding
from gatehouse.storage.runner import Stored, act, survey
from gatehouse.storage.statements import Notice, Row, Statement, Verb
from gatehouse.storage.tables.mail import outbox

CHANNEL: Final = "mail"
KEPT: Final = 30 * 86_400  # seconds a mail that was given up is kept for the operator to see

_TO_BE_TRIED = outbox.c.next_try_at > 0

INSERT_MAIL = Statement(insert(outbox))
# The inner select locks what it finds and steps over what another node has locked; SQLite has one writer.
_DUE = (
    select(outbox.c.mail_id)
    .where(_TO_BE_TRIED, outbox.c.next_try_at <= bindparam("now"))
    .order_by(outbox.c.next_try_at, outbox.c.mail_id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
    .cte("due")
)
CLAIM = Statement(
    update(outbox)
    .where(outbox.c.mail_id.in_(select(_DUE.c.mail_id)))
    .values(next_try_at=bindparam("until"), tries=outbox.c.tries + 1)
    .returning(outbox.c.mail_id, outbox.c.sealed, outbox.c.template, outbox.c.created_at, outbox.c.tries)
)
SENT = Statement(delete(outbox).where(outbox.c.mail_id == bindparam("of")))
FAILED = Statement(
    update(outbox)
    # Every claim counts one try more: whoever comes with an older count has lost the mail to somebody else.
    .where(outbox.c.mail_id == bindparam("of"), outbox.c.tries == bindparam("held"))
    .values(trouble=bindparam("trouble"), next_try_at=bindparam("at"))
)
COUNTS = Statement(
    select(
        func.count(case((_TO_BE_TRIED, 1))).label("waiting"),
        func.count(case((outbox.c.next_try_at == 0, 1))).label("given_up"),
    )
)
OLDEST = Statement(
    select(outbox.c.created_at, outbox.c.trouble)
    .where(_TO_BE_TRIED)
    .order_by(outbox.c.created_at, outbox.c.mail_id)
    .limit(1)
)
FORGET = Statement(delete(outbox).where(outbox.c.created_at <= bindparam("before")))


def queue(mails: Sequence[Mail], user_id: str) -> Verb[None]:
    """Part of every verb that causes mail."""
    if not mails:
        return
    yield INSERT_MAIL.many(
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
            }
            for mail in mails
        ]
    )
    yield Notice(CHANNEL, "")


def claim(now: int, lease: int, limit: int) -> Verb[Sequence[Claim]]:
    rows = yield CLAIM(now=now, until=now + lease, most=limit)
    return [_claim(row) for row in sorted(rows, key=lambda row: (row.created_at, row.mail_id))]


def sent(mail_id: str) -> Verb[None]:
    yield SENT(of=mail_id)


def failed(claim: Claim, trouble: str, next_try_at: int) -> Verb[None]:
    yield FAILED(of=claim.mail.mail_id, held=claim.tries, trouble=trouble, at=next_try_at)


def waiting() -> Verb[Outstanding]:
    counts = (yield COUNTS())[0]
    oldest = yield OLDEST()
    return Outstanding(
        waiting=counts.waiting,
        given_up=counts.given_up,
        oldest_at=oldest[0].created_at if oldest else 0,
        trouble=oldest[0].trouble if oldest else "",
    )


def forget_before(at: int) -> Verb[None]:
    """Part of sweeping: drop what was written before and never got out."""
    yield FORGET(before=at)


class MailStorage(Stored):
    queue = act(queue)
    claim = act(claim)
    sent = act(sent)
    failed = act(failed)
    waiting = survey(waiting)


def _claim(row: Row) -> Claim:
    mail = Mail(mail_id=row.mail_id, sealed=row.sealed, template=row.template, created_at=row.created_at)
    return Claim(mail=mail, tries=row.tries)
