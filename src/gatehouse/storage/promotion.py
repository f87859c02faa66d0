"""Ends everything issued before a promotion (R3). A standby that became primary may have missed the last revocations.

Links and other single-use secrets end too, because they may have been used already; a restore does the same.

PostgreSQL starts a new timeline at every promotion, and at every point-in-time restore.
"""

from typing import Final

from gatehouse.audit.model import AuditRecord
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.epoch import raise_epoch
from gatehouse.storage.installation import read_value, replace_value, set_value_once
from gatehouse.storage.statements import Verb

TIMELINE: Final = "timeline"


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
    yield from raise_epoch(epoch)
    yield from add_audit_record(entry)
    return True
