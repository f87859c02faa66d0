"""Removes what has expired. Expiry never depends on it: every reader looks at the time itself."""

from typing import Final

from sqlalchemy import and_, bindparam, delete

from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables import attempts, once

KEPT_AFTER_END: Final = 86_400  # seconds; a second use of something taken is told from an unknown thing

SWEEP_ONCE = Statement(delete(once).where(once.c.expires_at <= bindparam("ended_by")))
SWEEP_ATTEMPTS = Statement(
    delete(attempts).where(
        and_(attempts.c.blocked_until <= bindparam("now"), attempts.c.first_at <= bindparam("ended_by"))
    )
)


def sweep(now: int) -> Verb[None]:
    yield SWEEP_ONCE(ended_by=now - KEPT_AFTER_END)
    yield SWEEP_ATTEMPTS(now=now, ended_by=now - KEPT_AFTER_END)
