"""Ends everything issued before a promotion (R3). A standby that became primary may have missed the last revocations.

Links and other single-use secrets are marked as used, because they may have been used already; a restore does the
same.

PostgreSQL starts a new timeline at every promotion, and at every point-in-time restore.
"""

from typing import Final

from sqlalchemy import bindparam, case, update

from gatehouse.audit.model import AuditRecord
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.installation import EPOCH, read_value, replace_value, set_value, set_value_once
from gatehouse.storage.oauth.clients import RAISED_REV
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.installation import once
from gatehouse.storage.tables.oauth import clients

TIMELINE: Final = "timeline"
TIMEOUT_SECONDS: Final = (
    3_600.0  # seconds for every row of a large table: 100,000 take some, on a busy machine more than ten
)
MILLISECONDS: Final = 1_000

RAISE_ALL = Statement(
    lambda: update(users).values(
        rev=case((users.c.rev >= bindparam("epoch"), users.c.rev + 1), else_=bindparam("epoch"))
    ),
    patience=TIMEOUT_SECONDS,
)
RAISE_CLIENTS = Statement(lambda: update(clients).values(RAISED_REV), patience=TIMEOUT_SECONDS)
SPEND_ALL = Statement(
    lambda: update(once).where(once.c.taken_at == 0).values(taken_at=bindparam("now")), patience=TIMEOUT_SECONDS
)


def record_timeline(timeline: str, *, lossless: bool, epoch: int, entry: AuditRecord) -> Verb[bool]:
    """Compare with the timeline last seen; if it differs, end every token, unless nothing can have been lost.

    Of all nodes that notice it exactly one acts; True for that one.
    """
    seen = yield from read_value(TIMELINE)
    if seen is None:
        yield from set_value_once(TIMELINE, timeline)
        return False
    if seen == timeline or not (yield from replace_value(TIMELINE, seen, timeline)) or lossless:
        return False
    yield RAISE_ALL(epoch=epoch)
    yield RAISE_CLIENTS(epoch=epoch)
    yield SPEND_ALL(now=epoch // MILLISECONDS)
    yield from set_value(EPOCH, str(epoch))
    yield from add_audit_record(entry)
    return True
